"""Priority classes: names for priorities, as the platform is set up with them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from atoll.core.model.validate_text import MOST_NAME, NAME

DEFAULT_CLASS: Final = "normal"
"""Of jobs that name none."""
MOST_PRIORITY: Final = 1_000_000
STOPS_NOBODY: Final = "no-preempt"


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A named priority; higher goes first."""

    name: str
    priority: int
    preempts: bool = True
    """False: its jobs stop nobody of lower priority."""

    def __str__(self) -> str:
        return f"{self.name}={self.priority}{'' if self.preempts else f':{STOPS_NOBODY}'}"


DEFAULT_CLASSES: Final = (
    PriorityClass("low", -1000, preempts=False),
    PriorityClass("normal", 0),
    PriorityClass("high", 1000),
    PriorityClass("urgent", 1500),
    PriorityClass("critical", 2000),
)


def parse_class(text: str) -> PriorityClass:
    """A class from `NAME=PRIORITY` or `NAME=PRIORITY:no-preempt`; raises ValueError."""
    name, _, rest = text.strip().partition("=")
    number, colon, word = rest.partition(":")
    try:
        priority = int(number)
    except ValueError:
        priority = MOST_PRIORITY + 1
    if abs(priority) > MOST_PRIORITY or (colon and word != STOPS_NOBODY):
        raise ValueError(f"{text!r}: write NAME=PRIORITY or NAME=PRIORITY:{STOPS_NOBODY}")
    if len(name) > MOST_NAME or not NAME.fullmatch(name):
        raise ValueError(f"{text!r}: {name!r} is no name of a class")
    return PriorityClass(name, priority, preempts=not colon)


def by_name(classes: Iterable[PriorityClass]) -> Mapping[str, PriorityClass]:
    """The classes by name; ValueError when a name is there twice, or the default is missing."""
    found: dict[str, PriorityClass] = {}
    for each in classes:
        if each.name in found:
            raise ValueError(f"{each.name!r} is there twice")
        found[each.name] = each
    if DEFAULT_CLASS not in found:
        raise ValueError(f"{DEFAULT_CLASS!r} is missing: jobs that name no class have it")
    return found
