"""The journal: what is in it after any crash, and that it does not grow for ever."""

import asyncio
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.adapters.system import SystemClock
from atoll.agent import grouplog
from atoll.agent import journal as journals
from atoll.agent.grouplog import GroupLog, LogBroken
from atoll.agent.journal import (
    FILE,
    DataDirInUse,
    JournalMismatch,
    content,
    lock_folder,
    open_journal,
)
from atoll.agent.memory import Memory, Remembered
from atoll.agent.records import (
    MAGIC,
    Acknowledged,
    Decided,
    Identity,
    InventoryNumber,
    Live,
    Prefix,
    Record,
    Reported,
    StopWish,
    TakenOver,
    frames,
    read,
)
from atoll.agent.reports import Reports
from atoll.agent.usecases.attempts import TERMINAL
from atoll.core.model.ids import AttemptId, ClusterName
from atoll.core.model.lifecycle import AttemptEvent, StopCause
from atoll.core.model.messages import DecisionKind

attempts = st.integers(1, 5).map(AttemptId)
numbers = st.integers(0, 2**40)
blobs = st.binary(max_size=40)
reported = st.builds(
    Reported,
    number=numbers,
    attempt=attempts,
    event=st.sampled_from([e for e in AttemptEvent if e.value not in ("VOIDED", "LOST")]),
    data=blobs,
)
decided = st.one_of(
    st.builds(Decided, numbers, attempts, st.just(DecisionKind.START), blobs),
    st.builds(
        Decided,
        numbers,
        attempts,
        st.just(DecisionKind.STOP),
        st.sampled_from([cause.value.encode() for cause in StopCause]),
    ),
    st.builds(Decided, numbers, attempts, st.just(DecisionKind.VOID)),
)
records = st.one_of(
    decided,
    reported,
    st.builds(Acknowledged, numbers),
    st.builds(StopWish, attempts),
    st.builds(TakenOver, numbers, st.lists(attempts, max_size=3).map(tuple)),
    st.builds(Live, attempts, st.booleans(), st.none() | st.sampled_from(list(StopCause)), blobs),
    st.builds(Prefix, numbers),
    st.builds(InventoryNumber, numbers),
)


def replayed(given_records: list[Record]) -> Memory:
    memory = Memory()
    for record in given_records:
        memory.apply(record)
    return memory


def honest(given_records: list[Record]) -> list[Record]:
    """As an agent writes them: reports numbered densely, none after an attempt's terminal one."""
    number, made, over = 0, list[Record](), set[AttemptId]()
    for record in given_records:
        match record:
            case Reported(_, one, event, data):
                if one not in over:
                    number += 1
                    made.append(Reported(number, one, event, data))
                    over |= {one} if event in TERMINAL else set()
            case Acknowledged(upto):
                made.append(Acknowledged(upto % (number + 1)))
            case Live() | Prefix():
                pass  # these begin a journal
            case _:
                made.append(record)
    return made


@given(st.lists(records, max_size=8))
def test_records_come_back_as_they_were(written: list[Record]) -> None:
    assert [record for record, _ in read(MAGIC + frames(written))] == written


@given(st.lists(records, min_size=1, max_size=5), st.data())
def test_a_torn_tail_costs_only_what_was_torn(written: list[Record], data: st.DataObject) -> None:
    whole = MAGIC + frames(written)
    cut = data.draw(st.integers(len(MAGIC), len(whole) - 1))
    found = [record for record, end in read(whole[:cut])]
    assert found == written[: len(found)]
    assert len(found) < len(written)


@given(st.lists(records, min_size=1, max_size=5), st.data())
def test_a_broken_byte_ends_the_journal_there(written: list[Record], data: st.DataObject) -> None:
    whole = bytearray(MAGIC + frames(written))
    place = data.draw(st.integers(len(MAGIC), len(whole) - 1))
    whole[place] ^= 1 << data.draw(st.integers(0, 7))
    found = [record for record, _ in read(bytes(whole))]
    assert found == written[: len(found)]
    assert len(found) < len(written)


@given(st.lists(records, max_size=30))
def test_a_journal_written_anew_amounts_to_the_same(written: list[Record]) -> None:
    memory = replayed([Identity("me", "c1"), *honest(written)])
    again = Memory()
    for record, _ in read(content(memory)):
        again.apply(record)
    assert again == memory


