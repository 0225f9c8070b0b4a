"""Measures how long the broker thinks: `python -m tools.bench_burst`; one JSON object last.

1,000 jobs of ten queues wait, 200 offers stand, budgets bear about 50 instances. `decide_ms` is
the time of one decision; the median and the longest of twenty, each with other waits. `follow` is
how demand is followed over PostgreSQL (tools/bench_burst_follow.py), `wants` what a placement
leader spends on telling it who waits (tools/bench_burst_wants.py).
"""

import json
import random
import statistics
import subprocess
import sys
import time
from typing import Final

from atoll.core.engine.burst.broker.decide import decide
from atoll.core.engine.burst.broker.ground import Ground, Room
from atoll.core.model.burst import MICROS, BurstPolicy, Market, Offer
from atoll.core.model.burst_wants import Ask, Want
from atoll.core.model.ids import JobId, QueueName

NOW: Final = 1_800_000_000.0
GIB: Final = 1 << 30
WANTS: Final = 1_000
OFFERS: Final = 200
QUEUES: Final = 10
TRIES: Final = 20
BUDGET: Final = 400 * MICROS


def main() -> None:
    """Decide again and again, and print."""
    took_ms, rents = [], []
    for seed in range(TRIES):
        ground = made(random.Random(seed))
        begun = time.perf_counter()
        rents.append(len(decide(ground).rents))
        took_ms.append(1000 * (time.perf_counter() - begun))
    print(
        json.dumps({
            "decide_ms": round(statistics.median(took_ms), 1),
            "decide_ms_longest": round(max(took_ms), 1),
            "rents": statistics.median(rents),
            "waiting": WANTS,
            "offers": OFFERS,
            "follow": _measured("tools.bench_burst_follow"),
            "wants": _measured("tools.bench_burst_wants"),
        })
    )


def _measured(module: str) -> dict[str, float]:
    command = [sys.executable, "-m", module]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    numbers: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return numbers


def made(rng: random.Random) -> Ground:
    """What is known."""
    return Ground(
        NOW,
        wants=tuple(_want(number, rng) for number in range(1, WANTS + 1)),
        offers=tuple(offered(number, rng) for number in range(OFFERS)),
        policies={None: BurstPolicy(None, allowed=True, hour_of_delay=3 * MICROS)},
        budgets={None: Room(BUDGET, None)},
    )


def _want(number: int, rng: random.Random) -> Want:
    devices, start_s = rng.choice((1, 2, 4, 8)), rng.uniform(600, 36_000)
    return Want(
        JobId(number),
        QueueName(f"org.team-{number % QUEUES}"),
        (Ask("H100", 100 * devices, 4_000 * devices, 8 * GIB),),
        submitted_at=NOW - rng.uniform(0, 3600),
        work_s=rng.uniform(600, 36_000),
        local_p50_at=NOW + start_s,
        local_p90_at=NOW + 1.6 * start_s,
        as_of=NOW,
    )


def offered(number: int, rng: random.Random) -> Offer:
    """One of many offers of three sizes."""
    market = Market.SPOT if number % 2 else Market.ON_DEMAND
    devices = rng.choice((1, 4, 8))
    each = rng.uniform(0.8, 1.2) if market is Market.SPOT else rng.uniform(2.5, 3.5)
    return Offer(
        "cloud", f"zone-{number % 20}", "region", f"type-{number // 20}-{devices}", market,
        cpu_milli=8_000 * devices, memory_bytes=64 * GIB * devices, kind="H100", devices=devices,
        price=round(each * devices * MICROS), lead_s=360.0,
    )  # fmt: skip


if __name__ == "__main__":
    main()
