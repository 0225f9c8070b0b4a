"""Windows of bookings by the nodes that they are on, the first to begin first."""

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final

from atoll.core.model.booking import NodeShare, OccurrenceId, Window
from atoll.core.model.ids import NodeId

Booked = tuple[Window, NodeShare]
_Entry = tuple[float, int, str, Booked]
_KEY: Final = itemgetter(0, 1, 2)


class BookedNodes:
    """Windows that are known, those that are over included until they are forgotten."""

    def __init__(self) -> None:
        self._windows: dict[OccurrenceId, tuple[Window, ...]] = {}
        self._on: dict[NodeId, list[_Entry]] = {}

    def __bool__(self) -> bool:
        return bool(self._windows)

    def all(self) -> Mapping[OccurrenceId, Sequence[Window]]:
        """All windows by occurrence."""
        return self._windows

    def put(self, occurrence: OccurrenceId, windows: Sequence[Window]) -> None:
        """Enter or replace the windows of an occurrence."""
        self.drop(occurrence)
        self._windows[occurrence] = tuple(windows)
        for window in windows:
            for share in window.shares:
                entry = (window.start, int(window.id), str(window.cluster), (window, share))
                insort(self._on.setdefault(share.node, []), entry, key=_KEY)

    def drop(self, occurrence: OccurrenceId) -> bool:
        """Forget an occurrence; whether it was here."""
        gone = self._windows.pop(occurrence, ())
        for node in {share.node for window in gone for share in window.shares}:
            left = [entry for entry in self._on[node] if entry[1] != occurrence]
            if left:
                self._on[node] = left
            else:
                del self._on[node]
        return bool(gone)

    def clear(self) -> None:
        """Forget everything."""
        self._windows.clear()
        self._on.clear()

    def on(self, node: NodeId, *, now: float, until: float) -> Iterator[Booked]:
        """Windows on a node that are not over `now` and begin before `until`."""
        for start, _, _, booked in self._on.get(node, ()):
            if start >= until:
                return
            if booked[0].end > now:
                yield booked
