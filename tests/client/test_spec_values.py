"""Amounts, accelerators and times in the job spec: read, or refused with what is right."""

from typing import Any

import pytest

from atoll.api.common.v1 import common_pb2 as pb
from atoll.client.spec import parse_spec, to_proto
from atoll.core.model.errors import InvalidInput

GIB = 1 << 30


def proto_of(keys: dict[str, Any], now: float = 1000.0) -> pb.JobSpec:
    return to_proto(parse_spec({"run": "true", **keys}), now=now)


def device_of(accelerators: object) -> pb.DeviceRequest:
    return proto_of({"resources": {"accelerators": accelerators}}).groups[0].shapes[0].device


@pytest.mark.parametrize(
    ("written", "want"),
    [
        ("H100", pb.DeviceRequest(kind="H100", count=1, blocks=100)),
        ("H100:8", pb.DeviceRequest(kind="H100", count=8, blocks=100)),
        ("H100:0.25", pb.DeviceRequest(kind="H100", count=1, blocks=25)),
        ("H100:1.0", pb.DeviceRequest(kind="H100", count=1, blocks=100)),
        ("H100:0.10", pb.DeviceRequest(kind="H100", count=1, blocks=10)),
        ("H100:1g.10gb", pb.DeviceRequest(kind="H100", count=1, profile="1g.10gb")),
        ("H100:1g.10gb:2", pb.DeviceRequest(kind="H100", count=2, profile="1g.10gb")),
        ("1g.10gb:2", pb.DeviceRequest(count=2, profile="1g.10gb")),
        ("1G.10GB+ME", pb.DeviceRequest(count=1, profile="1g.10gb+me")),
        ("TPU-v5e:4", pb.DeviceRequest(kind="TPU-v5e", count=4, blocks=100)),
        ("4090:2", pb.DeviceRequest(kind="4090", count=2, blocks=100)),
        (8, pb.DeviceRequest(count=8, blocks=100)),
        ("8", pb.DeviceRequest(count=8, blocks=100)),
        (0.5, pb.DeviceRequest(count=1, blocks=50)),
        ({"H100": 2}, pb.DeviceRequest(kind="H100", count=2, blocks=100)),
    ],
    ids=str,
)
def test_accelerators_are_read(written: object, want: pb.DeviceRequest) -> None:
    assert device_of(written) == want


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("H100:0.333", "blocks are whole percents: use 0.33 or 0.34"),
        (0.005, "blocks are whole percents: use 0.01"),
        ("H100:0.999", "blocks are whole percents: use 0.99 or 1"),
        ("H100:1.5", "a share is of one device; use 1 or 2 whole ones"),
        (2.5, "use 2 or 3 whole ones"),
        ("H100:0", "must be more than 0"),
        ("H100:0.00", "must be more than 0"),
        ("H100:-1", "must be more than 0"),
        (-0.5, "must be more than 0"),
        ("1g.10gb:0", "must be more than 0"),
        ("1g.10gb:1.5", "use 1g.10gb:2"),
        ("H100:100000000000000000", "at most 1,024"),
        ("H100:" + "9" * 400, "is no accelerator"),
        ("H100:x", "is no accelerator"),
        ("H100:8:8", "is no accelerator"),
        ("", "is no accelerator"),
        (True, "write H100"),
        ({"H100": 1, "A100": 1}, "resources.any_of"),
        (float("nan"), "is not a number"),
        (float("inf"), "is not a number"),
        ([], "write H100"),
    ],
    ids=str,
)
def test_wrong_accelerators_are_refused_with_what_is_right(written: object, told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        device_of(written)
    (violation,) = caught.value.violations
    assert violation.field == "resources.accelerators"
    assert told in violation.message


@pytest.mark.parametrize(
    ("key", "written", "want"),
    [
        ("cpus", 2, 2000),
        ("cpus", "0.5", 500),
        ("cpus", 1.25, 1250),
        ("cpus", "500m", 500),
        ("memory", "16GiB", 16 * GIB),
        ("memory", "16Gi", 16 * GIB),
        ("memory", "1.5 gb", 1_500_000_000),
        ("memory", "512MiB", 512 << 20),
    ],
)
def test_amounts_are_read(key: str, written: object, want: int) -> None:
    shape = proto_of({"resources": {key: written}}).groups[0].shapes[0]
    assert (shape.cpu_milli if key == "cpus" else shape.memory_bytes) == want


@pytest.mark.parametrize(
    ("field_name", "keys", "told"),
    [
        ("resources.cpus", {"resources": {"cpus": 0}}, "more than 0"),
        ("resources.cpus", {"resources": {"cpus": "-2"}}, "more than 0"),
        ("resources.cpus", {"resources": {"cpus": "0.0001"}}, "smallest step"),
        ("resources.cpus", {"resources": {"cpus": 10**12}}, "more than 1,000,000 CPUs"),
        ("resources.cpus", {"resources": {"cpus": 10**30}}, "is not a number"),
        ("resources.cpus", {"resources": {"cpus": "4+"}}, "is not a number"),
        ("resources.memory", {"resources": {"memory": 16}}, "say the unit: 16GiB"),
        ("resources.memory", {"resources": {"memory": "16G"}}, "write 16GiB or 16GB"),
        ("resources.memory", {"resources": {"memory": "16XB"}}, "unknown unit `XB`"),
        ("resources.memory", {"resources": {"memory": "0GiB"}}, "more than 0"),
        ("resources.memory", {"resources": {"memory": "999999PiB"}}, "more than 256 TiB"),
        ("num_nodes", {"num_nodes": 0}, "at least 1"),
        ("num_nodes", {"num_nodes": -3}, "at least 1"),
        ("num_nodes", {"num_nodes": 2**40}, "at most 16384"),
        ("num_nodes", {"num_nodes": 1.5}, "whole number"),
        ("num_nodes", {"num_nodes": "4"}, "whole number"),
        ("array", {"array": 0}, "at least 1"),
        ("array", {"array": 2000}, "at most 1000"),
        ("time_limit", {"time_limit": 0}, "more than 0"),
        ("time_limit", {"time_limit": "2:30"}, "2h30m or 2m30s"),
        ("time_limit", {"time_limit": "soon"}, "write 2h30m, 9000 (seconds) or 1-12:00:00"),
        ("time_limit", {"time_limit": "9999999d"}, "more than ten years"),
        ("begin", {"begin": "2026-01-31T08:00:00"}, "say the zone"),
        ("begin", {"begin": "tomorrow"}, "is no time"),
        ("begin", {"begin": 1700000000}, "write a time such as"),
        ("gang.min", {"gang": {"min": 4, "max": 2}}, "is more than max (2)"),
        ("num_nodes", {"gang": {"min": 1, "max": 2}, "num_nodes": 2}, "either num_nodes or gang"),
        ("retries", {"retries": -1}, "at least 0"),
        ("ports[0]", {"ports": [70_000]}, "at most 65535"),
        ("ports", {"ports": [80, 80]}, "`80` is given 2 times"),
        ("envs.A", {"envs": {"A": 1.5}}, 'such as "1.5"'),
        ("envs.A", {"envs": {"A": True}}, 'such as "true"'),
        ("envs.1B", {"envs": {"1B": "x"}}, "is no name of an environment variable"),
        ("secrets.A", {"envs": {"A": "x"}, "secrets": {"A": "y"}}, "is in envs too"),
        ("checkpoint.signal", {"checkpoint": {"signal": "KILL"}}, "SIGUSR1"),
        ("on_lost", {"on_lost": "panic"}, "'hold' or 'requeue'"),
        ("queue", {"queue": "a..b"}, "team.project"),
        ("name", {"name": "a b"}, "letters, digits"),
        ("depends_on[0]", {"depends_on": ["a b"]}, "number of a job"),
        ("depends_on", {"depends_on": [7, 7]}, "given 2 times"),
        ("run", {"run": "  "}, "is empty"),
        ("run", {"run": "a\0b"}, "NUL"),
        ("topology.required", {"topology": {"same": "rack", "required": "yes"}}, "true or false"),
        (
            "resources.accelerator_memory",
            {"resources": {"accelerators": "H100:2", "accelerator_memory": "10GiB"}},
            "give its kind alone",
        ),
    ],
    ids=str,
)
def test_wrong_values_are_told_by_field(field_name: str, keys: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        proto_of(keys)
    assert [v.field for v in caught.value.violations] == [field_name]
    assert told in caught.value.violations[0].message


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("2h30m", 9000.0),
        ("90s", 90.0),
        ("1.5h", 5400.0),
        ("1d", 86_400.0),
        (9000, 9000.0),
        (0.5, 0.5),
        ("9000", 9000.0),
        ("1-12:00:00", 129_600.0),
        ("02:30:00", 9000.0),
        ("1-12", 129_600.0),
    ],
)
def test_lengths_of_time_are_read(written: object, seconds: float) -> None:
    assert proto_of({"time_limit": written}).time_limit_s == seconds


