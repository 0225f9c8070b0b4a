"""A SubmitJobs call before it has ids: specs, arrays, and dependencies by name.

`expand` makes members of it: one per job, in the order of the specs, an array's one after the
other. Members refer to each other by position, so that ids can come last, from the store.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from atoll.core.model.errors import ErrorCode, FieldViolation, InvalidInput
from atoll.core.model.ids import JobId
from atoll.core.model.spec import JobSpec

MOST_JOBS = 1_000


@dataclass(frozen=True, slots=True)
class Draft:
    """One spec of a call."""

    spec: JobSpec
    """Its `depends_on` are the jobs that exist already; its place in an array is not set."""
    after: tuple[str, ...] = ()
    """Names of jobs in the same call that must succeed first."""
    array: int = 0
    """Members of the array; 0: a job of its own."""
    size_bytes: int = 0
    """Of the spec on the wire."""


@dataclass(frozen=True, slots=True)
class Member:
    """One job to be, which needs nothing but ids."""

    spec: JobSpec
    draft: int
    """Position of the draft that it comes from."""
    after: tuple[int, ...] = ()
    """Positions of the members that it waits for."""
    array_first: int = -1
    """Position of the first member of its array; -1: none."""
    array_index: int = 0


def expand(drafts: Sequence[Draft]) -> tuple[Member, ...]:
    """The members of a call; raises InvalidInput for names that do not resolve, and for cycles."""
    if not any(draft.after or draft.array for draft in drafts):
        return tuple(Member(draft.spec, i) for i, draft in enumerate(drafts))
    spans = list(_spans(drafts))
    names = _Names(drafts)
    edges = [names.resolve(i) for i in range(len(drafts))]
    names.raise_if_wrong()
    _refuse_cycle(drafts, edges)
    return tuple(
        Member(
            draft.spec,
            i,
            after=tuple(at for j in edges[i] for at in spans[j]),
            array_first=spans[i].start if draft.array else -1,
            array_index=index,
        )
        for i, draft in enumerate(drafts)
        for index in range(len(spans[i]))
    )


def member_count(drafts: Sequence[Draft]) -> int:
    """Jobs that a call makes."""
    return sum(max(1, draft.array) for draft in drafts)


def with_ids(members: Sequence[Member], ids: Sequence[JobId]) -> Iterator[JobSpec]:
    """The final specs, once every member has its id."""
    for member in members:
        spec = member.spec
        if member.after or member.array_first >= 0:
            spec = replace(
                spec,
                depends_on=(*spec.depends_on, *(ids[at] for at in member.after)),
                array_id=None if member.array_first < 0 else ids[member.array_first],
                array_index=member.array_index,
            )
        yield spec


def _spans(drafts: Sequence[Draft]) -> Iterator[range]:
    start = 0
    for draft in drafts:
        stop = start + max(1, draft.array)
        yield range(start, stop)
        start = stop


class _Names:
    """Finds drafts by name, and keeps what cannot be found."""

    def __init__(self, drafts: Sequence[Draft]) -> None:
        self._drafts = drafts
        self._faults: list[FieldViolation] = []
        self._by_name: dict[str, list[int]] = {}
        for i, draft in enumerate(drafts):
            self._by_name.setdefault(draft.spec.name, []).append(i)

    def resolve(self, i: int) -> list[int]:
        """The drafts that draft `i` waits for."""
        found = []
        for k, name in enumerate(self._drafts[i].after):
            matches = self._by_name.get(name, [])
            if len(matches) == 1:
                found.append(matches[0])
            else:
                told = f"{len(matches)} jobs" if matches else "no job"
                self._faults.append(
                    FieldViolation(
                        f"jobs[{i}].depends_on[{k}].name", f"{told} of this call named {name!r}"
                    )
                )
        return sorted(set(found))

    def raise_if_wrong(self) -> None:
        """Raise InvalidInput for all names that did not resolve."""
        if self._faults:
            raise InvalidInput(tuple(self._faults))


def _refuse_cycle(drafts: Sequence[Draft], edges: Sequence[Sequence[int]]) -> None:
    cycle = find_cycle(edges)
    if cycle:
        told = " -> ".join(drafts[i].spec.name for i in (*cycle, cycle[0]))
        raise InvalidInput((
            FieldViolation(
                f"jobs[{cycle[0]}].depends_on",
                f"jobs wait for each other: {told}",
                ErrorCode.DEPENDENCY_CYCLE,
            ),
        ))


def find_cycle(edges: Sequence[Sequence[int]]) -> list[int]:
    """The vertices of one cycle in order, empty when there is none. Not recursive: 1,000 deep."""
    done: set[int] = set()
    for start in range(len(edges)):
        path: list[int] = []
        on_path: set[int] = set()
        stack = [(start, False)]
        while stack:
            vertex, leave = stack.pop()
            if leave:
                on_path.discard(path.pop())
                done.add(vertex)
            elif vertex in on_path:
                return path[path.index(vertex) :]
            elif vertex not in done:
                path.append(vertex)
                on_path.add(vertex)
                stack.append((vertex, True))
                stack.extend((after, False) for after in reversed(edges[vertex]))
    return []
