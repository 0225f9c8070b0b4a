"""The admission answer for jobs with deadlines, from a snapshot and the promises that stand.

All promises that stand are planned first: those of running work where it
runs, those of queued jobs wherever they fit, by deadline. What is asked comes
last, so that it takes nothing from them.
"""

from collections.abc import Iterable, Sequence

from atoll.core.engine.deadlines.desk import Desk
from atoll.core.engine.deadlines.pools import whole_seconds
from atoll.core.engine.deadlines.wishes import Ask
from atoll.core.model.deadline import Verdict
from atoll.core.model.plan import Claim
from atoll.core.state.snapshot import Snapshot


def promise(
    snapshot: Snapshot, standing: Iterable[Ask], asks: Sequence[Ask], *, now: float
) -> list[Verdict]:
    """An answer for each of `asks`, in their order; those before it count as promised.

    `standing`: queued jobs that were promised their deadline. Running ones are in the snapshot.
    """
    desk = Desk(snapshot, whole_seconds(now, up=True))
    desk.keep(standing)
    return [desk.answer(ask) for ask in asks]


def kept(snapshot: Snapshot, standing: Iterable[Ask], *, now: float) -> tuple[Claim, ...]:
    """The capacity that queued jobs were promised, for whoever plans other work around it."""
    desk = Desk(snapshot, whole_seconds(now, up=True))
    desk.keep(standing)
    return tuple(desk.windows())
