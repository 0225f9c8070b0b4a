"""Messages as plain values. Unlike protobuf's own JSON, big integers stay numbers."""

from collections.abc import Mapping
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message


def message_values(message: Message) -> dict[str, Any]:
    """The fields that are set, by name; enum values by their names."""
    return {field.name: _value(field, value) for field, value in message.ListFields()}


def _value(field: FieldDescriptor, value: Any) -> Any:
    if isinstance(value, Message):
        return message_values(value)
    if isinstance(value, Mapping):
        return dict(sorted(value.items()))
    if field.enum_type is not None and isinstance(value, int):
        return field.enum_type.values_by_number[value].name
    if isinstance(value, str | bytes | int | float):
        return value
    return [_value(field, item) for item in value]
