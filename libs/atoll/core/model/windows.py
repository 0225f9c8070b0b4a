"""Windows as the cycle sees them, from reservations as users see them."""

from atoll.core.model.booking import KEPT_AFTER_S, OccurrenceId, Window
from atoll.core.model.reservation import (
    Occurrence,
    OccurrenceState,
    Part,
    Reservation,
    ReservationSpec,
)
from atoll.core.model.reservation_lifecycle import TERMINAL_OCCURRENCE


def windows_of(
    reservation: Reservation, occurrence: Occurrence, *, now: float
) -> tuple[Window, ...]:
    """One window for each cluster that an occurrence has a place in; none once it is over.

    That of one which has come to its end is shown for a while: owners' runs are to leave it.
    """
    lately = occurrence.state is OccurrenceState.ENDED and now < occurrence.ended_at + KEPT_AFTER_S
    if occurrence.state in TERMINAL_OCCURRENCE and not lately:
        return ()
    return tuple(
        window_of(
            reservation.spec,
            part,
            occurrence=occurrence.id,
            start=occurrence.start_at,
            end=occurrence.end_at,
            state=occurrence.state,
        )
        for part in occurrence.parts
    )


def window_of(
    spec: ReservationSpec,
    part: Part,
    *,
    occurrence: OccurrenceId,
    start: float,
    end: float,
    state: OccurrenceState,
) -> Window:
    """An occurrence's window in one cluster."""
    return Window(
        id=occurrence,
        booking=spec.name,
        start=start,
        end=end,
        cluster=part.cluster,
        shares=part.shares,
        owners=spec.owners,
        lend=spec.lend,
        on_end=spec.on_end,
        end_grace_s=spec.end_grace_s,
        charge=spec.owners.queues if spec.charge else (),
        priority=spec.priority,
        open=state is OccurrenceState.RUNNING,
    )
