"""Enum values of both sides, matched by name: the protobuf one is PREFIX_NAME."""

import enum
from collections.abc import Mapping
from typing import Protocol, TypeVar


class WireError(ValueError):
    """A message or its bytes cannot be understood."""


ValueT = TypeVar("ValueT", bound=int)
EnumT = TypeVar("EnumT", bound=enum.Enum)


class ProtoEnum(Protocol[ValueT]):
    """What a generated enum offers."""

    def items(self) -> list[tuple[str, ValueT]]:
        """Names and numbers."""
        ...


def to_numbers(model: type[EnumT], proto: ProtoEnum[ValueT], *, prefix: str) -> dict[EnumT, ValueT]:
    """Numbers of the model's values; those that never travel are left out."""
    numbers = dict(proto.items())
    return {
        value: numbers[prefix + value.name] for value in model if prefix + value.name in numbers
    }


def inverse(numbers: Mapping[EnumT, ValueT]) -> dict[ValueT, EnumT]:
    """The model's values by number."""
    return {number: value for value, number in numbers.items()}


def known(values: Mapping[ValueT, EnumT], number: ValueT, *, what: str) -> EnumT:
    """The model's value; raises WireError for a number that this version does not know."""
    value = values.get(number)
    if value is None:
        raise WireError(f"{what}: unknown value {number}")
    return value
