"""What of a reservation's spec is changed: by paths as the API names them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from atoll.core.model.errors import ErrorCode, FieldViolation, InvalidInput
from atoll.core.model.reservation import ReservationSpec

PLAIN: Final = frozenset({
    "name", "priority", "override", "bind_before_s", "pinned", "lend", "on_end", "end_grace_s",
    "release_after_idle_s", "charge", "note",
})  # fmt: skip
WITHIN: Final = {
    "what": ("amounts", "nodes", "domains", "percent", "clusters", "split"),
    "owners": ("queues", "users", "labels"),
    "when": ("start_at", "start_local", "flexible", "length_s", "zone", "rrule", "exdates"),
}
STARTS: Final = ("start_at", "start_local", "flexible")
"""Of which one is given: to name one is to take the others away."""
PLACING: Final = frozenset({"what", "when"})
"""What decides about times and nodes: a change of it is accepted anew."""


def changed_by(
    found: ReservationSpec, wanted: ReservationSpec, paths: Sequence[str]
) -> ReservationSpec:
    """The spec with the values of `wanted` at `paths`; raises InvalidInput UNKNOWN_FIELD."""
    spec = found
    for path in paths:
        whole, _, inner = path.partition(".")
        if not _known(whole, inner):
            raise _unknown(path)
        if inner:
            part = _with(getattr(spec, whole), getattr(wanted, whole), inner)
            spec = _with_value(spec, whole, part)
        else:
            spec = _with_value(spec, whole, getattr(wanted, whole))
    return spec


def places_anew(paths: Iterable[str]) -> bool:
    """Whether a change of these is one of times or nodes."""
    return any(path.partition(".")[0] in PLACING for path in paths)


def _known(whole: str, inner: str) -> bool:
    if inner:
        return inner in WITHIN.get(whole, ())
    return whole in PLAIN or whole in WITHIN


def _with(part: Any, wanted: Any, inner: str) -> Any:
    if inner in STARTS:
        cleared = replace(part, start_at=None, start_local="", flexible=None)
        return _with_value(cleared, inner, getattr(wanted, inner))
    return _with_value(part, inner, getattr(wanted, inner))


def _with_value(value: Any, name: str, new: object) -> Any:
    return replace(value, **{name: new})


def _unknown(path: str) -> InvalidInput:
    inner = (f"{whole}.{name}" for whole, names in WITHIN.items() for name in names)
    known = ", ".join(sorted([*PLAIN, *WITHIN, *inner]))
    told = f"{path[:64]!r} cannot be changed; it is one of {known}"
    return InvalidInput((FieldViolation("update_mask", told, ErrorCode.UNKNOWN_FIELD),))
