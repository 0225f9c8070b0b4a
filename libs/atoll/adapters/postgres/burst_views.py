"""Rented machines as placement is told of them, and what may be rented."""

from collections.abc import Sequence
from typing import Final

from atoll.adapters.postgres.burst_rows import INSTANCE_COLUMNS, OFFERS, POLICY, rental_from
from atoll.adapters.postgres.sql import Sql
from atoll.core.model.burst import BurstPolicy, Offer, Rental
from atoll.core.model.ids import ShardId
from atoll.ports.store.placement import BurstGround

RENTALS: Final = f"""
SELECT {INSTANCE_COLUMNS}, i.expected_at, i.give_up_at FROM burst_instances i
"""
# Of those that are ended, placement is still to forget the clusters.
NEEDED: Final = f"""
{RENTALS} WHERE i.shard = $1 AND (i.live OR NOT i.live AND EXISTS (
    SELECT 1 FROM clusters c WHERE c.name = i.cluster AND c.state <> 'RETIRED'
)) ORDER BY i.id
"""
CHANGED: Final = f"{RENTALS} WHERE i.shard = $1 AND i.id = ANY($2::bigint[]) ORDER BY i.id"


async def read_rentals(sql: Sql, shard: ShardId) -> tuple[Rental, ...]:
    """Those that are not ended, and those whose clusters are still to be forgotten."""
    return tuple(map(rental_from, await sql.rows(NEEDED, shard)))


async def read_changed_rentals(sql: Sql, shard: ShardId, ids: Sequence[int]) -> tuple[Rental, ...]:
    """Those of the given ones that there are."""
    return tuple(map(rental_from, await sql.rows(CHANGED, shard, ids))) if ids else ()


async def read_ground(sql: Sql) -> BurstGround:
    """What may be rented, and by whom."""
    return BurstGround(tuple(await read_offers(sql)), tuple(await read_policies(sql)))


async def read_offers(sql: Sql) -> list[Offer]:
    """What all providers offer, by key."""
    rows = await sql.rows("SELECT offers FROM burst_offers")
    offers = (offer for row in rows for offer in OFFERS.validate_json(row["offers"]))
    return sorted(offers, key=lambda offer: offer.key)


async def read_policies(sql: Sql) -> list[BurstPolicy]:
    """All, that of all together first, then by queue."""
    rows = await sql.rows("SELECT policy FROM burst_policies ORDER BY queue")
    return [POLICY.validate_json(row["policy"]) for row in rows]
