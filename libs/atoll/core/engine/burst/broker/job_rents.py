"""What to rent for jobs that are queued now."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from atoll.core.engine.burst.broker.fill import Load
from atoll.core.engine.burst.broker.filling import Filling
from atoll.core.engine.burst.broker.gains import Gains, gains_of
from atoll.core.engine.burst.broker.ground import Ground
from atoll.core.engine.burst.broker.leave import Bar
from atoll.core.engine.burst.broker.memory import Tries
from atoll.core.engine.burst.broker.rooms import Purse
from atoll.core.engine.burst.broker.sides import sided
from atoll.core.engine.burst.broker.stock import Stock
from atoll.core.engine.burst.broker.zones import Zones
from atoll.core.model.burst import Offer
from atoll.core.model.burst_wants import Want
from atoll.core.model.ids import JobId

FREE_TRIES = 3
"""So often something is rented for a job that still waits; from then on at growing intervals."""
MOST_DOUBLINGS = 6


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing was rented for a job."""

    want: Want
    bar: Bar
    detail: str = ""
    row: int | None = None
    """In the gains."""


@dataclass(frozen=True, slots=True)
class JobRents:
    """What was found for wants; rows of loads are those of the gains."""

    gains: Gains | None = None
    loads: tuple[Load, ...] = ()
    refused: tuple[Refusal, ...] = field(default=())

    def wants_of(self, load: Load) -> tuple[Want, ...]:
        """For whom an instance is."""
        return tuple(self.gains.wants[row] for row in load.wants) if self.gains else ()

    def offer_of(self, load: Load) -> Offer:
        """What it is."""
        assert self.gains is not None, "there are no loads without gains"
        return self.gains.offers[load.offer]


def job_rents(
    ground: Ground, wants: Sequence[Want], *, purse: Purse, stock: Stock, zones: Zones
) -> JobRents:
    """For wants that have no instance. What it rents is taken from purse and stock."""
    tried = tuple(Refusal(each, Bar.TRIED) for each in wants if is_tried(ground, each.job))
    wants = [each for each in wants if not is_tried(ground, each.job)]
    offers = stock.narrowed()
    if not wants or not offers:
        none = tuple(Refusal(each, Bar.NO_OFFER) for each in wants)
        return JobRents(refused=(*tried, *none))
    gains = sided(ground, gains_of(ground, wants, offers), zones)
    filling = Filling(gains, purse=purse, stock=stock, options=ground.options)
    filling.run()
    refused = (Refusal(gains.wants[row], bar, text, row) for row, bar, text in filling.refused)
    return JobRents(gains, tuple(filling.loads), (*tried, *refused))


def is_tried(ground: Ground, job: JobId) -> bool:
    """Whether so much was rented for a job in vain that it has to wait for the next time."""
    tries = ground.memory.tries.get(job)
    if tries is None or tries.times < FREE_TRIES:
        return False
    doublings = min(tries.times - FREE_TRIES, MOST_DOUBLINGS)
    # A clock that went back does not make it wait for longer.
    last_at = min(tries.last_at, ground.now)
    return ground.now < last_at + ground.options.again_s * 2.0**doublings


def tries_after(ground: Ground, found: JobRents) -> dict[JobId, Tries]:
    """With what was rented now; of jobs that wait still. What never came was no try."""
    failed_at = max((each.at for some in ground.setbacks.values() for each in some), default=0.0)
    waiting = {want.job for want in ground.wants}
    tries = {job: each for job, each in ground.memory.tries.items() if job in waiting}
    for load in found.loads:
        for want in found.wants_of(load):
            last = tries.get(want.job, Tries(0, 0.0))
            came = not last.times or failed_at < last.last_at
            tries[want.job] = Tries(last.times + came, ground.now)
    return tries
