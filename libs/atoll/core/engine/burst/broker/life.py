"""What is to be done next with an instance: one step, from any state, whatever the provider says.

Every instance that is to end does, as soon as the provider answers; none is taken for ended before
the provider says that it is gone, or has not known its token for long enough.
"""

from dataclasses import replace
from typing import assert_never

from atoll.core.engine.burst.broker.clock import Jump, is_due, since
from atoll.core.engine.burst.broker.ground import Use
from atoll.core.engine.burst.broker.step import Act, LifeTerms, Seen, Sight, Step
from atoll.core.engine.choice.worth import in_words
from atoll.core.model.burst import EndCause, Instance, InstanceState, Market, Offer

__all__ = [
    "Act",
    "Jump",
    "LifeTerms",
    "Seen",
    "Sight",
    "Step",
    "applied",
    "boot_limit_s",
    "idle_since",
    "step",
]

EXISTS = frozenset({Sight.PENDING, Sight.RUNNING, Sight.ENDING})


def step(instance: Instance, seen: Seen | None, use: Use, *, now: float, terms: LifeTerms) -> Step:
    """The next step; WAIT when there is nothing to do. `seen` None: the provider did not answer."""
    seen = seen or Seen(Sight.UNKNOWN)
    match instance.state:
        case InstanceState.REQUESTED:
            return _requested(instance, seen, now=now, terms=terms)
        case InstanceState.BOOTING:
            return _booting(instance, seen, use, now=now, terms=terms)
        case InstanceState.READY:
            return _ready(instance, seen, now=now, terms=terms)
        case InstanceState.DRAINING:
            return _draining(instance, seen, use, now=now, terms=terms)
        case InstanceState.TERMINATING:
            return _terminating(instance, seen, now=now)
        case InstanceState.TERMINATED | InstanceState.FAILED:
            return _ended(instance, seen)
        case _:
            assert_never(instance.state)


def applied(instance: Instance, done: Step, seen: Seen | None, *, now: float) -> Instance:
    """The row after a step."""
    seen = seen or Seen(Sight.UNKNOWN)
    known = replace(
        instance,
        state=done.state,
        provider_id=seen.provider_id or instance.provider_id,
        created_at=instance.created_at or _created_at(seen, now),
        stop_at=done.stop_at or instance.stop_at,
        drain_by=done.drain_by or instance.drain_by,
        cause=instance.cause if instance.cause is not EndCause.NONE else done.cause,
        message=done.why or instance.message,
    )
    if done.act is Act.READY:
        return replace(known, ready_at=now, idle_since=now)
    if done.act in {Act.ENDED, Act.FAILED}:
        return replace(known, ended_at=max(now, known.created_at))
    return known


def idle_since(instance: Instance, use: Use, *, now: float) -> float:
    """Since when nothing runs on a READY instance; 0: something does."""
    if use.live or instance.state is not InstanceState.READY:
        return 0.0
    return instance.idle_since or now


def boot_limit_s(offer: Offer, terms: LifeTerms) -> float:
    """So long after the request nobody waits for an instance any more."""
    return max(terms.boot_s, terms.boot_leads * offer.lead_s)


def _requested(instance: Instance, seen: Seen, *, now: float, terms: LifeTerms) -> Step:
    match seen.sight:
        case Sight.REFUSED:
            why = f"the provider refused it: {seen.message}" if seen.message else "it was refused"
            return Step(Act.FAILED, InstanceState.FAILED, EndCause.PROVIDER, retry=True, why=why)
        case Sight.PENDING | Sight.RUNNING:
            return Step(Act.BOOTING, InstanceState.BOOTING)
        case Sight.ENDING | Sight.GONE:
            return _lost(instance, seen, now=now, terms=terms)
        case Sight.ABSENT | Sight.UNKNOWN:
            if since(instance.requested_at, now, terms.jumps) <= boot_limit_s(
                instance.offer, terms
            ):
                return Step(Act.CREATE, instance.state)
            return _given_up(instance, now=now, terms=terms)
        case _:
            assert_never(seen.sight)


def _booting(instance: Instance, seen: Seen, use: Use, *, now: float, terms: LifeTerms) -> Step:
    if seen.sight in {Sight.ENDING, Sight.GONE} or _vanished(instance, seen, now=now, terms=terms):
        return _lost(instance, seen, now=now, terms=terms)
    if seen.interrupted_at and not use.joined:
        why = "the provider takes it back before it has joined"
        return _end(EndCause.INTERRUPTED, now=now, terms=terms, why=why, retry=True)
    if use.joined:
        return Step(Act.READY, InstanceState.READY)
    if since(instance.requested_at, now, terms.jumps) > boot_limit_s(instance.offer, terms):
        return _given_up(instance, now=now, terms=terms)
    return Step(Act.WAIT, instance.state)


