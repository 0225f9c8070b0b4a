"""Values as JSON and YAML show them: times as RFC 3339 in UTC, everything else as it is named."""

import enum
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

_TIMES: Final = frozenset({"at", "as_of", "idle_since", "last_seen"})
_HIDDEN: Final = frozenset({"proto"})


def plain(value: object) -> Any:
    """The value in dicts, lists, texts and numbers."""
    if is_dataclass(value) and not isinstance(value, type):
        return _record(value)
    match value:
        case enum.Enum():
            return value.value
        case Decimal():
            # As many digits as it has: dollars to the micro-dollar survive it.
            return float(value)
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return value


def rfc3339(seconds: float) -> str | None:
    """A time as machines read it; None for 0, which means: not yet."""
    if not seconds:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _record(value: Any) -> dict[str, Any]:
    record = {
        item.name: _field(item.name, getattr(value, item.name))
        for item in fields(value)
        if item.name not in _HIDDEN
    }
    if "spec" not in record and hasattr(value, "spec"):
        record["spec"] = value.spec
    return record


def _field(name: str, value: object) -> Any:
    if isinstance(value, float) and (name in _TIMES or name.endswith("_at")):
        return rfc3339(value)
    return plain(value)
