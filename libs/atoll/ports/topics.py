"""Topics of hints: who is to look again."""

from typing import Final

PLACEMENT: Final = "placement"
"""Jobs, reports, inventories or queues changed: the placement leader should look."""

DISPATCH: Final = "dispatch"
"""Decisions were committed: dispatch replicas should look."""

EVENTS: Final = "events"
"""Events were written: watches should look."""

BURST: Final = "burst"
"""Wants, instances or burst policies changed: the broker should look."""

BOOKINGS: Final = "bookings"
"""Bookings or rules changed: the reservation service's loop and its watches should look."""
