"""Clients that answer or fail soon, and errors in the ports' words."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from atoll.ports.streams import StreamUnavailable

ANSWER_WITHIN_S: Final = 1.0
FAILURES: Final = (RedisError, OSError, TimeoutError)


def connect(url: str, *, answer_within_s: float | None, tries: int) -> Redis:
    """A client of the server at `url` (redis:// or rediss://), dialling on first use.

    `answer_within_s` None is for calls that may block, which need a limit of their own.
    """
    return Redis.from_url(
        url,
        socket_timeout=answer_within_s,
        socket_connect_timeout=ANSWER_WITHIN_S,
        # One more try at once: a pooled connection may be to a server that was restarted.
        retry=Retry(NoBackoff(), tries - 1),
        protocol=2,
    )


@contextmanager
def failing_soon(doing: str) -> Iterator[None]:
    """Turn every failure of the server or the way to it into StreamUnavailable."""
    try:
        yield
    except FAILURES as error:
        raise StreamUnavailable(f"{doing}: {type(error).__name__}: {error}") from error
