"""Writes docs/lifecycle.md from the tables of the lifecycles."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from atoll.core.model.lifecycle import (
    ATTEMPT_MOVES,
    JOB_MOVES,
    TERMINAL_ATTEMPT,
    TERMINAL_JOB,
    AttemptEvent,
    AttemptState,
    JobEvent,
    JobState,
    StopCause,
)

E = TypeVar("E", JobEvent, AttemptEvent)

PAGE = Path(__file__).parents[1] / "docs" / "lifecycle.md"

JOB_EVENTS = {
    JobEvent.PLACED: "a plan that contains it was committed",
    JobEvent.STARTED: "its attempt runs",
    JobEvent.SUCCEEDED: "its attempt finished with exit code 0",
    JobEvent.FAILED: "its attempt finished otherwise and no retry is left",
    JobEvent.RETRIED: "its attempt finished otherwise and a retry is left",
    JobEvent.ROLLED_BACK: "its attempt was rejected, void, or not confirmed in time: nothing ran",
    JobEvent.REQUEUED: "its attempt was stopped or lost and it shall run again",
    JobEvent.CANCELLED: "its owner wanted it to end, and nothing of it runs any more",
    JobEvent.HELD: "its owner wants it to wait",
    JobEvent.RELEASED: "its owner lets it go on",
    JobEvent.DEPENDENCY_FAILED: "a job that it depends on did not succeed",
}
ATTEMPT_EVENTS = {
    AttemptEvent.ACCEPTED: "the agent found what was decided and took it on",
    AttemptEvent.STARTED: "all its tasks run",
    AttemptEvent.RESIZED: "it runs with other tasks than before, as a decision told it to",
    AttemptEvent.FINISHED: "its tasks ended by themselves",
    AttemptEvent.STOPPED: "it was told to stop, does not run and never will",
    AttemptEvent.REJECTED: "the agent cannot honour it; nothing of it runs or will",
    AttemptEvent.VOIDED: "it was taken back before it was sent",
    AttemptEvent.LOST: "its cluster is given up",
}
CAUSES = {
    StopCause.NONE: "it is not to stop",
    StopCause.CANCEL: "its job is to end",
    StopCause.BIND_DEADLINE: "nothing was heard of it in time",
    StopCause.PREEMPT: "its place is needed for work of higher priority",
    StopCause.DRAIN: "its node is being emptied",
    StopCause.BOOKING: "a booking of its place begins, or its own has ended",
}


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """The whole page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Lifecycles"
    yield ""
    yield "Rendered by `tools/render_lifecycle.py` from the tables in"
    yield "`libs/atoll/core/model/lifecycle.py`, which the services apply. A move that is not"
    yield "here is refused and answered with the truth."
    yield from _section("Job", [(*k, end) for k, end in JOB_MOVES.items()], JobState.QUEUED)
    yield from _events(JOB_EVENTS)
    yield from _final(sorted(TERMINAL_JOB))
    yield from _section(
        "Attempt", [(*k, end) for k, end in ATTEMPT_MOVES.items()], AttemptState.ASSIGNED
    )
    yield from _events(ATTEMPT_EVENTS)
    yield from _final(sorted(TERMINAL_ATTEMPT))
    yield ""
    yield "An attempt that is told to stop carries a cause, which decides what becomes of its job:"
    yield ""
    yield "| cause | meaning |"
    yield "|---|---|"
    yield from (f"| {cause} | {CAUSES[cause]} |" for cause in StopCause)


def _section(title: str, moves: Sequence[tuple[str, str, str]], first: str) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {first}"
    yield from (f"    {start} --> {end}: {event}" for start, event, end in moves)
    left = {start for start, _, _ in moves}
    ends = dict.fromkeys(end for _, _, end in moves if end not in left)
    yield from (f"    {state} --> [*]" for state in ends)
    yield "```"


def _events(meanings: Mapping[E, str]) -> Iterator[str]:
    yield ""
    yield "| event | meaning |"
    yield "|---|---|"
    yield from (f"| {event} | {meaning} |" for event, meaning in meanings.items())


def _final(states: Sequence[str]) -> Iterator[str]:
    yield ""
    yield f"Final: {', '.join(states)}."


if __name__ == "__main__":
    main()
