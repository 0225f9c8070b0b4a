"""The rules of job specs and queues, each broken once."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.core.model.errors import FieldViolation
from atoll.core.model.ids import JobId, QueueName, Tenant
from atoll.core.model.job import Queue
from atoll.core.model.priority import DEFAULT_CLASSES, PriorityClass, by_name, parse_class
from atoll.core.model.resources import DeviceRequest, TaskShape
from atoll.core.model.spec import (
    AntiAffinity,
    Checkpoint,
    Elastic,
    JobSpec,
    Spread,
    TaskGroup,
    Topology,
)
from atoll.core.model.validate import check_queue, check_spec

PROFILES = frozenset({"1g.10gb", "2g.20gb"})
SHAPE = TaskShape(cpu_milli=1000, memory_bytes=1 << 30)
GROUP = TaskGroup(name="main", count=2, min_count=1, shapes=(SHAPE,), run="true")
SPEC = JobSpec(name="train", queue="org.team", groups=(GROUP,))


def faults(spec: JobSpec) -> list[FieldViolation]:
    return check_spec(spec, at="jobs[3]", profiles=PROFILES)


def fields(spec: JobSpec) -> list[str]:
    return [violation.field for violation in faults(spec)]


def with_group(**changes: Any) -> JobSpec:
    return replace(SPEC, groups=(replace(GROUP, **changes),))


def with_shape(**changes: Any) -> JobSpec:
    return with_group(shapes=(replace(SHAPE, **changes),))


def with_device(**changes: Any) -> JobSpec:
    fields: dict[str, Any] = {"kind": "H100", "count": 1} | changes
    return with_shape(device=DeviceRequest(**fields))


@pytest.mark.parametrize(
    "spec",
    [
        SPEC,
        with_device(),
        with_device(kind=""),
        with_device(count=8),
        with_device(blocks=1),
        with_device(blocks=99),
        with_device(profile="1g.10gb", count=7),
        with_device(memory_bytes=1 << 34, blocks=0),
        with_shape(memory_bytes=0),
        with_group(name=""),
        with_group(spread=Spread("rack", 2)),
        with_shape(labels_not=(("zone", ""), ("zone", "a"))),
        replace(SPEC, anti_affinity=AntiAffinity("web", "rack"), preempts=False),
        replace(SPEC, elastic=Elastic(((1, 1.0), (2, 1.5)), 1e6, 0.0), deadline_at=2e9),
        replace(SPEC, checkpoint=Checkpoint("SIGUSR2", 30.0, 600.0), topology=Topology("rack")),
        replace(SPEC, labels=(("team/a.b", "né ü"),), secrets=(("TOKEN", "a\nb"),)),
        replace(SPEC, priority_class="critical", ports=(1, 65_535), depends_on=(JobId(1),)),
    ],
)
def test_what_is_right_passes(spec: JobSpec) -> None:
    assert faults(spec) == []


BASE = "jobs[3]"
SHAPE_AT = f"{BASE}.groups[0].shapes[0]"
DEVICE_AT = f"{SHAPE_AT}.device"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (replace(SPEC, name=""), f"{BASE}.name"),
        (replace(SPEC, name="a b"), f"{BASE}.name"),
        (replace(SPEC, name="a\n"), f"{BASE}.name"),
        (replace(SPEC, name="é"), f"{BASE}.name"),
        (replace(SPEC, name="x" * 129), f"{BASE}.name"),
        (replace(SPEC, queue="a..b"), f"{BASE}.queue"),
        (replace(SPEC, queue=".a"), f"{BASE}.queue"),
        (replace(SPEC, queue=""), f"{BASE}.queue"),
        (replace(SPEC, queue=".".join("abcdefghi")), f"{BASE}.queue"),
        (replace(SPEC, priority_class="burning"), f"{BASE}.priority_class"),
        (replace(SPEC, deadline_at=-1.0), f"{BASE}.deadline_at"),
        (replace(SPEC, elastic=Elastic(((3, 1.0),), 1.0)), f"{BASE}.elastic.throughput[3]"),
        (replace(SPEC, elastic=Elastic(((1, 0.0),), 1.0)), f"{BASE}.elastic.throughput[1]"),
        (replace(SPEC, elastic=Elastic(((1, 1.0),), math.inf)), f"{BASE}.elastic.work"),
        (replace(SPEC, restart_cost_s=math.nan), f"{BASE}.restart_cost_s"),
        (replace(SPEC, reservation="no name"), f"{BASE}.reservation"),
        (replace(SPEC, anti_affinity=AntiAffinity("")), f"{BASE}.anti_affinity.name"),
        (replace(SPEC, anti_affinity=AntiAffinity("a", "")), f"{BASE}.anti_affinity.level"),
        (replace(SPEC, elastic=Elastic((), 1.0)), f"{BASE}.elastic.throughput"),
        (replace(SPEC, elastic=Elastic(((0, 1.0),), 1.0)), f"{BASE}.elastic.throughput[0]"),
        (with_group(spread=Spread("rack", 0)), f"{BASE}.groups[0].spread.most"),
        (with_group(spread=Spread("", 1)), f"{BASE}.groups[0].spread.level"),
        (replace(SPEC, groups=()), f"{BASE}.groups"),
        (
            replace(SPEC, groups=tuple(replace(GROUP, name=f"g{i}") for i in range(65))),
            f"{BASE}.groups",
        ),
        (replace(SPEC, groups=(GROUP, GROUP)), f"{BASE}.groups[1].name"),
        (replace(SPEC, labels=(("", "x"),)), f"{BASE}.labels"),
        (replace(SPEC, labels=(("a", "x\x00"),)), f"{BASE}.labels['a']"),
        (replace(SPEC, labels=(("atoll.job", "7"),)), f"{BASE}.labels['atoll.job']"),
        (replace(SPEC, labels=tuple((f"k{i}", "") for i in range(65))), f"{BASE}.labels"),
        (replace(SPEC, secrets=(("1A", "x"),)), f"{BASE}.secrets"),
        (replace(SPEC, secrets=(("A", "x\0"),)), f"{BASE}.secrets['A']"),
        (replace(SPEC, output="a\0"), f"{BASE}.output"),
        (replace(SPEC, ports=(0,)), f"{BASE}.ports[0]"),
        (replace(SPEC, ports=(80, 65_536)), f"{BASE}.ports[1]"),
        (replace(SPEC, ports=(80, 80)), f"{BASE}.ports"),
        (replace(SPEC, time_limit_s=-1.0), f"{BASE}.time_limit_s"),
        (replace(SPEC, time_limit_s=math.nan), f"{BASE}.time_limit_s"),
        (replace(SPEC, time_limit_s=math.inf), f"{BASE}.time_limit_s"),
        (replace(SPEC, begin_at=1e300), f"{BASE}.begin_at"),
        (replace(SPEC, grace_s=-0.1), f"{BASE}.grace_s"),
        (replace(SPEC, depends_on=(JobId(0),)), f"{BASE}.depends_on"),
        (replace(SPEC, topology=Topology("")), f"{BASE}.topology.level"),
        (replace(SPEC, checkpoint=Checkpoint("SIGKILL")), f"{BASE}.checkpoint.signal"),
        (replace(SPEC, checkpoint=Checkpoint(grace_s=-1)), f"{BASE}.checkpoint.grace_s"),
        (replace(SPEC, retries=-1), f"{BASE}.retries"),
        (with_group(count=0), f"{BASE}.groups[0].count"),
        (with_group(count=-1), f"{BASE}.groups[0].count"),
        (with_group(count=(1 << 31) - 1), f"{BASE}.groups[0].count"),
        (with_group(min_count=3), f"{BASE}.groups[0].min_count"),
        (with_group(min_count=0), f"{BASE}.groups[0].min_count"),
        (with_group(shapes=()), f"{BASE}.groups[0].shapes"),
        (with_group(shapes=(SHAPE,) * 17), f"{BASE}.groups[0].shapes"),
        (with_group(run=""), f"{BASE}.groups[0].run"),
        (with_group(run="a\0"), f"{BASE}.groups[0].run"),
        (with_group(setup="x" * 200_001), f"{BASE}.groups[0].setup"),
        (with_group(envs=(("A=B", "x"),)), f"{BASE}.groups[0].envs"),
        (with_group(envs=(("A", "x" * 65_537),)), f"{BASE}.groups[0].envs['A']"),
        (with_shape(cpu_milli=0), f"{SHAPE_AT}.cpu_milli"),
        (with_shape(cpu_milli=-1), f"{SHAPE_AT}.cpu_milli"),
        (with_shape(cpu_milli=(1 << 63) - 1), f"{SHAPE_AT}.cpu_milli"),
        (with_shape(memory_bytes=-1), f"{SHAPE_AT}.memory_bytes"),
        (with_shape(memory_bytes=(1 << 63) - 1), f"{SHAPE_AT}.memory_bytes"),
        (with_shape(labels=(("a b", ""),)), f"{SHAPE_AT}.labels"),
        (with_device(kind="H 100"), f"{DEVICE_AT}.kind"),
        (with_device(count=0), f"{DEVICE_AT}.count"),
        (with_device(count=-8), f"{DEVICE_AT}.count"),
        (with_device(count=(1 << 31) - 1), f"{DEVICE_AT}.count"),
        (with_device(blocks=0), f"{DEVICE_AT}.blocks"),
        (with_device(blocks=-1), f"{DEVICE_AT}.blocks"),
        (with_device(blocks=101), f"{DEVICE_AT}.blocks"),
        (with_device(blocks=50, count=2), f"{DEVICE_AT}.count"),
        (with_device(profile="1g.11gb"), f"{DEVICE_AT}.profile"),
        (with_device(profile="1g.10gb", blocks=50), f"{DEVICE_AT}.blocks"),
        (with_device(profile="1g.10gb", memory_bytes=1), f"{DEVICE_AT}.memory_bytes"),
        (with_device(memory_bytes=-1, blocks=0), f"{DEVICE_AT}.memory_bytes"),
        (with_device(memory_bytes=1, blocks=50), f"{DEVICE_AT}.blocks"),
        (with_device(memory_bytes=1, blocks=0, count=2), f"{DEVICE_AT}.count"),
    ],
)
def test_a_broken_rule_is_named_by_its_path(spec: JobSpec, field: str) -> None:
    assert fields(spec) == [field]


def test_all_violations_are_told_at_once() -> None:
    spec = replace(with_device(blocks=0), name="", retries=-1)
    assert fields(spec) == [f"{BASE}.name", f"{DEVICE_AT}.blocks", f"{BASE}.retries"]


def test_an_unknown_word_suggests_the_nearest() -> None:
    (violation,) = faults(with_device(profile="1g.10g"))
    assert "did you mean '1g.10gb'" in violation.message


def test_the_tasks_of_all_groups_are_bounded_together() -> None:
    groups = tuple(replace(GROUP, name=f"g{i}", count=10_000) for i in range(2))
    assert fields(replace(SPEC, groups=groups)) == [f"{BASE}.groups"]


def test_no_secret_is_in_a_message() -> None:
    spec = replace(SPEC, secrets=(("A", "hunter2\0"), ("B", "hunter2" * 10_000)))
    assert len(faults(spec)) == 2
    assert "hunter2" not in repr(faults(spec))


def test_a_long_value_does_not_make_a_long_answer() -> None:
    spec = replace(SPEC, name="x" * 100_000, queue="?" * 200, priority_class="y" * 100_000)
    assert len(repr(faults(spec))) < 2_000


amounts = st.integers(-(1 << 63), (1 << 63) - 1)


@given(
    cpu=amounts,
    memory=amounts,
    tasks=st.integers(-(1 << 31), (1 << 31) - 1),
    count=st.integers(-(1 << 31), (1 << 31) - 1),
)
def test_sums_over_what_passes_fit_64_bits(cpu: int, memory: int, tasks: int, count: int) -> None:
    device = DeviceRequest("H100", count)
    shape = TaskShape(cpu_milli=cpu, memory_bytes=memory, device=device)
    spec = with_group(count=tasks, min_count=tasks, shapes=(shape,))
    if not faults(spec):
        assert max(cpu, memory, count * 100) * tasks < 1 << 63


@given(st.text(max_size=300))
def test_no_text_makes_a_check_fail(text: str) -> None:
    pair = ((text, text),)
    group = replace(GROUP, name=text, run=text, envs=pair)
    faults(replace(SPEC, name=text, queue=text, labels=pair, output=text, groups=(group,)))


def test_classes_are_in_order() -> None:
    names = ("low", "normal", "high", "urgent", "critical")
    classes = by_name(DEFAULT_CLASSES)
    order = [classes[name].priority for name in names]
    assert (order, len(classes)) == (sorted(set(order)), len(names))
    assert classes["normal"].priority == 0


@pytest.mark.parametrize("each", DEFAULT_CLASSES, ids=str)
def test_a_class_is_read_as_it_is_shown(each: PriorityClass) -> None:
    assert parse_class(str(each)) == each


@pytest.mark.parametrize(
    "text", ["", "a", "a=", "a=x", "a=1:x", "a=1:", "=1", "a b=1", "a=2000000", "a=1.5"]
)
def test_what_is_no_class_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"NAME=PRIORITY|no name"):
        parse_class(text)


def test_the_default_class_cannot_be_left_out() -> None:
    with pytest.raises(ValueError, match="normal"):
        by_name([PriorityClass("low", 0)])
    with pytest.raises(ValueError, match="twice"):
        by_name([PriorityClass("normal", 0), PriorityClass("normal", 1)])


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": QueueName("a b")}, "queue.name"),
        ({"description": "\0"}, "queue.description"),
        ({"max_queued_jobs": -1}, "queue.max_queued_jobs"),
        ({"device_limit": -1}, "queue.device_limit_blocks"),
        ({"device_limit": 1 << 50}, "queue.device_limit_blocks"),
    ],
)
def test_a_queue_keeps_its_rules(changes: dict[str, Any], field: str) -> None:
    queue = Queue(QueueName("org.team"), Tenant("default"))
    assert check_queue(queue) == []
    assert [violation.field for violation in check_queue(replace(queue, **changes))] == [field]
