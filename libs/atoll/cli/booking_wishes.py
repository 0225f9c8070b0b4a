"""How a booking is kept, and specs and changes of bookings from what the options say."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter

from atoll.cli.booking_options import Capacity, Time, Whom
from atoll.cli.failures import WrongUse
from atoll.cli.moments import length
from atoll.core.model.booking import OnEnd
from atoll.core.model.reservation import ReservationSpec

_LENGTHS: Final = ("bind_before", "end_grace", "release_after_idle")


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Wishes:
    """How it is kept."""

    priority: Annotated[int | None, Parameter(help="Higher ones may override lower ones.")] = None
    override: Annotated[
        bool | None, Parameter(help="Move or cancel bookings of lower priority in the way.")
    ] = None
    bind_before: Annotated[
        str | None, Parameter(help="How long before a start its nodes are settled; 1h.")
    ] = None
    pinned: Annotated[
        bool | None, Parameter(help="Settle its nodes at once; none replaces one that fails.")
    ] = None
    lend: Annotated[
        bool | None, Parameter(help="Lend what is unused to preemptible jobs; yes.")
    ] = None
    on_end: Annotated[
        Literal["stop", "grace", "continue"] | None,
        Parameter(help="What becomes of its runs when it ends; stop."),
    ] = None
    end_grace: Annotated[str | None, Parameter(help="For --on-end grace: 30m.")] = None
    release_after_idle: Annotated[
        str | None, Parameter(help="Give it back after so long without a run.")
    ] = None
    charge: Annotated[
        bool | None, Parameter(help="Charge its first queue for all of it, used or not.")
    ] = None
    note: Annotated[str | None, Parameter(help="For people.")] = None

    def given(self) -> dict[str, Any]:
        """What is said, by the names of the spec."""
        values: dict[str, Any] = {
            "priority": self.priority,
            "override": self.override,
            "pinned": self.pinned,
            "lend": self.lend,
            "on_end": OnEnd(self.on_end) if self.on_end else None,
            "charge": self.charge,
            "note": self.note,
        }
        for name in _LENGTHS:
            text = getattr(self, name)
            values[f"{name}_s"] = length(text, name.replace("_", "-")) if text else None
        return {name: value for name, value in values.items() if value is not None}

    def changed(
        self, old: ReservationSpec, capacity: Capacity, whom: Whom, *, time: Time, now: float
    ) -> tuple[ReservationSpec, list[str]]:
        """A reservation's spec with what is said, and the names of what that changes."""
        given = self.given()
        if (what := capacity.what()) is not None:
            given["what"] = what
        if (owners := whom.owners()) is not None:
            given["owners"] = owners
        if time.given:
            given["when"] = time.changed(old.when, now)
        return replace(old, **given), sorted(given)


NO_WISHES: Final = Wishes()


def spec_of(
    name: str, capacity: Capacity, whom: Whom, *, time: Time, wishes: Wishes, now: float
) -> ReservationSpec:
    """What is to be booked; WrongUse tells what is missing."""
    owners = whom.owners()
    if owners is None:
        raise WrongUse("say for whom: --queue, --user or --label, or --maintenance for nobody")
    base = ReservationSpec(name, capacity.wanted(), time.when(now), owners)
    return replace(base, **wishes.given())