def test_an_attempt_is_forgotten_with_its_terminal_report() -> None:
    start = Decided(1, AttemptId(7), DecisionKind.START, b"order")
    end = Reported(1, AttemptId(7), AttemptEvent.FINISHED, b"end")
    memory = replayed([start, end])
    assert memory.attempts[AttemptId(7)].ended
    memory.apply(Acknowledged(1))
    assert (memory.attempts, memory.reports) == ({}, {})
    assert (memory.applied, memory.last_report) == (1, 1)


async def test_a_stop_that_came_with_an_answer_is_not_lost_with_it(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, "c1", instance="me")
    one = AttemptId(7)
    started = Reported(1, one, AttemptEvent.STARTED, b"")
    await journal.append([Decided(1, one, DecisionKind.START, b"order"), started])
    told = Reports(ClusterName("c1"), journal, SystemClock(), seen=lambda: 0)
    assert told.acknowledge(1, [one]) == []
    await journal.close()
    again = open_journal(tmp_path, "c1", instance="me")
    assert again.memory.reports == {}
    assert again.memory.attempts == {one: Remembered(started=True, stop=StopCause.NONE)}
    await again.close()


async def test_a_journal_stays_small_however_much_passes_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "LEAST_REWRITE_BYTES", 20_000)
    journal = open_journal(tmp_path, "c1", instance="me")
    sizes = []
    for number in range(1, 401):
        one = AttemptId(number)
        await journal.append([
            Decided(number, one, DecisionKind.START, b"x" * 500),
            Reported(number, one, AttemptEvent.FINISHED, b"y" * 100),
        ])
        journal.note([Acknowledged(number)])
        sizes.append((tmp_path / FILE).stat().st_size)
    await journal.close()
    assert max(sizes) < 60_000
    again = open_journal(tmp_path, "c1", instance="other")
    assert again.memory == journal.memory
    assert again.memory.instance == "me"
    assert again.memory.applied == 400
    await again.close()


async def test_what_is_appended_is_there_after_a_crash(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, "c1", instance="me")
    many = [Decided(n, AttemptId(n), DecisionKind.START, b"order") for n in range(1, 101)]
    await asyncio.gather(*(journal.append([record]) for record in many))
    crashed = open_journal(tmp_path, "c1", instance="other")
    assert crashed.memory.attempts.keys() == {record.attempt for record in many}
    assert crashed.memory.applied == 100
    await crashed.close()
    await journal.close()


async def test_a_torn_tail_is_cut_off_and_written_over(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, "c1", instance="me")
    await journal.append([Prefix(5)])
    await journal.close()
    with (tmp_path / FILE).open("ab") as file:
        file.write(b"\x09\x00\x00\x00torn")
    again = open_journal(tmp_path, "c1", instance="me")
    await again.append([Prefix(6)])
    await again.close()
    assert (open_journal(tmp_path, "c1", instance="me")).memory.applied == 6


async def test_a_journal_belongs_to_one_cluster(tmp_path: Path) -> None:
    await open_journal(tmp_path, "c1", instance="me").close()
    with pytest.raises(JournalMismatch, match="c1"):
        open_journal(tmp_path, "c2", instance="me")
    (tmp_path / FILE).write_bytes(b"something else entirely")
    with pytest.raises(JournalMismatch):
        open_journal(tmp_path, "c1", instance="me")


def test_a_folder_is_locked_until_its_agent_ends(tmp_path: Path) -> None:
    held = lock_folder(tmp_path)
    with pytest.raises(DataDirInUse):
        lock_folder(tmp_path)
    os.close(held)
    os.close(lock_folder(tmp_path))


async def test_a_decision_is_not_said_to_be_applied_before_it_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = open_journal(tmp_path, "c1", instance="a")
    disk = threading.Event()
    monkeypatch.setattr(grouplog, "write_durably", lambda file, pending: disk.wait(60))
    appending = asyncio.create_task(
        journal.append([Decided(1, AttemptId(1), DecisionKind.START, b"")])
    )
    await asyncio.sleep(0)
    assert (journal.memory.applied, journal.applied) == (1, 0)
    disk.set()
    await appending
    assert journal.applied == 1
    await journal.close()


async def test_nothing_is_durable_after_the_disk_has_failed(tmp_path: Path) -> None:
    log = GroupLog(tmp_path / "log")
    await log.append(b"good")
    os.close(log._file)
    log._file = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(LogBroken):
        await log.append(b"lost")
    with pytest.raises(LogBroken):
        await log.append(b"lost too")
    log.push(b"and this")
    await log.close()
    assert (tmp_path / "log").read_bytes() == b"good"
