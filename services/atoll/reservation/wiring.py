"""Puts the reservation service together from its settings."""

import asyncio
from collections.abc import Awaitable, Callable

from atoll.adapters.etcd.election import EtcdElection
from atoll.adapters.postgres.store import PostgresStore
from atoll.api.reservation.v1 import reservation_pb2_grpc
from atoll.core.engine.kernels import warm_bookings
from atoll.ports.clock import Clock, Ids
from atoll.ports.notify import Notifier
from atoll.ports.store.placement import PlacementStore
from atoll.ports.store.reservation import ReservationStore
from atoll.ports.streams import Hints
from atoll.ports.topics import BOOKINGS, PLACEMENT
from atoll.ports.wake import Wake
from atoll.reservation.loops import Candidate
from atoll.reservation.servicer import ReservationServicer, UseCases
from atoll.reservation.settings import ReservationSettings
from atoll.reservation.usecases.calendars import Importer
from atoll.reservation.usecases.change import Changer
from atoll.reservation.usecases.create import Booker
from atoll.reservation.usecases.give_back import Ender
from atoll.reservation.usecases.ground import Ground
from atoll.reservation.usecases.look import Looker
from atoll.reservation.usecases.replica import Replica
from atoll.reservation.usecases.rule_book import RuleBook
from atoll.reservation.usecases.watch import BookingWatcher
from atoll.runtime import outside
from atoll.runtime.process import Process, run
from atoll.runtime.rpc.server import Add

SERVICE = "reservation"
GRPC_SERVICE = "atoll.api.reservation.v1.ReservationService"


def main() -> int:
    """Run one replica to its end."""
    return run(SERVICE, ReservationSettings, serve)


async def serve(process: Process[ReservationSettings]) -> None:
    """Build the replica, serve, and stand for election until told to stop."""
    settings = process.settings
    await asyncio.to_thread(warm_bookings)  # nobody waits for a compiler while shards are locked
    store = PostgresStore.open(
        settings.dsn.get_secret_value(),
        ids=process.ids,
        pool_size=settings.pool_size,
        application=SERVICE,
    )
    process.exits.push_async_callback(store.close)
    etcd = outside.etcd(process)
    registry = outside.registry(process, etcd)
    built = Bookings(
        store.reservation,
        store.placement,
        hints=outside.hints(process),
        settings=settings,
        clock=process.clock,
        ids=process.ids,
    )
    process.exits.push_async_callback(built.close)
    server = process.server_for(built.services())
    await server.start()
    election = EtcdElection(
        etcd,
        prefix=f"{settings.etcd_prefix}/elections/{SERVICE}",
        identity=server.advertised,
        ttl_s=settings.election_ttl_s,
        clock=process.clock,
    )
    process.exits.push_async_callback(election.close)
    for name, loop in built.loops().items():
        _ = process.supervisor.start(name, loop)
    term = process.supervisor.start("election", lambda: built.candidate.stand(election))
    registration = await registry.register(
        SERVICE, process.instance, address=server.advertised, ttl_s=settings.registry_ttl_s
    )
    process.exits.push_async_callback(registration.close)
    await process.stopping.wait()
    # The term ends first, so that a standby need not wait for the lease; then what would never
    # end by itself.
    term.cancel()
    await asyncio.wait([term])
    built.wake.stop()
    await server.drain()
    await process.supervisor.close()


class Bookings:
    """The use cases over given adapters, the loops, and the servicer before them."""

    def __init__(
        self,
        store: ReservationStore,
        placement: PlacementStore,
        *,
        hints: Hints,
        settings: ReservationSettings,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self.wake = Wake(hints, clock, BOOKINGS)
        self.replica = Replica(placement, store, clock)
        self._notifier = Notifier(hints, PLACEMENT, BOOKINGS)
        self.ground = Ground(store, self.replica, notifier=self._notifier, clock=clock, ids=ids)
        booker = Booker(self.ground, horizon_s=settings.horizon_s)
        changer = Changer(self.ground, horizon_s=settings.horizon_s)
        ender = Ender(self.ground)
        self.use_cases = UseCases(
            booker=booker,
            changer=changer,
            ender=ender,
            looker=Looker(self.ground),
            watcher=BookingWatcher(store, self.wake, clock),
            importer=Importer(self.ground, booker=booker, changer=changer, ender=ender),
            rules=RuleBook(self.ground),
            clock=clock,
        )
        self.candidate = Candidate(settings, self.ground, hints=hints, clock=clock)

    def loops(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """What runs beside the server, by name."""
        return {
            "follow": self.candidate.follow,
            "hints": self.candidate.watch_hints,
            "event hints": self.wake.run,
        }

    def services(self) -> dict[str, Add]:
        """What a gRPC server is to serve."""
        servicer = ReservationServicer(self.use_cases)
        return {
            GRPC_SERVICE: lambda server: (
                reservation_pb2_grpc.add_ReservationServiceServicer_to_server(servicer, server)
            )
        }

    async def close(self) -> None:
        """Let what is under way end."""
        await self._notifier.close()
