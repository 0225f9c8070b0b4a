"""Which rate is tried next."""

from collections.abc import Iterator
from typing import Final

from tools.bench_numbers import Measured

FIRST: Final = 500.0
STEP: Final = 500.0
BELOW: Final = 0.9
"""Of what short windows have done at best: so much can be done in the long run."""
LOWER: Final = 0.85
TRIES: Final = 3


class Search:
    """Rates rise until one is not held; then the highest that is held for long is looked for."""

    def __init__(self, most: float) -> None:
        self._most = most
        self._next: float | None = min(FIRST, most)
        self._held: Measured | None = None
        self._last: Measured | None = None
        self._candidates: Iterator[float] | None = None
        self._best: Measured | None = None

    def probe(self) -> float:
        """The next rate for a short window; 0: it is known where the limit is, about."""
        return self._next or 0.0

    def probed(self, window: Measured) -> None:
        """What a short window has shown."""
        self._last = window
        if window.why_not_held():
            self._next = None
            return
        self._held = window
        following = window.rate + STEP
        self._next = following if following <= self._most else None

    def sustain(self) -> float:
        """The next rate for a long window; 0: one was held, or enough were tried."""
        if self._candidates is None:
            self._candidates = iter(self._rates())
        return 0.0 if self._best is not None else next(self._candidates, 0.0)

    def sustained(self, window: Measured) -> None:
        """What a long window has shown."""
        self._last = window
        if not window.why_not_held():
            self._best = window

    @property
    def best(self) -> Measured:
        """The window at the highest rate that was held: a long one, unless none was."""
        found = self._best or self._held or self._last
        if found is None:
            raise RuntimeError("no rate was tried")
        return found

    def _rates(self) -> list[float]:
        short = [window.jobs_per_s for window in (self._held, self._last) if window is not None]
        highest = min(BELOW * max(short, default=0.0), self._most)
        return [highest * LOWER**tries for tries in range(TRIES)] if highest else []
