"""Tables as CSV files, which may be gzipped: what is wrong with one is told by line and column."""

import csv
import gzip
import io
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from atoll.core.model.errors import FieldViolation, InvalidInput

MOST: Final = 1e15
"""Whole numbers up to there are exact, and sums of them do not overflow."""
_GZIP: Final = b"\x1f\x8b"

T = TypeVar("T")


class Row:
    """A row's cells by column. All raise ValueError that names the column and what is in it."""

    def __init__(self, cells: Mapping[str, str | None]) -> None:
        self._cells = cells

    def text(self, column: str) -> str:
        """A cell that is not empty."""
        if not (found := self.or_empty(column)):
            raise ValueError(f"{column} is empty")
        return found

    def or_empty(self, column: str) -> str:
        """A cell; empty as well where the row ends before it, and without such a column."""
        return (self._cells.get(column) or "").strip()

    def number(self, column: str, *, least: float = -MOST, most: float = MOST) -> float:
        """A number."""
        return number(column, self.text(column), least=least, most=most)

    def whole(self, column: str, *, least: float = 0, most: float = MOST) -> int:
        """A whole number; `8.0` is one, too."""
        found = self.number(column, least=least, most=most)
        if not found.is_integer():
            raise ValueError(f"{column} is {self.text(column)}, not a whole number")
        return int(found)


def number(name: str, text: str, *, least: float = -MOST, most: float = MOST) -> float:
    """A number that is one; raises ValueError with its name."""
    try:
        found = float(text)
    except ValueError:
        raise ValueError(f"{name} is {text[:40]!r}, not a number") from None
    if math.isnan(found) or not least <= found <= most:
        raise ValueError(f"{name} is {text[:40]}, not from {least:g} to {most:g}")
    return found


def read_table(
    path: Path, columns: Sequence[str], *, field: str, parse: Callable[[Row], T]
) -> list[T]:
    """Every row of a file, in its order; InvalidInput of a field says what is wrong with it."""
    return rows_of(
        path.name, read_text(path, field=field), columns=columns, field=field, parse=parse
    )


def rows_of(
    name: str, text: str, *, columns: Sequence[str], field: str, parse: Callable[[Row], T]
) -> list[T]:
    """The same of a text that is at hand."""
    rows = csv.DictReader(io.StringIO(text, newline=""))
    missing = [column for column in columns if column not in (rows.fieldnames or ())]
    if missing:
        raise wrong(field, f"{name}: it has no column {', '.join(missing)}")
    found: list[T] = []
    try:
        found.extend(parse(Row(row)) for row in rows)
    except (ValueError, csv.Error) as error:
        raise wrong(field, f"{name}, line {max(2, rows.line_num)}: {error}") from error
    return found


def read_lines(path: Path, *, field: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers from 1 on."""
    return enumerate(io.StringIO(read_text(path, field=field)), 1)


def read_text(path: Path, *, field: str) -> str:
    """All of a file that may be gzipped, whatever its name is."""
    try:
        raw = path.read_bytes()
        return text_of(gzip.decompress(raw) if raw.startswith(_GZIP) else raw)
    except (OSError, EOFError, zlib.error) as error:
        raise wrong(field, f"cannot read {path}: {error}") from error


def text_of(raw: bytes) -> str:
    """UTF-8, with or without a mark at its beginning; other letters, in comments, do not count."""
    return raw.decode("utf-8-sig", errors="replace")


def wrong(field: str, message: str) -> InvalidInput:
    """What is the matter with a file."""
    return InvalidInput((FieldViolation(field, message),))
