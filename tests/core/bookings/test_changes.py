"""Bookings that give way, that end later, and whose nodes fail."""

from dataclasses import replace

import pytest

from atoll.core.engine.bookings.answers import Accepted, Rebound, Refused
from atoll.core.model.booking import OccurrenceId
from atoll.core.model.inventory import Device
from atoll.core.model.reservation import (
    Flexible,
    Parts,
    ReservationSpec,
    What,
    When,
    WholeDomains,
    WholeNodes,
)
from tests.core.bookings.asking import (
    EAST,
    GIB,
    HOUR,
    NLP,
    VISION,
    WEST,
    ask,
    book,
    calendar,
    h100,
    names,
    node,
    run,
    spec,
    world,
)


def test_an_override_moves_what_can_be_moved_and_cancels_the_rest() -> None:
    at = calendar(world(node(1), node(2), node(3)))
    book(at, 1, spec(h100(2), "low"), (1, 2))
    wish = When(HOUR, flexible=Flexible(HOUR, 9 * HOUR))
    book(at, 2, spec(h100(1), "soft", when=wish, priority=1), (1, 2))
    assert isinstance(ask(at, spec(h100(3), priority=5), (1, 2)), Refused)
    answer = ask(at, spec(h100(3), "high", priority=5, override=True), (1, 2))
    assert isinstance(answer, Accepted)
    soft, low = answer.moves
    assert (soft.name, soft.start, soft.message) == (
        "soft",
        2 * HOUR,
        "moved to another time for high",
    )
    assert (low.name, low.cancelled) == ("low", True)
    assert [each.name for each in answer.displaced] == ["low", "soft"]


def test_what_gives_way_is_not_in_its_own_way() -> None:
    at = calendar(world(node(1)))
    book(at, 1, spec(h100(1), "soft"), (1, 2), flexible=Flexible(HOUR / 2, 9 * HOUR))
    answer = ask(at, spec(h100(1), "high", priority=5, override=True), (1.5, 2.5))
    assert isinstance(answer, Accepted)
    assert (answer.moves[0].start, answer.moves[0].end) == (HOUR / 2, 1.5 * HOUR)


def test_a_booking_that_runs_ends_early_for_a_higher_one() -> None:
    at = calendar(world(node(1)))
    book(at, 1, spec(h100(1), "low"), (0, 4), running=True)
    answer = ask(at, spec(h100(1), "high", priority=5, override=True), (2, 3))
    assert isinstance(answer, Accepted)
    (cut,) = answer.moves
    assert (cut.start, cut.end, cut.message) == (0.0, 2 * HOUR, "ends early for high")
    assert names(cut.parts) == ["west/n1"]


def test_a_pinned_booking_is_not_moved() -> None:
    at = calendar(world(node(1), node(2)))
    book(at, 1, spec(h100(1), "low", pinned=True), (1, 2))
    high = spec(What(nodes=WholeNodes(names=("west/n1",))), "high", priority=5, override=True)
    answer = ask(at, high, (1, 2))
    assert isinstance(answer, Accepted)
    assert answer.moves[0].cancelled


def test_an_end_moves_up_to_a_neighbour() -> None:
    at = calendar(world(node(1)))
    book(at, 1, spec(h100(1), "mine"), (1, 2), running=True)
    book(at, 2, spec(h100(1), "next"), (3, 4))
    longer = at.extend(OccurrenceId(1), 3 * HOUR, now=HOUR)
    assert isinstance(longer, Accepted)
    assert (longer.placed[0].start, longer.placed[0].end) == (HOUR, 3 * HOUR)
    refused = at.extend(OccurrenceId(1), 3 * HOUR + 1, now=HOUR)
    assert isinstance(refused, Refused)
    assert [each.name for each in refused.obstacles] == ["next"]
    shorter = at.extend(OccurrenceId(1), 1.5 * HOUR, now=HOUR)
    assert isinstance(shorter, Accepted)


def test_what_has_not_begun_may_be_extended_elsewhere() -> None:
    at = calendar(world(node(1), node(2)))
    book(at, 1, spec(h100(1), "mine"), (1, 2))
    other = book(at, 2, spec(h100(1), "next"), (2, 3))
    at.add(replace(other, parts=at.get(OccurrenceId(1)).parts))
    longer = at.extend(OccurrenceId(1), 3 * HOUR, now=0.0)
    assert isinstance(longer, Accepted)
    assert names(longer.placed[0].parts) == ["west/n2"]
    with pytest.raises(LookupError):
        at.extend(OccurrenceId(99), 3 * HOUR, now=0.0)


def test_nodes_that_fail_are_replaced() -> None:
    for running in (False, True):
        at = calendar()
        book(at, 1, spec(h100(2)), (1, 3), running=running)
        assert not at.rebind(OccurrenceId(1), now=HOUR).changed
        at.look(world(node(1, up=False), node(2), node(3), node(4)).look(HOUR))
        rebound = at.rebind(OccurrenceId(1), now=HOUR)
        assert (rebound.changed, rebound.missing) == (True, 0)
        assert names(rebound.parts) == ["west/n2", "west/n3"]


def test_what_cannot_be_replaced_is_missing() -> None:
    at = calendar(world(node(1), node(2)))
    book(at, 1, spec(h100(4, 4)), (1, 3), running=True)
    broken = tuple(Device(i, "H100", 80 * GIB, healthy=i > 2) for i in range(8))
    at.look(world(node(1, devices=broken), node(2)).look(HOUR))
    rebound = at.rebind(OccurrenceId(1), now=HOUR)
    assert rebound.missing == 4
    assert rebound.message == "4 failed, and nothing can replace them"
    kept = {share.node_name: len(share.devices) for share in rebound.parts[0].shares}
    assert kept == {"n1": 5, "n2": 8}


