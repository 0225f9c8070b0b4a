"""What the journal is made of: records, each in a frame with its length and checksum."""

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, assert_never

from atoll.core.model.ids import AttemptId
from atoll.core.model.lifecycle import AttemptEvent, StopCause
from atoll.core.model.messages import DecisionKind

MAGIC: Final = b"atoll-journal-1\n"
MOST_BYTES: Final = 64 << 20
"""A longer frame is taken for garbage."""

_FRAME: Final = struct.Struct("<II")
_DECISION: Final = struct.Struct("<QQB")
_REPORT: Final = struct.Struct("<QQB")
_LIVE: Final = struct.Struct("<QB")
_NUMBER: Final = struct.Struct("<Q")

_KINDS: Final = (
    DecisionKind.START,
    DecisionKind.STOP,
    DecisionKind.VOID,
    DecisionKind.RESIZE,
)
_EVENTS: Final = (
    AttemptEvent.ACCEPTED,
    AttemptEvent.STARTED,
    AttemptEvent.FINISHED,
    AttemptEvent.STOPPED,
    AttemptEvent.REJECTED,
    AttemptEvent.RESIZED,
)


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose journal this is; its first record."""

    instance: str
    cluster: str


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision was applied: the prefix ends here."""

    number: int
    attempt: AttemptId
    kind: DecisionKind
    data: bytes = b""
    """START, RESIZE: the decision as it came. STOP: its cause."""


@dataclass(frozen=True, slots=True)
class Reported:
    """A report got its number."""

    number: int
    attempt: AttemptId
    event: AttemptEvent
    data: bytes
    """The report as it is sent."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Reports up to here are dealt with."""

    number: int


@dataclass(frozen=True, slots=True)
class StopWish:
    """An attempt is to stop though no decision said so."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True)
class TakenOver:
    """A snapshot came in place of all decisions so far."""

    head: int
    live: tuple[AttemptId, ...]


@dataclass(frozen=True, slots=True)
class Live:
    """An attempt that is not over, in a journal that was written anew."""

    attempt: AttemptId
    started: bool
    stop: StopCause | None
    data: bytes
    """The START as it came, as long as it may be needed."""


@dataclass(frozen=True, slots=True)
class Sizing:
    """A change of size that was not answered, in a journal that was written anew."""

    attempt: AttemptId
    data: bytes
    """The RESIZE as it came."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """Decisions up to here are applied, in a journal that was written anew."""

    number: int


@dataclass(frozen=True, slots=True)
class InventoryNumber:
    """Inventories up to this number may have been sent."""

    number: int


Record = (
    Identity
    | Decided
    | Reported
    | Acknowledged
    | StopWish
    | TakenOver
    | Live
    | Sizing
    | Prefix
    | InventoryNumber
)


def frames(records: Iterable[Record]) -> bytes:
    """The records as they are appended to the file."""
    return b"".join(_framed(_payload(record)) for record in records)


def read(data: bytes) -> Iterator[tuple[Record, int]]:
    """Each whole record with the offset behind it; ends at the first torn or broken frame."""
    offset = len(MAGIC)
    while offset + _FRAME.size <= len(data):
        length, checksum = _FRAME.unpack_from(data, offset)
        begin, end = offset + _FRAME.size, offset + _FRAME.size + length
        payload = data[begin:end]
        if not 0 < length <= MOST_BYTES or end > len(data) or zlib.crc32(payload) != checksum:
            return
        yield _record(payload), end
        offset = end


def _framed(payload: bytes) -> bytes:
    return _FRAME.pack(len(payload), zlib.crc32(payload)) + payload


def _payload(record: Record) -> bytes:  # noqa: C901 - one case per kind of record
    match record:
        case Identity(instance, cluster):
            return b"I" + f"{instance}\n{cluster}".encode()
        case Decided(number, attempt, kind, data):
            return b"D" + _DECISION.pack(number, attempt, _KINDS.index(kind)) + data
        case Reported(number, attempt, event, data):
            return b"R" + _REPORT.pack(number, attempt, _EVENTS.index(event)) + data
        case Acknowledged(number):
            return b"A" + _NUMBER.pack(number)
        case StopWish(attempt):
            return b"W" + _NUMBER.pack(attempt)
        case TakenOver(head, live):
            return b"T" + struct.pack(f"<Q{len(live)}Q", head, *live)
        case Live(attempt, started, stop, data):
            cause = b"" if stop is None else stop.value.encode()
            flags = started | (stop is not None) << 1
            return b"L" + _LIVE.pack(attempt, flags) + bytes([len(cause)]) + cause + data
        case Sizing(attempt, data):
            return b"Z" + _NUMBER.pack(attempt) + data
        case Prefix(number):
            return b"P" + _NUMBER.pack(number)
        case InventoryNumber(number):
            return b"N" + _NUMBER.pack(number)
        case _:
            assert_never(record)


def _record(payload: bytes) -> Record:
    tag, body = payload[:1], payload[1:]
    match tag:
        case b"I":
            instance, _, cluster = body.decode().partition("\n")
            return Identity(instance, cluster)
        case b"D":
            number, attempt, kind = _DECISION.unpack_from(body)
            return Decided(number, AttemptId(attempt), _KINDS[kind], body[_DECISION.size :])
        case b"R":
            number, attempt, event = _REPORT.unpack_from(body)
            return Reported(number, AttemptId(attempt), _EVENTS[event], body[_REPORT.size :])
        case b"T":
            head, *live = struct.unpack(f"<{len(body) // 8}Q", body)
            return TakenOver(head, tuple(AttemptId(attempt) for attempt in live))
        case b"L":
            return _live(body)
        case b"Z":
            (attempt,) = _NUMBER.unpack_from(body)
            return Sizing(AttemptId(attempt), body[_NUMBER.size :])
        case _:
            return _numbered(tag, *_NUMBER.unpack(body))


def _live(body: bytes) -> Live:
    attempt, flags = _LIVE.unpack_from(body)
    begin = _LIVE.size + 1
    end = begin + body[_LIVE.size]
    stop = StopCause(body[begin:end].decode()) if flags & 2 else None
    return Live(AttemptId(attempt), started=bool(flags & 1), stop=stop, data=body[end:])


def _numbered(tag: bytes, number: int) -> Record:
    match tag:
        case b"A":
            return Acknowledged(number)
        case b"W":
            return StopWish(AttemptId(number))
        case b"P":
            return Prefix(number)
        case b"N":
            return InventoryNumber(number)
        case _:
            raise ValueError(f"the journal has a record of kind {tag!r}, which a newer agent wrote")
