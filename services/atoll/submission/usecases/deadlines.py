"""What jobs with deadlines are told, and which of them are refused.

Whoever leads the placement knows. While nobody can be asked, nothing is
guaranteed, and the jobs are taken all the same: they may still make it.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from atoll.core.model.deadline import Chance, Verdict
from atoll.core.model.errors import ErrorCode, FieldViolation, InvalidInput, Unavailable
from atoll.core.model.ids import ShardId
from atoll.core.model.spec import JobSpec
from atoll.submission.usecases.drafts import Member


class PromiseDesk(Protocol):
    """Whoever can promise that deadlines are met."""

    async def answers(
        self, shard: ShardId, specs: Sequence[JobSpec], *, waits: Sequence[bool], keep: bool
    ) -> list[Verdict]:
        """An answer for each job; raises Unavailable.

        `waits`: the job waits for others of its call; `keep`: it is about to be submitted.
        """
        ...


Verdicts = Mapping[int, Verdict]
"""By position of the member; those without a deadline are left out."""


async def verdicts_for(
    desk: PromiseDesk, members: Sequence[Member], shards: Sequence[ShardId], *, keep: bool
) -> Verdicts:
    """The answers of a call; raises InvalidInput DEADLINE_INFEASIBLE for what cannot be."""
    asked: defaultdict[ShardId, list[int]] = defaultdict(list)
    for at, (member, shard) in enumerate(zip(members, shards, strict=True)):
        if member.spec.deadline_at:
            asked[shard].append(at)
    found: dict[int, Verdict] = {}
    for shard, places in asked.items():
        found |= await _answers(desk, shard, {at: members[at] for at in places}, keep=keep)
    _refuse(found, members)
    return found


async def _answers(
    desk: PromiseDesk, shard: ShardId, members: Mapping[int, Member], *, keep: bool
) -> dict[int, Verdict]:
    specs = [member.spec for member in members.values()]
    waits = [bool(member.after) for member in members.values()]
    try:
        answers = await desk.answers(shard, specs, waits=waits, keep=keep)
    except Unavailable as error:
        why = f"not guaranteed, for nobody could be asked: {error.message}"
        answers = [Verdict(Chance.LIKELY, why=why)] * len(specs)
    return dict(zip(members, answers, strict=True))


def _refuse(verdicts: Verdicts, members: Sequence[Member]) -> None:
    # Members of an array are told once.
    refused = {
        members[at].draft: verdict
        for at, verdict in verdicts.items()
        if verdict.chance is Chance.CANNOT and not members[at].spec.best_effort
    }
    if refused:
        code = ErrorCode.DEADLINE_INFEASIBLE
        raise InvalidInput(
            tuple(
                FieldViolation(f"jobs[{draft}].deadline_at", _sentence(verdict), code)
                for draft, verdict in sorted(refused.items())
            ),
            code=code,
        )


def _sentence(verdict: Verdict) -> str:
    told = f"cannot be met: {verdict.why}" if verdict.why else "cannot be met"
    if verdict.earliest_at:
        moment = datetime.fromtimestamp(verdict.earliest_at, UTC).isoformat(timespec="seconds")
        told += f"; it could be done by {moment}"
    return f"{told}. Give a later one, or best_effort: true"
