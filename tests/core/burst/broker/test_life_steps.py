"""Each step of an instance's life, by what is seen."""

from typing import NamedTuple

import pytest

from atoll.core.engine.burst.broker.ground import Use
from atoll.core.engine.burst.broker.life import Act, LifeTerms, Seen, Sight, step
from atoll.core.model.burst import EndCause, InstanceState
from tests.core.burst.broker.making import BUSY, IDLE, NOW, an_instance

TERMS = LifeTerms()
AWAY = Use()
S = InstanceState


class Case(NamedTuple):
    name: str
    state: InstanceState
    sight: Sight | None
    act: Act
    then: InstanceState
    cause: EndCause = EndCause.NONE
    use: Use = AWAY
    age_s: float = 100.0
    interrupted_in_s: float = 0.0
    drain_in_s: float = 0.0
    retry: bool = False


CASES = [
    Case("what is asked for is created", S.REQUESTED, None, Act.CREATE, S.REQUESTED),
    Case(
        "again when the provider knows nothing", S.REQUESTED, Sight.ABSENT, Act.CREATE, S.REQUESTED
    ),
    Case("what was created is recorded", S.REQUESTED, Sight.PENDING, Act.BOOTING, S.BOOTING),
    Case("also late", S.REQUESTED, Sight.RUNNING, Act.BOOTING, S.BOOTING, age_s=9e9),
    Case(
        "a refusal ends it",
        S.REQUESTED,
        Sight.REFUSED,
        Act.FAILED,
        S.FAILED,
        EndCause.PROVIDER,
        retry=True,
    ),
    Case(
        "without an answer it is given up",
        S.REQUESTED,
        None,
        Act.TERMINATE,
        S.TERMINATING,
        EndCause.BOOT_DEADLINE,
        age_s=1081,
        retry=True,
    ),
    Case(
        "created and gone",
        S.REQUESTED,
        Sight.GONE,
        Act.ENDED,
        S.TERMINATED,
        EndCause.PROVIDER,
        retry=True,
    ),
    Case("one that boots is waited for", S.BOOTING, Sight.RUNNING, Act.WAIT, S.BOOTING, age_s=1079),
    Case("also without an answer", S.BOOTING, None, Act.WAIT, S.BOOTING),
    Case("it has joined", S.BOOTING, Sight.RUNNING, Act.READY, S.READY, use=IDLE),
    Case(
        "even after the deadline", S.BOOTING, Sight.RUNNING, Act.READY, S.READY, use=IDLE, age_s=9e9
    ),
    Case(
        "it never joined",
        S.BOOTING,
        Sight.RUNNING,
        Act.TERMINATE,
        S.TERMINATING,
        EndCause.BOOT_DEADLINE,
        age_s=1081,
        retry=True,
    ),
    Case("not listed yet", S.BOOTING, Sight.ABSENT, Act.WAIT, S.BOOTING, age_s=59),
    Case(
        "vanished while it booted",
        S.BOOTING,
        Sight.ABSENT,
        Act.TERMINATE,
        S.TERMINATING,
        EndCause.PROVIDER,
        age_s=61,
        retry=True,
    ),
    Case(
        "taken back before it joined",
        S.BOOTING,
        Sight.RUNNING,
        Act.TERMINATE,
        S.TERMINATING,
        EndCause.INTERRUPTED,
        interrupted_in_s=120,
        retry=True,
    ),
    Case("ready and fine", S.READY, Sight.RUNNING, Act.WAIT, S.READY, use=BUSY, age_s=9e9),
    Case(
        "nobody answers for one that works", S.READY, None, Act.WAIT, S.READY, use=BUSY, age_s=9e9
    ),
    Case(
        "taken back",
        S.READY,
        Sight.RUNNING,
        Act.DRAIN,
        S.DRAINING,
        EndCause.INTERRUPTED,
        use=BUSY,
        interrupted_in_s=120,
        retry=True,
    ),
    Case(
        "ended by somebody else",
        S.READY,
        Sight.GONE,
        Act.ENDED,
        S.TERMINATED,
        EndCause.PROVIDER,
        use=BUSY,
        retry=True,
    ),
    Case(
        "vanished while it worked",
        S.READY,
        Sight.ABSENT,
        Act.DRAIN,
        S.DRAINING,
        EndCause.PROVIDER,
        use=BUSY,
        retry=True,
    ),
    Case(
        "drains while something runs",
        S.DRAINING,
        Sight.RUNNING,
        Act.WAIT,
        S.DRAINING,
        use=BUSY,
        drain_in_s=5,
    ),
    Case("nothing is left", S.DRAINING, Sight.RUNNING, Act.TERMINATE, S.TERMINATING, drain_in_s=5),
    Case(
        "the drain's time is over",
        S.DRAINING,
        Sight.RUNNING,
        Act.TERMINATE,
        S.TERMINATING,
        use=BUSY,
        drain_in_s=-1,
    ),
    Case(
        "taken back sooner",
        S.DRAINING,
        Sight.RUNNING,
        Act.DRAIN,
        S.DRAINING,
        EndCause.INTERRUPTED,
        use=BUSY,
        interrupted_in_s=3,
        drain_in_s=5,
    ),
    Case(
        "gone while it drained",
        S.DRAINING,
        Sight.GONE,
        Act.ENDED,
        S.TERMINATED,
        EndCause.PROVIDER,
        use=BUSY,
        drain_in_s=5,
    ),
    Case("told again", S.TERMINATING, Sight.RUNNING, Act.TERMINATE, S.TERMINATING),
    Case(
        "also without an answer, also if it joins now",
        S.TERMINATING,
        None,
        Act.TERMINATE,
        S.TERMINATING,
        use=IDLE,
    ),
    Case("confirmed", S.TERMINATING, Sight.GONE, Act.ENDED, S.TERMINATED),
    Case("not believed yet", S.TERMINATING, Sight.ABSENT, Act.WAIT, S.TERMINATING, drain_in_s=5),
    Case("not known any more", S.TERMINATING, Sight.ABSENT, Act.ENDED, S.TERMINATED, drain_in_s=-1),
    Case("comes up after it failed", S.FAILED, Sight.RUNNING, Act.TERMINATE, S.FAILED),
    Case("comes up after all", S.TERMINATED, Sight.PENDING, Act.TERMINATE, S.TERMINATED),
    Case("over", S.TERMINATED, Sight.GONE, Act.WAIT, S.TERMINATED),
]


def seen_of(case: Case) -> Seen | None:
    if case.sight is None:
        return None
    return Seen(case.sight, interrupted_at=case.interrupted_in_s and NOW + case.interrupted_in_s)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_step(case: Case) -> None:
    born = NOW - case.age_s
    instance = an_instance(
        state=case.state,
        requested_at=born,
        created_at=0.0 if case.state is S.REQUESTED else born,
        drain_by=case.drain_in_s and NOW + case.drain_in_s,
    )
    found = step(instance, seen_of(case), case.use, now=NOW, terms=TERMS)
    assert (found.act, found.state) == (case.act, case.then)
    assert (found.cause, found.retry) == (case.cause, case.retry)
