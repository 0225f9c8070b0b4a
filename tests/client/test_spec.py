"""The job spec: what every key means, and what is told of a wrong one."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from atoll.api.common.v1 import common_pb2 as pb
from atoll.client.spec import parse_spec, parse_text, schema, to_proto
from atoll.client.spec.models import NOT_YET
from atoll.core.model.errors import ErrorCode, InvalidInput
from atoll.core.model.validate import check_spec
from atoll.wire.spec import spec_from_proto

GIB = 1 << 30


def proto_of(keys: dict[str, Any], now: float = 1000.0) -> pb.JobSpec:
    return to_proto(parse_spec({"run": "true", **keys}), now=now)


def found_in(text: str) -> list[tuple[str, str, ErrorCode]]:
    with pytest.raises(InvalidInput) as caught:
        parse_text(text)
    return [(v.field, v.message, v.code) for v in caught.value.violations]


@dataclass
class Key:
    """An unknown key, and what is suggested for it."""

    text: str
    told: str
    at: str = ""
    more: list[str] = field(default_factory=list)


@pytest.mark.parametrize(
    "case",
    [
        Key("nmae: x", "unknown key; did you mean `name`? (line 2)", at="nmae"),
        Key("gpus: 8", "did you mean `resources.accelerators`?", at="gpus"),
        Key("command: ls", "did you mean `run`?", at="command"),
        Key("resources: {cpu: 1}", "did you mean `cpus`?", at="resources.cpu"),
        Key("resources: {any_of: [{mem: 1}]}", "`memory`?", at="resources.any_of[0].mem"),
        Key("topology: {sam: rack, same: x}", "`same`?", at="topology.sam"),
        Key("interval: 3", "did you mean `checkpoint.interval`?", at="interval"),
        Key("qqqqqq: 3", "known are anti_affinity, array, begin", at="qqqqqq"),
    ],
    ids=lambda case: case.text,
)
def test_an_unknown_key_is_an_error_that_suggests_the_nearest(case: Key) -> None:
    ((at, told, code),) = found_in(f"run: 'true'\n{case.text}\n")
    assert at == case.at
    assert case.told in told
    assert code is ErrorCode.UNKNOWN_FIELD


@pytest.mark.parametrize("key", NOT_YET)
def test_what_is_not_supported_yet_is_refused_by_name(key: str) -> None:
    for value in ("x", "{}", "[]", "0", "false"):
        assert (key, ErrorCode.NOT_SUPPORTED_YET) in [
            (at, code) for at, _, code in found_in(f"run: 'true'\n{key}: {value}")
        ]
    assert parse_text(f"run: 'true'\n{key}:\n"), "nothing was asked for"


def test_everything_wrong_is_told_at_once_in_the_order_of_lines() -> None:
    found = found_in("nmae: x\nnum_nodes: 0\nimage: y\nresources:\n  cpus: -1\n")
    lines = [told.rpartition("(line ")[2] for _, told, _ in found]
    assert lines == ["1)", "1)", "2)", "3)", "5)"]
    assert {at for at, _, _ in found} == {"nmae", "run", "num_nodes", "image", "resources.cpus"}


def test_defaults_are_one_task_with_one_cpu_and_one_gib_in_the_default_queue() -> None:
    spec = proto_of({})
    (group,) = spec.groups
    (shape,) = group.shapes
    assert (spec.queue, spec.priority_class, group.count) == ("default", "normal", 1)
    assert (shape.cpu_milli, shape.memory_bytes, shape.HasField("device")) == (1000, GIB, False)


def test_alternatives_take_from_the_resources_around_them() -> None:
    resources = {
        "cpus": 4,
        "labels": {"zone": "a"},
        "any_of": [
            {"accelerators": "H100:2"},
            {"accelerators": "A100:4", "cpus": 8, "labels": {"net": "ib"}},
            {"accelerator_memory": "20GiB"},
        ],
    }
    first, second, third = proto_of({"resources": resources}).groups[0].shapes
    assert (first.cpu_milli, first.device.kind, dict(first.labels)) == (4000, "H100", {"zone": "a"})
    assert (second.cpu_milli, dict(second.labels)) == (8000, {"zone": "a", "net": "ib"})
    assert (third.device.count, third.device.blocks) == (1, 0)
    assert third.device.memory_bytes == 20 * GIB


def test_groups_take_setup_envs_and_resources_from_the_job() -> None:
    text = """
        setup: pip install x
        envs: {A: job, B: job}
        resources: {cpus: 2}
        groups:
          - {name: driver, run: drive, envs: {B: driver}}
          - {name: worker, gang: {min: 2, max: 4}, run: work, resources: {cpus: 8}, setup: ""}
    """
    driver, worker = to_proto(parse_text(text)[0], now=0.0).groups
    assert (driver.count, driver.setup, dict(driver.envs)) == (
        1,
        "pip install x",
        {"A": "job", "B": "driver"},
    )
    assert (worker.min_count, worker.count, worker.setup) == (2, 4, "")
    assert (driver.shapes[0].cpu_milli, worker.shapes[0].cpu_milli) == (2000, 8000)


def test_groups_exclude_a_command_of_the_job() -> None:
    found = found_in("run: x\nnum_nodes: 2\ngroups: [{name: a, run: y}, {name: a, run: z}]\n")
    assert [at for at, _, _ in found] == ["run", "num_nodes", "groups"]


def test_every_key_reaches_the_wire() -> None:
    spec = proto_of({
        "name": "train",
        "queue": "team.a",
        "priority_class": "high",
        "labels": {"k": "v"},
        "gang": {"min": 2, "max": 4},
        "secrets": {"TOKEN": "t"},
        "output": "out-%j-%t",
        "ports": 8080,
        "time_limit": "1h",
        "depends_on": [7, "prepare"],
        "array": 3,
        "topology": {"same": "rack", "required": False},
        "checkpoint": {"signal": "usr2", "grace": "30s", "interval": "10m"},
        "on_lost": "requeue",
        "retries": 2,
    })
    assert (spec.name, spec.queue, spec.priority_class) == ("train", "team.a", "high")
    assert (dict(spec.labels), dict(spec.secrets)) == ({"k": "v"}, {"TOKEN": "t"})
    assert (spec.groups[0].min_count, spec.groups[0].count) == (2, 4)
    assert (spec.output, list(spec.ports), spec.time_limit_s) == ("out-%j-%t", [8080], 3600.0)
    assert [(d.id, d.name) for d in spec.depends_on] == [(7, ""), (0, "prepare")]
    assert spec.array == 3
    assert (spec.topology.level, spec.topology.required) == ("rack", False)
    assert spec.checkpoint == pb.Checkpoint(signal="SIGUSR2", grace_s=30.0, interval_s=600.0)
    assert (spec.on_lost, spec.retries) == (pb.ON_LOST_REQUEUE, 2)


def test_the_servers_rules_accept_what_the_client_accepts() -> None:
    spec = proto_of({"name": "a", "resources": {"accelerators": "H100:0.5"}, "ports": [80]})
    assert check_spec(spec_from_proto(spec), at="", profiles=()) == []


def test_the_shipped_schema_is_what_the_models_give() -> None:
    assert schema.shipped() == schema.generated()
