"""Output of runs, as whoever asks for it gets it."""

import asyncio
from pathlib import Path
from typing import cast

import pytest

from atoll.agent import output
from atoll.agent.output import tail_offset
from atoll.api.agent.v1 import agent_pb2
from atoll.core.model.ids import AttemptId
from atoll.core.model.lifecycle import AttemptEvent
from atoll.ports.backend import Backend, LogPiece
from tests.services.agent.fake_dispatch import FakeDispatch
from tests.services.agent.jobs import attempt, job, on
from tests.services.agent.running import Running, local


def got(dispatch: FakeDispatch, request: int, rank: int = 0) -> bytes:
    """What came for a request, put together by offset."""
    chunks = [c for c in dispatch.chunks if c.request == request and c.rank == rank and c.data]
    text = b""
    for chunk in chunks:
        assert chunk.offset == len(text) + (chunks[0].offset if chunks else 0)
        text += chunk.data
    return text


def ended(dispatch: FakeDispatch, request: int) -> agent_pb2.LogChunk | None:
    """The last chunk of a request, when it came."""
    last = [chunk for chunk in dispatch.chunks if chunk.request == request and chunk.end]
    return last[0] if last else None


async def test_output_is_followed_to_its_end(dispatch: FakeDispatch, tmp_path: Path) -> None:
    agent = Running(local(tmp_path, dispatch))
    await agent.start()
    run = "for i in 1 2 3 4 5; do echo line $i; sleep 0.2; done"
    dispatch.start_attempt(attempt(1), job(run=run), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.events(attempt(1))[:1] == [AttemptEvent.STARTED])
    ask = agent_pb2.LogRequest(request=7, attempt_id=attempt(1), rank=0, follow=True)
    dispatch.send(log_request=ask)
    await dispatch.until(lambda: ended(dispatch, 7) is not None)
    assert got(dispatch, 7) == b"".join(b"line %d\n" % i for i in range(1, 6))
    await agent.stop()


async def test_ranks_offsets_and_tails(dispatch: FakeDispatch, agent: Running) -> None:
    await agent.start()
    dispatch.start_attempt(attempt(1), job(0.05), on(0, 1))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    asked = (
        agent_pb2.LogRequest(request=1, attempt_id=attempt(1), rank=-1),
        agent_pb2.LogRequest(request=2, attempt_id=attempt(1), rank=1, offset=10),
        agent_pb2.LogRequest(request=3, attempt_id=attempt(1), rank=0, tail_lines=2),
    )
    for ask in asked:
        dispatch.send(log_request=ask)
    await dispatch.until(lambda: all(ended(dispatch, ask.request) for ask in asked))
    whole = got(dispatch, 1, rank=1)
    assert whole.startswith(b"simulated run 1.1: rank 1 on n-0001\nstep 1 of 10\n")
    assert got(dispatch, 1, rank=0).endswith(b"step 10 of 10\nend: FINISHED, exit code 0\n")
    assert got(dispatch, 2, rank=1) == whole[10:]
    assert got(dispatch, 3) == b"step 10 of 10\nend: FINISHED, exit code 0\n"


async def test_output_of_the_unknown_is_an_error(dispatch: FakeDispatch, agent: Running) -> None:
    await agent.start()
    await dispatch.until(lambda: bool(dispatch.heartbeats))
    dispatch.send(log_request=agent_pb2.LogRequest(request=1, attempt_id=attempt(9), rank=0))
    await dispatch.until(lambda: ended(dispatch, 1) is not None)
    last = ended(dispatch, 1)
    assert last is not None
    assert "9.1" in last.error


async def test_a_reader_that_has_enough_is_not_read_for(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    dispatch.start_attempt(attempt(1), job(60), on(0))
    dispatch.push()
    await dispatch.until(lambda: bool(dispatch.events(attempt(1))))
    ask = agent_pb2.LogRequest(request=1, attempt_id=attempt(1), rank=0, follow=True)
    dispatch.send(log_request=ask)
    await dispatch.until(lambda: bool(dispatch.chunks))
    dispatch.send(log_cancel=agent_pb2.LogCancel(request=1))
    dispatch.stop_attempt(attempt(1))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    beats = len(dispatch.heartbeats)
    await dispatch.until(lambda: len(dispatch.heartbeats) > beats + 10)
    assert ended(dispatch, 1) is None


async def test_more_readers_than_can_be_served_are_turned_away(
    dispatch: FakeDispatch, agent: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "MOST_READERS", 1)
    await agent.start()
    dispatch.start_attempt(attempt(1), job(60), on(0))
    dispatch.push()
    await dispatch.until(lambda: bool(dispatch.events(attempt(1))))
    for request in (1, 2):
        ask = agent_pb2.LogRequest(request=request, attempt_id=attempt(1), rank=0, follow=True)
        dispatch.send(log_request=ask)
    await dispatch.until(lambda: ended(dispatch, 2) is not None)
    last = ended(dispatch, 2)
    assert last is not None
    assert last.error
    assert ended(dispatch, 1) is None


class Text:
    """Has one output, and nothing else."""

    def __init__(self, text: bytes) -> None:
        self._text = text

    async def read_log(self, attempt: AttemptId, rank: int, *, offset: int, limit: int) -> LogPiece:
        await asyncio.sleep(0)
        return LogPiece(offset, self._text[offset : offset + limit], len(self._text), ended=True)


@pytest.mark.parametrize("text", [b"", b"a", b"a\n", b"a\nb", b"a\nb\n", b"\n\n\n", b"ab\n" * 40])
@pytest.mark.parametrize("lines", [1, 2, 3, 17, 100])
async def test_a_tail_begins_where_its_lines_begin(
    text: bytes, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "CHUNK_BYTES", 7)
    begin = await tail_offset(cast(Backend, Text(text)), attempt(1), 0, lines=lines)
    assert text[begin:] == b"".join(text.splitlines(keepends=True)[-lines:])
