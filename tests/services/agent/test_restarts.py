"""Agents that die, and what the next one makes of it. The oracle counts what really ran."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from atoll.agent.backends.local import group_name
from atoll.agent.localrun.cgroups import find_cgroups
from atoll.agent.settings import AgentSettings
from atoll.core.model.ids import AttemptId
from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.reason import ReasonCode
from atoll.core.model.spec import JobSpec, OnLost
from tests.services.agent.fake_dispatch import FakeDispatch
from tests.services.agent.jobs import attempt, job, on
from tests.services.agent.running import (
    AgentProcess,
    ledger,
    local,
    simulated,
    write_misbehaviour,
)
from tests.support.lines import whole_lines
from tests.support.waiting import eventually

STARTED, FINISHED, STOPPED = AttemptEvent.STARTED, AttemptEvent.FINISHED, AttemptEvent.STOPPED
EVERYWHERE = (
    "agent.journalled",
    "agent.before_start",
    "agent.after_start",
    "agent.before_report",
    "agent.before_report:kill:2",
)


@dataclass(frozen=True)
class Killable:
    """An agent's process, and how to see what its backend really started."""

    process: AgentProcess
    marks: Path

    @property
    def settings(self) -> AgentSettings:
        return self.process.settings

    def job(self, number: int, seconds: float = 0.0, exit_code: int = 0) -> JobSpec:
        """A job that leaves a mark when it really runs."""
        run = f"echo {number} >> {self.marks}; sleep {seconds}; exit {exit_code}"
        return job(seconds, exit_code, run=run)

    def starts(self) -> Counter[AttemptId]:
        """How often each attempt was really started."""
        if self.settings.backend == "simulated":
            return Counter(AttemptId(entry["attempt"]) for entry in ledger(self.settings, "start"))
        return Counter(attempt(int(line)) for line in whole_lines(self.marks))


Make = Callable[[Path, FakeDispatch], AgentSettings]


async def killable(make: Make, dispatch: FakeDispatch, folder: Path) -> AsyncIterator[Killable]:
    process = AgentProcess(make(folder, dispatch))
    yield Killable(process, folder / "marks")
    await process.kill()
    find_cgroups(group_name(process.settings)).tidy()


@pytest.fixture(params=[simulated, local], ids=["simulated", "local"])
async def agent(
    request: pytest.FixtureRequest, dispatch: FakeDispatch, tmp_path: Path
) -> AsyncIterator[Killable]:
    async for made in killable(request.param, dispatch, tmp_path):
        yield made


@pytest.fixture
async def sim(dispatch: FakeDispatch, tmp_path: Path) -> AsyncIterator[Killable]:
    async for made in killable(simulated, dispatch, tmp_path):
        yield made


@pytest.fixture
async def here(dispatch: FakeDispatch, tmp_path: Path) -> AsyncIterator[Killable]:
    async for made in killable(local, dispatch, tmp_path):
        yield made


def once(attempts: Iterable[AttemptId]) -> Counter[AttemptId]:
    return Counter(attempts)


async def dies_and_goes_on(dispatch: FakeDispatch, agent: Killable, failpoint: str) -> None:
    """Start one job under a failpoint, let the next agent go on, and see that it ran once."""
    await agent.process.start(failpoint=failpoint)
    dispatch.start_attempt(attempt(1), agent.job(1, exit_code=4), on(0))
    dispatch.push()
    assert await agent.process.died() == -9
    await agent.process.start()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert dispatch.end_of(attempt(1)).event is FINISHED
    assert dispatch.end_of(attempt(1)).exit_code == 4
    assert agent.starts() == once([attempt(1)])


@pytest.mark.parametrize("failpoint", EVERYWHERE)
async def test_an_attempt_runs_once_wherever_the_agent_dies(
    dispatch: FakeDispatch, agent: Killable, failpoint: str
) -> None:
    await dies_and_goes_on(dispatch, agent, failpoint)


async def test_a_simulated_run_that_nobody_heard_of_is_found(
    dispatch: FakeDispatch, sim: Killable
) -> None:
    await dies_and_goes_on(dispatch, sim, "sim.started")


async def test_a_gang_that_was_bound_in_part_is_unwound_by_the_next_agent(
    dispatch: FakeDispatch, sim: Killable
) -> None:
    write_misbehaviour(sim.settings, {"nodes": {"n-0001": {"hang": True}}, "bind_timeout_s": 3600})
    await sim.process.start(failpoint="sim.started")
    dispatch.start_attempt(attempt(1), sim.job(1), on(0, 1))
    dispatch.push()
    assert await sim.process.died() == -9
    assert [start["partial"] for start in ledger(sim.settings, "start")] == [True]
    write_misbehaviour(sim.settings, {})
    await sim.process.start()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert dispatch.events(attempt(1)) == [AttemptEvent.REJECTED]
    assert [stop["how"] for stop in ledger(sim.settings, "stop")] == ["UNWOUND"]


@pytest.mark.parametrize("failpoint", ["local.before_launch", "local.after_launch"])
async def test_a_wrapper_runs_once_wherever_its_starter_dies(
    dispatch: FakeDispatch, here: Killable, failpoint: str
) -> None:
    await dies_and_goes_on(dispatch, here, failpoint)


async def test_a_stop_that_comes_while_the_agent_is_dead_is_obeyed(
    dispatch: FakeDispatch, agent: Killable
) -> None:
    await agent.process.start(failpoint="agent.after_start")
    dispatch.start_attempt(attempt(1), agent.job(1, 300), on(0))
    dispatch.push()
    await agent.process.died()
    dispatch.stop_attempt(attempt(1))
    await agent.process.start()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert dispatch.end_of(attempt(1)).event is STOPPED
    assert agent.starts() == once([attempt(1)])


