"""Points and lengths of time on the command line, and as people read them."""

import re
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from atoll.cli.failures import WrongUse
from atoll.client.spec.quantities import duration_s

NOW: Final = "now"
_LOCAL: Final = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?)?")
_FORMS: Final = "write 2026-12-07T09:00 (local in --zone), 2026-12-07T09:00+01:00, +2h, or now"


def is_local(text: str) -> bool:
    """Whether it is a local time, which means something only in a zone."""
    return _LOCAL.fullmatch(text) is not None


def local_text(text: str) -> str:
    """A local time as the service reads it: `2026-12-07T09:00`."""
    date, _, clock = text.replace(" ", "T").partition("T")
    return f"{date}T{clock or '00:00'}"


def moment(text: str, option: str, *, now: float, zone: str = "") -> float:
    """Unix seconds of `now`, `+2h`, a time with its offset, or a local one in `zone` (UTC)."""
    if text == NOW:
        return now
    if text.startswith("+"):
        return now + length(text[1:], option)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise WrongUse(f"--{option} `{text}` is no time: {_FORMS}") from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=zone_of(zone))
    return found.timestamp()


def length(text: str, option: str) -> float:
    """Seconds of `4h`, `90m`, `1-12:00:00` or plain seconds."""
    try:
        return duration_s(text)
    except ValueError as error:
        raise WrongUse(f"--{option} `{text}`: {error}") from None


def zone_of(name: str) -> ZoneInfo:
    """A zone by its IANA name; empty: UTC."""
    try:
        return ZoneInfo(name or "UTC")
    except (ValueError, OSError):
        raise WrongUse(
            f"--zone `{name}` is no time zone: write one such as Europe/Berlin"
        ) from None


def minute(at: float) -> str:
    """`Mon 2026-12-07 09:00 UTC`; `-` for never."""
    return datetime.fromtimestamp(at, UTC).strftime("%a %Y-%m-%d %H:%M UTC") if at else "-"


def lasting(seconds: float) -> str:
    """`4h`, `1h30m`, `2d12h`: a length of time to the minute."""
    minutes = max(1, round(seconds / 60))
    days, minutes = divmod(minutes, 1440)
    hours, minutes = divmod(minutes, 60)
    parts = ((days, "d"), (hours, "h"), (minutes, "m"))
    return "".join(f"{count}{unit}" for count, unit in parts if count)
