"""Deadlines and sizes in the job spec: read, or refused with what is right."""

from typing import Any

import pytest

from atoll.api.common.v1 import common_pb2 as pb
from atoll.client.spec import parse_spec, parse_text, to_proto
from atoll.core.model.errors import InvalidInput

ELASTIC = {"throughput": {"1": 4.0, 2: "7.5", 8: 20}, "work": 250_000, "rescale_cost": "45s"}


def proto_of(keys: dict[str, Any], now: float = 1000.0) -> pb.JobSpec:
    return to_proto(parse_spec({"run": "true", **keys}), now=now)


@pytest.mark.parametrize(
    ("written", "want"),
    [
        ("2h30m", 1000.0 + 9000),
        ("+2h30m", 1000.0 + 9000),
        ("2026-01-31T08:00:00Z", 1_769_846_400.0),
        ("2026-01-31T09:00:00+01:00", 1_769_846_400.0),
    ],
)
def test_a_deadline_is_a_time_or_a_while_from_the_submit(written: str, want: float) -> None:
    assert proto_of({"deadline": written}).deadline_at == want


def test_sizes_are_read_from_text_as_from_a_mapping() -> None:
    text = "run: 'true'\nelastic: {throughput: {1: 4.0, 2: 7.5, 8: 20}, work: 2.5e5}\n"
    (spec,) = parse_text(text, name="a")
    proto = to_proto(spec, now=0.0)
    assert dict(proto.elastic.throughput) == {1: 4.0, 2: 7.5, 8: 20.0}
    assert proto.elastic.work == 250_000
    assert not proto.elastic.HasField("rescale_cost_s")
    assert proto_of({"elastic": ELASTIC}).elastic.rescale_cost_s == 45.0


def test_the_gang_of_an_elastic_job_has_its_smallest_and_largest_size() -> None:
    (group,) = proto_of({"elastic": ELASTIC}).groups
    assert (group.min_count, group.count) == (1, 8)
    wider = proto_of({"elastic": ELASTIC, "gang": {"min": 1, "max": 16}})
    assert (wider.groups[0].min_count, wider.groups[0].count) == (1, 16)


@pytest.mark.parametrize(
    ("keys", "field", "told"),
    [
        ({"deadline": "2026-01-31T08:00:00"}, "deadline", "say the zone"),
        ({"deadline": "soon"}, "deadline", "a while such as +2h"),
        ({"deadline": 5}, "deadline", "a while such as +2h"),
        ({"best_effort": True}, "best_effort", "give one"),
        ({"elastic": {"work": 1}}, "elastic.throughput", "is missing"),
        ({"elastic": {"throughput": {1: 1}}}, "elastic.work", "is missing"),
        ({"elastic": {**ELASTIC, "throughput": {}}}, "elastic.throughput", "of each size"),
        ({"elastic": {**ELASTIC, "throughput": {"x": 1}}}, "elastic.throughput", "no number of"),
        ({"elastic": {**ELASTIC, "throughput": {2: 0}}}, "elastic.throughput", "2: must be more"),
        ({"elastic": {**ELASTIC, "work": "much"}}, "elastic.work", "is not a number"),
        ({"elastic": {**ELASTIC, "works": 1}}, "elastic.works", "did you mean `work`"),
        ({"elastic": ELASTIC, "num_nodes": 2}, "num_nodes", "leave it out"),
        (
            {"elastic": ELASTIC, "gang": {"min": 2, "max": 8}},
            "elastic.throughput",
            "1 is not within the gang's 2 to 8",
        ),
        (
            {"elastic": ELASTIC, "groups": [{"name": "a", "run": "true"}], "run": None},
            "elastic",
            "without groups",
        ),
    ],
)
def test_what_is_wrong_is_named(keys: dict[str, Any], field: str, told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        proto_of(keys)
    assert [(v.field, told in v.message) for v in caught.value.violations] == [(field, True)]
