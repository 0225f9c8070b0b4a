"""A statement that is rolled back leaves the columns as they were."""

from hypothesis import given
from hypothesis import strategies as st

from atoll.core.state.columns import FREE_COLUMNS
from atoll.core.state.statement import Statement
from tests.core.worlds import Given, commit, givens, planned, world_of


def columns(statement: Statement) -> list[list[object]]:
    return [getattr(statement.nodes, name).tolist() for name in FREE_COLUMNS]


@given(givens(), st.data())
def test_rolling_back_restores_every_checkpoint_exactly(case: Given, data: st.DataObject) -> None:
    world = world_of(case)
    commit(world, planned(world.freeze(1.0), most=3))
    snapshot = world.freeze(2.0)
    statement = Statement(snapshot.nodes, snapshot.hardware, snapshot.shapes)
    shapes = [n for n, shape in enumerate(snapshot.shape_values) if shape is not None]
    marks = [(statement.checkpoint(), columns(statement))]
    for _ in range(data.draw(st.integers(0, 12)) if shapes else 0):
        if data.draw(st.booleans()):
            marks.append((statement.checkpoint(), columns(statement)))
        row = data.draw(st.integers(0, len(snapshot.names) - 1))
        statement.allocate(data.draw(st.sampled_from(shapes)), row, job=0, group=0)
    while marks:
        mark, before = marks.pop(data.draw(st.integers(0, len(marks) - 1)))
        marks = [each for each in marks if each[0] <= mark]
        statement.rollback(mark)
        assert columns(statement) == before


@given(givens())
def test_a_statement_does_not_touch_its_snapshot(case: Given) -> None:
    snapshot = world_of(case).freeze(1.0)
    before = [column.tolist() for column in snapshot.nodes]
    planned(snapshot)
    assert [column.tolist() for column in snapshot.nodes] == before


def test_the_journal_grows_as_far_as_it_must() -> None:
    from tests.core.worlds import cpus, simple_job, simple_nodes, simple_world

    world = simple_world(simple_nodes(1, cpu=5000), [simple_job(1, cpus(1))])
    snapshot = world.freeze(2.0)
    statement = Statement(snapshot.nodes, snapshot.hardware, snapshot.shapes)
    before = columns(statement)
    assert all(statement.allocate(0, 0, job=n, group=0) for n in range(3000))
    assert statement.nodes.cpu_free[0] == 2_000_000
    statement.rollback(0)
    assert columns(statement) == before
