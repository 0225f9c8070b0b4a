"""What one decision leaves for the next, so that it neither flaps nor says things twice."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from atoll.core.engine.burst.broker.prompt import Prompt, prompt_from_json
from atoll.core.engine.burst.watch import Seen
from atoll.core.model.ids import JobId, QueueName


class Pool(NamedTuple):
    """What a forecast is about."""

    kind: str
    queue: QueueName | None


class Turn(NamedTuple):
    """When a pool last grew, shrank, and wanted to keep what was idle; 0: never."""

    rented_at: float = 0.0
    drained_at: float = 0.0
    wanted_at: float = 0.0


class Tries(NamedTuple):
    """How often something was rented for a job that still waits."""

    times: int
    last_at: float


class Course(NamedTuple):
    """How far a job is that something was rented for, and that may be stopped."""

    deadline_at: float
    """0: it has none."""
    left_s: float
    """Of its work."""
    overhead_s: float
    runs_at: float = 0.0
    """When it was last seen to run; 0: it waits."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Plain values. Nothing of it is needed for safety: an empty one is a new beginning."""

    turns: Mapping[Pool, Turn] = field(default_factory=dict)
    tries: Mapping[JobId, Tries] = field(default_factory=dict)
    said: Mapping[JobId, str] = field(default_factory=dict)
    """Why nothing was rented for a job, as it was said last."""
    said_of: Mapping[Pool, str] = field(default_factory=dict)
    zones: Mapping[str, Seen] = field(default_factory=dict)
    """How spot capacity has come and gone, by Offer.key."""
    looked_at: float = 0.0
    """When that was last looked at."""
    prompt: Prompt = field(default_factory=Prompt)
    courses: Mapping[JobId, Course] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """All of it, of plain values."""
        return {
            "turns": [[*pool, *turn] for pool, turn in self.turns.items()],
            "tries": [[job, *tries] for job, tries in self.tries.items()],
            "said": [[job, code] for job, code in self.said.items()],
            "said_of": [[*pool, code] for pool, code in self.said_of.items()],
            "zones": [
                [key, seen.up, seen.run_s, seen.up_s, seen.seen_s]
                for key, seen in self.zones.items()
            ],
            "looked_at": self.looked_at,
            "prompt": self.prompt.to_json(),
            "courses": [[job, *course] for job, course in self.courses.items()],
        }


def memory_from_json(kept: Mapping[str, Any]) -> Memory:
    """What to_json gave."""
    return Memory(
        {Pool(kind, queue): Turn(*times) for kind, queue, *times in kept["turns"]},
        {JobId(job): Tries(times, last) for job, times, last in kept["tries"]},
        {JobId(job): code for job, code in kept["said"]},
        {Pool(kind, queue): code for kind, queue, code in kept["said_of"]},
        {key: Seen(*seen) for key, *seen in kept["zones"]},
        float(kept["looked_at"]),
        prompt_from_json(kept["prompt"]) if "prompt" in kept else Prompt(),
        {JobId(job): Course(*course) for job, *course in kept.get("courses", ())},
    )
