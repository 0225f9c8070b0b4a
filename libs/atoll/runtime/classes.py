"""Priority classes as a setting that several services have."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator
from pydantic_settings import NoDecode

from atoll.core.model.priority import PriorityClass, by_name, parse_class


def _classes(value: object) -> object:
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list | tuple):
        raise ValueError("write NAME=PRIORITY,… or a list of them")
    return tuple(parse_class(word) if isinstance(word, str) else word for word in words)


def _by_name(classes: tuple[PriorityClass, ...]) -> tuple[PriorityClass, ...]:
    return tuple(by_name(classes).values())


Classes = Annotated[
    tuple[PriorityClass, ...], NoDecode, BeforeValidator(_classes), AfterValidator(_by_name)
]
"""`low=-1000:no-preempt,normal=0`: with commas in flags and environment, a list in a file."""
