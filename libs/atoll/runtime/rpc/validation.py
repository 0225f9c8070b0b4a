"""Checks a request against the rules that its proto states, before any code of ours sees it.

About 2 us per job of a SubmitJobs call; rules of the domain are the use cases' business.
"""

from collections.abc import Iterable

import protovalidate
from google.protobuf.message import Message

from atoll.core.model.errors import FieldViolation, InvalidInput

MOST_VIOLATIONS = 100
"""A hostile request must not make the answer as long as itself."""

_validator = protovalidate.Validator()


def validate(message: Message) -> None:
    """Raise InvalidInput with every field that breaks a rule of its proto."""
    found = _validator.collect_violations(message)
    if found:
        raise InvalidInput(tuple(_violation(each) for each in found[:MOST_VIOLATIONS]))


def _violation(found: protovalidate.Violation) -> FieldViolation:
    proto = found.proto
    elements = proto.field.elements if proto.field is not None else ()
    return FieldViolation(_path(elements), proto.message or proto.rule_id or "is not allowed")


def _path(elements: Iterable[protovalidate.FieldPathElementPb]) -> str:
    return ".".join(
        element.field_name
        if element.subscript is None
        else f"{element.field_name}[{element.subscript.value}]"
        for element in elements
    )
