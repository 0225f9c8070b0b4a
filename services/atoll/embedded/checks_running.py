"""Is the stack that runs well?"""

import asyncio
from collections.abc import Iterator
from typing import Final

import asyncpg

from atoll.adapters.postgres.migrate import newest
from atoll.adapters.system import SystemClock
from atoll.core.model.burst import CLUSTER_PREFIX
from atoll.embedded.layout import Layout
from atoll.embedded.overview import Overview, forecasts_text, look, rented_text
from atoll.embedded.state import PartState, PartView, Report
from atoll.embedded.told import Told, judged
from atoll.runtime.servers import EtcdServer, PostgresServer, Server, ValkeyServer

OLD_HEARTBEAT_S: Final = 15.0
MANY_RESTARTS: Final = 3
ANSWER_WITHIN_S: Final = 5.0


async def run(layout: Layout, report: Report) -> list[Told]:
    """The processes, the servers behind them, the database, the agents."""
    overview = await asyncio.to_thread(look, report)
    return [
        *(_part(view) for view in report.parts),
        *[await _server(name, server) for name, server in _servers(layout).items()],
        await _migrations(layout),
        *_clusters(report, overview),
        *_forecasts(overview),
        *_rented(overview),
    ]


def _part(view: PartView) -> Told:
    told = f"{view.name}: {view.state}"
    if view.detail:
        told += f" ({view.detail})"
    if view.restarts:
        told += f", {view.restarts} restarts"
    well = view.state is PartState.HEALTHY and view.restarts < MANY_RESTARTS
    return judged(told, ok=well, hint=f"see {view.log}")


def _servers(layout: Layout) -> dict[str, Server]:
    return {
        "postgres": PostgresServer(layout.server("postgres")),
        "etcd": EtcdServer(layout.server("etcd")),
        "valkey": ValkeyServer(layout.server("valkey")),
    }


async def _server(name: str, server: Server) -> Told:
    try:
        answers = await server.serves()
    except OSError as error:
        return Told(f"{name}: {error}", ok=False, hint="run doctor as the user who ran atoll up")
    return judged(
        f"{name} {'answers' if answers else 'does not answer'} at {server.host}:{server.port}",
        ok=answers,
        hint=f"see {server.log}",
    )


async def _migrations(layout: Layout) -> Told:
    wanted = await asyncio.to_thread(newest)
    hint = "atoll down && atoll up applies the migrations"
    try:
        found = await _migration(PostgresServer(layout.server("postgres")).dsn)
    except (OSError, TimeoutError, asyncpg.PostgresError) as error:
        return Told(f"migrations: {error}", ok=False, hint=hint)
    told = f"the database is at migration {found}"
    return judged(
        told if found == wanted else f"{told}, not {wanted}", ok=found == wanted, hint=hint
    )


async def _migration(dsn: str) -> str:
    connection = await asyncpg.connect(dsn, timeout=ANSWER_WITHIN_S)
    try:
        return str(await connection.fetchval("SELECT version_num FROM alembic_version"))
    finally:
        await connection.close()


def _forecasts(overview: Overview) -> Iterator[Told]:
    if told := forecasts_text(overview):
        # Whatever they were off by, the next ones know.
        yield Told(told, ok=True)


def _rented(overview: Overview) -> Iterator[Told]:
    if told := rented_text(overview):
        yield Told(told, ok=True, hint="atoll burst status tells more")
    for provider in overview.burst.providers if overview.burst else ():
        if not provider.reachable:
            yield Told(
                f"provider {provider.name} does not answer: {provider.message}",
                ok=False,
                hint="what is rented there cannot be ended meanwhile; see the log of burst",
            )


def _clusters(report: Report, overview: Overview) -> Iterator[Told]:
    ours = {view.name for view in report.parts}
    now = SystemClock().now()
    for cluster in overview.clusters:
        agent = f"agent-{cluster.name}"
        age = now - cluster.last_seen
        if cluster.name.startswith(CLUSTER_PREFIX):
            yield Told(f"cluster {cluster.name} is rented: {cluster.state}", ok=True)
        elif agent in ours:
            yield judged(
                f"{agent}: last heartbeat {age:.0f} s ago, {cluster.state}",
                ok=age < OLD_HEARTBEAT_S,
                hint=f"see the log of {agent}",
            )
        else:
            yield Told(
                f"cluster {cluster.name} has no agent here any more",
                ok=True,
                hint=f"atoll up --clusters FILE with it, or atoll clusters forget {cluster.name}",
            )
