"""Money by the second, times on clocks that jump, where to try next, and what budgets leave."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.core.engine.burst.broker.clock import Jump, is_due, since, watched
from atoll.core.engine.burst.broker.ground import Options, Setback
from atoll.core.engine.burst.broker.retry import avoided_until, next_offer, setbacks_of
from atoll.core.engine.burst.broker.rooms import Purse, room_of
from atoll.core.engine.burst.broker.spend import due, uncounted
from atoll.core.model.burst import MICROS, Budget, EndCause, Market, Offer
from atoll.core.model.ids import QueueName
from tests.core.burst.broker.making import NOW, RESEARCH, an_instance, an_offer, room

HOUR = NOW // 3600 * 3600
OPTIONS = Options()


def test_seconds_are_split_over_full_hours() -> None:
    instance = an_instance(created_at=HOUR - 10)
    assert uncounted(instance, now=HOUR + 3600 + 5) == (
        (HOUR - 3600, 22222),
        (HOUR, 8 * MICROS),
        (HOUR + 3600, 11111),
    )
    assert uncounted(replace(instance, created_at=0.0), now=NOW) == ()


@given(
    st.integers(0, 100 * MICROS),
    st.floats(HOUR - 9000, HOUR),
    st.lists(st.floats(-4000, 20_000), max_size=12),
    st.one_of(st.none(), st.floats(0, 20_000)),
)
def test_nothing_is_counted_twice_or_lost(
    price: int, created_at: float, looks: list[float], end_s: float | None
) -> None:
    instance = an_instance(1, an_offer(price=price), created_at=created_at)
    ledger: dict[int, int] = {}
    for now in [*(HOUR + each for each in looks), HOUR + 20_000]:
        if end_s is not None and now >= created_at + end_s:
            instance = replace(instance, ended_at=instance.ended_at or created_at + end_s)
        for hour, amount in uncounted(instance, now=now):
            assert amount > 0
            assert hour % 3600 == 0
            ledger[hour] = ledger.get(hour, 0) + amount
        instance = replace(instance, spent=sum(ledger.values()))
    until = created_at + end_s if end_s is not None else HOUR + 20_000
    seconds = min(int(until), int(HOUR + 20_000)) - int(created_at)
    first = [created_at, *(HOUR + each for each in looks)]
    early = end_s is not None and max(first) > until  # it was counted before its end was known
    assert sum(ledger.values()) >= max(0, seconds) * price // 3600
    assert early or sum(ledger.values()) == max(0, seconds) * price // 3600
    assert all(amount <= price for amount in ledger.values())
    assert due(instance, now=HOUR - 1e6) == 0


def test_times_that_a_clock_jumped_over_did_not_pass() -> None:
    jumps = watched((), passed_s=10, before=NOW, now=NOW + 1010)
    assert jumps == (Jump(NOW + 1010, 1000),)
    assert since(NOW - 50, NOW + 1060, jumps) == 110
    assert since(NOW + 1020, NOW + 1060, jumps) == 40
    assert not is_due(NOW + 500, NOW + 1060, jumps)
    assert is_due(NOW + 500, NOW + 1500, jumps)
    assert is_due(NOW - 1, NOW + 1010, jumps)
    assert watched(jumps, passed_s=10, before=NOW + 1010, now=NOW + 1020) == jumps
    assert watched(jumps, passed_s=10, before=NOW + 1020, now=NOW + 30) == (Jump(NOW + 30, 20),)
    assert watched(jumps, passed_s=10, before=NOW + 1020, now=NOW + 5) == ()
    assert since(NOW, NOW - 500, ()) == 0.0


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(-1e6, 1e6)), max_size=30))
def test_a_clock_that_jumps_about_never_makes_more_time_pass(
    looks: list[tuple[float, float]],
) -> None:
    now, passed, jumps = NOW, 0.0, tuple[Jump, ...]()
    for passed_s, jump_s in looks:
        before, now = now, now + passed_s + jump_s
        passed += passed_s
        jumps = watched(jumps, passed_s=passed_s, before=before, now=now)
    # Up to the least difference, each time; the eldest of many jumps are forgotten.
    if len(looks) <= 8:
        assert since(NOW, now, jumps) <= passed + 5 * len(looks) + 1e-3


def test_the_next_try_is_in_another_zone_then_of_another_type() -> None:
    failed = an_offer(zone="a")
    offers = [
        failed,
        an_offer(zone="b", price=9 * MICROS),
        an_offer(zone="c", price=10 * MICROS, market=Market.SPOT),
        an_offer("gpu16", devices=16, price=16 * MICROS),
        an_offer("gpu1", devices=1, price=MICROS),
        an_offer("h8", kind="h100", price=MICROS),
    ]
    tried: Offer | None = failed
    setbacks: dict[str, tuple[Setback, ...]] = {}
    found = []
    while tried is not None:
        setbacks[tried.key] = (Setback(NOW),)
        tried = next_offer(failed, offers, setbacks, now=NOW, options=OPTIONS)
        found += [tried] if tried is not None else []
    assert found == offers[1:4]


def test_what_fails_again_is_avoided_for_longer() -> None:
    def times(*ago_h: float) -> float:
        setbacks = {"x": tuple(Setback(NOW - 3600 * each) for each in ago_h)}
        return avoided_until("x", setbacks, now=NOW, options=OPTIONS)

    assert times() == 0
    assert times(0) == NOW + 900
    assert times(0.1, 0) == NOW + 1800
    assert times(0, *[0.1] * 50) == NOW + 900 * 32
    assert times(7) == 0


def test_what_was_taken_back_is_soon_tried_again() -> None:
    def after(*found: Setback) -> float:
        return avoided_until("x", {"x": found}, now=NOW, options=OPTIONS) - NOW

    assert after(Setback(NOW, taken=True)) == 60
    assert after(Setback(NOW - 600, taken=True), Setback(NOW, taken=True)) == 120
    assert after(Setback(NOW - 600), Setback(NOW, taken=True)) == 120
    assert after(Setback(NOW - 600, taken=True), Setback(NOW)) == 1800


def test_setbacks_are_of_instances_that_did_not_do_their_work() -> None:
    ended = [
        an_instance(1, ended_at=NOW - 5, cause=EndCause.BOOT_DEADLINE),
        an_instance(2, ended_at=NOW - 9, cause=EndCause.INTERRUPTED),
        an_instance(3, ended_at=NOW - 9, cause=EndCause.IDLE),
        an_instance(4, ended_at=NOW - 1e6, cause=EndCause.PROVIDER),
        an_instance(5, cause=EndCause.PROVIDER),
    ]
    assert setbacks_of(ended, now=NOW) == {
        an_offer().key: (Setback(NOW - 9, taken=True), Setback(NOW - 5), Setback(NOW))
    }


def test_a_room_is_what_a_budget_leaves_until_all_is_ended() -> None:
    budget = Budget(per_hour=10 * MICROS, per_month=100 * MICROS)
    left = room_of(budget, rate=4 * MICROS, month=50 * MICROS, end_s=900)
    assert left == room(rate=6, month=49)
    assert room_of(Budget(), rate=5, month=5, end_s=900) == room()


def test_all_of_a_chain_pays_or_nobody() -> None:
    org = QueueName("org")
    purse = Purse({None: room(rate=10), org: room(rate=5, month=3), RESEARCH: room(month=9)})
    assert purse.take(RESEARCH, rate=3 * MICROS, ahead=MICROS)
    assert not purse.take(RESEARCH, rate=3 * MICROS, ahead=MICROS)
    assert "queue org $2.00/h is left, $3.00/h is asked" in purse.short(
        RESEARCH, rate=3 * MICROS, ahead=0
    )
    assert purse.take(QueueName("other"), rate=7 * MICROS, ahead=99 * MICROS)
    assert purse.short(None, rate=1, ahead=0)
    assert not purse.short(None, rate=0, ahead=0)


@pytest.mark.parametrize("queue", [None, QueueName("org"), RESEARCH], ids=str)
def test_who_has_no_budget_has_no_bound(queue: QueueName | None) -> None:
    assert Purse({}).take(queue, rate=10**12, ahead=10**15)
