import asyncio
from collections.abc import Sequence

from atoll.adapters.memory.clock import settle
from atoll.core.model.errors import ErrorCode, Unavailable
from atoll.submission.usecases.group_commit import GroupCommit


class Refused(Exception):
    """The item's own fault."""


class Commits:
    """Commits numbers, doubled; each commit waits until it is let go."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.go = asyncio.Event()

    async def __call__(self, items: Sequence[int]) -> Sequence[int | Exception]:
        self.batches.append(list(items))
        await self.go.wait()
        if 13 in items:
            raise RuntimeError("the whole transaction fails")
        if 503 in items:
            raise Unavailable("the store is away", code=ErrorCode.UNAVAILABLE)
        return [Refused(str(item)) if item == 7 else item * 2 for item in items]


def group(commits: Commits, *, most: int = 100) -> GroupCommit[int, int]:
    return GroupCommit(commits, weight=lambda _: 1, key=lambda i: i, most=most)


async def started(commit: GroupCommit[int, int], items: Sequence[int]) -> list[asyncio.Task[int]]:
    tasks = [asyncio.create_task(commit.submit(item)) for item in items]
    await settle()
    return tasks


async def test_calls_that_arrive_together_go_together() -> None:
    commits = Commits()
    tasks = await started(group(commits), [1, 2, 3])
    commits.go.set()
    assert await asyncio.gather(*tasks) == [2, 4, 6]
    assert commits.batches == [[1, 2, 3]]


async def test_while_one_commit_is_under_way_the_next_gathers() -> None:
    commits = Commits()
    commit = group(commits)
    first = await started(commit, [1])
    rest = await started(commit, [2])
    rest += await started(commit, [3])
    commits.go.set()
    assert await asyncio.gather(*first, *rest) == [2, 4, 6]
    assert commits.batches == [[1], [2, 3]]


async def test_a_batch_is_bounded_and_order_is_kept() -> None:
    commits = Commits()
    tasks = await started(group(commits, most=2), [1, 2, 3, 4, 5])
    commits.go.set()
    await asyncio.gather(*tasks)
    assert commits.batches == [[1, 2], [3, 4], [5]]


async def test_one_refusal_is_nobody_elses() -> None:
    commits = Commits()
    tasks = await started(group(commits), [1, 7, 3])
    commits.go.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert (results[0], results[2]) == (2, 6)
    assert isinstance(results[1], Refused)


async def test_a_batch_that_fails_as_a_whole_is_tried_one_by_one() -> None:
    commits = Commits()
    tasks = await started(group(commits), [1, 13, 3])
    commits.go.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert (results[0], results[2]) == (2, 6)
    assert isinstance(results[1], RuntimeError)
    assert commits.batches == [[1, 13, 3], [1], [13], [3]]


async def test_a_store_that_is_away_is_asked_once() -> None:
    commits = Commits()
    tasks = await started(group(commits), [503, 1])
    commits.go.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(result, Unavailable) for result in results)
    assert commits.batches == [[503, 1]]


async def test_equal_keys_are_never_in_one_batch() -> None:
    commits = Commits()
    tasks = await started(group(commits), [1, 1, 2])
    assert commits.batches == [[1, 2]]
    commits.go.set()
    assert await asyncio.gather(*tasks) == [2, 2, 4]
    assert commits.batches == [[1, 2], [1]]


async def test_a_caller_that_has_gone_is_left_out() -> None:
    commits = Commits()
    commit = group(commits)
    first = await started(commit, [1])
    gone, stays = await started(commit, [2, 3])
    gone.cancel()
    commits.go.set()
    assert await asyncio.gather(*first, stays) == [2, 6]
    assert commits.batches == [[1], [3]]
