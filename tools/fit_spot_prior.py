"""Fits the constants of core/engine/burst/priors.py: how likely spot capacity turns.

    .venv/bin/python tools/fit_spot_prior.py windows.jsonl.gz 'us-west-2[ab]_(k80_[18]|v100_8)'
    .venv/bin/python tools/fit_spot_prior.py aligned.jsonl.gz 'us-east.*'

Logistic regression by Newton's method, with a ridge of one half; ticks are brought to 600 s.
"""

import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from atoll.core.engine.burst.priors import TURN_S
from atoll.core.engine.burst.watch import Seen, again, first
from atoll.sim.readers.spot import SpotWindow, read_windows

Floats = NDArray[np.float64]


def main(path: str, zones: str) -> None:
    """Prints the weights of both turns for the zones whose whole name matches."""
    wanted = re.compile(zones)
    windows = [each for each in read_windows(Path(path)) if wanted.fullmatch(each.zone)]
    rows = [row for window in windows for row in _rows(_even(window))]
    for name, up in (("rise", False), ("fall", True)):
        chosen = [(features(seen), turned) for seen, turned in rows if seen.up == up]
        weights = fit(np.array([x for x, _ in chosen]), np.array([float(y) for _, y in chosen]))
        print(f"{name}=Turn({', '.join(f'{weight:.3f}' for weight in weights)})", len(chosen))
    print(sorted({window.zone for window in windows}))


def features(seen: Seen) -> list[float]:
    """In the order of Turn's fields."""
    age = math.log2(max(seen.run_s / TURN_S, 1.0))
    return [1.0, age, float(seen.run_s <= TURN_S), seen.share, age * seen.share]


def fit(x: Floats, y: Floats) -> Floats:
    """Weights of the log odds."""
    weights = np.zeros(x.shape[1])
    ridge = np.eye(x.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-x @ weights))
        curve = x.T @ (x * (chance * (1 - chance))[:, None]) + ridge
        weights += np.linalg.solve(curve, x.T @ (y - chance) - ridge @ weights)
    return weights


def _rows(window: SpotWindow) -> Iterator[tuple[Seen, bool]]:
    """(what was seen, whether it had turned one tick later)."""
    seen = first(window.up[0], window.tick_s)
    for up in window.up[1:]:
        yield seen, up != seen.up
        seen = again(seen, up, window.tick_s)


def _even(window: SpotWindow) -> SpotWindow:
    """The window in ticks of TURN_S."""
    ticks = int(len(window.up) * window.tick_s / TURN_S)
    up = tuple(window.up[int(i * TURN_S / window.tick_s)] for i in range(ticks))
    return SpotWindow(window.zone, window.window, TURN_S, up)


if __name__ == "__main__":
    main(*sys.argv[1:])
