"""One replica of dispatch, on whatever stands behind the ports."""

from collections.abc import Awaitable, Callable

from atoll.core.model.errors import ErrorCode, Unavailable
from atoll.dispatch.intake import ReportIntake
from atoll.dispatch.listener import Listener
from atoll.dispatch.loops import PACE, BeatLoop, FollowLoop, Pace, PushLoop, WakeLoop
from atoll.dispatch.servicer import DispatchServicer
from atoll.dispatch.settings import DispatchSettings
from atoll.dispatch.telemetry import Gauges, Telemetry
from atoll.dispatch.usecases.beats import Beats
from atoll.dispatch.usecases.follow import Follower, Repairer
from atoll.dispatch.usecases.inventory import Inventories
from atoll.dispatch.usecases.logs import Logs
from atoll.dispatch.usecases.push import Pusher
from atoll.dispatch.usecases.ready import Readier
from atoll.dispatch.usecases.reports import Reports
from atoll.dispatch.usecases.sessions import Sessions
from atoll.dispatch.usecases.table import SessionTable
from atoll.ports.clock import Clock, Ids
from atoll.ports.store.dispatch import DispatchStore
from atoll.ports.streams import DecisionStream, Hints
from atoll.wire.decision import decode_decision
from atoll.wire.inventory import combined

Loop = Callable[[], Awaitable[None]]


class Replica:
    """The use cases, their loops and the servicer, over one table of sessions.

    `holder` tells the address under which other services reach this replica;
    `stream` None: decisions are read from the store alone.
    """

    def __init__(
        self,
        store: DispatchStore,
        stream: DecisionStream | None,
        hints: Hints,
        *,
        settings: DispatchSettings,
        holder: Callable[[], str],
        clock: Clock,
        ids: Ids,
        pace: Pace = PACE,
    ) -> None:
        limits = settings.limits
        observer = Telemetry(clock)
        self.table = SessionTable(most=limits.sessions)
        ready = Readier(store, observer)
        self._wakes = WakeLoop(hints)
        self._beats = BeatLoop(
            Beats(store, lease_s=settings.lease_s, observer=observer),
            clock,
            ids,
            most=limits.beat_batch,
        )
        self._intake = ReportIntake(
            Reports(store, wake=self._wakes.want, observer=observer).apply,
            clock,
            ids,
            limits=limits,
        )
        pusher = Pusher(store, self.table, ready, observer=observer, clock=clock, limits=limits)
        self._pushes = PushLoop(pusher, self.table, clock=clock, ids=ids)
        self._follow = FollowLoop(
            None
            if stream is None
            else Follower(stream, self.table, decode=decode_decision, clock=clock),
            Repairer(store, stream, self.table, observer=observer, limits=limits),
            self.table,
            hints=hints,
            clock=clock,
            ids=ids,
            pace=pace,
        )
        self._repairs = limits.repairs
        self._gauges = Gauges(self.table, clock)
        sessions = Sessions(store, self.table, limits=limits)
        inventories = Inventories(store, combined, wake=self._wakes.want, limits=limits)
        self.servicer = DispatchServicer(
            sessions,
            Listener(sessions, inventories, beats=self._beats, intake=self._intake),
            Logs(store, self.table, limits=limits),
            settings=settings,
            holder=holder,
        )

    def loops(self) -> dict[str, Loop]:
        """By name, what is to run for as long as the replica lives."""
        return self._follow.loops(self._repairs) | {
            "beats": self._beats.run,
            "reports": self._intake.run,
            "pushes": self._pushes.run,
            "wakes": self._wakes.run,
            "gauges": self._gauges.run,
        }

    def send_away(self) -> None:
        """End all sessions, and those that still come: their agents go to another replica."""
        self.table.close(
            Unavailable("this replica stops; go to another", code=ErrorCode.UNAVAILABLE)
        )
