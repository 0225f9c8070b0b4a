"""Changes of size in the check before a commit: what is to begin is free."""

from collections.abc import Sequence

import numpy as np

from atoll.core.engine.verify_holds import beside_holds
from atoll.core.model.errors import DomainError, ErrorCode
from atoll.core.model.ids import attempt_name
from atoll.core.model.plan import Resize
from atoll.core.state.ledger import Ledger, flatten
from atoll.core.state.ledger_kernels import FINE, take_gangs


def verify_sizes(resizes: Sequence[Resize], ledger: Ledger) -> None:
    """Raise DomainError PLAN_INVALID unless all growth stands beside all that is held."""
    for resize in resizes:
        held = ledger.holdings.get(resize.attempt)
        ranks = {task.rank for task in held.tasks} if held is not None else set()
        if held is None or ranks & {task.rank for task in resize.add} or not ranks - {*resize.drop}:
            raise _invalid(resize, "its tasks are not those that run")
    free = beside_holds(ledger, ())
    uses = flatten([resize.add for resize in resizes], ledger.table)
    codes = take_gangs(free, ledger.table.arrays()[0].mode, uses, True)
    for at in np.flatnonzero(codes != FINE)[:1].tolist():
        raise _invalid(resizes[at], "what is to begin is not free")


def _invalid(resize: Resize, why: str) -> DomainError:
    name = attempt_name(resize.attempt)
    return DomainError(f"{name} cannot change its size: {why}", code=ErrorCode.PLAN_INVALID)
