"""Puts the submission service together from its settings."""

from collections.abc import Iterable
from functools import partial

from atoll.adapters.postgres.store import PostgresStore
from atoll.api.submission.v1 import submission_pb2_grpc
from atoll.core.model.priority import DEFAULT_CLASSES, PriorityClass, by_name
from atoll.core.state.mig import ALL_PROFILES
from atoll.ports.clock import Clock, Ids
from atoll.ports.notify import Notifier
from atoll.ports.registry import Endpoint, RegistryPort
from atoll.ports.store.submission import SubmissionStore
from atoll.ports.streams import Hints
from atoll.ports.topics import EVENTS, PLACEMENT
from atoll.ports.wake import Wake
from atoll.runtime import outside
from atoll.runtime.process import Process, run
from atoll.runtime.rpc.channel import channel
from atoll.runtime.rpc.server import Add
from atoll.submission import telemetry
from atoll.submission.agent_logs import DispatchLogs
from atoll.submission.loops import Keeper
from atoll.submission.placement_desk import PlacementDesk
from atoll.submission.servicer import SubmissionServicer, UseCases
from atoll.submission.settings import SubmissionSettings
from atoll.submission.usecases.admission import Admission
from atoll.submission.usecases.change_jobs import JobChanger
from atoll.submission.usecases.checks import Known
from atoll.submission.usecases.clusters import Clusters
from atoll.submission.usecases.deadlines import PromiseDesk
from atoll.submission.usecases.jobs import JobReader
from atoll.submission.usecases.logs import Logs, LogSource
from atoll.submission.usecases.queues import Queues
from atoll.submission.usecases.submit import Submitter
from atoll.submission.usecases.transactions import Transactions
from atoll.submission.usecases.watch import Watcher

SERVICE = "submission"
GRPC_SERVICE = "atoll.api.submission.v1.SubmissionService"


def main() -> int:
    """Run the service until it is told to stop; its exit code."""
    return run(SERVICE, SubmissionSettings, serve)


async def serve(process: Process[SubmissionSettings]) -> None:
    """Serve with the adapters that the settings name."""
    settings = process.settings
    store = PostgresStore.open(
        settings.dsn.get_secret_value(),
        ids=process.ids,
        pool_size=settings.pool_size,
        application=SERVICE,
    )
    process.exits.push_async_callback(store.close)
    source = DispatchLogs(lambda address: channel(address, settings))
    process.exits.push_async_callback(source.close)
    registry = outside.registry(process, outside.etcd(process)) if settings.etcd_endpoints else None
    desk = PlacementDesk(registry, lambda address: channel(address, settings))
    process.exits.push_async_callback(desk.close)
    built = Submission(
        store.submission,
        hints=outside.hints(process),
        source=source,
        desk=desk,
        clock=process.clock,
        ids=process.ids,
        max_queued_jobs=settings.max_queued_jobs,
        classes=settings.priority_classes,
    )
    process.exits.push_async_callback(built.close)
    _start_loops(process, built, store)
    server = process.server_for(built.services())
    await server.start()
    if registry is not None:
        entry = Endpoint(process.instance, server.advertised)
        loop = partial(_stay_registered, process, registry, entry)
        _ = process.supervisor.start("registration", loop)
    await process.stopping.wait()
    # First what would never end by itself: the drain waits for all calls.
    built.wake.stop()
    await source.close()
    await server.drain()
    await process.supervisor.close()


def _start_loops(
    process: Process[SubmissionSettings], built: "Submission", store: PostgresStore
) -> None:
    keeper = Keeper(store.upkeep, process.settings.retention, clock=process.clock, ids=process.ids)
    loops = {
        "event hints": built.wake.run,
        "maintain": keeper.maintain,
        "prune": keeper.prune,
    }
    for name, loop in loops.items():
        _ = process.supervisor.start(name, loop)


class Submission:
    """The use cases over given adapters, and the servicer before them."""

    def __init__(
        self,
        store: SubmissionStore,
        *,
        hints: Hints,
        source: LogSource,
        desk: PromiseDesk,
        clock: Clock,
        ids: Ids,
        max_queued_jobs: int,
        classes: Iterable[PriorityClass] = DEFAULT_CLASSES,
    ) -> None:
        self.wake = Wake(hints, clock, EVENTS)
        self._notifier = Notifier(hints, PLACEMENT, EVENTS)
        transactions = Transactions(store, notifier=self._notifier, clock=clock, ids=ids)
        self._submitter = Submitter(
            store,
            notifier=self._notifier,
            admission=Admission(store, clock),
            desk=desk,
            clock=clock,
            ids=ids,
            known=Known(frozenset(ALL_PROFILES), by_name(classes)),
            most_queued=max_queued_jobs,
            committed=telemetry.committed,
        )
        self.use_cases = UseCases(
            submitter=self._submitter,
            reader=JobReader(store),
            changer=JobChanger(transactions),
            watcher=Watcher(store, self.wake, clock),
            logs=Logs(store, source),
            queues=Queues(transactions),
            clusters=Clusters(transactions),
        )

    def services(self) -> dict[str, Add]:
        """What a gRPC server is to serve."""
        servicer = SubmissionServicer(self.use_cases)
        return {
            GRPC_SERVICE: lambda server: (
                submission_pb2_grpc.add_SubmissionServiceServicer_to_server(servicer, server)
            )
        }

    async def close(self) -> None:
        """Let what is under way end."""
        await self._notifier.close()


async def _stay_registered(
    process: Process[SubmissionSettings], registry: RegistryPort, entry: Endpoint
) -> None:
    # Raises while etcd cannot be reached, and is tried again: submits go on without it.
    registration = await registry.register(
        SERVICE, entry.identity, address=entry.address, ttl_s=process.settings.registry_ttl_s
    )
    try:
        await process.stopping.wait()
    finally:
        await registration.close()
