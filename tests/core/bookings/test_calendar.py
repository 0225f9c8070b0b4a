"""The calendar's answers in cases that people would ask about."""

from dataclasses import replace

import pytest

from atoll.core.engine.bookings.answers import Accepted, Query, Refused
from atoll.core.model.booking import Owners
from atoll.core.model.ids import ClusterName, QueueName
from atoll.core.model.plan import Claim
from atoll.core.model.reservation import (
    Amount,
    ObstacleKind,
    Preference,
    What,
    WholeDomains,
    WholeNodes,
)
from atoll.core.model.resources import DeviceRequest
from tests.core.bookings.asking import (
    EAST,
    GIB,
    HOUR,
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


def test_what_is_left_of_a_node_that_is_booked_comes_first() -> None:
    at = calendar()
    book(at, 1, spec(h100(1, 2)), (1, 9))
    answer = ask(at, spec(h100(2, 3)), (2, 3))
    assert isinstance(answer, Accepted)
    (share,) = answer.placed[0].parts[0].shares
    assert share.node_name == "n1"
    assert [grant.index for grant in share.devices] == [2, 3, 4, 5, 6, 7]
    assert (share.cpu_milli, share.memory_bytes) == (48_000, 384 * GIB)


def test_a_large_amount_takes_whole_nodes_and_one_part() -> None:
    answer = ask(calendar(), spec(h100(20, 1)), (1, 2))
    assert isinstance(answer, Accepted)
    taken = [len(share.devices) for share in answer.placed[0].parts[0].shares]
    assert sorted(taken) == [4, 8, 8]


def test_all_occurrences_lie_on_the_same_nodes_where_that_can_be() -> None:
    at = calendar()
    book(at, 1, spec(h100(1)), (25, 26))  # takes n1 at the second occurrence
    answer = ask(at, spec(h100(2)), (1, 2), (25, 26), (49, 50))
    assert isinstance(answer, Accepted)
    assert [names(placed.parts) for placed in answer.placed] == [["west/n2", "west/n3"]] * 3


def test_an_occurrence_goes_elsewhere_when_its_nodes_are_taken() -> None:
    at = calendar(world(node(1), node(2)))
    book(at, 1, spec(h100(1)), (1, 2))
    other = book(at, 2, spec(h100(1)), (25, 26))
    at.add(replace(other, parts=ask(at, spec(h100(1)), (1, 2)).placed[0].parts))  # type: ignore[union-attr]
    answer = ask(at, spec(h100(1)), (1, 2), (25, 26))
    assert isinstance(answer, Accepted)
    assert [names(placed.parts) for placed in answer.placed] == [["west/n2"], ["west/n1"]]


def test_a_refusal_names_what_is_in_the_way_and_the_nearest_windows() -> None:
    made = world(node(1), node(2))
    run(made, 7, 1, time_limit_s=3 * HOUR, preemptible=False)
    at = calendar(made)
    book(at, 1, spec(h100(1), "exam"), (4, 6))
    answer = ask(at, spec(h100(2)), (1.5, 2.5))
    assert isinstance(answer, Refused)
    (run_,) = answer.obstacles
    assert (run_.kind, run_.name, run_.owner, run_.amount) == (ObstacleKind.RUN, "7.1", VISION, 8)
    assert run_.until == 2 * HOUR
    starts = [window.start_at / HOUR for window in answer.alternatives]
    assert starts == [2.0, 3.0, 6.0]


def test_nobody_can_tell_when_a_run_without_a_limit_ends() -> None:
    made = world(node(1))
    run(made, 7, 1, preemptible=False)
    answer = ask(calendar(made), spec(h100(1)), (1, 2))
    assert isinstance(answer, Refused)
    assert answer.obstacles[0].until == 0.0
    assert answer.alternatives == ()


def test_what_can_be_stopped_is_displaced_and_the_cheapest_of_it() -> None:
    made = world(node(1), node(2))
    run(made, 7, 1, checkpoint_interval_s=0.0)
    run(made, 8, 2, checkpoint_interval_s=60.0, restart_cost_s=30.0)
    answer = ask(calendar(made), spec(h100(1)), (1, 2))
    assert isinstance(answer, Accepted)
    assert names(answer.placed[0].parts) == ["west/n2"]
    (lost,) = answer.displaced
    assert (lost.name, lost.queue, lost.devices) == ("8.1", VISION, 8)
    assert lost.device_seconds == 8 * (60.0 + 30.0)


def test_what_may_be_stopped_and_has_no_limit_is_gone_some_day() -> None:
    made = world(node(1))
    run(made, 7, 1)
    at = calendar(made)
    soon, later = ask(at, spec(h100(1)), (23, 24)), ask(at, spec(h100(1)), (24, 25))
    assert isinstance(soon, Accepted)
    assert isinstance(later, Accepted)
    assert ([each.name for each in soon.displaced], later.displaced) == (["7.1"], ())


def test_a_run_that_needs_its_grace_cannot_be_gone_sooner() -> None:
    made = world(node(1))
    run(made, 7, 1, grace_s=600.0)
    at = calendar(made)
    assert isinstance(ask(at, spec(h100(1)), (0.1, 1)), Refused)
    assert isinstance(ask(at, spec(h100(1)), (0.2, 1)), Accepted)


def test_runs_of_the_owners_are_not_displaced_by_their_own_booking() -> None:
    made = world(node(1))
    run(made, 7, 1, queue=QueueName("nlp.train"))
    answer = ask(calendar(made), spec(h100(1)), (1, 2))
    assert isinstance(answer, Accepted)
    assert answer.displaced == ()


def test_a_guarantee_is_nobody_elses() -> None:
    claim = Claim("1042", 0.0, 3 * HOUR, WEST, "H100", blocks=2_400, queues=(VISION,))
    at = calendar(claims=[claim])
    assert isinstance(ask(at, spec(h100(1)), (1, 2)), Accepted)
    answer = ask(at, spec(h100(2), priority=9, override=True), (1, 2))
    assert isinstance(answer, Refused)
    assert (answer.obstacles[0].kind, answer.obstacles[0].name) == (ObstacleKind.GUARANTEE, "1042")
    at.look(world().look(0.0))
    assert isinstance(ask(at, spec(h100(2)), (1, 2)), Accepted)


def test_more_than_any_cluster_has_is_told_as_such() -> None:
    answer = ask(calendar(), spec(h100(5)), (1, 2))
    assert isinstance(answer, Refused)
    (obstacle,) = answer.obstacles
    assert obstacle.kind is ObstacleKind.CAPACITY
    assert obstacle.message == "west comes closest and has room for 4 of 5 units at most"
    assert answer.alternatives == ()


@pytest.mark.parametrize(
    "what",
    [
        What(amounts=(Amount(DeviceRequest("B200", 1), 1),)),
        What(nodes=WholeNodes(1), clusters=(ClusterName("nowhere"),)),
        What(nodes=WholeNodes(names=("west/n9",))),
        What(nodes=WholeNodes(1, labels=(("disk", "ssd"),))),
        What(domains=WholeDomains("pod", 1)),
        What(domains=WholeDomains("rack", names=("west/r9",))),
    ],
    ids=["kind", "cluster", "node", "label", "level", "domain"],
)
def test_what_is_not_there_cannot_be_booked(what: What) -> None:
    answer = ask(calendar(), spec(what), (1, 2))
    assert isinstance(answer, Refused)
    assert answer.obstacles[0].kind is ObstacleKind.CAPACITY


def test_an_amount_is_split_over_clusters_only_if_it_may_be() -> None:
    made = world(node(1), node(2, EAST))
    at = calendar(made)
    assert isinstance(ask(at, spec(h100(2)), (1, 2)), Refused)
    answer = ask(at, spec(h100(2, split=True)), (1, 2))
    assert isinstance(answer, Accepted)
    assert names(answer.placed[0].parts) == ["east/n2", "west/n1"]


def test_racks_labels_names_and_shares_of_a_cluster() -> None:
    made = world(node(1), node(2), node(3, labels=(("disk", "ssd"),)), node(4), node(5, EAST))
    at = calendar(made)
    book(at, 1, spec(h100(1, 1, clusters=(WEST,))), (1, 2))
    wants = {
        What(domains=WholeDomains("rack", 1), clusters=(WEST,)): ["west/n3", "west/n4"],
        What(domains=WholeDomains("rack", names=("west/r1",))): ["west/n3", "west/n4"],
        What(nodes=WholeNodes(1, labels=(("disk", "ssd"),))): ["west/n3"],
        What(nodes=WholeNodes(names=("east/n5", "west/n4"))): ["east/n5", "west/n4"],
    }
    for what, want in wants.items():
        answer = ask(at, spec(what), (1, 2))
        assert isinstance(answer, Accepted)
        assert names(answer.placed[0].parts) == want
    share = ask(at, spec(What(percent=25, clusters=(WEST, EAST))), (1, 2))
    assert isinstance(share, Accepted)
    devices = {p.cluster: sum(len(s.devices) for s in p.shares) for p in share.placed[0].parts}
    assert devices == {WEST: 8, EAST: 2}


def test_maintenance_takes_nodes_that_take_no_work() -> None:
    at = calendar(world(node(1, cordoned=True), node(2, up=False), node(3), node(4)))
    rack = What(domains=WholeDomains("rack", names=("west/r0",)))
    assert isinstance(ask(at, spec(rack), (1, 2)), Refused)
    answer = ask(at, spec(rack, owners=Owners()), (1, 2))
    assert isinstance(answer, Accepted)
    assert names(answer.placed[0].parts) == ["west/n1", "west/n2"]


@pytest.mark.parametrize(
    ("preference", "starts"),
    [(Preference.EARLY, [0, 1, 4]), (Preference.LATE, [9, 8, 7]), (Preference.CHEAPEST, [4, 5, 6])],
)
def test_windows_are_found_by_preference(preference: Preference, starts: list[int]) -> None:
    made = world(node(1))
    run(made, 7, 1, time_limit_s=4 * HOUR)  # until 3 h, and could be stopped
    at = calendar(made)
    book(at, 1, spec(h100(1)), (2, 4))
    query = Query(h100(1), HOUR, 0.0, 10 * HOUR, preference=preference)
    found = at.find(query, now=0.0)
    assert [window.start_at / HOUR for window in found.windows] == starts
    costs = [window.cost > 0 for window in found.windows]
    assert costs == [start < 3 for start in starts]


def test_lower_bookings_are_not_in_the_way_of_a_search_with_a_priority() -> None:
    at = calendar(world(node(1)))
    book(at, 1, spec(h100(1), "low", priority=2), (0, 4))
    query = Query(h100(1), HOUR, 0.0, 10 * HOUR, most=1)
    assert at.find(query, now=0.0).windows[0].start_at == 4 * HOUR
    over = at.find(replace(query, priority=3), now=0.0).windows[0]
    assert over.start_at == 0.0
    assert [each.name for each in over.displaced] == ["low"]
    assert at.find(replace(query, priority=2), now=0.0).windows[0].start_at == 4 * HOUR


def test_the_calendar_shows_the_most_booked_and_the_least_free_of_each_cell() -> None:
    made = world(node(1), node(2, EAST))
    run(made, 7, 1, devices=2, time_limit_s=2 * HOUR, preemptible=False)
    at = calendar(made)
    book(at, 1, spec(h100(1, 4, clusters=(WEST,))), (1.5, 3))
    west = at.availability(0.0, 4 * HOUR, step=HOUR, clusters=[WEST])
    assert [(row.kind, row.total) for row in west] == [("H100", 8), ("", 1)]
    assert west[0].booked == (0.0, 4.0, 4.0, 0.0)
    assert west[0].running == (2.0, 0.0, 0.0, 0.0)
    assert west[0].free == (6.0, 4.0, 4.0, 8.0)
    kinds = at.availability(0.0, HOUR, step=HOUR, kinds=["H100"])
    assert [(row.cluster, row.kind) for row in kinds] == [(EAST, "H100"), (WEST, "H100")]


def test_the_last_free_window_goes_to_one_and_the_others_are_told_of_others() -> None:
    at = calendar(world(node(1)))
    book(at, 1, spec(h100(1)), (1, 2))
    for _ in range(3):
        answer = ask(at, spec(h100(1)), (1, 2))
        assert isinstance(answer, Refused)
        assert [window.start_at for window in answer.alternatives] == [0.0, 2 * HOUR, 3 * HOUR]
