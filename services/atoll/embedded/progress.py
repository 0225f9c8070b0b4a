"""Shows on stderr how the stack comes up or goes down: a live list on a terminal, else lines."""

import contextlib
from types import TracebackType
from typing import Final, Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from atoll.embedded.say import stderr
from atoll.embedded.state import PartState, PartView, Phase, Report

STYLES: Final = {
    PartState.WAITING: "dim",
    PartState.STARTING: "cyan",
    PartState.HEALTHY: "green",
    PartState.UNREADY: "yellow",
    PartState.BACKOFF: "yellow",
    PartState.ENDING: "cyan",
    PartState.ENDED: "dim",
}


class Progress(contextlib.AbstractContextManager["Progress"], Protocol):
    """Something that is shown one report after the other."""

    def show(self, report: Report) -> None:
        """The state as it is now."""
        ...


def progress() -> Progress:
    """The one that suits stderr."""
    console = stderr()
    return LiveProgress(console) if console.is_terminal else LineProgress(console)


class LiveProgress:
    """A list that is redrawn in place."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, refresh_per_second=10)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def show(self, report: Report) -> None:
        """Redraw."""
        self._live.update(_drawn(report))


class LineProgress:
    """A line whenever something changes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._told: dict[str, str] = {}
        self._begun = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, report: Report) -> None:
        """Print what is new; what stood when a running stack was first looked at is not."""
        quiet = not self._begun and report.phase is not Phase.STARTING
        self._begun = True
        for view in report.parts:
            if view.state is not PartState.WAITING:
                self._tell(view.name, f"{view.name}: {_words(view)}", quiet=quiet)
        if report.step:
            self._tell("", report.step)

    def _tell(self, key: str, line: str, *, quiet: bool = False) -> None:
        if self._told.get(key) == line:
            return
        self._told[key] = line
        if not quiet:
            self._console.print(line, markup=False, soft_wrap=True)


def _drawn(report: Report) -> Group:
    table = Table.grid(padding=(0, 2))
    for view in report.parts:
        table.add_row(
            Text(view.name), Text(_words(view), style=STYLES[view.state], overflow="ellipsis")
        )
    busy = report.phase in {Phase.STARTING, Phase.STOPPING}
    return Group(table, Spinner("dots", text=Text(report.step))) if busy else Group(table)


def _words(view: PartView) -> str:
    shown = [str(view.state)]
    if view.state is PartState.HEALTHY and view.address:
        shown.append(view.address)
    if view.restarts:
        shown.append(f"restarts: {view.restarts}")
    if view.detail:
        shown.append(f"({view.detail})")
    return " ".join(shown)
