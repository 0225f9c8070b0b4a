"""Rented machines in words: for whom they are, and why a job may not use them now."""

from collections import defaultdict
from collections.abc import Iterator
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.rented.cost import too_dear
from atoll.core.model.burst import InstanceState, Rental
from atoll.core.model.ids import QueueName
from atoll.core.model.plan import GangRequest
from atoll.core.model.reason import Reason, ReasonCode
from atoll.core.state.snapshot import Snapshot


def rented_reasons(
    snapshot: Snapshot, request: GangRequest, queue: QueueName, *, rows: NDArray[np.int64]
) -> Iterator[Reason]:
    """Why a job may not use some rented nodes, once for each distinct reason."""
    rentals, cluster = snapshot.rentals, snapshot.nodes.cluster[rows]
    found: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for number, rental in enumerate(rentals.values):
        if (cluster == rentals.cluster[number]).any():
            barred = rentals.not_allowed(number, queue, request)
            dear = too_dear(rental, request)
            words = (barred, _HELP) if barred else (dear, _DEAR) if dear else None
            found[words or _state(rental, snapshot.now)].append(number)
    for (why, help_), numbers in found.items():
        count = int(np.isin(cluster, [rentals.cluster[number] for number in numbers]).sum())
        one = rentals.values[numbers[0]].cluster if len(numbers) == 1 else ""
        on = f"cluster {one} is" if one else f"{count} nodes are"
        message = f"{on} rented: {why}"
        yield Reason(ReasonCode.RENTED, message, cluster=one, count=count, help=help_)


_HELP = "`atoll burst policy` shows who may rent what"
_DEAR = "a shorter time limit, or a higher `burst.max_cost`, lets it take such room"


def _state(rental: Rental, now: float) -> tuple[str, str]:
    match rental.state:
        case InstanceState.REQUESTED | InstanceState.BOOTING:
            left = rental.ready_at - now
            late = f"for another {left:.0f} seconds" if left > 0 else "for longer than expected"
            return f"it boots {late}, for those whom it is rented for", "wait for it"
        case InstanceState.READY:
            return "its agent has not come, or takes no work just now", "wait for it"
        case InstanceState.DRAINING | InstanceState.TERMINATING:
            return "it is given back, and takes no new work", ""
        case InstanceState.TERMINATED | InstanceState.FAILED:
            return "it has ended", ""
        case _:
            assert_never(rental.state)
