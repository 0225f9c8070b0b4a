"""Every instance ends, and none is taken for ended while its provider shows it."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from atoll.core.engine.burst.broker.clock import Jump
from atoll.core.engine.burst.broker.ground import Use
from atoll.core.engine.burst.broker.life import (
    Act,
    LifeTerms,
    Seen,
    Sight,
    Step,
    applied,
    idle_since,
    step,
)
from atoll.core.model.burst import EndCause, Instance, InstanceState
from tests.core.burst.broker.making import BUSY, IDLE, NOW, an_instance, an_offer

TERMS = LifeTerms()
ENDED = {InstanceState.TERMINATED, InstanceState.FAILED}
EXISTS = {Sight.PENDING, Sight.RUNNING, Sight.ENDING}
AWAY = Use()
S = InstanceState


def test_an_interruption_stops_work_at_once_and_leaves_it_the_notice() -> None:
    notice = Seen(Sight.RUNNING, interrupted_at=NOW + 120)
    found = step(an_instance(), notice, BUSY, now=NOW, terms=TERMS)
    assert (found.stop_at, found.drain_by) == (NOW, NOW + 120)
    drains = applied(an_instance(), found, notice, now=NOW)
    assert (drains.stop_at, drains.drain_by) == (NOW, NOW + 120)
    assert step(drains, notice, BUSY, now=NOW + 1, terms=TERMS).act is Act.WAIT


def test_the_boot_deadline_grows_with_the_usual_lead() -> None:
    slow = an_instance(1, an_offer(lead_s=3600), state=S.BOOTING, requested_at=NOW - 3 * 3600)
    seen = Seen(Sight.RUNNING)
    assert step(slow, seen, AWAY, now=NOW, terms=TERMS).act is Act.WAIT
    assert step(slow, seen, AWAY, now=NOW + 1, terms=TERMS).act is Act.TERMINATE


def test_idle_time_counts_from_when_work_ended() -> None:
    fresh = replace(an_instance(), idle_since=0.0)
    assert idle_since(fresh, IDLE, now=NOW) == NOW
    assert idle_since(an_instance(), IDLE, now=NOW) == NOW - 60
    assert idle_since(an_instance(), BUSY, now=NOW) == 0.0
    assert idle_since(replace(fresh, state=S.DRAINING), IDLE, now=NOW) == 0.0


@given(st.floats(-1e7, 1e7), st.sampled_from([S.REQUESTED, S.BOOTING, S.READY, S.DRAINING]))
def test_a_jump_of_the_clock_ends_nothing(jump_s: float, state: InstanceState) -> None:
    instance = an_instance(
        state=state, requested_at=NOW - 100, created_at=NOW - 30, drain_by=NOW + 100
    )
    now = NOW + jump_s
    terms = replace(TERMS, jumps=(Jump(now, jump_s),) if jump_s > 0 else ())
    for seen in (None, Seen(Sight.RUNNING), Seen(Sight.ABSENT)):
        if seen and seen.sight is Sight.ABSENT and state is S.READY:
            continue
        found = step(instance, seen, BUSY if state is S.DRAINING else AWAY, now=now, terms=terms)
        assert found.state in {state, S.BOOTING if seen and state is S.REQUESTED else state}


sights = st.one_of(
    st.none(),
    st.builds(
        Seen,
        st.sampled_from(list(Sight)),
        interrupted_at=st.sampled_from([0.0, 0.0, NOW + 60]),
        created_at=st.sampled_from([0.0, NOW - 10, NOW + 1e6]),
    ),
)
uses = st.builds(Use, st.booleans(), st.integers(0, 2), st.integers(0, 2))
instances = st.builds(
    an_instance,
    state=st.sampled_from(list(InstanceState)),
    requested_at=st.floats(NOW - 1e5, NOW + 1e5),
    created_at=st.one_of(st.just(0.0), st.floats(NOW - 1e5, NOW)),
    drain_by=st.one_of(st.just(0.0), st.floats(NOW - 1e3, NOW + 1e3)),
)


@given(instances, sights, uses)
def test_a_step_is_total_and_never_ends_what_is_shown(
    instance: Instance, seen: Seen | None, use: Use
) -> None:
    found = step(instance, seen, use, now=NOW, terms=TERMS)
    assert found == step(instance, seen, use, now=NOW, terms=TERMS)
    after = applied(instance, found, seen, now=NOW)
    assert after.state is found.state
    if found.state in ENDED and instance.state not in ENDED:
        assert seen is not None
        assert seen.sight not in EXISTS | {Sight.UNKNOWN}
        assert after.ended_at >= after.created_at
    if instance.state in ENDED:
        assert found.state is instance.state
    if instance.state is S.TERMINATING:
        assert found.state in {S.TERMINATING, S.TERMINATED}


class _Provider:
    """Answers now and then at first, then always; ends what it is told to end, some time later."""

    def __init__(self, answers: list[bool], *, exists: bool, boots_s: float, refuses: bool) -> None:
        self.answers, self.exists, self.boots_s, self.refuses = answers, exists, boots_s, refuses
        self.created_at = NOW if exists else 0.0
        self.told_at = 0.0

    def look(self, now: float) -> Seen | None:
        if self.answers and not self.answers.pop():
            return None
        if not self.created_at:
            return Seen(Sight.ABSENT)
        if self.told_at:
            return Seen(Sight.GONE if now > self.told_at + 60 else Sight.ENDING)
        return Seen(Sight.RUNNING, "i-1", self.created_at)

    def create(self, now: float) -> Seen | None:
        answered = not self.answers or self.answers.pop()
        if self.refuses:
            return Seen(Sight.REFUSED) if answered else None
        self.created_at = self.created_at or now
        return Seen(Sight.PENDING, "i-1", now) if answered else None


def _live(instance: Instance, provider: _Provider, *, joins: bool, drain_at: float) -> Instance:
    """Steps every ten seconds until it is ended, or for three hours."""
    now = NOW
    for _ in range(1080):
        now += 10
        ready = bool(provider.created_at) and now > provider.created_at + provider.boots_s
        use = Use(joined=joins and ready, live=1)
        seen = provider.look(now)
        found = step(instance, seen, use, now=now, terms=TERMS)
        if found.act is Act.CREATE:
            seen = provider.create(now) or Seen(Sight.UNKNOWN)
            found = step(instance, seen, use, now=now, terms=TERMS)
            if found.act is Act.CREATE:
                continue
        if found.act is Act.TERMINATE and provider.created_at:
            provider.told_at = provider.told_at or now
        if found.act is not Act.WAIT:
            instance = applied(instance, found, seen, now=now)
        if instance.state in ENDED:
            shown = provider.look(now)
            assert shown is None or shown.sight not in EXISTS
            return instance
        if instance.state is S.READY and now > drain_at:
            drain = Step(Act.DRAIN, S.DRAINING, EndCause.IDLE, stop_at=now, drain_by=now + 60)
            instance = applied(instance, drain, seen, now=now)
    return instance


@given(
    st.sampled_from([each for each in InstanceState if each not in ENDED]),
    st.lists(st.booleans(), max_size=200),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_from_any_state_every_instance_ends_after_its_release(
    state: InstanceState, answers: list[bool], exists: bool, joins: bool, refuses: bool
) -> None:
    instance = an_instance(state=state, requested_at=NOW, created_at=NOW, drain_by=NOW + 50)
    exists = exists or state is not S.REQUESTED
    provider = _Provider(answers, exists=exists, boots_s=200, refuses=refuses and not exists)
    ended = _live(instance, provider, joins=joins, drain_at=NOW + 3000)
    assert ended.state in ENDED
    assert (ended.state is S.FAILED) == (refuses and not exists)
    if not joins and state is S.BOOTING:
        assert ended.cause is EndCause.BOOT_DEADLINE
