"""Reads an RRULE, and refuses what RFC 5545 does not allow or what would not end."""

import datetime
import re
from collections.abc import Mapping
from typing import Final

FREQUENCIES: Final = ("HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY")
MOST_TEXT: Final = 1_024
MOST_INTERVAL: Final = 10_000
MOST_COUNT: Final = 100_000

_RANGES: Final = {
    "INTERVAL": (1, MOST_INTERVAL),
    "COUNT": (1, MOST_COUNT),
    "BYSECOND": (0, 59),
    "BYMINUTE": (0, 59),
    "BYHOUR": (0, 23),
    "BYMONTHDAY": (1, 31),
    "BYYEARDAY": (1, 366),
    "BYWEEKNO": (1, 53),
    "BYMONTH": (1, 12),
    "BYSETPOS": (1, 366),
}
_SIGNED: Final = frozenset({"BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYSETPOS"})
_SINGLE: Final = frozenset({"INTERVAL", "COUNT"})
_ALLOWED_WITH: Final = {
    "BYMONTHDAY": {"HOURLY", "DAILY", "MONTHLY", "YEARLY"},
    "BYYEARDAY": {"HOURLY", "YEARLY"},
    "BYWEEKNO": {"YEARLY"},
}
_DAY: Final = re.compile(r"([+-]?[1-5]?\d)?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
_UNTIL: Final = re.compile(r"\d{8}(T\d{6}Z?)?", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?\d{1,6}", re.ASCII)

Parts = Mapping[str, str]


def read_rule(text: str) -> Parts:
    """The parts of an RRULE by name, checked one by one. Raises ValueError with a sentence."""
    if len(text) > MOST_TEXT:
        raise ValueError(f"is longer than {MOST_TEXT:,} characters")
    parts: dict[str, str] = {}
    for item in text.upper().removeprefix("RRULE:").split(";"):
        name, _, value = item.partition("=")
        if name in parts:
            raise ValueError(f"{name} is given twice")
        parts[name] = value
    _check_parts(parts)
    return parts


def rule_text(parts: Parts) -> str:
    """The rule without its end by date, which is a matter of zones."""
    return ";".join(f"{name}={value}" for name, value in parts.items() if name != "UNTIL")


def until_of(parts: Parts, zone: datetime.tzinfo) -> datetime.datetime | None:
    """The last local time at which it may start. A date alone means all of that day."""
    text = parts.get("UNTIL")
    if text is None:
        return None
    if len(text) == 8:
        return datetime.datetime.fromisoformat(f"{text}T235959")
    made = datetime.datetime.fromisoformat(text)
    return made if made.tzinfo is None else made.astimezone(zone).replace(tzinfo=None)


def _check_parts(parts: Parts) -> None:
    frequency = parts.get("FREQ", "")
    if frequency in ("SECONDLY", "MINUTELY"):
        raise ValueError(f"FREQ={frequency} is too often: HOURLY is the most")
    if frequency not in FREQUENCIES:
        raise ValueError(f"needs a FREQ, one of {', '.join(FREQUENCIES)}")
    for name, value in parts.items():
        _check_part(name, value)
        if frequency not in _ALLOWED_WITH.get(name, {frequency}):
            raise ValueError(f"{name} has no meaning with FREQ={frequency}")
    if "COUNT" in parts and "UNTIL" in parts:
        raise ValueError("has both COUNT and UNTIL; only one may be given")
    if frequency not in ("MONTHLY", "YEARLY") and re.search(r"\d", parts.get("BYDAY", "")):
        raise ValueError(f"numbered days in BYDAY have no meaning with FREQ={frequency}")
    if "BYSETPOS" in parts and not any(n.startswith("BY") and n != "BYSETPOS" for n in parts):
        raise ValueError("BYSETPOS needs another BY… to choose from")


def _check_part(name: str, value: str) -> None:
    match name:
        case "FREQ":
            return
        case "UNTIL":
            _check_until(value)
        case "BYDAY":
            if not all(_DAY.fullmatch(day) for day in value.split(",")):
                raise ValueError(f"BYDAY={value[:64]} is no list of days such as MO,WE or 1SU")
        case "WKST":
            if value not in ("MO", "TU", "WE", "TH", "FR", "SA", "SU"):
                raise ValueError(f"WKST={value[:64]} is no day such as MO")
        case _:
            _check_numbers(name, value)


def _check_until(value: str) -> None:
    try:
        if not _UNTIL.fullmatch(value):
            raise ValueError
        datetime.datetime.fromisoformat(value)
    except ValueError as bad:
        told = "20271231, 20271231T090000 or 20271231T080000Z"
        raise ValueError(f"UNTIL={value[:64]} is no time such as {told}") from bad


def _check_numbers(name: str, value: str) -> None:
    if name not in _RANGES:
        raise ValueError(f"{name[:64]!r} is no part of a rule")
    least, most = _RANGES[name]
    numbers = value.split(",")
    if name in _SINGLE and len(numbers) > 1:
        raise ValueError(f"{name} takes one number")
    for number in numbers:
        in_range = _NUMBER.fullmatch(number) and least <= _size(name, int(number)) <= most
        if not in_range:
            raise ValueError(f"{name}={value[:64]} is not in {least} .. {most}")


def _size(name: str, number: int) -> int:
    return abs(number) if name in _SIGNED else number