async def test_what_was_journalled_and_stopped_since_never_starts(
    dispatch: FakeDispatch, agent: Killable
) -> None:
    await agent.process.start(failpoint="agent.journalled")
    dispatch.start_attempt(attempt(1), agent.job(1), on(0))
    dispatch.push()
    await agent.process.died()
    dispatch.stop_attempt(attempt(1))
    await agent.process.start()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert dispatch.events(attempt(1)) == [STOPPED]
    assert not (agent.marks).exists()


async def test_what_is_said_to_be_applied_is_on_disk(dispatch: FakeDispatch, sim: Killable) -> None:
    dispatch.answer_heartbeats = False
    everyone = list(map(attempt, range(1, 51)))
    for one in everyone:
        dispatch.start_attempt(one, job(), on(0))
    await sim.process.start()
    await dispatch.until(lambda: dispatch.applied_seq == 50)
    await sim.process.kill()
    assert sim.starts() == once([])
    dispatch.answer_heartbeats = True
    await sim.process.start()
    await dispatch.until(lambda: dispatch.ended(*everyone))
    assert dispatch.hellos[-1].applied_seq == 50
    assert sim.starts() == once(everyone)


async def test_a_frozen_agent_goes_on_where_it_was(dispatch: FakeDispatch, sim: Killable) -> None:
    await sim.process.start(failpoint="agent.before_report:pause")
    dispatch.start_attempt(attempt(1), sim.job(1), on(0))
    dispatch.push()
    await eventually(lambda: sim.starts() == once([attempt(1)]))
    dispatch.drop()
    await sim.process.kill()
    await sim.process.start()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert sim.starts() == once([attempt(1)])


async def test_two_hundred_attempts_survive_kills_in_the_middle(
    dispatch: FakeDispatch, sim: Killable
) -> None:
    count = 200
    for number in range(1, count + 1):
        dispatch.start_attempt(attempt(number), sim.job(number, number % 5 / 10), on(number % 4))
    for failpoint in ("agent.journalled", "agent.before_report"):
        await sim.process.start(failpoint=failpoint)
        assert await sim.process.died() == -9
    await sim.process.start()
    await dispatch.until(lambda: len(dispatch.reports) > count)
    await sim.process.kill()
    await sim.process.start()
    everyone = list(map(attempt, range(1, count + 1)))
    await dispatch.until(lambda: dispatch.ended(*everyone))
    assert {dispatch.end_of(one).event for one in everyone} == {FINISHED}
    assert sim.starts() == once(everyone)
    assert ledger(sim.settings, "violation") == []


@pytest.mark.parametrize("damage", [b"", b"\x00" * 30, b"\x20\x00\x00\x00garbage"])
async def test_a_torn_journal_loses_nothing_that_was_acknowledged(
    dispatch: FakeDispatch, sim: Killable, damage: bytes
) -> None:
    await sim.process.start()
    dispatch.start_attempt(attempt(1), sim.job(1), on(0))
    dispatch.start_attempt(attempt(2), sim.job(2, 300), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(1)) and bool(dispatch.events(attempt(2))))
    await sim.process.kill()
    with (sim.settings.data_dir / "journal").open("ab") as journal:
        journal.write(damage)
    dispatch.stop_attempt(attempt(2))
    await sim.process.start()
    await dispatch.until(lambda: dispatch.ended(attempt(2)))
    assert dispatch.events(attempt(2)) == [STARTED, STOPPED]
    assert dispatch.hellos[-1].applied_seq == 2
    assert sim.starts() == once([attempt(1), attempt(2)])


async def test_runs_live_on_over_an_orderly_restart(
    dispatch: FakeDispatch, agent: Killable
) -> None:
    await agent.process.start()
    dispatch.start_attempt(attempt(1), agent.job(1, 2.0, 6), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.events(attempt(1))[:1] == [STARTED])
    await agent.process.terminate()
    assert dispatch.goodbyes == 1
    await agent.process.start()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert dispatch.events(attempt(1)) == [STARTED, FINISHED]
    assert dispatch.end_of(attempt(1)).exit_code == 6
    assert agent.starts() == once([attempt(1)])


@pytest.mark.parametrize("make", [simulated, local], ids=["simulated", "local"])
async def test_a_guarded_run_is_over_when_its_agent_comes_back_too_late(
    make: Make, dispatch: FakeDispatch, tmp_path: Path
) -> None:
    settings = make(tmp_path, dispatch).model_copy(update={"stop_after_s": 1.0})
    process = AgentProcess(settings)
    await process.start()
    spec = job(300, on_lost=OnLost.REQUEUE)
    dispatch.start_attempt(attempt(1), spec, on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.events(attempt(1))[:1] == [STARTED])
    await process.kill()
    await asyncio.sleep(2.0)
    await process.start()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    assert dispatch.end_of(attempt(1)).event is STOPPED
    assert dispatch.end_of(attempt(1)).reason is ReasonCode.STOPPED_BY_GUARD
    await process.terminate()


async def test_a_data_folder_has_one_agent(dispatch: FakeDispatch, sim: Killable) -> None:
    await sim.process.start()
    await dispatch.until(lambda: bool(dispatch.heartbeats))
    second = AgentProcess(sim.settings)
    await second.start()
    assert await second.died() == 1
    assert len(dispatch.hellos) == 1
