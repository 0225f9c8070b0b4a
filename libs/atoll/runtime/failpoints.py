"""Named points at which a test can make this process die or stand still.

`ATOLL_FAILPOINT=name[:action[:nth]][,…]` arms them: the action (`kill`, the default, `pause` or
`exit`) happens at the nth pass (the first unless told) and once only. Without the variable a point
is one look at an empty dictionary.
"""

import os
import signal
from dataclasses import dataclass
from typing import Final

VARIABLE: Final = "ATOLL_FAILPOINT"
ACTIONS: Final = frozenset({"kill", "pause", "exit"})
EXIT_CODE: Final = 70


@dataclass(slots=True)
class _Armed:
    action: str
    passes_left: int


def hit(name: str) -> None:
    """Pass the point `name`; nothing happens unless it is armed."""
    if _armed and (point := _armed.get(name)) is not None:
        _pass(name, point)


def parse(text: str) -> dict[str, _Armed]:
    """What a value of the variable arms; raises ValueError."""
    armed = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, rest = entry.partition(":")
        action, _, nth = rest.partition(":")
        if (action or "kill") not in ACTIONS or not (nth or "1").isdigit():
            raise ValueError(f"{VARIABLE}: {entry!r} is not name[:kill|pause|exit[:nth]]")
        armed[name] = _Armed(action or "kill", int(nth or "1"))
    return armed


def _pass(name: str, point: _Armed) -> None:
    point.passes_left -= 1
    if point.passes_left > 0:
        return
    del _armed[name]
    match point.action:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "pause":
            os.kill(os.getpid(), signal.SIGSTOP)
        case _:
            os._exit(EXIT_CODE)


_armed: Final = parse(os.environ.get(VARIABLE, ""))
