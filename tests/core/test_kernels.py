"""The kernels decide what slow plain Python decides."""

from collections.abc import Iterable

import numpy as np
from hypothesis import given, settings

from atoll.core.engine.board import Wanted
from atoll.core.engine.board_kernels import settle
from atoll.core.engine.cycle import plan
from atoll.core.engine.form_kernels import score
from atoll.core.engine.masks import Masks
from atoll.core.engine.memo import Memo
from atoll.core.engine.room_kernels import count_room
from atoll.core.engine.score_kernels import NO, Scoring, look_at
from atoll.core.engine.scoring import scoring_for
from atoll.core.engine.tree_kernels import best
from atoll.core.model.plan import PendingJob, TaskPlacement
from atoll.core.model.resources import TaskShape
from atoll.core.policies.registry import policies
from atoll.core.state.limits import ancestry
from atoll.core.state.mig import grant_units
from atoll.core.state.statement import Statement
from tests.core.reference import SlowNode, best_fit, in_order
from tests.core.worlds import Given, commit, givens, planned, singles, world_of

NARROWEST = 2
"""Levels of the nodes that have any."""


def slow_nodes(given: Given) -> dict[str, SlowNode]:
    return {node.inventory.name: SlowNode(node) for node in given.nodes}


@given(givens(singles()))
@settings(max_examples=200)
def test_single_tasks_go_where_best_fit_in_plain_python_puts_them(case: Given) -> None:
    chosen = policies(order="priority_fifo", score="best_fit")
    snapshot = world_of(case).freeze(1.0)
    made = plan(snapshot, chosen, now=1.0, rng=np.random.default_rng(0))
    assert {p.job: p.tasks for p in made.placements} == slow_plan(case)


def slow_plan(case: Given) -> dict[int, tuple[TaskPlacement, ...]]:
    nodes = slow_nodes(case)
    placed: dict[int, tuple[TaskPlacement, ...]] = {}
    blocked: set[tuple[object, ...]] = set()
    used: dict[str, int] = {}
    limits = {str(queue.name): queue.device_limit * 56 for queue in case.queues}
    for job in in_order(case.jobs):
        key = (job.queue, job.request, job.priority)
        if key in blocked:
            continue
        bound = [str(name) for name in ancestry(job.queue) if str(name) in limits]
        left = min((limits[name] - used.get(name, 0) for name in bound), default=1 << 40)
        task = slow_task(case, job, nodes, left)
        if task is None:
            blocked.add(key)
            continue
        units = sum(grant_units(grant) for grant in task.devices)
        nodes[task.node_name].take(task)
        for name in bound:
            used[name] = used.get(name, 0) + units
        placed[job.id] = (task,)
    return placed


def _is_shunned(shape: TaskShape, labels: tuple[tuple[str, str], ...]) -> bool:
    has = dict(labels)
    return any(key in has and value in ("", has[key]) for key, value in shape.labels_not)


def slow_task(
    case: Given, job: PendingJob, nodes: dict[str, SlowNode], left: int
) -> TaskPlacement | None:
    guards = {cluster.name: cluster.can_guard for cluster in case.clusters}
    for shape in job.request.groups[0].shapes:
        whole = whole_domains(nodes.values())
        options = [
            (domain_of(slow) in whole, value, slow.node.id, slow)
            for slow in nodes.values()
            if slow.node.schedulable
            and (guards[slow.node.cluster] or not job.request.needs_guard)
            and set(shape.labels) <= set(slow.node.inventory.labels)
            and not _is_shunned(shape, slow.node.inventory.labels)
            and (value := best_fit(slow, shape)) is not None
        ]
        if options:
            slow = min(options, key=lambda option: option[:3])[3]
            grants = slow.grants(shape) or ()
            units = sum(grant_units(grant) for grant in grants)
            if units > max(0, left):
                continue
            return TaskPlacement(
                group=0,
                rank=0,
                node=slow.node.id,
                node_name=slow.node.inventory.name,
                cpu_milli=shape.cpu_milli,
                memory_bytes=shape.memory_bytes,
                devices=grants,
            )
    return None


