"""Takes reports in from all sessions, and has them applied in batches."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from typing import Final

from atoll.core.model.errors import ErrorCode, Unavailable
from atoll.core.model.messages import Report
from atoll.dispatch.batching import Batcher
from atoll.dispatch.patience import AGAIN, Patience
from atoll.dispatch.usecases.limits import Limits
from atoll.dispatch.usecases.reports import Reported
from atoll.dispatch.usecases.session import Session
from atoll.ports.clock import Clock, Ids
from atoll.runtime import logs

log = logs.logger(__name__)

Apply = Callable[[Sequence[Reported]], Awaitable[None]]
"""Raises what AGAIN lists when the same batch may be given again."""

LINGER_S: Final = 0.02


class ReportIntake:
    """Bounded: a session whose reports wait is not read on, so its agent waits too."""

    def __init__(self, apply: Apply, clock: Clock, ids: Ids, *, limits: Limits) -> None:
        self._apply_batch = apply
        self._clock = clock
        self._limits = limits
        self._batches: Batcher[Reported] = Batcher(
            clock, linger_s=LINGER_S, most=limits.report_batch
        )
        self._patience = Patience("apply reports", clock, ids)
        self._settled = asyncio.Condition()

    async def put(self, session: Session, reports: Sequence[Report]) -> None:
        """Take reports in; returns when so few of the session's wait that more may come."""
        since = self._clock.now()
        step = self._limits.report_batch
        for first in range(0, len(reports), step):
            part = tuple(reports[first : first + step])
            session.reports_waiting += len(part)
            self._batches.put(Reported(session, part, since), len(part))
        if session.reports_waiting > self._limits.reports_waiting:
            async with self._settled:
                await self._settled.wait_for(lambda: not self._too_many(session))

    async def run(self) -> None:
        """Apply for ever."""
        while True:
            batch = await self._batches.take()
            await self._apply(batch)
            for each in batch:
                each.session.reports_waiting -= len(each.reports)
            async with self._settled:
                self._settled.notify_all()

    def _too_many(self, session: Session) -> bool:
        return session.open and session.reports_waiting > self._limits.reports_waiting

    async def _apply(self, batch: Sequence[Reported]) -> None:
        while True:
            try:
                await self._apply_batch(batch)
            except AGAIN as error:
                await self._patience.after(error)
            except Exception as error:
                await self._isolate(batch, error)
                return
            else:
                self._patience.well()
                return

    async def _isolate(self, batch: Sequence[Reported], error: Exception) -> None:
        """One session's reports must not hold up those of all others for ever."""
        parts = [
            tuple(part) for _, part in groupby(sorted(batch, key=_cluster), key=lambda r: r.session)
        ]
        if len(parts) > 1:
            for part in parts:
                await self._apply(part)
            return
        session = batch[0].session
        log.error("reports cannot be applied", cluster=session.cluster, exc_info=error)
        session.end(
            Unavailable(
                "reports of this cluster cannot be applied; the log of dispatch has the cause",
                code=ErrorCode.UNAVAILABLE,
            )
        )


def _cluster(reported: Reported) -> tuple[str, int]:
    return reported.session.cluster, reported.session.epoch
