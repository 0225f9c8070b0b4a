"""The check before a commit knows what is held."""

from dataclasses import replace

import pytest

from atoll.core.engine.verify import verify
from atoll.core.model.errors import DomainError, ErrorCode
from atoll.core.model.ids import AttemptId, attempt_id
from atoll.core.model.lifecycle import StopCause
from atoll.core.model.plan import Eviction, Plan
from tests.core.scenarios import claims
from tests.core.scenarios.claims import Shard, gpus


def preempting() -> tuple[Shard, Plan]:
    shard = Shard(claims.nodes(1))
    shard.submit("a", gpus(6))
    shard.cycle()
    shard.submit("a", gpus(8), priority=10)
    return shard, shard.cycle()


def why(made: Plan, shard: Shard) -> str:
    with pytest.raises(DomainError) as caught:
        verify(made, shard.world.ledger)
    assert caught.value.code is ErrorCode.PLAN_INVALID
    return str(caught.value)


def placing_one() -> Plan:
    """A job of one device placed by a shard in which nothing is held."""
    shard = Shard(claims.nodes(1), next_job=77)
    shard.submit("b", gpus(6))
    shard.cycle()
    shard.submit("b", gpus(1))
    return shard.cycle()


def test_nobody_else_is_placed_into_a_hold() -> None:
    shard, _ = preempting()
    assert "two owners" in why(placing_one(), shard)
    shard.world.drop_nominations(list(shard.world.ledger.nominations))
    verify(placing_one(), shard.world.ledger)


def test_a_hold_is_there_only_when_its_victims_are_named() -> None:
    shard, made = preempting()
    shard.world.drop_nominations([n.job for n in made.nominations])
    verify(made, shard.world.ledger)
    unnamed = tuple(replace(n, victims=()) for n in made.nominations)
    assert "will not be free" in why(replace(made, nominations=unnamed, evictions=()), shard)


def test_who_holds_nothing_cannot_be_stopped_for_others() -> None:
    shard, made = preempting()
    stranger = Eviction(AttemptId(99 << 16 | 1), made.evictions[0].cluster, StopCause.PREEMPT)
    assert "99.1 holds nothing" in why(replace(made, evictions=(stranger,)), shard)


def test_a_job_is_placed_or_nominated() -> None:
    shard, made = preempting()
    shard.world.drop_nominations([n.job for n in made.nominations])
    job = made.nominations[0].job
    placed = placing_one().placements[0]._replace(job=job, attempt=attempt_id(job, 1))
    elsewhere = Shard(claims.nodes(2))
    assert "placed and nominated" in why(
        replace(made, evictions=(), placements=(placed,)), elsewhere
    )
