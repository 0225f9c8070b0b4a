"""How the demo looks: a live table on a terminal, else a line per change; a summary at the end."""

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from atoll.client.views import JobInfo
from atoll.core.model.lifecycle import JobState
from tools.demo_jobs import Want

STYLES: Mapping[JobState, str] = {
    JobState.QUEUED: "yellow",
    JobState.ASSIGNED: "cyan",
    JobState.RUNNING: "blue",
    JobState.SUCCEEDED: "green",
    JobState.FAILED: "red",
    JobState.CANCELLED: "red",
}


PLAIN_WIDTH = 120
"""Of a file or a pipe, which has none."""


class Show:
    """Tells what happens, as it happens."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)
        if not self.console.is_terminal:
            self.console = Console(highlight=False, width=PLAIN_WIDTH)
        self._live: Live | None = None
        self._told: dict[int, str] = {}

    def headline(self, text: str) -> None:
        """What comes next."""
        self.console.print(Text(f"\n{text}", style="bold"))

    def line(self, text: str) -> None:
        """Something worth a line."""
        self.console.print(text, markup=False, soft_wrap=True)

    @contextlib.contextmanager
    def following(self) -> Iterator[None]:
        """Redraw in place while inside, on a terminal."""
        if not self.console.is_terminal:
            yield
            return
        with Live(console=self.console, refresh_per_second=8) as self._live:
            yield
        self._live = None

    def jobs(self, wants: Sequence[Want], jobs: Sequence[JobInfo]) -> None:
        """The jobs as they stand."""
        if self._live is not None:
            self._live.update(table(wants, jobs))
            return
        for job in sorted(jobs, key=lambda job: job.id):
            self._tell(job)

    def _tell(self, job: JobInfo) -> None:
        where = f" on {job.cluster}" if job.cluster and job.state is not JobState.QUEUED else ""
        back = f", rolled back {job.rollbacks} times" if job.rollbacks else ""
        line = f"job {job.id} {job.name}: {job.state}{where}{back}"
        if self._told.get(job.id) != line:
            self._told[job.id] = line
            self.line(line)


def table(wants: Sequence[Want], jobs: Sequence[JobInfo]) -> Table:
    """A row for each want: one job, or all of an array."""
    columns = ("JOB", "WHAT", "STATE", "CLUSTER", "NODES", "WAIT", "RUN", "BACK", "")
    shown = Table(box=None, pad_edge=False)
    for column in columns:
        shown.add_column(column, no_wrap=True, overflow="ellipsis")
    for want in wants:
        found = [job for job in jobs if want.about(job)]
        if found:
            shown.add_row(*_row(want, found))
    return shown


def _row(want: Want, jobs: Sequence[JobInfo]) -> tuple[str | Text, ...]:
    first, last = min(job.id for job in jobs), max(job.id for job in jobs)
    done = all(job.done for job in jobs)
    well = done and all(want.met(job) for job in jobs)
    return (
        str(first) if first == last else f"{first}-{last}",
        want.title,
        _states(jobs),
        ", ".join(sorted({job.cluster for job in jobs if job.cluster})),
        str(len({task.node_name for job in jobs for task in job.tasks})),
        _longest((job.submitted_at, job.started_at) for job in jobs),
        _longest((job.started_at, job.ended_at) for job in jobs),
        str(sum(job.rollbacks for job in jobs) or ""),
        Text("ok", style="green") if well else Text("NOT ok" if done else "", style="red"),
    )


def _states(jobs: Sequence[JobInfo]) -> Text:
    counts = Counter(job.state for job in jobs)
    if len(jobs) == 1:
        return Text(str(jobs[0].state), style=STYLES.get(jobs[0].state, ""))
    parts = [Text(f"{count} {state}", STYLES.get(state, "")) for state, count in counts.items()]
    return Text(", ").join(parts)


def _longest(spans: Iterator[tuple[float, float]]) -> str:
    lengths = [end - begin for begin, end in spans if begin and end]
    return f"{max(lengths):.2f} s" if lengths else ""
