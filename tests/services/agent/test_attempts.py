"""The table of attempts under any order of events: one start at most, one end at most."""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from atoll.agent.usecases.attempts import (
    TERMINAL,
    Attempts,
    Forget,
    Halt,
    Instruction,
    Known,
    Phase,
    Reshape,
    Tell,
)
from atoll.core.model.ids import AttemptId, ClusterName
from atoll.core.model.lifecycle import AttemptEvent, StopCause
from atoll.core.model.reason import ReasonCode
from atoll.ports.backend import RunEvent, StartOrder
from tests.services.agent.jobs import attempt, job, on

STARTED, FINISHED, STOPPED = AttemptEvent.STARTED, AttemptEvent.FINISHED, AttemptEvent.STOPPED
some = st.integers(1, 4).map(attempt)


def order(one: AttemptId) -> StartOrder:
    return StartOrder(ClusterName("c1"), one, spec=job(), tasks=tuple(on(0)), addresses={})


class AnyOrder(RuleBasedStateMachine):
    """A backend that does what it is told, a journal, and an agent that may die at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.table = Attempts()
        self.table.restore({}, ())
        self.decided: dict[AttemptId, Known] = {}
        self.runs: dict[AttemptId, RunEvent] = {}
        self.begun = Counter[AttemptId]()
        self.ends = Counter[AttemptId]()
        self.stopped: set[AttemptId] = set()
        self.forgotten: set[AttemptId] = set()
        self.binding: set[AttemptId] = set()

    def carry_out(self, made: list[Instruction]) -> None:
        for instruction in made:
            match instruction:
                case Tell(event):
                    known = self.decided.get(event.attempt, Known(None, started=False))
                    ended = event.event in TERMINAL
                    started = known.started or event.event is not AttemptEvent.ACCEPTED
                    self.decided[event.attempt] = Known(
                        None if started else known.order, started, known.stop, ended
                    )
                    self.ends[event.attempt] += ended
                case Halt(halt):
                    if (
                        self.runs.get(halt.attempt, RunEvent(halt.attempt, STARTED)).event
                        is STARTED
                    ):
                        self.runs[halt.attempt] = RunEvent(halt.attempt, STOPPED)
                case Reshape(resize):
                    raise AssertionError(f"nobody resized {resize.attempt}")
                case Forget(one):
                    self.forgotten.add(one)
                    self.runs.pop(one, None)

    @rule(one=some)
    def a_start_is_journalled(self, one: AttemptId) -> None:
        if one not in self.decided and one not in self.forgotten:
            self.decided[one] = Known(order(one), started=False)
            self.carry_out(self.table.start(order(one)))

    @rule(one=some)
    def a_stop_is_journalled(self, one: AttemptId) -> None:
        if one not in self.forgotten:
            known = self.decided.get(one, Known(None, started=False))
            self.decided[one] = Known(known.order, known.started, StopCause.CANCEL, known.ended)
            self.stopped.add(one)
            self.carry_out(self.table.stop(one, StopCause.CANCEL))

    @rule()
    def somebodys_turn_comes(self) -> None:
        if (due := self.table.due()) is not None:
            assert due.attempt not in self.stopped
            self.binding.add(due.attempt)

    @rule(one=some)
    def it_is_started(self, one: AttemptId) -> None:
        if one in self.binding:
            self.binding.discard(one)
            if self.table.phase(one) is Phase.BINDING and one not in self.runs:
                assert one not in self.stopped
                self.begun[one] += 1
                self.runs[one] = RunEvent(one, STARTED)

    @rule(one=some)
    def there_is_no_lease_for_it(self, one: AttemptId) -> None:
        if one in self.binding and one not in self.runs:
            self.binding.discard(one)
            self.table.put_back(one)

    @rule(one=some)
    def it_ends(self, one: AttemptId) -> None:
        if one in self.runs and self.runs[one].event is STARTED:
            self.runs[one] = RunEvent(one, FINISHED, exit_code=0)

    @rule(one=some)
    def its_events_arrive(self, one: AttemptId) -> None:
        if one in self.runs:
            self.carry_out(self.table.observe(self.runs[one]))

    @rule(one=some)
    def its_end_is_acknowledged(self, one: AttemptId) -> None:
        if one in self.decided and self.decided[one].ended:
            del self.decided[one]
            self.carry_out(self.table.acknowledged(one))
            assert self.table.phase(one) is None

    @rule()
    def the_agent_dies_and_comes_back(self) -> None:
        self.table = Attempts()
        self.binding.clear()
        self.carry_out(self.table.restore(self.decided, list(self.runs.values())))
        self.carry_out(self.table.settle())

    @invariant()
    def nothing_is_started_or_ended_twice(self) -> None:
        assert all(count <= 1 for count in self.begun.values())
        assert all(count <= 1 for count in self.ends.values())

    @invariant()
    def runs_are_counted(self) -> None:
        assert 0 <= self.table.running <= 4


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_what_was_started_and_left_no_trace_has_an_unknown_end() -> None:
    table = Attempts()
    made = table.restore({attempt(1): Known(None, started=True)}, ())
    assert [(tell.event.event, tell.event.reason) for tell in made if isinstance(tell, Tell)] == [
        (FINISHED, ReasonCode.EXIT_UNKNOWN)
    ]
    assert table.due() is None


def test_a_run_that_nobody_claims_is_stopped_when_the_prefix_is_whole() -> None:
    table = Attempts()
    assert table.restore({}, [RunEvent(attempt(1), STARTED)]) == []
    assert [type(made) for made in table.settle()] == [Halt]


def test_a_start_claims_the_run_that_was_found() -> None:
    table = Attempts()
    table.restore({}, [RunEvent(attempt(1), STARTED)])
    assert table.start(order(attempt(1))) == [Tell(RunEvent(attempt(1), STARTED))]
    assert table.due() is None
    assert table.settle() == []


def test_what_was_only_prepared_is_started_by_whoever_knows_it_and_stopped_otherwise() -> None:
    prepared = RunEvent(attempt(1), AttemptEvent.ACCEPTED)
    known = Attempts()
    assert known.restore({attempt(1): Known(order(attempt(1)), started=False)}, [prepared]) == []
    assert known.due() == order(attempt(1))
    claimed = Attempts()
    claimed.restore({}, [prepared])
    assert claimed.start(order(attempt(1))) == []
    assert claimed.due() == order(attempt(1))
    taken = Attempts()
    taken.restore({}, [prepared])
    assert [type(made) for made in taken.take_over([attempt(1)])] == [Halt]
    left = Attempts()
    left.restore({}, [prepared])
    assert [type(made) for made in left.settle()] == [Halt]
    given_up = Attempts()
    made = given_up.restore({attempt(1): Known(None, started=True)}, [prepared])
    assert [type(instruction) for instruction in made] == [Halt]
