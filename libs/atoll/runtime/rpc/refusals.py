"""Refusals that fit into trailing metadata.

gRPC clients drop a call whose trailers pass 8 to 16 KiB, and with it the reason. A refusal of a
thousand fields is therefore cut to those that fit, and says how many there are.
"""

from typing import Final

from google.rpc import status_pb2

from atoll.core.model.errors import DomainError, FieldViolation, InvalidInput
from atoll.wire.errors import status_of

MOST_MESSAGE: Final = 1_000
MOST_VIOLATIONS: Final = 2_000
"""Characters of all fields and messages together."""
MOST_VIOLATION: Final = 400
MOST_METADATA: Final = 256


def bounded_status(error: DomainError) -> status_pb2.Status:
    """The status of a refusal, cut so that it reaches any client."""
    kept = _kept(error.violations)
    metadata = {key: _cut(value, MOST_METADATA) for key, value in error.metadata.items()}
    message = error.message
    if isinstance(error, InvalidInput):
        message = "; ".join(f"{each.field}: {each.message}" for each in kept)
    missing = len(error.violations) - len(kept)
    if missing:
        metadata["violations"] = str(len(error.violations))
        message = f"{_cut(message, MOST_MESSAGE - 40)} (and {missing:,} more)"
    status = status_of(_same_kind(error, kept, metadata))
    status.message = _cut(message, MOST_MESSAGE)
    return status


def _kept(violations: tuple[FieldViolation, ...]) -> tuple[FieldViolation, ...]:
    kept: list[FieldViolation] = []
    room = MOST_VIOLATIONS
    for each in violations:
        field, message = _cut(each.field, MOST_VIOLATION), _cut(each.message, MOST_VIOLATION)
        room -= len(field.encode()) + len(message.encode())
        if kept and room < 0:
            break
        kept.append(FieldViolation(field, message, each.code))
    return tuple(kept)


def _same_kind(
    error: DomainError, violations: tuple[FieldViolation, ...], metadata: dict[str, str]
) -> DomainError:
    cut = type(error).__new__(type(error))
    cut.__dict__.update(error.__dict__)
    DomainError.__init__(cut, "", code=error.code, metadata=metadata, violations=violations)
    return cut


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
