"""Puts the burst service together from its settings."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from atoll.adapters.etcd.election import EtcdElection
from atoll.adapters.postgres.store import PostgresStore
from atoll.api.burst.v1 import burst_pb2_grpc
from atoll.burst.forecasting import boosted
from atoll.burst.forecasting.model import library
from atoll.burst.forecasting.models import statistical
from atoll.burst.loops import Candidate
from atoll.burst.pointed import Pointed
from atoll.burst.providers.registry import Site, make_provider
from atoll.burst.servicer import BurstServicer, UseCases
from atoll.burst.settings import BurstSettings
from atoll.burst.usecases.booked import Bookings, no_bookings
from atoll.burst.usecases.books import Books
from atoll.burst.usecases.by_hand import ByHand
from atoll.burst.usecases.explain import Explainer
from atoll.burst.usecases.look import Looker, WhoLeads
from atoll.burst.usecases.policy_book import PolicyBook
from atoll.core.engine.burst.warm import warm_spot
from atoll.ports.clock import Clock, Ids
from atoll.ports.election import ElectionUnavailable
from atoll.ports.notify import Notifier
from atoll.ports.provider import Provider
from atoll.ports.store.burst import BurstStore
from atoll.ports.streams import Hints
from atoll.ports.topics import BURST, PLACEMENT
from atoll.runtime import outside
from atoll.runtime.process import Process, run
from atoll.runtime.rpc.server import Add

SERVICE = "burst"
LED_WITHIN_S = 15.0
"""A replica that has seen nobody lead for so long is ready all the same."""
LOOK_S = 0.1
GRPC_SERVICE = "atoll.api.burst.v1.BurstService"


def main() -> int:
    """Run one replica to its end."""
    return run(SERVICE, BurstSettings, serve)


async def serve(process: Process[BurstSettings]) -> None:
    """Build the replica, serve, and stand for election until told to stop."""
    settings = process.settings
    providers = providers_of(settings, process.clock)
    store = PostgresStore.open(
        settings.dsn.get_secret_value(),
        ids=process.ids,
        pool_size=settings.pool_size,
        application=SERVICE,
    )
    process.exits.push_async_callback(store.close)
    etcd = outside.etcd(process)
    registry = outside.registry(process, etcd)
    elections: list[EtcdElection] = []

    async def who_leads() -> str | None:
        with suppress(ElectionUnavailable):
            return await elections[0].leader() if elections else None
        return None

    built = Broker(
        store.burst,
        providers,
        hints=outside.hints(process),
        settings=settings,
        clock=process.clock,
        ids=process.ids,
        who_leads=who_leads,
        bookings=store.reservation.live,
    )
    process.exits.push_async_callback(built.close)
    server = process.server_for(built.services())
    led = asyncio.Event()
    process.readiness = lambda: server.serving and led.is_set()
    await server.start()
    # Before it may lead: nobody waits for a compiler, or for a library, while a lease runs.
    await asyncio.to_thread(warm)
    election = EtcdElection(
        etcd,
        prefix=f"{settings.etcd_prefix}/elections/{SERVICE}",
        identity=server.advertised,
        ttl_s=settings.election_ttl_s,
        clock=process.clock,
    )
    process.exits.push_async_callback(election.close)
    elections.append(election)
    for name, loop in built.loops().items():
        _ = process.supervisor.start(name, loop)
    term = process.supervisor.start("election", lambda: built.candidate.stand(election))
    _ = process.supervisor.start(
        "first leader", lambda: _first_leader(who_leads, process.clock, led)
    )
    registration = await registry.register(
        SERVICE, process.instance, address=server.advertised, ttl_s=settings.registry_ttl_s
    )
    process.exits.push_async_callback(registration.close)
    await process.stopping.wait()
    # The term ends first, so that a standby need not wait for the lease.
    term.cancel()
    await asyncio.wait([term])
    await server.drain()
    await process.supervisor.close()


async def _first_leader(who_leads: WhoLeads, clock: Clock, led: asyncio.Event) -> None:
    """Be ready once somebody leads, for whoever comes then is told what is rented.

    Without etcd nobody does for a while: what is written can be read all the same.
    """
    until = clock.monotonic() + LED_WITHIN_S
    while clock.monotonic() < until and await who_leads() is None:
        await clock.sleep(LOOK_S)
    led.set()


def warm() -> None:
    """Load what deciding and forecasting need; seconds."""
    warm_spot()
    _ = library(statistical.LIBRARY), boosted.is_available()


class Broker:
    """The use cases over given adapters, the loops, and the servicer before them."""

    def __init__(
        self,
        store: BurstStore,
        providers: Mapping[str, Provider],
        *,
        hints: Hints,
        settings: BurstSettings,
        clock: Clock,
        ids: Ids,
        who_leads: WhoLeads,
        bookings: Bookings = no_bookings,
    ) -> None:
        self._notifier = Notifier(hints, PLACEMENT, BURST)
        self.books = Books(store, settings.terms, notifier=self._notifier, clock=clock, ids=ids)
        looker = Looker(self.books, who_leads)
        self.use_cases = UseCases(
            store=store,
            looker=looker,
            policies=PolicyBook(self.books),
            by_hand=ByHand(self.books),
            explainer=Explainer(self.books),
        )
        self.candidate = Candidate(
            settings, self.books, providers, hints=hints, looker=looker, bookings=bookings
        )

    def loops(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """What runs beside the server, by name."""
        return {"hints": self.candidate.watch_hints}

    def services(self) -> dict[str, Add]:
        """What a gRPC server is to serve."""
        servicer = BurstServicer(self.use_cases)
        return {
            GRPC_SERVICE: lambda server: burst_pb2_grpc.add_BurstServiceServicer_to_server(
                servicer, server
            )
        }

    async def close(self) -> None:
        """Let what is under way end."""
        await self._notifier.close()
        await self.candidate.close()


def providers_of(settings: BurstSettings, clock: Clock) -> dict[str, Provider]:
    """Those that are configured; raises BadProvider."""
    site = Site(
        clock=clock,
        deployment=settings.deployment,
        data_dir=settings.data_dir,
        dispatch=settings.dispatch,
        agent_settings=settings.agent,
    )
    return {
        name: Pointed(make_provider(name, given, site))
        for name, given in settings.providers.items()
    }
