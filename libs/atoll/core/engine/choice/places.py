"""Candidates with their terms: what each place costs a job in time and in money, and why."""

from dataclasses import dataclass
from typing import Final

from atoll.core.engine.burst.broker.parts import part_of
from atoll.core.engine.choice.worth import delay_cost, dollars, in_words
from atoll.core.model.burst import Rental
from atoll.core.model.burst_wants import Ask, Candidate
from atoll.core.model.ids import ClusterName
from atoll.core.model.reason import ReasonCode

NOW_S: Final = 1.0
"""What starts within so many seconds starts now."""
WORTH_SAYING_S: Final = 10.0
"""A boot of fewer seconds is not mentioned."""
CLOSED: Final = {
    ReasonCode.CLUSTER_CORDONED: "is cordoned",
    ReasonCode.CLUSTER_SILENT: "has not been heard of",
    ReasonCode.CLUSTER_BEHIND: "has too many decisions to answer",
    ReasonCode.ON_LOST_UNSUPPORTED: "cannot stop runs by itself, as `on_lost: requeue` asks for",
}


@dataclass(frozen=True, slots=True)
class Terms:
    """What is the same of a job wherever it runs."""

    now: float
    hour: int
    """Micro-dollars that an hour until its end costs its queue."""
    run_s: float
    """Expected from when it runs to its end."""


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster, and what is peculiar of it."""

    cluster: ClusterName
    start_at: float
    """When the job would be placed there."""
    boot_s: float = 0.0
    """From then until it runs."""
    promised: bool = False
    avoided_until: float = 0.0
    """It refused such jobs, and gets none before; that this ends soon is what makes it less bad."""


def local(place: Place, terms: Terms) -> Candidate:
    """A cluster that is there anyway."""
    start_at = max(terms.now, place.start_at, place.avoided_until)
    wait_s = start_at - terms.now
    when = "now" if wait_s < NOW_S else f"{_by(place.promised)} {in_words(wait_s)}"
    why = f"local {when}"
    if place.avoided_until > terms.now:
        why += (
            f": it refused such jobs, and gets none for {in_words(place.avoided_until - terms.now)}"
        )
    return _candidate(place, terms, start_at=start_at, why=why + _boot(place.boot_s))


def closed(cluster: ClusterName, code: ReasonCode) -> Candidate:
    """A cluster that could run it, and takes no work at present."""
    why = f"not now: the cluster {CLOSED.get(code, 'takes no work')}"
    return Candidate(cluster, allowed=False, why=why)


def rented(rental: Rental, place: Place, *, terms: Terms, ask: Ask) -> Candidate:
    """A rented machine that is there; of its price the job has a part."""
    start_at, hour = max(terms.now, place.start_at), price_hour(rental, ask)
    wait_s = start_at - terms.now
    when = "now" if wait_s < NOW_S else f"in {in_words(wait_s)}"
    why = f"rented already, {when} at {dollars(hour)}/h, allowed by queue policy"
    return _candidate(
        place, terms, start_at=start_at, why=why + _boot(place.boot_s), hour_price=hour
    )


def held(rental: Rental, terms: Terms, ask: Ask) -> Candidate:
    """A rented machine that boots, and is held for the job."""
    start_at = max(terms.now, rental.ready_at)
    why = held_sentence(rental, now=terms.now)
    place = Place(rental.cluster, start_at)
    return _candidate(place, terms, start_at=start_at, why=why, hour_price=price_hour(rental, ask))


def denied(rental: Rental, refused: str) -> Candidate:
    """A rented machine that the job may not use."""
    return Candidate(rental.cluster, allowed=False, why=f"not allowed: {refused}")


def held_sentence(rental: Rental, *, now: float) -> str:
    """What a job is told for which a machine that boots is held."""
    left_s = rental.give_up_at - now
    until = f"; given up in {in_words(left_s)} if it has not come" if left_s > 0 else ""
    if rental.ready_at <= now:
        return f"held on {rental.cluster}, which boots: it should be there any moment{until}"
    wait = in_words(rental.ready_at - now)
    return f"held on {rental.cluster}, which boots: starts in about {wait}{until}"


def price_hour(rental: Rental, ask: Ask) -> int:
    """Micro-dollars an hour for the part of a machine that a job takes."""
    return round(rental.offer.price * min(1.0, max(part_of(rental.offer, ask))))


def _candidate(
    place: Place, terms: Terms, *, start_at: float, why: str, hour_price: int = 0
) -> Candidate:
    finish_at = start_at + place.boot_s + terms.run_s
    return Candidate(
        cluster=place.cluster,
        start_at=start_at,
        finish_at=finish_at,
        delay_cost=delay_cost(terms.hour, now=terms.now, until=finish_at),
        price=round(hour_price * (place.boot_s + terms.run_s) / 3600.0),
        why=why,
    )


def _by(promised: bool) -> str:
    return "at the latest in" if promised else "in"


def _boot(boot_s: float) -> str:
    if boot_s < WORTH_SAYING_S:
        return ""
    return f"; jobs there take {in_words(boot_s)} to begin"
