"""Windows as the cycle sees them, from reservations as users see them."""

from atoll.core.model.booking import OccurrenceId, Window
from atoll.core.model.reservation import (
    Occurrence,
    OccurrenceState,
    Part,
    Reservation,
    ReservationSpec,
)
from atoll.core.model.reservation_lifecycle import TERMINAL_OCCURRENCE


def windows_of(reservation: Reservation, occurrence: Occurrence) -> tuple[Window, ...]:
    """One window for each cluster that an occurrence has a place in; none once it is over."""
    if occurrence.state in TERMINAL_OCCURRENCE:
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