def domain_of(slow: SlowNode) -> tuple[str, ...]:
    """The narrowest domain of a node, empty where it has none of the narrowest level."""
    names = [name for _, name in slow.node.inventory.domains]
    return (slow.node.cluster, *names) if len(names) == NARROWEST else ()


def whole_domains(nodes: Iterable[SlowNode]) -> set[tuple[str, ...]]:
    """Narrowest domains of which nothing is in use; as many levels as the deepest node has."""
    each = list(nodes)
    used = {domain_of(slow) for slow in each if slow.in_use()}
    return {domain_of(slow) for slow in each} - used - {()}


@given(givens())
def test_room_on_a_node_is_the_number_of_tasks_that_then_go_there(case: Given) -> None:
    world = world_of(case)
    commit(world, planned(world.freeze(1.0), most=3))
    snapshot = world.freeze(2.0)
    statement = Statement(snapshot.nodes, snapshot.hardware, snapshot.shapes)
    scoring = scoring_for(snapshot, snapshot.shapes, policies().score)
    rows = np.arange(len(snapshot.names))
    everywhere, counts = np.ones(len(rows), np.bool_), np.zeros(len(rows), np.int64)
    for number, shape in enumerate(snapshot.shape_values):
        for row in range(len(snapshot.names) if shape else 0):
            mark = statement.checkpoint()
            count_room(statement.nodes, scoring, number, everywhere, 9, rows[row : row + 1], counts)
            placed = 0
            while placed < 9 and statement.allocate(number, row, job=0, group=0):
                placed += 1
            statement.rollback(mark)
            assert placed == counts[row]


def score_of(statement: Statement, scoring: Scoring, shape: int, *, row: int) -> int:
    models, cuts, shapes, rules, seen, trial, _ = scoring
    node = look_at(statement.nodes, models, rules, row, seen)
    return score(node, cuts, shapes, rules, seen, trial, shape)


@given(givens())
def test_a_score_says_no_exactly_when_the_task_cannot_be_placed(case: Given) -> None:
    world = world_of(case)
    commit(world, planned(world.freeze(1.0), most=3))
    snapshot = world.freeze(2.0)
    statement = Statement(snapshot.nodes, snapshot.hardware, snapshot.shapes)
    scoring = scoring_for(snapshot, snapshot.shapes, policies().score)
    for number, shape in enumerate(snapshot.shape_values):
        for row in range(len(snapshot.names) if shape else 0):
            value = score_of(statement, scoring, number, row=row)
            mark = statement.checkpoint()
            assert statement.allocate(number, row, job=0, group=0) == (value != NO)
            statement.rollback(mark)


@given(givens())
def test_a_tree_knows_the_best_node_after_every_change(case: Given) -> None:
    snapshot = world_of(case).freeze(1.0)
    statement = Statement(snapshot.nodes, snapshot.hardware, snapshot.shapes)
    scoring = scoring_for(snapshot, snapshot.shapes, policies().score)
    masks = Masks(snapshot, policies(), 1.0)
    asked = [
        Wanted(shape, number, masks.allowed(view.request, shape))
        for view in snapshot.queue.classes
        for numbers in view.shapes
        for number in numbers
        for shape in [snapshot.task_shape(number)]
    ]
    ready = Memo().ready(snapshot, statement.nodes, scoring, columns=asked, lanes=(), gathers=False)
    for column, each in zip(ready.columns, asked, strict=True):
        scores = [
            score_of(statement, scoring, each.shape, row=row) if each.allowed[row] else NO
            for row in range(len(snapshot.names))
        ]
        expected = int(np.argmin(scores)) if min(scores) != NO else -1
        assert best(ready.board.trees, ready.board.states, column) == expected
        if expected >= 0:
            assert statement.allocate(each.shape, expected, job=0, group=0)
            settle(statement.nodes, scoring, ready.board, expected)
