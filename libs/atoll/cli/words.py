"""Amounts and times as people read them."""

from collections.abc import Mapping

from atoll.core.model.resources import BLOCKS_PER_DEVICE

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def span(seconds: float) -> str:
    """`3s`, `5m`, `2h`, `4d`: a length of time, roughly."""
    seconds = max(0.0, seconds)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size * (2 if unit == "d" else 1):
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def ago(then: float, now: float) -> str:
    """How long ago; `-` for never."""
    return span(now - then) if then else "-"


def bytes_text(count: int) -> str:
    """`512MiB`, `1.5GiB`."""
    size, sign = float(abs(count)), "-" if count < 0 else ""
    for unit in _UNITS:
        if size < 1024 or unit == _UNITS[-1]:
            return f"{sign}{_short(size)}{unit}"
        size /= 1024
    raise AssertionError("the last unit takes everything")


def cpus_text(milli: int) -> str:
    """`1.5`, `64`."""
    return _short(milli / 1000)


def devices_text(blocks: int) -> str:
    """`2`, `0.25`: blocks as devices."""
    return _short(blocks / BLOCKS_PER_DEVICE)


def kinds_text(blocks: Mapping[str, int]) -> str:
    """`A100=4 H100=8`: blocks by device kind as devices; `-` for none."""
    return " ".join(f"{kind}={devices_text(n)}" for kind, n in sorted(blocks.items())) or "-"


def plural(count: int, word: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _short(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
