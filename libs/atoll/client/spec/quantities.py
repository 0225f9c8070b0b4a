"""Amounts as people write them (`2h30m`, `16GiB`, `0.5`), as numbers in base units.

Every parser takes what YAML gave and raises ValueError with what would be right.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from atoll.core.model.burst import MICROS
from atoll.core.model.validate_shape import MOST_CPU_MILLI, MOST_MEMORY_BYTES
from atoll.core.model.validate_wishes import MOST_MICROS, MOST_SECONDS

_NUMBER: Final = re.compile(r"\d{1,18}(\.\d{1,9})?")
_UNITS: Final = {
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate("KMGTP", start=1)},
    **{f"{letter}i": 1024**power for power, letter in enumerate("KMGTP", start=1)},
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGTP", start=1)},
}
_UNIT_NAMES: Final = {name.upper(): name for name in _UNITS}
_SECONDS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_SPAN: Final = re.compile(r"(?:\d{1,9}(?:\.\d{1,6})?[dhms])+")
_SPAN_PART: Final = re.compile(r"([\d.]+)([dhms])")
_SLURM: Final = re.compile(r"(?:(?P<d>\d{1,5})-)?(?P<h>\d{1,6}):(?P<m>[0-5]?\d):(?P<s>[0-5]?\d)")
_DAYS_HOURS: Final = re.compile(r"(?P<d>\d{1,5})-(?P<h>\d{1,2})")


@dataclass(frozen=True, slots=True)
class Begin:
    """When a job may start: at a unix time, or a while after it is submitted."""

    seconds: float
    relative: bool

    def at(self, now: float) -> float:
        """Unix seconds, for a submit at `now`."""
        return now + self.seconds if self.relative else self.seconds


def cpu_milli(value: object) -> int:
    """`2`, `0.5` or `500m`, in thousandths of a core."""
    text = _text(value)
    milli = text.endswith("m")
    amount = positive(text.removesuffix("m")) * (1 if milli else 1000)
    if amount != int(amount):
        raise ValueError("the smallest step is 0.001 of a CPU (1m)")
    if amount > MOST_CPU_MILLI:
        raise ValueError(f"is more than {MOST_CPU_MILLI // 1000:,} CPUs")
    return int(amount)


def memory_bytes(value: object) -> int:
    """`16GiB`, `512Mi` or `1.5GB`, in bytes; a number needs its unit."""
    text = _text(value).replace(" ", "")
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = text[len(digits) :]
    if unit.upper() not in _UNIT_NAMES:
        raise ValueError(_unit_help(digits, unit))
    amount = positive(digits) * _UNITS[_UNIT_NAMES[unit.upper()]]
    if amount > MOST_MEMORY_BYTES:
        raise ValueError(f"is more than {MOST_MEMORY_BYTES >> 40:,} TiB")
    if amount < 1:
        raise ValueError("is less than a byte")
    return int(amount)


def duration_s(value: object) -> float:
    """`2h30m`, `90s`, plain seconds, or Slurm's `1-12:00:00`, in seconds."""
    text = _text(value).replace(" ", "")
    seconds = _seconds(text)
    if seconds > MOST_SECONDS:
        raise ValueError("is more than ten years")
    return float(seconds)


def cost_micros(value: object) -> int:
    """`12.50` or `$12.50`, in micro-dollars; more than nothing."""
    if not (micros := micro_dollars(value)):
        raise ValueError("must be more than 0; `allow: false` rents nothing")
    return micros


def micro_dollars(value: object) -> int:
    """`12.50`, `$12.50` or `1,200`, in micro-dollars, exactly; 0 is an amount too."""
    text = _text(value).replace("$", "", 1).replace(",", "").replace(" ", "")
    if text.startswith("-"):
        raise ValueError("is less than nothing")
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"`{text[:40]}` is no amount of dollars; write 12.50 or $12.50")
    micros = Decimal(text) * MICROS
    if micros != int(micros):
        raise ValueError("the smallest step is $0.000001")
    if micros > MOST_MICROS:
        raise ValueError(f"is more than ${MOST_MICROS // MICROS:,}")
    return int(micros)


def begin(value: object) -> Begin:
    """An ISO 8601 time with its zone, or a relative one such as `+2h`."""
    if not isinstance(value, str):
        raise ValueError("write a time such as 2026-01-31T08:00:00+01:00, or a while such as +2h")
    relative = value.strip().removeprefix("+")
    if _SPAN.fullmatch(relative.replace(" ", "")):
        return Begin(duration_s(relative), relative=True)
    return Begin(_iso_time(value.strip()), relative=False)


def positive(text: str) -> Decimal:
    """A number above zero."""
    if text.startswith("-"):
        raise ValueError("must be more than 0")
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"`{text[:40]}` is not a number (at most 18 digits, 9 decimals)")
    if not (number := Decimal(text)):
        raise ValueError("must be more than 0")
    return number


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("must be a number or a text")
    if isinstance(value, float) and value == int_or_none(value):
        return str(int(value))
    return str(value).strip()


def int_or_none(value: float) -> int | None:
    """The integer that a float stands for, if it does."""
    return int(value) if value.is_integer() else None


def _unit_help(digits: str, unit: str) -> str:
    if not unit:
        return f"say the unit: {digits or 16}GiB"
    if len(unit) == 1 and unit.upper() in "KMGTP":
        letter = unit.upper()
        return f"`{unit}` means two things: write {digits}{letter}iB or {digits}{letter}B"
    return f"unknown unit `{unit[:20]}`; use B, KiB, MiB, GiB, TiB, PiB, or KB, MB, GB, TB, PB"


def _seconds(text: str) -> Decimal:
    if _SPAN.fullmatch(text):
        return _more_than_zero(
            sum((Decimal(n) * _SECONDS[unit] for n, unit in _SPAN_PART.findall(text)), Decimal(0))
        )
    if clock := _SLURM.fullmatch(text) or _DAYS_HOURS.fullmatch(text):
        parts = clock.groupdict(default="0")
        return _more_than_zero(
            sum((Decimal(n) * _SECONDS[unit] for unit, n in parts.items()), Decimal(0))
        )
    if text.count(":") == 1:
        first, last = text.split(":")
        raise ValueError(f"`{text[:40]}` has two meanings: {first}h{last}m or {first}m{last}s?")
    try:
        return positive(text)
    except ValueError as error:
        raise ValueError(f"{error}; write 2h30m, 9000 (seconds) or 1-12:00:00") from None


def _more_than_zero(seconds: Decimal) -> Decimal:
    if not seconds:
        raise ValueError("must be more than 0")
    return seconds


def _iso_time(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"`{text[:40]}` is no time; write 2026-01-31T08:00:00+01:00, or a while such as +2h"
        ) from None
    if moment.tzinfo is None:
        raise ValueError("say the zone: append Z, or an offset such as +01:00")
    return moment.timestamp()
