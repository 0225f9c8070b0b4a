"""Measures bookings: `python -m tools.bench_reservations`; one JSON object last.

10,000 bookings over a year on 100 clusters. `create_ms` is P99 of the use case over the memory
store, transaction and all (tools/bench_booking.py), `create_postgres_ms` the same over a PostgreSQL
of its own; `find_window_ms` and `calendar_ms` are those
of the calendar that the service answers from (tools/bench_calendar.py): the best windows in a
month, and a week of all clusters. `cycle_slowed_pct`: by how much windows slow a cycle, against
none in the same run (tools/bench_windows.py). Progress goes to stderr.
"""

import argparse
import json
import subprocess
import sys
from typing import Any


def main() -> None:
    """Measure each in a process of its own, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bookings", type=int, default=10_000)
    bookings = str(parser.parse_args().bookings)
    found = {
        "service": _measured("tools.bench_booking", "--count", bookings),
        "postgres": _measured("tools.bench_booking", "--count", bookings, "--store", "postgres"),
        "calendar": _measured("tools.bench_calendar", "--count", bookings),
        "cycle": _measured("tools.bench_windows", "--windows", bookings),
    }
    print(json.dumps(summary(**found) | found))


def summary(
    *,
    service: dict[str, Any],
    postgres: dict[str, Any],
    calendar: dict[str, Any],
    cycle: dict[str, Any],
) -> dict[str, Any]:
    """The numbers that there are aims for."""
    return {
        "create_ms": service["create_ms_p99"],
        "create_postgres_ms": postgres["create_ms_p99"],
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
