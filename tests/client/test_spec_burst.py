"""What a job says of rented capacity: read exactly, or refused with what is right."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.api.common.v1 import common_pb2 as pb
from atoll.client.spec import parse_spec, parse_text, to_proto
from atoll.client.spec.quantities import micro_dollars
from atoll.core.model.burst import MICROS
from atoll.core.model.errors import InvalidInput
from atoll.wire.spec import spec_from_proto


def proto_of(burst: Any) -> pb.JobSpec:
    return to_proto(parse_spec({"run": "true", "burst": burst}), now=0.0)


@pytest.mark.parametrize(
    ("written", "micros"),
    [
        (12.5, 12_500_000),
        ("12.50", 12_500_000),
        ("$12.50", 12_500_000),
        ("$1,200", 1_200_000_000),
        (3, 3_000_000),
        (0.1, 100_000),
        ("0.000001", 1),
    ],
)
def test_dollars_are_read_exactly(written: object, micros: int) -> None:
    assert proto_of({"max_cost": written}).burst.max_cost == micros


@given(st.integers(1, 10_000_000 * MICROS))
def test_no_micro_dollar_is_lost(micros: int) -> None:
    dollars, rest = divmod(micros, MICROS)
    assert micro_dollars(f"${dollars}.{rest:06}") == micros


def test_a_job_that_says_nothing_may_rent_as_its_queue_does() -> None:
    for burst in (None, {}, {"allow": True}):
        proto = proto_of(burst)
        assert not proto.HasField("burst")
        spec = spec_from_proto(proto)
        assert (spec.burst, spec.burst_max_cost) == (True, 0)


def test_a_job_may_refuse_rented_capacity() -> None:
    (parsed,) = parse_text("run: 'true'\nburst: {allow: false}\n", name="a")
    spec = spec_from_proto(to_proto(parsed, now=0.0))
    assert (spec.burst, spec.burst_max_cost) == (False, 0)
    bounded = spec_from_proto(proto_of({"max_cost": "2.25"}))
    assert (bounded.burst, bounded.burst_max_cost) == (True, 2_250_000)


@pytest.mark.parametrize(
    ("burst", "field", "told"),
    [
        ({"max_cost": -1}, "burst.max_cost", "less than nothing"),
        ({"max_cost": "-$5"}, "burst.max_cost", "less than nothing"),
        ({"max_cost": 0}, "burst.max_cost", "allow: false"),
        ({"max_cost": "much"}, "burst.max_cost", "write 12.50 or $12.50"),
        ({"max_cost": "12 EUR"}, "burst.max_cost", "no amount of dollars"),
        ({"max_cost": 10_000_001}, "burst.max_cost", "more than $10,000,000"),
        ({"max_cost": "0.0000001"}, "burst.max_cost", "smallest step"),
        ({"max_cost": float("nan")}, "burst.max_cost", "no amount of dollars"),
        ({"max_cost": True}, "burst.max_cost", "a number or a text"),
        ({"allow": "no"}, "burst.allow", "must be"),
        ({"allow": False, "max_cost": 5}, "burst.max_cost", "leave it out"),
        ({"maxcost": 5}, "burst.maxcost", "max_cost"),
    ],
)
def test_what_makes_no_sense_is_refused(burst: object, field: str, told: str) -> None:
    with pytest.raises(InvalidInput) as wrong:
        proto_of(burst)
    (violation,) = wrong.value.violations
    assert violation.field == field
    assert told in violation.message