@pytest.mark.parametrize(
    ("written", "at"),
    [
        ("+2h", 8200.0),
        ("2h", 8200.0),
        ("1970-01-01T01:00:00+00:00", 3600.0),
        ("1970-01-01T01:00:00Z", 3600.0),
        ("1970-01-01 02:00+01:00", 3600.0),
    ],
)
def test_begin_is_absolute_or_counts_from_the_submit(written: str, at: float) -> None:
    assert proto_of({"begin": written}, now=1000.0).begin_at == at


def shape_of(resources: dict[str, Any]) -> pb.TaskShape:
    return proto_of({"resources": resources}).groups[0].shapes[0]


def test_labels_say_what_must_and_what_must_not_be_there() -> None:
    shape = shape_of({"labels": {"zone": "a", "rack": "!r1", "old": "!", "gen": ["!1", "!2"]}})
    assert dict(shape.labels) == {"zone": "a"}
    assert {(label.key, label.value) for label in shape.labels_not} == {
        ("rack", "r1"), ("old", ""), ("gen", "1"), ("gen", "2"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("wish", "told"),
    [(["a", "b"], "one value of a label"), (["a", "!b"], "give the value"), ([True], "quotes")],
    ids=str,
)
def test_labels_that_contradict_each_other_are_refused(wish: object, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        shape_of({"labels": {"zone": wish}})


def test_tasks_and_jobs_are_kept_apart() -> None:
    keys = {"spread": {"level": "rack", "most": 2}, "anti_affinity": "web"}
    proto = proto_of(keys)
    assert proto.groups[0].spread == pb.Spread(level="rack", most=2)
    assert proto.anti_affinity == pb.AntiAffinity(name="web", level="node")
    groups = [{"name": "a", "run": "x", "spread": {}}, {"name": "b", "run": "x"}]
    first, second = to_proto(parse_spec({**keys, "groups": groups}), now=0.0).groups
    assert (first.spread, second.spread) == (
        pb.Spread(level="node", most=1), pb.Spread(level="rack", most=2),
    )  # fmt: skip
    assert proto_of({"anti_affinity": {"name": "w", "level": "rack"}}).anti_affinity.level == "rack"


def test_who_stops_whom() -> None:
    plain = proto_of({})
    assert not plain.HasField("preemptible")
    assert not plain.HasField("preempts")
    firm = proto_of({"preemptible": False, "preempts": False, "restart_cost": "5m"})
    assert (firm.preemptible, firm.preempts, firm.restart_cost_s) == (False, False, 300.0)
    assert firm.HasField("preemptible")


def test_a_booking_is_asked_for_by_name() -> None:
    assert proto_of({}).reservation == ""
    assert proto_of({"reservation": "nightly.train"}).reservation == "nightly.train"
