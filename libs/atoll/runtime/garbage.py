"""Keeps Python's search for cycles in proportion.

With its defaults it took a sixth of the time of a busy service: it looked, after every 700 new
objects, at batches of rows and messages that all live a moment longer and have no cycles.
"""

import gc
from typing import Final

YOUNGEST: Final = 50_000
"""New objects after which the new ones are looked at; ten megabytes, say."""
MIDDLE: Final = 10
OLDEST: Final = 10


def settle() -> None:
    """Call once, when everything is imported: what is there now is never looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNGEST, MIDDLE, OLDEST)
