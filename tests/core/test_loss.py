"""What typical tasks lose: the kernels against formulas in plain Python."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.core.engine.form_kernels import share_score
from atoll.core.engine.loss_kernels import FINE, QUANTUM, LossTables, loss, usable
from atoll.core.engine.loss_tables import WEIGHT, loss_tables
from atoll.core.engine.score_kernels import NO, look_at
from atoll.core.engine.scoring import scoring_for
from atoll.core.policies.interfaces import Loss, Score, Strand, Term
from atoll.core.policies.registry import SCORES
from atoll.core.state.columns import FORM_BLOCKS, FORM_MEMORY, SHAPE_CPU, SHAPE_FORM
from atoll.core.state.fit_kernels import (
    VIEW_FREE,
    VIEW_KIND,
    VIEW_ROWS,
    View,
    left_of_share,
)
from atoll.core.state.statement import Statement
from atoll.core.state.typical import Typical
from tests.core.worlds import Given, commit, givens, planned, teach, world_of

KINDS = 2


@dataclass(frozen=True)
class Task:
    """A typical task; `blocks` by kind, 0 where it cannot use the kind."""

    cpu: int
    devices: int
    blocks: tuple[int, int]
    number: int


def tasks() -> st.SearchStrategy[list[Task]]:
    sizes = st.sampled_from((0, 0, 20, 47, 81, 100))
    share = st.builds(Task, _cpus(), st.just(1), st.tuples(sizes, sizes), st.integers(1, 50))
    whole = st.builds(
        Task,
        _cpus(),
        st.sampled_from((1, 2, 4)),
        st.sampled_from(((100, 0), (0, 100), (100, 100))),
        st.integers(1, 50),
    )
    plain = st.builds(Task, _cpus(), st.just(0), st.just((0, 0)), st.integers(1, 50))
    return st.lists(st.one_of(share, whole, plain), min_size=1, max_size=8)


def _cpus() -> st.SearchStrategy[int]:
    return st.sampled_from((1000, 4000, 9000, 16_000))


def views() -> st.SearchStrategy[View]:
    free = st.sampled_from((-1, 0, 5, 19, 20, 53, 81, 99, 100))
    return st.lists(st.tuples(free, st.integers(0, KINDS - 1)), min_size=1, max_size=6).map(_view)


def _view(devices: Sequence[tuple[int, int]]) -> View:
    view = np.zeros((VIEW_ROWS, len(devices)), np.int64)
    view[VIEW_FREE] = [free for free, _ in devices]
    view[VIEW_KIND] = [kind for _, kind in devices]
    return view


def typical_of(given_tasks: Iterable[Task], scarcity: float = 0.0) -> Typical:
    rows = list(given_tasks)
    return Typical(
        cpu=np.array([t.cpu for t in rows], np.int64),
        devices=np.array([t.devices for t in rows], np.int64),
        blocks=np.array([t.blocks for t in rows], np.int64),
        number=np.array([t.number for t in rows], np.int64),
        covering=len(rows),
        cpu_scarcity=scarcity,
    )


def fragments(view: View, cpu: int, known: Sequence[Task]) -> Fraction:
    """F of algorithms.md, on the devices of each kind."""
    total = sum(task.number for task in known)
    return sum(
        (
            Fraction(task.number, total) * _unusable(view, cpu, task, kind=kind)
            for task in known
            for kind in range(KINDS)
        ),
        Fraction(0),
    )


def _unusable(view: View, cpu: int, task: Task, *, kind: int) -> int:
    free = [f for f, k in zip(view[VIEW_FREE], view[VIEW_KIND], strict=True) if k == kind and f > 0]
    need = task.blocks[kind]
    able = [f for f in free if f >= need]
    if cpu < task.cpu or not need or not task.devices or len(able) < task.devices:
        return int(sum(free))
    return int(sum(f for f in free if f < need))


def in_blocks(lost: int) -> float:
    return lost / WEIGHT / FINE


@given(tasks(), views(), st.integers(-1000, 20_000))
def test_fragments_are_f_of_the_paper(known: list[Task], view: View, cpu: int) -> None:
    tables = loss_tables(typical_of(known), Loss(fragments=1.0))
    want = float(fragments(view, cpu, known))
    # Popularities are rounded down to 1 / FINE, for each device once.
    assert in_blocks(loss(view, cpu, tables)) == pytest.approx(want, abs=600 * len(known) / FINE)
    assert 0 <= usable(view, 1, tables) <= FINE * view[VIEW_FREE].clip(0).sum()


@given(views(), st.integers(-1000, 20_000))
def test_a_strand_is_what_free_cpu_cannot_feed(view: View, cpu: int) -> None:
    tables = loss_tables(typical_of([Task(1, 1, (50, 50), 1)]), Loss(strand=Strand(10_000, 2.0)))
    free = int(view[VIEW_FREE].clip(0).sum())
    want = 2.0 * max(0.0, free - 100 * max(cpu, 0) / 10_000)
    assert in_blocks(loss(view, cpu, tables)) == pytest.approx(want, abs=1e-3)


def test_a_hole_is_what_typical_tasks_leave_of_a_device() -> None:
    halves = [Task(1000, 1, (50, 0), 3), Task(1000, 0, (0, 0), 9)]
    hole = loss_tables(typical_of(halves), Loss(holes=1.0)).hole / FINE
    assert hole[0, 1, [0, 19, 49, 50, 75, 99, 100]].tolist() == [0, 19, 49, 0, 25, 49, 0]
    assert hole[1, 1, [0, 50, 100]].tolist() == [0, 50, 100]


def test_a_hole_that_may_stay_open_costs_more() -> None:
    halves = typical_of([Task(1000, 1, (50, 50), 1)])
    hole = loss_tables(halves, Loss(holes=1.0, patience=1.0)).hole / FINE
    assert hole[0, 1, [49, 50, 100]].tolist() == [49, 25, 62.5]


def test_sizes_are_weighed_by_their_chance_and_wholes_by_their_factor() -> None:
    known = typical_of([Task(1000, 1, (100, 100), 3), Task(1000, 1, (60, 60), 1)])
    for policy, left in (
        (Loss(), 10),
        (Loss(wholes=0.0), 40),
        (Loss(evenness=0.0), 20),
        (Loss(opening=2.0), 12),
        (Loss(keenness=100.0), 0),
    ):
        assert loss_tables(known, policy).hole[0, 1, 100] == left * FINE


def test_a_hole_is_filled_by_what_the_free_cpu_allows() -> None:
    known = typical_of([Task(1000, 1, (30, 30), 1), Task(9000, 1, (50, 50), 1)])
    hole = loss_tables(known, Loss(feeding=1.0)).hole[0, :, 50] / FINE
    assert hole.tolist() == [50, 20, 10]
    half = loss_tables(known, Loss(feeding=0.5)).hole[0, :, 50] / FINE
    assert half.tolist() == [30, 15, 10]


@given(views())
def test_openness_is_the_square_of_what_is_free_on_touched_devices(view: View) -> None:
    tables = loss_tables(typical_of([Task(1, 1, (50, 50), 1)]), Loss(openness=2.0))
    touched = sum(free for free in view[VIEW_FREE].tolist() if 0 < free < 100)
    lost = in_blocks(loss(view, 1000, tables))
    assert lost == pytest.approx(2.0 * (touched / 100) ** 2, abs=1e-3)


@pytest.mark.parametrize(
    ("scarcity", "part"), [(0.5, 0.0), (0.9, 0.0), (0.95, 0.5), (1.0, 1.0), (1.4, 1.0)]
)
def test_scarce_cpu_has_a_price(scarcity: float, part: float) -> None:
    known = typical_of([Task(1000, 1, (50, 50), 1)], scarcity)
    policy = Loss(scarce_from=0.9, scarce_to=1.0, scarce_strand=Strand(20_000, 1.0))
    lost = in_blocks(loss(_view([(100, 0)]), 10_000, loss_tables(known, policy)))
    assert lost == pytest.approx(50 * part, abs=0.2)


@pytest.mark.parametrize("name", SCORES)
@settings(max_examples=25)
@given(case=givens())
def test_the_device_of_a_share_is_the_one_that_was_scored(name: str, case: Given) -> None:
    policy, world = SCORES[name], world_of(case)
    teach(world, case)
    commit(world, planned(world.freeze(1.0), most=3))
    snapshot = world.freeze(2.0)
    statement = Statement(snapshot.nodes, snapshot.hardware, snapshot.shapes)
    scoring = scoring_for(snapshot, snapshot.shapes, policy, rng=np.random.default_rng(1))
    models, _, shapes, rules, seen, _, _ = scoring
    forms = shapes[:, SHAPE_FORM]
    shares = np.flatnonzero((forms == FORM_BLOCKS) | (forms == FORM_MEMORY))
    for shape in shares.tolist():
        for row in range(len(snapshot.names) if snapshot.shape_values[shape] else 0):
            node = look_at(statement.nodes, models, rules, row, seen)
            before = seen.copy()
            value, device = share_score(node, shapes, rules, seen, shape)
            assert (seen == before).all()
            cpu = int(node.cpu - shapes[shape, SHAPE_CPU])
            grown = {
                each: _after(seen, each, left, cpu, rules.loss) - node.loss
                for each in range(seen.shape[1])
                if (left := left_of_share(seen, shapes, shape, each)) >= 0
            }
            assert (value == NO) == (device not in grown)
            if value != NO and _is_by_loss(policy, int(forms[shape])):
                quantum = int(rules.loss.constants[QUANTUM])
                assert grown[device] // quantum == min(grown.values()) // quantum


def _is_by_loss(policy: Score, form: int) -> bool:
    return bool(policy.weights(known=1000)[form, Term.LOSS])


def _after(seen: View, device: int, left: int, cpu: int, tables: LossTables) -> int:
    view = seen.copy()
    view[VIEW_FREE, device] = left
    return int(loss(view, cpu, tables))


def test_the_same_table_gives_the_same_tables() -> None:
    known = typical_of([Task(1000, 1, (50, 50), 1)])
    assert loss_tables(known, Loss(holes=1.0)) is loss_tables(known, Loss(holes=1.0))
    again = replace(known)
    assert loss_tables(again, Loss(holes=1.0)) is not loss_tables(known, Loss(holes=1.0))
