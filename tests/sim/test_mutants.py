"""Without one of the product's guards, a simulation finds the violation that it prevents."""

from typing import Any

import pytest

from atoll.agent.simcluster.engine import Engine
from atoll.core.state.world import World
from atoll.dispatch.usecases import reports
from atoll.sim.service import ending, rules, simulation, truth
from tests.sim.small import scenario, simulate


def test_a_guard_that_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def only_what_is_due(self: Engine, now: float) -> Any:
        return self._pop(now)

    monkeypatch.setattr(Engine, "_due", only_what_is_due)
    cut = {"what": "silent-agent", "at": ["10m"], "lasts": "15m", "cluster": "north"}
    found = simulate(scenario(cut, jobs={"requeue": 1.0})).violation
    assert found is not None
    assert found.invariant == rules.REALLY
    assert any("cut off" in str(note) for note in found.story)


def test_a_leader_that_forgets_what_it_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(World, "add_allocations", lambda self, holdings: None)
    jobs = {"sizes": {0.6: 1.0}, "jobs": 40, "over": "1m"}
    found = simulate(scenario(jobs=jobs)).violation
    assert found is not None
    assert found.invariant in (rules.ONE_OWNER, truth.NO_VIOLATION, simulation.LEDGER)


def test_a_dispatch_that_answers_reports_and_does_not_apply_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def nothing(tx: object, fold: object) -> None:
        pass

    monkeypatch.setattr(reports, "_write", nothing)
    found = simulate(scenario(settle="1h")).violation
    assert found is not None
    assert found.invariant == ending.CONVERGED
