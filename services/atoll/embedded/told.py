"""The outcome of one check."""

from typing import NamedTuple


class Told(NamedTuple):
    """What was looked at and found, whether that is well, and what could be done about it."""

    what: str
    ok: bool
    hint: str = ""


def judged(what: str, *, ok: bool, hint: str) -> Told:
    """One with a hint only when it is not well."""
    return Told(what, ok, "" if ok else hint)
