"""Decisions of a session stay a dense prefix, whatever order they are found in."""

from hypothesis import given
from hypothesis import strategies as st

from atoll.dispatch.usecases.lane import Lane, Offer
from tests.services.dispatch.values import decision


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("offer"), st.integers(1, 40)),
            st.tuples(st.just("push"), st.integers(1, 10)),
            st.tuples(st.just("ack"), st.integers(0, 40)),
        ),
        max_size=200,
    ),
    window=st.integers(1, 10),
)
def test_what_is_pushed_is_dense_and_never_more_than_the_window_ahead(
    steps: list[tuple[str, int]], window: int
) -> None:
    lane = Lane(0, head=0, window=window)
    pushed: list[int] = []
    for step, number in steps:
        match step:
            case "offer":
                lane.offer(decision(number))
            case "push":
                batch = lane.peek(number)
                pushed += [d.number for d in batch]
                lane.pushed(pushed[-1] if pushed else 0)
            case _:
                known = lane.sent
                assert lane.acknowledge(number) == (number <= known)
        assert lane.acked <= lane.sent <= lane.read
        assert lane.read - lane.acked <= window
    assert pushed == list(range(1, len(pushed) + 1))


def test_a_missing_number_is_a_gap_and_nothing_is_taken() -> None:
    lane = Lane(4, head=4, window=10)
    assert lane.offer(decision(6)) is Offer.GAP
    assert lane.offer(decision(4)) is Offer.OLD
    assert lane.offer(decision(5)) is Offer.TAKEN
    assert lane.read == 5


def test_what_comes_after_one_that_did_not_fit_is_no_gap() -> None:
    lane = Lane(0, head=3, window=1)
    found = [lane.offer(decision(number)) for number in (1, 2, 3)]
    assert found == [Offer.TAKEN, Offer.FULL, Offer.FULL]
    lane.pushed(1)
    lane.acknowledge(1)
    assert lane.offer(decision(3)) is Offer.GAP
    assert lane.offer(decision(2)) is Offer.TAKEN


def test_decisions_wait_until_they_are_pushed() -> None:
    lane = Lane(0, head=0, window=10)
    assert lane.offer_all([decision(1), decision(2)]) == 2
    assert lane.peek(10) == lane.peek(10)
    lane.pushed(1)
    assert [d.number for d in lane.peek(10)] == [2]


def test_a_known_head_that_does_not_come_is_overdue_at_the_second_look() -> None:
    lane = Lane(0, head=3, window=10)
    assert not lane.overdue()
    assert lane.overdue()
    lane.offer_all([decision(1), decision(2), decision(3)])
    assert not lane.overdue()


def test_a_full_lane_is_not_overdue() -> None:
    lane = Lane(0, head=5, window=1)
    lane.offer(decision(1))
    assert not lane.overdue()
    assert not lane.overdue()
    lane.pushed(1)
    assert lane.acknowledge(1)
    assert not lane.overdue(), "Redis gets its time once there is room again"
    assert lane.overdue()
