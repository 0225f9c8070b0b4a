"""Collects what is wrong with an input, field by field."""

import difflib
from collections.abc import Collection

from atoll.core.model.errors import ErrorCode, FieldViolation


class Faults:
    """The violations found so far. Checks return True when the value is right."""

    def __init__(self) -> None:
        self.found: list[FieldViolation] = []

    def add(self, field: str, message: str, *, code: ErrorCode = ErrorCode.INVALID_FIELD) -> None:
        """One more violation."""
        self.found.append(FieldViolation(field, message, code))

    def number(
        self, field: str, value: float, *, least: float, most: float, unit: str = ""
    ) -> bool:
        """Is least <= value <= most; NaN and infinities are outside of everything."""
        if least <= value <= most:
            return True
        counted = f" {unit}" if unit else ""
        self.add(field, f"{value:,}{counted} is not in {least:,} .. {most:,}")
        return False

    def length(self, field: str, value: int, *, least: int, most: int, of: str) -> bool:
        """A list has at least and at most so many entries."""
        if least <= value <= most:
            return True
        if value < least:
            self.add(field, f"needs at least {least:,} of {of}")
        else:
            self.add(field, f"has {value:,} {of}, at most {most:,} are allowed")
        return False

    def one_of(self, field: str, value: str, allowed: Collection[str]) -> bool:
        """The value is one of a few words; the nearest is suggested otherwise."""
        if value in allowed:
            return True
        words = sorted(allowed)
        near = difflib.get_close_matches(value[:64], words, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        self.add(field, f"{shown(value)} is not known; {hint}It is one of {', '.join(words)}")
        return False


def shown(value: str) -> str:
    """The value for a message, quoted, and cut when it is long."""
    return repr(value) if len(value) <= 64 else f"{value[:61]!r}…"
