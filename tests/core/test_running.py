"""Running work in columns."""

from hypothesis import given
from hypothesis import strategies as st

from atoll.core.model.ids import AttemptId, ClusterName, JobId, NodeId, QueueName, attempt_id
from atoll.core.model.plan import RunFacts, RunTerms, TaskPlacement
from atoll.core.model.resources import DeviceGrant
from atoll.core.state.ledger import Holding, flatten
from atoll.core.state.run_columns import uses_of
from atoll.core.state.running import NEVER, Running
from atoll.core.state.world import World

from . import worlds


def held(number: int, *, nodes: int = 1, queue: str = "a", run: RunFacts | None = None) -> Holding:
    tasks = tuple(
        TaskPlacement(
            0, rank, NodeId(1 + (number + rank) % 4), "n", 10 * number, 7,
            (DeviceGrant(number % 8, blocks=1), DeviceGrant(8, slice_mask=0))[: 1 + rank % 2],
        )
        for rank in range(nodes)
    )  # fmt: skip
    return Holding(attempt_id(JobId(number), 1), QueueName(queue), ClusterName("c1"), tasks, run)


def world() -> World:
    return worlds.simple_world(worlds.simple_nodes(4, gpus=8))


def seen(running: Running) -> list[int]:
    return [int(job) for job in running.runs.job[running.slots()]]


def test_a_run_is_shown_with_what_is_known_of_its_job() -> None:
    books = world()
    terms = RunTerms(time_limit_s=60, checkpoint_interval_s=5, restart_cost_s=3, preemptible=False)
    run = RunFacts(JobId(3), 7, started_at=100.0, terms=terms, deadline_at=900.0, preemptions=2)
    books.add_allocations([held(3, queue="b.x", run=run), held(4, queue="a")])
    running = books.freeze(1.0).running
    runs = running.runs
    assert seen(running) == [3, 4]
    assert (runs.priority[0], runs.ends_at[0], runs.checkpoint_s[0]) == (7, 160.0, 5.0)
    assert (runs.restart_s[0], runs.deadline_at[0], runs.preemptions[0]) == (3.0, 900.0, 2)
    assert runs.preemptible.tolist() == [False, True]
    assert runs.ends_at[1] == NEVER
    assert [running.queues.values[q] for q in runs.queue.tolist()] == ["b.x", "a"]


def test_a_snapshot_stays_as_it_was() -> None:
    books = world()
    books.add_allocations([held(1), held(2, nodes=3)])
    before = books.freeze(1.0).running
    books.end_allocation(attempt_id(JobId(1), 1))
    books.add_allocations([held(n, nodes=2) for n in range(10, 60)])
    assert seen(before) == [1, 2]
    assert len(before.runs.job) == 2
    assert seen(books.freeze(2.0).running)[:2] == [2, 10]


def test_nothing_new_costs_nothing() -> None:
    books = world()
    books.add_allocations([held(1)])
    assert books.freeze(1.0).running is books.freeze(2.0).running


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 3)), max_size=60))
def test_the_columns_hold_what_the_ledger_holds(steps: list[tuple[int, int]]) -> None:
    books = world()
    for number, nodes in steps:
        attempt = AttemptId(attempt_id(JobId(number), 1))
        if not books.end_allocation(attempt):
            books.add_allocations([held(number, nodes=nodes)])
    check(books)


def test_slots_that_are_over_make_room() -> None:
    books = world()
    for number in range(1, 2500):
        books.add_allocations([held(number, nodes=1 + number % 2)])
        if number > 5:
            books.end_allocation(attempt_id(JobId(number - 5), 1))
    assert len(books.freeze(1.0).running.runs.job) < 1200
    check(books)


def check(books: World) -> None:
    snapshot = books.freeze(1.0)
    running, ledger = snapshot.running, books.ledger
    slots = running.slots()
    assert running.runs.attempt[slots].tolist() == list(ledger.holdings)
    gangs = [running.holdings[slot].tasks for slot in slots.tolist()]
    assert gangs == [h.tasks for h in ledger.holdings.values()]
    wanted, found = flatten(gangs, ledger.table), uses_of(running.tasks, slots, snapshot.nodes)
    for name, column in wanted._asdict().items():
        assert getattr(found, name).tolist() == column.tolist(), name
