"""`atoll up`: start a supervisor, or find the one that runs, and say where things are."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from atoll.embedded.clusters import Clusters, read_clusters, write_clusters
from atoll.embedded.launch import follow, launch, running
from atoll.embedded.layout import Layout, WrongFolder
from atoll.embedded.overview import has_accelerators
from atoll.embedded.progress import LineProgress, progress
from atoll.embedded.say import readable, say, stderr
from atoll.embedded.state import Phase, Report

EXAMPLES: Final = Path(__file__).with_name("examples")
SETTLED: Final = frozenset({Phase.READY, Phase.STOPPED, Phase.FAILED})
OVER: Final = frozenset({Phase.STOPPED, Phase.FAILED})


async def bring_up(layout: Layout, *, clusters: str | None, foreground: bool) -> int:
    """Return when it serves, or, in the foreground, when it has ended; the exit code."""
    if (report := running(layout)) is not None:
        return await _already(layout, report, clusters)
    wanted = None if clusters is None else read_clusters(clusters_file(clusters))
    layout.make()
    _choose_clusters(layout, wanted)
    layout.report.unlink(missing_ok=True)
    supervisor = launch(layout)
    _end_on_signals(supervisor)
    with progress() as shown:
        report = await follow(
            layout, until=SETTLED, alive=lambda: supervisor.poll() is None, progress=shown
        )
    if report is None or report.phase is not Phase.READY:
        return _not_up(layout, report)
    _welcome(layout, report)
    return await _stay(layout, supervisor) if foreground else 0


def clusters_file(given: str) -> Path:
    """The file that is meant: a path, or the name of an example."""
    example = EXAMPLES / f"{given}.yaml"
    return example if example.parent == EXAMPLES and example.is_file() else Path(given)


async def _already(layout: Layout, report: Report, clusters: str | None) -> int:
    """One runs, or another `up` is starting it."""
    if clusters is not None and read_clusters(clusters_file(clusters)).with_local() != (
        read_clusters(layout.clusters)
    ):
        raise WrongFolder(f"{layout.name} runs with other clusters; first: atoll down")
    if report.phase is not Phase.READY:
        with progress() as shown:
            alive = lambda: running(layout) is not None  # noqa: E731
            last = await follow(layout, until=SETTLED, alive=alive, progress=shown)
        if last is None or last.phase is not Phase.READY:
            return _not_up(layout, last)
        report = last
    say(f"Atoll runs already (process {report.pid}).")
    _welcome(layout, report)
    return 0


def _choose_clusters(layout: Layout, wanted: Clusters | None) -> None:
    if wanted is not None:
        write_clusters(layout.clusters, wanted.with_local())
    elif not layout.clusters.exists():
        write_clusters(layout.clusters, Clusters().with_local())


def _end_on_signals(supervisor: "subprocess.Popen[bytes]") -> None:
    """Ctrl-C ends what is being started, in good order; the follower then sees it end."""
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(
            number, supervisor.send_signal, signal.SIGTERM
        )


async def _stay(layout: Layout, supervisor: "subprocess.Popen[bytes]") -> int:
    with LineProgress(stderr()) as shown:
        report = await follow(
            layout, until=OVER, alive=lambda: supervisor.poll() is None, progress=shown
        )
    await asyncio.to_thread(supervisor.wait)
    if report is None or report.phase is not Phase.STOPPED:
        return _not_up(layout, report)
    say(f"Atoll is down. Its data stay in {layout.data}.")
    return 0


def _not_up(layout: Layout, report: Report | None) -> int:
    failure = report.failure if report is not None else None
    if failure is not None:
        say(f"Atoll did not come up: {failure.what}", to=sys.stderr)
        if failure.tail:
            say(f"The end of {failure.log}:\n{readable(failure.tail)}", to=sys.stderr)
    elif report is not None and report.phase is Phase.STOPPED:
        say(f"Atoll was ended. Its data stay in {layout.data}.", to=sys.stderr)
    else:
        say(f"The supervisor died; see {layout.log('supervisor')}", to=sys.stderr)
    return 1


def _welcome(layout: Layout, report: Report) -> None:
    submission = next(view for view in report.parts if view.name == "submission")
    names = ", ".join(cluster.name for cluster in read_clusters(layout.clusters).clusters)
    say(f"Atoll is up at {submission.address}. Clusters: {names}. Data: {layout.data}")
    say("Try: atoll run -- hostname     See: atoll status     End: atoll down")
    if not has_accelerators(report):
        say(
            "This machine has no accelerators. To try jobs with GPUs on simulated clusters: "
            "atoll down && atoll up --clusters simulated"
        )
