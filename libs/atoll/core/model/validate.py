"""The rules that a job spec and a queue keep: pure, and all violations at once, named by path.

Everything that a user can get wrong without looking at a cluster or the store is found here. What
passes fits the store's columns and the scheduler's integers: sums over a whole job stay below 2^63.
"""

from collections.abc import Collection
from typing import Final

from atoll.core.model.booking import JOB_LABEL
from atoll.core.model.errors import FieldViolation
from atoll.core.model.ids import JobId
from atoll.core.model.job import Queue
from atoll.core.model.priority import DEFAULT_CLASSES
from atoll.core.model.spec import JobSpec, TaskGroup
from atoll.core.model.validate_faults import Faults
from atoll.core.model.validate_queue import MOST_BLOCKS, check_shares
from atoll.core.model.validate_shape import MOST_TASKS, check_shape
from atoll.core.model.validate_text import (
    check_environment,
    check_group_name,
    check_job_name,
    check_labels,
    check_path,
    check_queue_name,
    check_script,
    check_text,
)
from atoll.core.model.validate_wishes import check_spread, check_wishes

DEFAULT_NAMES: Final = frozenset(each.name for each in DEFAULT_CLASSES)
"""Of the priority classes, where nobody set up others."""

MOST_GROUPS: Final = 64
MOST_SHAPES: Final = 16
MOST_PORTS: Final = 64
MOST_DEPENDENCIES: Final = 256
MOST_RETRIES: Final = 1_000
MOST_DESCRIPTION: Final = 4_096
INT32: Final = (1 << 31) - 1


def check_spec(
    spec: JobSpec,
    *,
    at: str,
    profiles: Collection[str],
    classes: Collection[str] = DEFAULT_NAMES,
) -> list[FieldViolation]:
    """Every rule that a spec breaks.

    `at` is its path; `profiles` are the MIG profiles known, `classes` the priority classes.
    """
    faults = Faults()
    dot = f"{at}." if at else ""
    check_job_name(faults, f"{dot}name", spec.name)
    check_queue_name(faults, f"{dot}queue", spec.queue)
    faults.one_of(f"{dot}priority_class", spec.priority_class, classes)
    _check_groups(faults, dot, spec, profiles=profiles)
    check_labels(faults, f"{dot}labels", spec.labels)
    if any(key == JOB_LABEL for key, _ in spec.labels):
        # With another job's number it would be let into that job's bookings.
        faults.add(f"{dot}labels['{JOB_LABEL}']", "is Atoll's own; use another key")
    check_environment(faults, f"{dot}secrets", spec.secrets)
    check_path(faults, f"{dot}output", spec.output)
    _check_ports(faults, f"{dot}ports", spec.ports)
    check_wishes(faults, dot, spec)
    _check_dependencies(faults, f"{dot}depends_on", spec.depends_on)
    faults.number(f"{dot}retries", spec.retries, least=0, most=MOST_RETRIES)
    return faults.found


def check_queue(queue: Queue, *, at: str = "queue") -> list[FieldViolation]:
    """Every rule that a queue breaks."""
    faults = Faults()
    check_queue_name(faults, f"{at}.name", queue.name)
    check_text(faults, f"{at}.description", queue.description, most=MOST_DESCRIPTION)
    faults.number(f"{at}.max_queued_jobs", queue.max_queued_jobs, least=0, most=INT32)
    faults.number(f"{at}.device_limit_blocks", queue.device_limit, least=0, most=MOST_BLOCKS)
    check_shares(faults, at, queue)
    return faults.found


def _check_groups(faults: Faults, dot: str, spec: JobSpec, *, profiles: Collection[str]) -> None:
    groups = spec.groups
    faults.length(f"{dot}groups", len(groups), least=1, most=MOST_GROUPS, of="task groups")
    for i, group in enumerate(groups):
        _check_group(faults, f"{dot}groups[{i}]", group, profiles=profiles)
    if len(groups) > 1:
        _check_group_names(faults, dot, groups)
        faults.number(f"{dot}groups", spec.task_count, least=1, most=MOST_TASKS, unit="tasks")


def _check_group(faults: Faults, at: str, group: TaskGroup, *, profiles: Collection[str]) -> None:
    check_group_name(faults, f"{at}.name", group.name)
    if faults.number(f"{at}.count", group.count, least=1, most=MOST_TASKS):
        faults.number(f"{at}.min_count", group.min_count, least=1, most=group.count)
    shapes = group.shapes
    faults.length(f"{at}.shapes", len(shapes), least=1, most=MOST_SHAPES, of="alternatives")
    for i, shape in enumerate(shapes):
        check_shape(faults, f"{at}.shapes[{i}]", shape, profiles=profiles)
    if not group.run:
        faults.add(f"{at}.run", "is empty: there is nothing to run")
    check_script(faults, f"{at}.run", group.run)
    check_script(faults, f"{at}.setup", group.setup)
    check_environment(faults, f"{at}.envs", group.envs)
    if group.spread is not None:
        check_spread(faults, f"{at}.spread", group.spread)


def _check_group_names(faults: Faults, dot: str, groups: tuple[TaskGroup, ...]) -> None:
    seen: set[str] = set()
    for i, group in enumerate(groups):
        if group.name in seen:
            faults.add(f"{dot}groups[{i}].name", f"{group.name!r} names another group too")
        seen.add(group.name)


def _check_ports(faults: Faults, at: str, ports: tuple[int, ...]) -> None:
    faults.length(at, len(ports), least=0, most=MOST_PORTS, of="ports")
    for i, port in enumerate(ports):
        faults.number(f"{at}[{i}]", port, least=1, most=65_535)
    if len(set(ports)) < len(ports):
        faults.add(at, "a port is listed twice")


def _check_dependencies(faults: Faults, at: str, wanted: tuple[JobId, ...]) -> None:
    faults.length(at, len(wanted), least=0, most=MOST_DEPENDENCIES, of="dependencies")
    for job in wanted:
        if job <= 0:
            faults.add(at, f"{job} is no job id")
