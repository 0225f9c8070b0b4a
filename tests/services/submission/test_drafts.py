import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.core.model.errors import ErrorCode, InvalidInput
from atoll.core.model.ids import JobId
from atoll.core.model.priority import DEFAULT_CLASSES, by_name
from atoll.core.model.resources import TaskShape
from atoll.core.model.spec import JobSpec, TaskGroup
from atoll.submission.usecases.checks import MOST_SPEC_BYTES, Known, check_drafts
from atoll.submission.usecases.drafts import Draft, expand, find_cycle, with_ids

KNOWN = Known(frozenset(), by_name(DEFAULT_CLASSES))
GROUP = TaskGroup("main", 1, 1, (TaskShape(1000, 0),), "true")


def draft(name: str, *after: str, array: int = 0, depends_on: tuple[int, ...] = ()) -> Draft:
    ids = tuple(JobId(job) for job in depends_on)
    return Draft(JobSpec(name, "default", (GROUP,), depends_on=ids), after=after, array=array)


def specs(*drafts: Draft) -> list[JobSpec]:
    members = expand(drafts)
    return list(with_ids(members, [JobId(100 + i) for i in range(len(members))]))


def test_names_become_ids_forwards_and_backwards() -> None:
    made = specs(draft("a", "b"), draft("b"), draft("c", "a", "b", depends_on=(7,)))
    assert [spec.depends_on for spec in made] == [(101,), (), (7, 100, 101)]


def test_an_array_is_a_job_per_member() -> None:
    made = specs(draft("x"), draft("a", array=3), draft("last", "a"))
    assert [(spec.name, spec.array_id, spec.array_index) for spec in made] == [
        ("x", None, 0),
        ("a", 101, 0),
        ("a", 101, 1),
        ("a", 101, 2),
        ("last", None, 0),
    ]
    assert made[-1].depends_on == (101, 102, 103)


def test_an_array_of_one_is_an_array() -> None:
    (spec,) = specs(draft("a", array=1))
    assert spec.array_id == 100


@pytest.mark.parametrize(
    ("drafts", "field", "told"),
    [
        ([draft("a", "b")], "jobs[0].depends_on[0].name", "no job of this call named 'b'"),
        (
            [draft("b"), draft("b"), draft("a", "b")],
            "jobs[2].depends_on[0].name",
            "2 jobs of this call named 'b'",
        ),
    ],
)
def test_a_name_has_to_mean_one_job(drafts: list[Draft], field: str, told: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        expand(drafts)
    (violation,) = raised.value.violations
    assert (violation.field, violation.message) == (field, told)


@pytest.mark.parametrize(
    ("drafts", "cycle"),
    [
        ([draft("a", "a")], "a -> a"),
        ([draft("a", "b"), draft("b", "a")], "a -> b -> a"),
        (
            [draft("x", "a"), draft("a", "b"), draft("b", "c"), draft("c", "a")],
            "a -> b -> c -> a",
        ),
    ],
)
def test_a_cycle_is_refused_and_named(drafts: list[Draft], cycle: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        expand(drafts)
    assert raised.value.code is ErrorCode.DEPENDENCY_CYCLE
    assert raised.value.message.endswith(f": {cycle}")


def test_a_chain_of_a_thousand_is_no_cycle() -> None:
    chain = [draft(f"j{i}", *([f"j{i + 1}"] if i < 999 else [])) for i in range(1_000)]
    assert specs(*chain)[0].depends_on == (101,)


@st.composite
def graphs(draw: st.DrawFn) -> list[list[int]]:
    size = draw(st.integers(0, 8))
    vertex = st.integers(0, max(0, size - 1))
    return [draw(st.lists(vertex, max_size=3, unique=True)) for _ in range(size)]


def reaches(edges: list[list[int]], start: int) -> bool:
    """Whether a vertex can be reached from itself, the slow way."""
    seen: set[int] = set()
    todo = list(edges[start])
    while todo:
        vertex = todo.pop()
        if vertex == start:
            return True
        if vertex not in seen:
            seen.add(vertex)
            todo.extend(edges[vertex])
    return False


@given(graphs())
def test_a_cycle_is_found_exactly_when_there_is_one(edges: list[list[int]]) -> None:
    cycle = find_cycle(edges)
    assert bool(cycle) == any(reaches(edges, vertex) for vertex in range(len(edges)))
    for here, there in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        assert there in edges[here]


@pytest.mark.parametrize(
    ("drafts", "field", "code"),
    [
        ([draft("a", array=-1)], "jobs[0].array", ErrorCode.INVALID_FIELD),
        ([draft("a", array=1_001)], "jobs[0].array", ErrorCode.INVALID_FIELD),
        ([draft("a", array=600), draft("b", array=401)], "jobs", ErrorCode.TOO_LARGE),
        (
            [draft("a"), Draft(draft("b").spec, size_bytes=MOST_SPEC_BYTES + 1)],
            "jobs[1]",
            ErrorCode.TOO_LARGE,
        ),
        (
            [draft("a", *(f"b{i}" for i in range(257)))],
            "jobs[0].depends_on",
            ErrorCode.INVALID_FIELD,
        ),
    ],
)
def test_a_call_is_bounded(drafts: list[Draft], field: str, code: ErrorCode) -> None:
    with pytest.raises(InvalidInput) as raised:
        check_drafts(drafts, KNOWN)
    (violation,) = raised.value.violations
    assert (violation.field, raised.value.code) == (field, code)


def test_a_call_that_is_all_wrong_gets_a_short_answer() -> None:
    with pytest.raises(InvalidInput) as raised:
        check_drafts([draft("") for _ in range(1_000)], KNOWN)
    assert len(raised.value.violations) == 100
