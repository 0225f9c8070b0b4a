"""What a simulated cluster says when it cannot."""

from collections.abc import Sequence

from atoll.core.model.errors import ErrorCode, NotFound
from atoll.core.model.ids import AttemptId, NodeId, attempt_name
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.reason import ReasonCode
from atoll.ports.backend import Refusal


def unwound(tasks: Sequence[TaskPlacement], bad: set[str]) -> Refusal:
    """A gang that was bound in part, and is bound nowhere now."""
    suspects: set[NodeId] = {task.node for task in tasks if task.node_name in bad}
    return Refusal(
        ReasonCode.GANG_UNWOUND,
        f"{', '.join(sorted(bad))} did not bind; the rest of the gang was unwound",
        tuple(sorted(suspects)),
    )


def not_found(attempt: AttemptId, what: str = "") -> NotFound:
    """Nothing is kept of that."""
    return NotFound(
        f"no output of attempt {attempt_name(attempt)}{what} is kept here",
        code=ErrorCode.ATTEMPT_NOT_FOUND,
    )
