"""A table in memory, as one open transaction sees and changes it."""

from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Overlay(Generic[K, V]):
    """A table with the writes of one open transaction on top."""

    def __init__(self, base: dict[K, V]) -> None:
        self._base = base
        self._written: dict[K, V | None] = {}

    def get(self, key: K) -> V | None:
        """The row as this transaction sees it."""
        return self._written[key] if key in self._written else self._base.get(key)

    def put(self, key: K, row: V) -> None:
        """Insert or replace."""
        self._written[key] = row

    def drop(self, key: K) -> None:
        """Delete, if it is there."""
        self._written[key] = None

    def items(self) -> Iterator[tuple[K, V]]:
        """All rows; those written by this transaction come last."""
        for key, row in self._base.items():
            if key not in self._written:
                yield key, row
        for key, written in self._written.items():
            if written is not None:
                yield key, written

    def values(self) -> Iterator[V]:
        """All rows, in the same order."""
        for key, row in self._base.items():
            if key not in self._written:
                yield row
        yield from (row for row in self._written.values() if row is not None)

    def changes(self) -> Iterator[tuple[K, V | None, V | None]]:
        """Key, row before and row after, of what was written."""
        for key, row in self._written.items():
            yield key, self._base.get(key), row

    def apply(self) -> None:
        """Commit."""
        for key, row in self._written.items():
            if row is None:
                self._base.pop(key, None)
            else:
                self._base[key] = row
