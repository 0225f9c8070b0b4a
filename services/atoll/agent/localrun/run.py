"""A run of this machine as its keeper knows it."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from atoll.agent.localrun.folders import Held
from atoll.agent.localrun.watch import Watch
from atoll.core.model.ids import AttemptId
from atoll.core.model.reason import ReasonCode
from atoll.ports.backend import Refusal, StartOrder, StopOrder


@dataclass(slots=True)
class Run:
    """An attempt that was begun here, until its end is known to all."""

    attempt: AttemptId
    folder: Path
    held: Held
    watch: Watch | None = None
    stop: StopOrder | None = None
    force: asyncio.TimerHandle | None = None
    ended: bool = False


def broken(order: StartOrder, why: str) -> Refusal:
    """The refusal of a run that could not be begun."""
    nodes = tuple(sorted({task.node for task in order.tasks}))
    return Refusal(ReasonCode.BACKEND_ERROR, why, nodes)
