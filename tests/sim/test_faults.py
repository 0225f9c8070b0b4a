"""What must hold under each fault, each of which really happens."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from atoll.sim.service.simulation import Result
from tests.sim.small import scenario, simulate


@dataclass(frozen=True)
class Case:
    name: str
    faults: tuple[dict[str, Any], ...]
    really: Callable[[Result], bool]
    """Whether it happened, and did what it is about."""
    more: dict[str, Any]


def case(name: str, *faults: dict[str, Any], really: Callable[[Result], bool], **more: Any) -> Case:
    return Case(name, faults, really, more)


def told(result: Result, text: str) -> bool:
    return any(text in line for line in result.story)


CASES = [
    case(
        "a node dies under its runs",
        {"what": "node-death", "at": ["5m", "12m", "20m"], "nodes": 2, "lasts": "3m"},
        really=lambda r: 0 < r.ended["NODE_DIED"] <= r.hit["runs on nodes of node-death"],
    ),
    case(
        "devices vanish from nodes",
        {"what": "device-loss", "at": ["2m", "8m", "15m"], "nodes": 3, "lasts": "10m"},
        really=lambda r: told(r, "loses a device") and r.record.capacity[1][1] < 4800,
    ),
    case(
        "spot nodes are revoked",
        {"what": "revoked-spot", "at": ["8m", "20m"], "nodes": 3, "labels": {"market": "spot"}},
        really=lambda r: r.hit["runs on nodes of revoked-spot"] > 0,
        clusters=[
            {
                "name": "south",
                "nodes": [
                    {
                        "name": "s",
                        "count": 4,
                        "cpus": 64,
                        "memory": "512Gi",
                        "labels": {"market": "spot"},
                        "devices": {"kind": "H100", "count": 8, "memory": "80Gi"},
                    }
                ],
            }
        ],
    ),
    case(
        "an agent is cut off for a moment, and its runs go on",
        {"what": "silent-agent", "at": ["10m"], "lasts": "50s", "cluster": "north"},
        really=lambda r: r.hit["messages held up"] > 0 and "GUARD" not in r.ended,
    ),
    case(
        "an agent is cut off for good, and its runs are stopped by their guards and run elsewhere",
        {"what": "silent-agent", "at": ["10m"], "lasts": "15m", "cluster": "north"},
        really=lambda r: r.ended["GUARD"] > 0 and told(r, "LOST"),
        jobs={"requeue": 1.0},
    ),
    case(
        "an agent dies and comes back while its runs go on",
        {"what": "agent-restart", "at": ["6m", "12m", "18m"], "lasts": "30s"},
        really=lambda r: r.hit["runs of killed agents"] > 0,
    ),
    case(
        "answers come after the bind deadline",
        {"what": "late-answers", "at": ["1s"], "lasts": "20m", "delay": "90s"},
        really=lambda r: told(r, "STOP") and told(r, "BIND_DEADLINE"),
    ),
    case(
        "messages are slow",
        {"what": "slow-link", "at": ["1s"], "lasts": "25m", "delay": "4s", "cluster": "north"},
        really=lambda r: r.hit["messages slowed"] > 10,
    ),
    case(
        "a cluster rejects everything",
        {"what": "rejecting-cluster", "at": ["1s"], "lasts": "10m", "cluster": "north"},
        really=lambda r: told(r, "REJECTED"),
    ),
    case(
        "healthy leaders are deposed",
        {"what": "leader-change", "at": ["5m", "10m", "15m", "20m"]},
        really=lambda r: r.hit["leaders deposed"] == 4 and r.leaders >= 5,
    ),
    case(
        "leaders die",
        {"what": "leader-death", "at": ["5m", "12m", "20m"], "lasts": "1m"},
        really=lambda r: r.hit["leaders killed"] == 3 and r.leaders >= 4,
    ),
    case(
        "dispatch dies, and agents go to another replica",
        {"what": "dispatch-death", "every": "4m", "lasts": "1m"},
        really=lambda r: r.hit["sessions broken"] > 0,
    ),
    case(
        "the replies to commits are lost",
        {"what": "lost-commit-reply", "every": "1m", "of": "any"},
        {"what": "lost-commit-reply", "every": "2m", "of": "placement"},
        {"what": "lost-commit-reply", "every": "2m", "of": "submission"},
        really=lambda r: r.hit["replies lost"] > 20,
    ),
    case(
        "the store refuses to commit",
        {"what": "store-away", "at": ["5m", "15m"], "lasts": "40s"},
        really=lambda r: r.hit["commits refused to any"] > 10,
    ),
    case(
        "hints are lost, and the stream is down and is flushed",
        {"what": "lost-hints", "at": ["1m"], "lasts": "20m"},
        {"what": "stream-down", "at": ["5m"], "lasts": "5m"},
        {"what": "stream-flushed", "every": "2m"},
        really=lambda r: r.happened["stream-flushed"] > 5 and r.happened["lost-hints"] == 1,
    ),
    case(
        "nobody can be elected while leaders are deposed",
        {"what": "election-down", "at": ["5m"], "lasts": "4m"},
        {"what": "leader-change", "at": ["6m"]},
        really=lambda r: r.happened["election-down"] == 1 and r.leaders >= 2,
    ),
    case(
        "users cancel what waits and what runs",
        really=lambda r: told(r, "cancelled by its user") and told(r, "CANCELLED"),
        jobs={"cancelled": 0.6},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_must_hold_holds(case: Case) -> None:
    result = simulate(scenario(*case.faults, **case.more))
    assert result.violation is None, result.violation
    assert case.really(result), (result.happened, result.hit, result.ended)
    jobs = result.record.jobs.values()
    assert len(jobs) == 30
    assert {job.state for job in jobs} <= {"SUCCEEDED", "CANCELLED"}
    assert not result.record.running
    assert result.checks > 100
