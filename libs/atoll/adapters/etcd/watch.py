"""Watches that end in a clear answer: never in silence."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from atoll.adapters.etcd import keys
from atoll.adapters.etcd.connection import EtcdConnection
from atoll.adapters.etcd.errors import Compacted, EtcdRejected, EtcdUnavailable
from atoll.adapters.etcd.methods import WATCH
from atoll.adapters.etcd.stream import Stream
from atoll.adapters.etcd.wire import etcdwire_pb2 as wire
from atoll.ports.clock import Clock

IDLE_S: Final = 2.0
"""After so much silence a member is asked whether it still watches."""
ANSWER_WITHIN_S: Final = 1.0
AGAIN_AFTER_S: Final = 0.2

WatchStream = Stream[wire.WatchRequest, wire.WatchResponse]


async def until_gone(etcd: EtcdConnection, key: str, *, revision: int, clock: Clock) -> None:
    """Return when `key`, seen at `revision`, has been deleted; outlasts outages and compaction."""
    while True:
        try:
            return await _deletion(etcd, key, revision=revision, clock=clock)
        except Compacted:
            reading = await _read(etcd, key, clock)
        if not reading.entries:
            return None
        revision = reading.revision


async def events(
    etcd: EtcdConnection, key: str, *, after: int, clock: Clock
) -> AsyncGenerator[wire.Event, None]:
    """What happens to `key` after the revision `after`, in order, each event once.

    Goes on at another endpoint when one ends, or is silent when asked. Raises Compacted
    when events may have been missed, EtcdRejected when etcd refuses.
    """
    while True:
        try:
            async with (
                etcd.stream(WATCH) as stream,
                aclosing(_answers(stream, key, after + 1)) as answers,
            ):
                async for answer in answers:
                    for event in answer.events:
                        yield event
                        after = max(after, event.kv.mod_revision)
        except EtcdUnavailable:
            await clock.sleep(AGAIN_AFTER_S)


async def _deletion(etcd: EtcdConnection, key: str, *, revision: int, clock: Clock) -> None:
    async with aclosing(events(etcd, key, after=revision, clock=clock)) as seen:
        async for event in seen:
            if event.type == wire.Event.DELETE:
                return


async def _answers(
    stream: WatchStream, key: str, start: int
) -> AsyncGenerator[wire.WatchResponse, None]:
    create = wire.WatchCreateRequest(key=key.encode(), start_revision=start)
    await stream.send(wire.WatchRequest(create_request=create), within_s=ANSWER_WITHIN_S)
    answer: wire.WatchResponse | None = await stream.receive(within_s=ANSWER_WITHIN_S)
    while True:
        if answer is None:
            answer = await _prove_alive(stream)
        _check(answer)
        yield answer
        answer = await stream.receive_or_none(within_s=IDLE_S)


async def _prove_alive(stream: WatchStream) -> wire.WatchResponse:
    ask = wire.WatchRequest(progress_request=wire.WatchProgressRequest())
    await stream.send(ask, within_s=ANSWER_WITHIN_S)
    return await stream.receive(within_s=ANSWER_WITHIN_S)


def _check(answer: wire.WatchResponse) -> None:
    if answer.compact_revision:
        raise Compacted
    if answer.canceled:
        refused = "permission" in answer.cancel_reason
        raise (EtcdRejected if refused else EtcdUnavailable)(f"etcd: {answer.cancel_reason}")


async def _read(etcd: EtcdConnection, key: str, clock: Clock) -> keys.Reading:
    while True:
        try:
            return await keys.get(etcd, key)
        except EtcdUnavailable:
            await clock.sleep(AGAIN_AFTER_S)
