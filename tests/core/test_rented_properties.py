"""What holds of rented machines, whatever the world."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.core.engine.verify import verify
from atoll.core.model.burst import BurstPolicy, InstanceState, Market, Rental, chain_of
from atoll.core.model.burst_rules import refusal
from atoll.core.model.ids import ClusterName, JobId, QueueName, Tenant
from atoll.core.model.inventory import Cluster, ClusterState, Node
from atoll.core.model.job import Queue
from atoll.core.model.lifecycle import StopCause
from atoll.core.model.plan import GangPlacement, PendingJob, Plan
from atoll.core.model.spec import AntiAffinity
from atoll.core.state.rentals import HOLDABLE
from atoll.core.state.world import World
from tests.core.rented_worlds import FIRST_RENTED, job, machine, node_of
from tests.core.worlds import QUEUES, Given, commit, planned, simple_nodes, world_of

TIMES = (1.0, 2.0, 60.0)
LIFE = (*InstanceState, InstanceState.BOOTING, *[InstanceState.READY] * 4, InstanceState.DRAINING)


@dataclass(frozen=True)
class Step:
    """What the store tells of one machine before a cycle."""

    rental: Rental
    cluster: Cluster
    node: Node


@dataclass(frozen=True)
class Case:
    """A world, and machines that come and go."""

    given: Given
    policies: tuple[BurstPolicy, ...]
    steps: tuple[tuple[Step, ...], ...]


def policies() -> st.SearchStrategy[tuple[BurstPolicy, ...]]:
    one = st.builds(
        lambda queue, allowed, markets, most: BurstPolicy(
            queue, allowed=allowed, markets=markets, most_price=most
        ),
        st.sampled_from((None, *QUEUES)),
        st.sampled_from((True, True, False)),
        st.sampled_from(((Market.SPOT,), (Market.SPOT, Market.ON_DEMAND), (Market.ON_DEMAND,))),
        st.sampled_from((0, 0, 2)),
    )
    more = st.lists(one, max_size=3, unique_by=lambda policy: policy.queue)
    return more.map(lambda made: (BurstPolicy(None, allowed=True), *made))


@st.composite
def steps(draw: st.DrawFn, number: int, jobs: int, *, state: InstanceState, joined: bool) -> Step:
    wanted = draw(st.lists(st.integers(1, jobs), max_size=4, unique=True))
    state = draw(
        st.sampled_from((*InstanceState, *[InstanceState.READY] * 4, InstanceState.BOOTING))
    )
    rental = machine(
        number,
        state,
        jobs=tuple(map(JobId, wanted)),
        queue=draw(st.sampled_from((None, None, *QUEUES))),
        give_up_at=draw(st.sampled_from((30.0, 900.0))),
        stop_at=draw(st.sampled_from((0.0, 60.0))),
    )
    cluster = Cluster(
        rental.cluster,
        can_guard=draw(st.booleans()),
        state=draw(st.sampled_from((ClusterState.ACTIVE, ClusterState.ACTIVE, ClusterState.SILENT)))
        if joined
        else ClusterState.BOOTING,
        inventory_number=int(joined),
    )
    node = node_of(rental, joined=joined)
    return Step(rental, cluster, node)


@st.composite
def lives(draw: st.DrawFn, number: int, jobs: int) -> tuple[Step, ...]:
    """A machine from its request to its end, or a part of that."""
    states = draw(st.lists(st.sampled_from(LIFE), min_size=len(TIMES), max_size=len(TIMES)))
    joined = draw(st.integers(0, len(TIMES)))
    return tuple(
        draw(steps(number, jobs, state=state, joined=at >= joined))
        for at, state in enumerate(sorted(states, key=[*InstanceState].index))
    )


def requests() -> st.SearchStrategy[PendingJob]:
    """Jobs of which most fit a machine; their numbers and queues are to be given."""
    return st.builds(
        lambda gpus, tasks, burst, apart: _kept(job(1, gpus, tasks=tasks, burst=burst), apart),
        st.sampled_from((1, 1, 2)),
        st.sampled_from((1, 1, 1, 2)),
        st.sampled_from((True, True, True, False)),
        st.sampled_from((None, None, None, AntiAffinity("x"))),
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kinds = draw(st.lists(requests(), min_size=1, max_size=3))
    jobs = tuple(
        replace(
            draw(st.sampled_from(kinds)),
            id=JobId(number),
            queue=draw(st.sampled_from(QUEUES)),
            priority=draw(st.sampled_from((0, 0, 1))),
        )
        for number in range(1, draw(st.integers(2, 8)) + 1)
    )
    nodes = tuple(simple_nodes(draw(st.integers(0, 2)), cpu=8, gpus=draw(st.integers(0, 2))))
    limits = draw(st.sampled_from(((), (Queue(QUEUES[0], Tenant(""), device_limit=150),))))
    local = Given((Cluster(ClusterName("c1")),), nodes, limits, jobs)
    numbers = range(1, draw(st.integers(1, 3)) + 1)
    each = [draw(lives(number, len(jobs))) for number in numbers]
    return Case(local, draw(policies()), tuple(zip(*each, strict=True)))


def _kept(plain: PendingJob, apart: AntiAffinity | None) -> PendingJob:
    return replace(plain, request=replace(plain.request, anti_affinity=apart))


def tell(world: World, case: Case, number: int) -> dict[ClusterName, Step]:
    """What the store says before cycle `number`."""
    for step in case.steps[number]:
        world.set_clusters([step.cluster])
        world.put_rentals([step.rental])
        world.upsert_nodes([replace(step.node, revision=number + 1)])
    return {step.rental.cluster: step for step in case.steps[number]}


def lived(case: Case) -> Iterable[tuple[World, Plan, dict[ClusterName, Step]]]:
    """Cycles, each with the world before its plan is committed."""
    world = world_of(case.given)
    world.set_burst_policies(case.policies)
    for number, now in enumerate(TIMES):
        machines = tell(world, case, number)
        snapshot = world.freeze(now)
        made = planned(snapshot)
        verify(made, world.ledger, now=now)
        local = planned(replace(snapshot, rentals=snapshot.rentals.shut()))
        here = [p for p in made.placements if p.cluster not in machines]
        assert repr(here) == repr(list(local.placements))
        yield world, made, machines
        world.note_waiting(snapshot, made)
        commit(world, made)
        world.stopping(e.attempt for e in made.evictions)
        world.add_nominations(made.nominations, instead_of=made.released)


@given(cases())
@settings(max_examples=50)
def test_machines_are_used_by_those_who_may_held_for_those_who_wait_and_left_in_time(
    case: Case,
) -> None:
    rules = {policy.queue: policy for policy in case.policies}
    jobs = {each.id: each for each in case.given.jobs}
    for now, (world, made, machines) in zip(TIMES, lived(case), strict=True):
        for placement in made.placements:
            if placement.cluster in machines:
                check_placement(placement, machines[placement.cluster], jobs, rules)
        check_holds(world, made, machines)
        check_stops(world, made, machines, now)


def check_placement(
    placement: GangPlacement,
    step: Step,
    jobs: Mapping[JobId, PendingJob],
    rules: Mapping[QueueName | None, BurstPolicy],
) -> None:
    rental = step.rental
    assert may_use(rental, jobs[placement.job], rules)
    assert step.cluster.schedulable
    assert rental.state in HOLDABLE
    assert rental.state is InstanceState.READY or placement.job in rental.jobs
    assert {task.node for task in placement.tasks} == {FIRST_RENTED + rental.instance}


def check_holds(world: World, made: Plan, machines: Mapping[ClusterName, Step]) -> None:
    placed, held = {p.job for p in made.placements}, [n.job for n in made.nominations]
    assert not placed & set(held)
    assert len(held) == len(set(held))
    for nomination in made.nominations:
        step = machines.get(nomination.cluster)
        assert step is None or nomination.job in step.rental.jobs
    for number, standing in world.ledger.nominations.items():
        assert standing.cluster not in machines or world.pending(number) is not None


def check_stops(world: World, made: Plan, machines: Mapping[ClusterName, Step], now: float) -> None:
    told = {e.attempt for e in made.evictions if e.cause is StopCause.DRAIN}
    over = {
        holding.attempt
        for holding in world.ledger.holdings.values()
        if (step := machines.get(holding.cluster)) is not None and is_over(step.rental, now)
    }
    assert told <= over
    assert over - told <= _stopped(world)


def _stopped(world: World) -> set[int]:
    running = world.look(0.0).running
    return set(running.runs.attempt[running.live & running.stopping].tolist())


def may_use(rental: Rental, job: PendingJob, rules: Mapping[QueueName | None, BurstPolicy]) -> bool:
    ours = rental.queue is None or rental.queue in chain_of(job.queue)
    return job.request.burst and ours and not refusal(rules, job.queue, rental.offer)


def is_over(rental: Rental, now: float) -> bool:
    draining = rental.state is InstanceState.DRAINING and rental.stop_at <= now
    return draining or rental.state is InstanceState.TERMINATING
