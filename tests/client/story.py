"""What happens to jobs while a program looks on: one thing after the other, whatever the pace."""

import threading
import time
from collections.abc import Callable
from typing import Final

WITHIN_S: Final = 60.0
POLL_S: Final = 0.01
PAUSE_S: Final = 0.15

When = Callable[[], bool]
Step = Callable[[], None]


def in_turn(*steps: tuple[When, Step]) -> None:
    """Take each step as soon as it may be taken and the ones before it were, in a thread."""
    threading.Thread(target=_take, args=(steps,), daemon=True).start()


def later(*steps: Step) -> None:
    """Take the steps in this order, with moments between them."""
    in_turn(*((_after_a_moment, step) for step in steps))


def _take(steps: tuple[tuple[When, Step], ...]) -> None:
    for when, step in steps:
        tries = iter(range(int(WITHIN_S / POLL_S)))
        while not when():
            next(tries)  # ends the thread: what it waits for does not happen
            time.sleep(POLL_S)
        step()


def _after_a_moment() -> bool:
    time.sleep(PAUSE_S)
    return True
