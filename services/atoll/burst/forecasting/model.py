"""What a model of a single series is."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from atoll.core.engine.burst.demand.series import Demand, Floats


@dataclass(frozen=True, slots=True)
class Model:
    """A way to carry a series on."""

    name: str
    applies: Callable[[Demand], bool]
    forecast: Callable[[Demand, int], Floats]
    """(H) devices, for a demand that it applies to."""


@cache
def library(name: str) -> Any:
    """A module, or None where it, or a library of the system that it needs, is not installed."""
    try:
        return importlib.import_module(name)
    except (ImportError, OSError):
        return None