ITS_NODES = [
    spec(h100(2), pinned=True),
    spec(What(nodes=WholeNodes(2)), pinned=True),
    spec(What(nodes=WholeNodes(names=("west/n1", "west/n2")))),
    spec(What(domains=WholeDomains("rack", names=("west/r0",)))),
]


@pytest.mark.parametrize("wanted", ITS_NODES)
@pytest.mark.parametrize("running", [False, True])
def test_a_booking_of_these_nodes_lacks_one_that_fails_until_it_is_back(
    wanted: ReservationSpec, *, running: bool
) -> None:
    at = calendar(world(node(1), node(2), node(3)))
    here = book(at, 1, wanted, (1, 3), running=running)
    for _ in range(2):
        at.look(world(node(1, up=False), node(2), node(3)).look(HOUR))
        rebound = at.rebind(OccurrenceId(1), now=HOUR)
        assert rebound.parts == here.parts
        assert rebound.missing == (8 if wanted.what.amounts else 1)
        at.add(replace(here, missing=rebound.missing))
    at.look(world(node(1), node(2), node(3)).look(HOUR))
    assert at.rebind(OccurrenceId(1), now=HOUR) == Rebound(here.parts, 0, True)


def test_a_booking_whose_cluster_is_gone_stays_short() -> None:
    at = calendar(world(node(1), node(2)))
    here = book(at, 1, spec(h100(2)), (1, 3), running=True)
    at.look(world(node(1, up=False), node(2, up=False)).look(HOUR))
    for _ in range(2):
        rebound = at.rebind(OccurrenceId(1), now=HOUR)
        assert (rebound.parts, rebound.missing) == ((), 16)
        at.add(replace(here, parts=(), missing=16))
    at.look(world(node(1), node(2)).look(HOUR))
    rebound = at.rebind(OccurrenceId(1), now=HOUR)
    assert (names(rebound.parts), rebound.missing) == (["west/n1", "west/n2"], 0)


def test_a_part_of_two_clusters_is_replaced_in_the_one_that_lost_it() -> None:
    every = [node(n, WEST if n < 4 else EAST) for n in range(1, 7)]
    at = calendar(world(*every))
    here = book(at, 1, spec(What(percent=50, clusters=(WEST, EAST))), (1, 3), running=True)
    lost = here.parts[0].shares[0].node
    at.look(world(*(n for n in every if n.id != lost)).look(HOUR))
    rebound = at.rebind(OccurrenceId(1), now=HOUR)
    assert rebound.missing == 0
    held = {p.cluster: sum(len(s.devices) for s in p.shares) for p in rebound.parts}
    # A half of the 24 of one and of the 16 that are left of the other.
    assert sorted(held.values()) == [8, 12]


GIVEN_BACK = [
    (h100(3), h100(2)),
    (h100(12, 2, clusters=(WEST,)), h100(8, 2, clusters=(WEST,))),
    (What(nodes=WholeNodes(3)), What(nodes=WholeNodes(2))),
    (
        What(nodes=WholeNodes(names=("west/n1", "west/n2", "west/n3"))),
        What(nodes=WholeNodes(names=("west/n2", "west/n3"))),
    ),
    (
        What(domains=WholeDomains("rack", names=("west/r0", "west/r1"))),
        What(nodes=WholeNodes(names=("west/n2", "west/n3", "west/n4"))),
    ),
    (What(percent=75, clusters=(WEST,)), h100(16, 1, clusters=(WEST,))),
]


@pytest.mark.parametrize(("booked", "left"), GIVEN_BACK)
def test_what_was_given_back_is_not_booked_again(booked: What, left: What) -> None:
    at = calendar()
    here = book(at, 1, spec(booked), (1, 3), running=True)
    kept = _without(here.parts, "n1")
    what = at.without(OccurrenceId(1), kept)
    assert what == left
    at.add(replace(here, parts=kept, what=what))
    assert not at.rebind(OccurrenceId(1), now=HOUR).changed
    at.look(world(node(1), node(2, up=False), node(3), node(4)).look(HOUR))
    rebound = at.rebind(OccurrenceId(1), now=HOUR)
    # Another node for the one that failed, where any will do, and no more than that.
    assert len(names(rebound.parts)) == len(names(kept))
    assert sum(len(s.devices) for p in rebound.parts for s in p.shares) == sum(
        len(s.devices) for p in kept for s in p.shares
    )


def test_what_failed_is_wanted_still_when_something_else_is_given_back() -> None:
    at = calendar(world(node(1), node(2), node(3)))
    here = book(at, 1, spec(h100(3)), (1, 3), running=True)
    short = replace(here, parts=_without(here.parts, "n3"), missing=8)
    at.add(short)
    assert at.without(OccurrenceId(1), _without(short.parts, "n1")) == h100(2)


def _without(parts: Parts, name: str) -> Parts:
    left = (replace(p, shares=tuple(s for s in p.shares if s.node_name != name)) for p in parts)
    return tuple(part for part in left if part.shares)


def test_the_owners_runs_do_not_keep_their_window_from_lasting() -> None:
    made = world(node(1))
    at = calendar(made)
    book(at, 1, spec(h100(1), "mine"), (0, 2), running=True)
    for queue, want in ((NLP, Accepted), (VISION, Refused)):
        held = world(node(1))
        run(held, 7, 1, preemptible=False, queue=queue)
        at.look(held.look(HOUR))
        assert isinstance(at.extend(OccurrenceId(1), 3 * HOUR, now=HOUR), want)
