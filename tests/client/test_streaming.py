"""Output and events, over streams that break."""

from collections.abc import Iterable

import pytest

from atoll.client import LogsDropped
from atoll.client.views import LogChunk
from atoll.core.model.errors import ErrorCode, FailedPrecondition
from tests.client.both import Both
from tests.client.story import later
from tests.client.world import World

SPEC = {"name": "hello", "run": "echo hello"}


def joined(chunks: Iterable[LogChunk]) -> bytes:
    return b"".join(chunk.data for chunk in chunks)


def test_output_is_streamed_to_its_end(both: Both, world: World) -> None:
    job = both.do(both.client.submit(SPEC))
    world.place(1)
    world.start(1)
    world.write(1, b"one\n")
    chunks = both.each(job.logs(follow=True))
    assert next(chunks).data == b"one\n"
    world.write(1, b"two\n")
    assert next(chunks).offset == 4
    world.end(1)
    assert list(chunks) == []


def test_a_dropped_stream_raises_and_goes_on_from_its_offset(both: Both, world: World) -> None:
    job = both.do(both.client.submit(SPEC))
    world.place(1)
    world.write(1, b"0123456789")
    world.end(1)
    world.drop_after_bytes = [4]
    got: list[LogChunk] = []
    with pytest.raises(LogsDropped) as caught:
        got.extend(both.each(job.logs(rank=0)))
    assert (joined(got), caught.value.offset) == (b"0123", 4)
    rest = both.each(job.logs(rank=0, resume=caught.value.offset))
    assert joined(rest) == b"456789"


def test_output_of_all_ranks_goes_on_without_repeating_a_byte(both: Both, world: World) -> None:
    job = both.do(both.client.submit({**SPEC, "num_nodes": 2}))
    world.place(1)
    for rank, data in ((0, b"aaaa"), (1, b"bbbb"), (0, b"AA")):
        world.write(1, data, rank)
    world.end(1)
    world.drop_after_bytes = [6]
    got: list[LogChunk] = []
    with pytest.raises(LogsDropped) as caught:
        got.extend(both.each(job.logs()))
    assert caught.value.offsets == {0: 4, 1: 2}
    got.extend(both.each(job.logs(resume=caught.value.offsets)))
    assert [joined(c for c in got if c.rank == rank) for rank in (0, 1)] == [b"aaaaAA", b"bbbb"]


def test_following_waits_for_the_start(both: Both, world: World) -> None:
    job = both.do(both.client.submit(SPEC))
    later(
        lambda: world.place(1),
        lambda: world.start(1),
        lambda: world.write(1, b"late"),
        lambda: world.end(1),
    )
    assert joined(both.each(job.logs(follow=True))) == b"late"


def test_output_before_the_first_attempt_is_refused(both: Both) -> None:
    job = both.do(both.client.submit(SPEC))
    with pytest.raises(FailedPrecondition) as caught:
        list(both.each(job.logs()))
    assert caught.value.code is ErrorCode.ATTEMPT_NOT_FOUND


def test_a_watch_goes_on_over_breaks_without_losing_or_repeating(both: Both, world: World) -> None:
    job = both.do(both.client.submit(SPEC))
    world.watch_breaks_after = [1, 2]
    events = both.each(job.watch("0"))
    for step in (world.place, world.start, world.end):
        step(1)
    found = [next(events) for _ in range(4)]
    assert [event.event for event in found] == ["SUBMITTED", "PLACED", "STARTED", "SUCCEEDED"]
    assert not world.watch_breaks_after, "both breaks have happened"


def test_a_watch_goes_on_after_a_cursor(both: Both, world: World) -> None:
    both.do(both.client.submit(SPEC))
    first = next(both.each(both.client.watch("0")))
    world.place(1)
    again = next(both.each(both.client.watch(first.cursor)))
    assert (first.event, again.event) == ("SUBMITTED", "PLACED")


def test_the_cursor_of_an_event_in_the_middle_of_a_reply_skips_none(
    both: Both, world: World
) -> None:
    both.do(both.client.submit([SPEC, SPEC]))
    events = both.each(both.client.watch("0"))
    first, second = next(events), next(events)
    after_first = next(both.each(both.client.watch(first.cursor)))
    assert (first.job_id, second.job_id) == (1, 2)
    assert after_first.job_id in (1, 2), "the reply may come again, but nothing is left out"
    world.place(1)
    assert next(both.each(both.client.watch(second.cursor))).event == "PLACED"


def test_an_expired_cursor_is_told(both: Both, world: World) -> None:
    world.expired = {"5"}
    with pytest.raises(FailedPrecondition) as caught:
        next(both.each(both.client.watch("5")))
    assert caught.value.code is ErrorCode.CURSOR_EXPIRED