def _ready(instance: Instance, seen: Seen, *, now: float, terms: LifeTerms) -> Step:
    if seen.sight in {Sight.ENDING, Sight.GONE}:
        return _lost(instance, seen, now=now, terms=terms)
    if seen.interrupted_at:
        return _interrupted(instance, seen, now=now)
    if _vanished(instance, seen, now=now, terms=terms):
        # Its agent may live all the same: what runs gets its time to stop.
        stop_at = now + terms.drain_s
        cause, why = EndCause.PROVIDER, "the provider does not know it any more"
        return Step(
            Act.DRAIN,
            InstanceState.DRAINING,
            cause,
            stop_at=stop_at,
            drain_by=stop_at + terms.grace_s,
            retry=True,
            why=why,
        )
    return Step(Act.WAIT, instance.state)


def _draining(instance: Instance, seen: Seen, use: Use, *, now: float, terms: LifeTerms) -> Step:
    if seen.sight in {Sight.ENDING, Sight.GONE}:
        return _lost(instance, seen, now=now, terms=terms)
    if not use.live or is_due(instance.drain_by, now, terms.jumps):
        return _end(instance.cause, now=now, terms=terms, why=instance.message)
    if seen.interrupted_at and seen.interrupted_at < instance.drain_by:
        return _interrupted(instance, seen, now=now)
    return Step(Act.WAIT, instance.state)


def _terminating(instance: Instance, seen: Seen, *, now: float) -> Step:
    if seen.sight is Sight.GONE:
        return Step(Act.ENDED, InstanceState.TERMINATED, instance.cause, why=instance.message)
    if seen.sight in {Sight.ABSENT, Sight.REFUSED}:
        # What has just been created may not be listed yet.
        if now < instance.drain_by:
            return Step(Act.WAIT, instance.state, instance.cause)
        return Step(Act.ENDED, InstanceState.TERMINATED, instance.cause, why=instance.message)
    return Step(Act.TERMINATE, instance.state, instance.cause)


def _ended(instance: Instance, seen: Seen) -> Step:
    """What comes up after all, long after it was given up, is ended like an orphan."""
    act = Act.TERMINATE if seen.sight in EXISTS else Act.WAIT
    return Step(act, instance.state, instance.cause)


def _lost(instance: Instance, seen: Seen, *, now: float, terms: LifeTerms) -> Step:
    """The provider ends it, has ended it, or has never heard of it."""
    spot = instance.offer.market is Market.SPOT and seen.sight is not Sight.ABSENT
    cause = EndCause.INTERRUPTED if spot else EndCause.PROVIDER
    cause = instance.cause if instance.cause is not EndCause.NONE else cause
    retry = instance.state is not InstanceState.DRAINING
    if seen.sight is Sight.GONE:
        why = "the provider has ended it"
        return Step(Act.ENDED, InstanceState.TERMINATED, cause, retry=retry, why=why)
    ends = seen.sight is Sight.ENDING
    why = "the provider ends it" if ends else "the provider does not know it any more"
    return _end(cause, now=now, terms=terms, why=why, retry=retry)


def _given_up(instance: Instance, *, now: float, terms: LifeTerms) -> Step:
    waited = in_words(since(instance.requested_at, now, terms.jumps))
    limit = in_words(boot_limit_s(instance.offer, terms))
    why = f"it had not joined {waited} after the request, {limit} were allowed"
    return _end(EndCause.BOOT_DEADLINE, now=now, terms=terms, why=why, retry=True)


def _interrupted(instance: Instance, seen: Seen, *, now: float) -> Step:
    """What runs writes its checkpoint at once."""
    drain_by = max(now, seen.interrupted_at)
    why = f"the provider takes it back in {in_words(drain_by - now)}"
    cause = EndCause.INTERRUPTED
    return Step(
        Act.DRAIN,
        InstanceState.DRAINING,
        cause,
        stop_at=now,
        drain_by=drain_by,
        retry=instance.state is InstanceState.READY,
        why=why,
    )


def _end(cause: EndCause, *, now: float, terms: LifeTerms, why: str, retry: bool = False) -> Step:
    """`drain_by` is from when on the provider is believed that it knows no such token."""
    return Step(
        Act.TERMINATE,
        InstanceState.TERMINATING,
        cause,
        drain_by=now + terms.settle_s,
        retry=retry,
        why=why,
    )


def _vanished(instance: Instance, seen: Seen, *, now: float, terms: LifeTerms) -> bool:
    old = since(instance.created_at or instance.requested_at, now, terms.jumps) > terms.settle_s
    return seen.sight is Sight.ABSENT and old


def _created_at(seen: Seen, now: float) -> float:
    if seen.sight in EXISTS or seen.sight is Sight.GONE:
        return min(seen.created_at or now, now)
    return 0.0
