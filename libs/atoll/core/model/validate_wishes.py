"""Rules of what a job wishes of where and when it runs."""

from typing import Final

from atoll.core.model.spec import AntiAffinity, Checkpoint, Elastic, JobSpec, Spread
from atoll.core.model.validate_faults import Faults
from atoll.core.model.validate_shape import MOST_TASKS
from atoll.core.model.validate_text import check_job_name, check_topology_level

SIGNALS: Final = frozenset({
    "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGTERM", "SIGCONT",
    "SIGURG", "SIGXCPU", "SIGWINCH",
})  # fmt: skip
"""Signals that a run can be told to save its work with."""

YEAR_S: Final = 366 * 86_400
MOST_SECONDS: Final = 10 * YEAR_S
MOST_GRACE_S: Final = 86_400
MOST_UNIX_S: Final = 253_402_300_799  # the end of the year 9999
MOST_SIZES: Final = 1_024
MOST_WORK: Final = 1e18
MOST_MICROS: Final = 10_000_000 * 1_000_000
"""Micro-dollars that anybody may mean; more is a slip."""


def check_wishes(faults: Faults, dot: str, spec: JobSpec) -> None:
    """Times, topology, distance, checkpoints and sizes of a job; `dot` goes before its fields."""
    faults.number(f"{dot}time_limit_s", spec.time_limit_s, least=0, most=MOST_SECONDS)
    faults.number(f"{dot}begin_at", spec.begin_at, least=0, most=MOST_UNIX_S)
    faults.number(f"{dot}deadline_at", spec.deadline_at, least=0, most=MOST_UNIX_S)
    faults.number(f"{dot}grace_s", spec.grace_s, least=0, most=MOST_GRACE_S)
    faults.number(f"{dot}restart_cost_s", spec.restart_cost_s, least=0, most=MOST_SECONDS)
    faults.number(f"{dot}burst.max_cost", spec.burst_max_cost, least=0, most=MOST_MICROS)
    if spec.reservation:
        check_job_name(faults, f"{dot}reservation", spec.reservation)
    if spec.topology is not None:
        check_topology_level(faults, f"{dot}topology.level", spec.topology.level)
    if spec.anti_affinity is not None:
        _check_anti_affinity(faults, f"{dot}anti_affinity", spec.anti_affinity)
    if spec.checkpoint is not None:
        _check_checkpoint(faults, f"{dot}checkpoint", spec.checkpoint)
    if spec.elastic is not None:
        _check_elastic(faults, f"{dot}elastic", spec.elastic)
        _check_sizes(faults, f"{dot}elastic", spec)


def check_spread(faults: Faults, at: str, spread: Spread) -> None:
    """How many tasks of a group one domain may have."""
    check_topology_level(faults, f"{at}.level", spread.level)
    faults.number(f"{at}.most", spread.most, least=1, most=MOST_TASKS, unit="tasks")


def _check_anti_affinity(faults: Faults, at: str, apart: AntiAffinity) -> None:
    check_job_name(faults, f"{at}.name", apart.name)
    check_topology_level(faults, f"{at}.level", apart.level)


def _check_checkpoint(faults: Faults, at: str, checkpoint: Checkpoint) -> None:
    faults.one_of(f"{at}.signal", checkpoint.signal, SIGNALS)
    faults.number(f"{at}.grace_s", checkpoint.grace_s, least=0, most=MOST_GRACE_S)
    faults.number(f"{at}.interval_s", checkpoint.interval_s, least=0, most=MOST_SECONDS)


def _check_elastic(faults: Faults, at: str, elastic: Elastic) -> None:
    sizes = elastic.throughput
    faults.length(f"{at}.throughput", len(sizes), least=1, most=MOST_SIZES, of="sizes")
    for tasks, rate in sizes:
        place = f"{at}.throughput[{tasks}]"
        faults.number(place, tasks, least=1, most=MOST_TASKS, unit="tasks")
        if not 0 < rate <= MOST_WORK:
            faults.add(place, f"{rate:g} is no work per second: above 0, at most {MOST_WORK:g}")
    if not 0 < elastic.work <= MOST_WORK:
        faults.add(f"{at}.work", f"{elastic.work:g} is not above 0 and at most {MOST_WORK:g}")
    faults.number(f"{at}.rescale_cost_s", elastic.rescale_cost_s, least=0, most=MOST_GRACE_S)


def _check_sizes(faults: Faults, at: str, spec: JobSpec) -> None:
    if spec.elastic is None or len(spec.groups) != 1:
        faults.add(at, "a job that grows and shrinks has one task group")
        return
    (group,) = spec.groups
    for tasks, _ in spec.elastic.throughput:
        if 1 <= tasks < group.min_count or group.count < tasks <= MOST_TASKS:
            span = f"{group.min_count} to {group.count} tasks"
            faults.add(f"{at}.throughput[{tasks}]", f"{tasks} is not within the gang's {span}")
