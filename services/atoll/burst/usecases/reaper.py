"""Ends what carries our tag and should not exist: nobody has a row of it, or its row is ended.

Rows come before machines, so a machine that is listed, and of which no row is found after that, is
an orphan for certain.
"""

import asyncio
from collections.abc import Sequence

from atoll.burst.usecases.desk import Desk
from atoll.burst.usecases.lives import end
from atoll.burst.usecases.term import Term
from atoll.core.model.burst import ENDED, Instance
from atoll.core.model.burst_wants import BurstDecision
from atoll.ports.provider import Phase, ProviderUnavailable, Sighting
from atoll.ports.store.burst import BurstTx


async def reap(term: Term, desk: Desk) -> list[Sighting]:
    """What was told to end now."""
    try:
        tagged = await desk.ask(lambda provider: provider.list_tagged())
    except ProviderUnavailable:
        return []
    standing = [each for each in tagged if each.phase in {Phase.PENDING, Phase.RUNNING}]
    if not standing:
        return []
    # Under the fence first: whoever was deposed knows too little to end anything.
    await term.write(lambda tx: tx.now(), quietly=True)
    rows = await term.books.store.with_token([each.token for each in standing])
    orphans = [each for each in standing if _is_orphan(rows.get(each.token))]
    told = await asyncio.gather(*(end(desk, each.provider_id) for each in orphans))
    ended = [each for each, heard in zip(orphans, told, strict=True) if heard]
    if ended:
        await term.write(lambda tx: _tell(tx, desk, ended, rows=rows), quietly=True)
    return ended


def _is_orphan(row: Instance | None) -> bool:
    return row is None or row.state in ENDED


async def _tell(
    tx: BurstTx, desk: Desk, ended: Sequence[Sighting], *, rows: dict[str, Instance]
) -> None:
    now = await tx.now()
    await tx.add_decisions([_decision(each, desk, rows.get(each.token), now=now) for each in ended])


def _decision(orphan: Sighting, desk: Desk, row: Instance | None, *, now: float) -> BurstDecision:
    known = "there is no row of it" if row is None else f"instance {row.id} was given up"
    why = f"ended {orphan.provider_id} of {desk.name}: it carries our tag, and {known}"
    return BurstDecision(now, "drain", why, instances=() if row is None else (row.id,))
