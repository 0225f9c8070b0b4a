"""Page tokens: opaque, and bound to the query that they continue."""

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from typing import Final

from atoll.core.model.errors import ErrorCode, FieldViolation, InvalidInput

DEFAULT_PAGE: Final = 100
MOST_PER_PAGE: Final = 1_000
DIGEST_BYTES: Final = 9

Key = Sequence[str | int]
"""Where the page before ended, in the order of the list."""


def page_size(asked: int) -> int:
    """Rows of a page: `asked`, 100 when it is 0, at most 1,000."""
    return min(asked, MOST_PER_PAGE) if asked else DEFAULT_PAGE


def next_token(query: Sequence[object], last: Key) -> str:
    """The token of the page after the row `last`; `query` is all that must stay the same."""
    text = json.dumps([_digest(query), *last], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_token(
    token: str, query: Sequence[object], *, shape: Sequence[type], field: str = "page.page_token"
) -> list[str | int]:
    """Where the page before ended, of the types `shape`; `field` is the token's in the request.

    Raises InvalidInput BAD_PAGE_TOKEN when the token is none, or of another query.
    """
    last: list[str | int]
    try:
        padded = token.encode("ascii") + b"=" * (-len(token) % 4)
        digest, *last = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, TypeError, binascii.Error, RecursionError):
        raise _bad(field, "is no token that this service has given") from None
    if [type(part) for part in last] != list(shape) or not all(map(_storable, last)):
        raise _bad(field, "is no token of such a list")
    if digest != _digest(query):
        raise _bad(field, "belongs to another query: keep every other field as it was")
    return last


def _storable(part: str | int) -> bool:
    return part.isprintable() if isinstance(part, str) else 0 <= part < 1 << 63


def _digest(query: Sequence[object]) -> str:
    whole = hashlib.sha256(repr(tuple(query)).encode()).digest()
    return base64.urlsafe_b64encode(whole[:DIGEST_BYTES]).decode()


def _bad(field: str, message: str) -> InvalidInput:
    return InvalidInput((FieldViolation(field, message, ErrorCode.BAD_PAGE_TOKEN),))
