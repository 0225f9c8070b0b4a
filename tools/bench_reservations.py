"""Measures bookings: `python -m tools.bench_reservations`; one JSON object last.

10,000 bookings over a year on 100 clusters. `create_ms`, `find_window_ms` and `calendar_ms` are
P99 of the calendar that the reservation service answers from (tools/bench_calendar.py): to accept
a booking and enter it, to find the best windows, to read a week of all clusters. The store's
transaction is not in them. `cycle_slowed_pct`: by how much windows slow a cycle, against none in
the same run (tools/bench_windows.py). Progress goes to stderr.
"""

import argparse
import json
import subprocess
import sys
from typing import Any


def main() -> None:
    """Measure both in processes of their own, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bookings", type=int, default=10_000)
    bookings = str(parser.parse_args().bookings)
    calendar = _measured("tools.bench_calendar", "--count", bookings)
    cycle = _measured("tools.bench_windows", "--windows", bookings)
    print(json.dumps(summary(calendar, cycle) | {"calendar": calendar, "cycle": cycle}))


def summary(calendar: dict[str, Any], cycle: dict[str, Any]) -> dict[str, float]:
    """The numbers that there are aims for."""
    return {
        "create_ms": calendar["create_ms_p99"],
        "find_window_ms": calendar["find_ms_p99"],
        "calendar_ms": calendar["calendar_ms_p99"],
        "cycle_slowed_pct": round(100 * (cycle["slowdown"] - 1), 1),
    }


def _measured(module: str, *arguments: str) -> dict[str, Any]:
    print(module, file=sys.stderr, flush=True)
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    numbers: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return numbers


if __name__ == "__main__":
    main()
