"""Decisions and hints over a Redis-compatible server; all of it may be lost at any time."""

from atoll.adapters.redis_streams.decisions import RedisDecisionStream as RedisDecisionStream
from atoll.adapters.redis_streams.hints import RedisHints as RedisHints
