"""Whatever happened before: once nothing arrives any more, evictions end.

The machine runs a small shard with quotas, priorities and gangs; its last step
lets cycles run while victims queue again, with no immunity to stop anybody.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from atoll.core.model.plan import RunTerms
from atoll.core.model.spec import Topology
from atoll.core.policies.fair_share import FairShareSettings

from . import claims
from .claims import Shard, gpus, queue

LEAVES = ("a", "b", "c.x", "c.y", "d")
RACKS = Topology("rack")
MOST_CYCLES = 150


def test_priority_in_a_queue_does_not_undo_what_quotas_settled() -> None:
    """Large jobs of high priority that may only borrow, small ones inside quota in both queues."""
    shard = Shard(claims.nodes(8, gpus=1), (queue("a", 4), queue("b", 4)))
    large = shard.submit("a", gpus(1, tasks=6), priority=1)
    shard.cycle()
    small = [shard.submit("b", gpus(1, tasks=2))]
    shard.cycle()
    small += [shard.submit("b", gpus(1, tasks=2)), shard.submit("a", gpus(1, tasks=2))]
    other = shard.submit("b", gpus(1, tasks=6), priority=1)
    assert shard.settle() == 1
    assert sorted(shard.running) == sorted(small)
    assert {large, other}.isdisjoint(shard.running)


class Claims(RuleBasedStateMachine):
    """Arrivals, ends, stops and lapses in any order."""

    shard: Shard

    @initialize(
        count=st.integers(1, 3),
        deserved=st.lists(st.integers(0, 4), min_size=5, max_size=5),
        order=st.sampled_from(("priority_fifo", "fair_share")),
        calm=st.booleans(),
        rebalance=st.booleans(),
    )
    def begin(
        self, *, count: int, deserved: list[int], order: str, calm: bool, rebalance: bool
    ) -> None:
        names = ("a", "b", "c", "c.x", "d")
        made = [queue(n, d, preempts=not calm) for n, d in zip(names, deserved, strict=True)]
        shares = FairShareSettings(rebalance=rebalance)
        self.shard = Shard(claims.nodes(count, gpus=4), tuple(made), order=order, shares=shares)

    @rule(
        name=st.sampled_from(LEAVES),
        size=st.integers(1, 4),
        tasks=st.sampled_from((1, 1, 1, 2, 3)),
        priority=st.integers(0, 2),
        preemptible=st.sampled_from((True, True, True, False)),
        restart_s=st.sampled_from((0.0, 50.0)),
    )
    def arrive(
        self,
        *,
        name: str,
        size: int,
        tasks: int,
        priority: int,
        preemptible: bool,
        restart_s: float,
    ) -> None:
        terms = RunTerms(preemptible=preemptible, restart_cost_s=restart_s, grace_s=5.0)
        self.shard.submit(name, gpus(size, tasks=tasks, terms=terms), priority=priority)

    @rule()
    def cycle(self) -> None:
        self.shard.cycle()

    @precondition(lambda self: self.shard.stopping)
    @rule()
    def stop(self) -> None:
        self.shard.end_victims()

    @precondition(lambda self: self.shard.running.keys())
    @rule(number=st.integers(0, 20))
    def finish(self, number: int) -> None:
        running = sorted(self.shard.running)
        job = running[number % len(running)]
        self.shard.stopping.discard(self.shard.running[job])
        self.shard.end(job)

    @rule(seconds=st.sampled_from((10.0, 100.0, 1000.0)))
    def wait(self, seconds: float) -> None:
        self.shard.now += seconds

    @invariant()
    def nobody_runs_and_waits(self) -> None:
        if hasattr(self, "shard"):
            waiting = self.shard.world.ledger.nominations
            assert not waiting.keys() & self.shard.running.keys()

    def teardown(self) -> None:
        if hasattr(self, "shard"):
            self.shard.settle(MOST_CYCLES)


Claims.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestEvictionsEnd = Claims.TestCase
