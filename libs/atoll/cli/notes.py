"""What is told beside the result: on stderr, with a spinner only on a terminal."""

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.status import Status


class Notes:
    """Lines about progress; the last one spins while something is awaited."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._status: Status | None = None
        self._last = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.rest()

    def say(self, line: str) -> None:
        """Tell a line that stays."""
        self.rest()
        if not self._quiet and line != self._last:
            print(line, file=sys.stderr, flush=True)
            self._last = line

    def wait(self, line: str) -> None:
        """Tell what is awaited; on a terminal it disappears again."""
        if self._quiet or not sys.stderr.isatty():
            return
        self.rest()
        from rich.console import Console

        self._status = Console(stderr=True).status(line)
        self._status.start()

    def rest(self) -> None:
        """Nothing is awaited any more."""
        if self._status is not None:
            self._status.stop()
            self._status = None
