"""Prints rows as people or programs want them."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, assert_never

from atoll.cli.options import Format
from atoll.cli.plain import plain

RowT = TypeVar("RowT")
MOST_KEPT: Final = 20
"""Characters of a column that are shown however narrow the terminal is."""


@dataclass(frozen=True, slots=True)
class Column(Generic[RowT]):
    """One column of a table."""

    title: str
    text: Callable[[RowT], str]
    wide: bool = False
    """True: only with `-o wide`."""
    right: bool = False
    style: Callable[[RowT], str] | None = None
    """Style of a cell on a terminal that has colours."""


@dataclass(frozen=True, slots=True)
class Listing(Generic[RowT]):
    """How rows of one kind are printed."""

    columns: Sequence[Column[RowT]]
    name: Callable[[RowT], str]
    """What identifies a row."""
    empty: str
    """What is told, on stderr, when there is none."""
    more: Callable[[RowT], Mapping[str, Any]] | None = None
    """What machines are told of a row besides."""

    def record(self, row: RowT) -> Any:
        """A row as machines read it."""
        return plain(row) if self.more is None else plain(row) | self.more(row)


def show(rows: Iterable[RowT], listing: Listing[RowT], output: Format) -> None:
    """Print rows."""
    match output:
        case "table" | "wide":
            _show_table(list(rows), listing, wide=output == "wide")
        case "name":
            for row in rows:
                print(listing.name(row))
        case "jsonl":
            for row in rows:
                print(json.dumps(listing.record(row)))
        case "json":
            print(json.dumps([listing.record(row) for row in rows], indent=2))
        case "yaml":
            print_yaml([listing.record(row) for row in rows])
        case _:
            assert_never(output)


def print_yaml(value: object) -> None:
    """Print a plain value as YAML."""
    import yaml

    yaml.safe_dump(value, sys.stdout, sort_keys=False, allow_unicode=True)


def colours() -> bool:
    """True when stdout is a terminal; rich itself heeds NO_COLOR."""
    return sys.stdout.isatty()


def print_lines(lines: Iterable[str], styles: Mapping[str, str]) -> None:
    """Print a chart; on a terminal its characters have the colours of `styles`."""
    if not colours():
        print("\n".join(lines))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in lines:
        text = Text(line)
        for mark, style in styles.items():
            text.highlight_regex(mark, style)
        console.print(text)


def aligned(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Lines with their columns below each other, without anything at their ends."""
    widths = [max(len(row[n]) for row in rows) for n in range(len(right))]
    return [
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]


def _show_table(rows: list[RowT], listing: Listing[RowT], *, wide: bool) -> None:
    columns = [column for column in listing.columns if wide or not column.wide]
    if not rows:
        print(listing.empty, file=sys.stderr)
    elif colours():
        _show_coloured(rows, columns)
    else:
        cells = [[column.text(row) for column in columns] for row in rows]
        table = [[column.title for column in columns], *cells]
        print("\n".join(aligned(table, [column.right for column in columns])))


def _show_coloured(rows: list[RowT], columns: list[Column[RowT]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        longest = max(len(column.title), *(len(column.text(row)) for row in rows))
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            no_wrap=True,
            overflow="ellipsis",
            # Where there is too little room, the long columns give way.
            min_width=min(longest, MOST_KEPT),
        )
    for row in rows:
        table.add_row(*(Text(c.text(row), style=c.style(row) if c.style else "") for c in columns))
    Console(highlight=False).print(table)
