"""Providers that are not among the settings any more, and of which instances are left."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from atoll.burst.usecases.desk import Health
from atoll.core.model.burst import Instance

MOST_NAMED: Final = 10


def missing(rows: Iterable[Instance], configured: Collection[str]) -> dict[str, list[Instance]]:
    """Instances of which nobody can be told to end, by the name of their provider."""
    found: dict[str, list[Instance]] = {}
    for row in rows:
        if row.offer.provider not in configured:
            found.setdefault(row.offer.provider, []).append(row)
    return dict(sorted(found.items()))


def healths(left: Mapping[str, Sequence[Instance]]) -> tuple[Health, ...]:
    """What is said of such providers, beside the others."""
    return tuple(Health(name, False, _words(name, rows)) for name, rows in left.items())


def _words(name: str, rows: Sequence[Instance]) -> str:
    numbers = ", ".join(str(row.id) for row in rows[:MOST_NAMED])
    more = f" and {len(rows) - MOST_NAMED} more" if len(rows) > MOST_NAMED else ""
    which = "instance" if len(rows) == 1 else "instances"
    return (
        f"it is not among the settings any more, so {which} {numbers}{more} cannot be ended and "
        f"may cost money: set {name} up again under this name until they have ended"
    )
