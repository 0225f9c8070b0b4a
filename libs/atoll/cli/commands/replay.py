"""`atoll replay`."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import App, Parameter

from atoll.adapters.system import SystemClock, SystemIds
from atoll.cli import exits
from atoll.cli.failures import WrongUse
from atoll.cli.options import DEFAULT_CONNECTION, Connection
from atoll.cli.plain import plain
from atoll.cli.replay import openb, show
from atoll.cli.replay.arrivals import LABEL, Prepared, pace_of, prepare
from atoll.cli.replay.checks import check_ledger
from atoll.cli.replay.drive import Progress, Replay
from atoll.cli.replay.place import cluster_of
from atoll.cli.replay.result import Result, result_of
from atoll.client.aio import AsyncClient
from atoll.client.views import JobInfo

app = App(name="replay", help="Replay a trace of jobs, and check the result.")
SPAN_S: Final = 60.0


@app.command(name="openb")
def openb_(
    *,
    nodes: Path,
    pods: Path,
    limit: int = 0,
    speed: float | None = None,
    cluster: str = "",
    queue: str = "default",
    ledger: Path | None = None,
    output: Annotated[Literal["table", "json"], Parameter(name=("--output", "-o"))] = "table",
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Replay pods of the Alibaba GPU trace of 2023 on a simulated cluster of its nodes.

    Start the cluster with a clusters file that names the same node list:

        clusters: [{name: openb, backend: simulated, cluster: nodes.csv.gz}]

    and `atoll up --clusters FILE`. Ends with 1 when a device was ever given to more than it has.

    Args:
        nodes: Node list (CSV, may be gzipped): sn, cpu_milli, memory_mib, gpu, model.
        pods: Pod list (CSV, may be gzipped): name, cpu_milli, memory_mib, num_gpu, gpu_milli, …
        limit: Only the first pods of the list; 0: all.
        speed: Seconds of the trace in one second; left out: all jobs arrive within a minute.
        cluster: Name of the cluster; left out: the one that has the nodes of the list.
        queue: Queue of the jobs.
        ledger: The simulated cluster's ledger (`ledger.jsonl` in its agent's folder), checked too.
        output: How to print.
        connection: Where the control plane is.
    """
    if speed is not None and speed <= 0:
        raise WrongUse(f"--speed {speed:g}: must be more than 0")
    machines = openb.read_nodes(nodes)
    listed = openb.read_pods(pods, limit=limit)
    if not listed:
        raise WrongUse(f"{pods} lists no pods")
    with connection.client() as client:
        cluster = cluster_of(client, machines, cluster)
    run = SystemIds().token(6).strip("-_").lower()
    pace = pace_of(listed, speed, span_s=SPAN_S)
    ready = prepare(listed, machines, pace, run=run, queue=queue, pin=("cluster", cluster))
    show.beginning(ready, pace, run=run, cluster=cluster)
    try:
        jobs, progress = _replayed(ready, connection, run=run, cluster=cluster)
    except KeyboardInterrupt:
        return _interrupted(run)
    faults = check_ledger(ledger) if ledger else None
    devices = sum(machine.devices for machine in machines)
    return _told(result_of(run, jobs, progress, devices=devices, ledger_faults=faults), output)


def _replayed(
    ready: Prepared, connection: Connection, *, run: str, cluster: str
) -> tuple[list[JobInfo], Progress]:
    progress = Progress(len(ready.arrivals))

    async def replay() -> list[JobInfo]:
        async with AsyncClient(config=connection.config()) as client:
            one = Replay(client, SystemClock(), run=run, cluster=cluster)
            return await show.shown(one.run(ready.arrivals, progress), progress)

    return asyncio.run(replay()), progress


def _told(result: Result, output: str) -> int:
    if output == "json":
        print(json.dumps(plain(result), indent=2))
    else:
        print("\n".join(show.lines(result)))
    return exits.INTERNAL if result.overcommitted else exits.OK


def _interrupted(run: str) -> int:
    print(
        f"\nleft: its jobs go on. End them: atoll ls --label {LABEL}={run} --limit 0 -o name "
        "| xargs -n 500 atoll cancel",
        file=sys.stderr,
    )
    return exits.NOT_FINISHED
