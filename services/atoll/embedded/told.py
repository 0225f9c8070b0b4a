"""The outcome of one check."""

from typing import NamedTuple


class Told(NamedTuple):
    """What was looked at and found, whether that is well, and what to do about it."""

    what: str
    ok: bool
    hint: str = ""
