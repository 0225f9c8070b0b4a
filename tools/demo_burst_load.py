"""The load of the demo of renting: days of a minute or less, with a peak at noon."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

KIND = "H100"
HOUR_S = 1.25
"""An hour lasts so long."""
DAY = 24
DAYS = ("without renting", "renting", "renting")
LOCAL_DEVICES = 4
WORK_S = 4
PEAK = range(8, 13)
"""Hours."""


@dataclass(frozen=True)
class Arrival:
    """One job of the load."""

    at_s: float
    """From the beginning."""
    day: int
    number: int

    def spec(self) -> dict[str, Any]:
        """As it is submitted; it sleeps where it is real, and ends as early where it is not."""
        return {
            "name": f"day{self.day}-{self.number}",
            "run": f"sleep {WORK_S}",
            "resources": {"cpus": "100m", "memory": "64Mi", "accelerators": f"{KIND}:1"},
            "envs": {"ATOLL_SIM_SECONDS": str(WORK_S)},
            "labels": {"day": str(self.day)},
            "burst": {"allow": True},
        }


def arrivals() -> Iterator[Arrival]:
    """One job every two hours, and three an hour around noon."""
    for day in range(len(DAYS)):
        number = 0
        for hour in range(DAY):
            for part in range(_jobs_in(hour)):
                at_s = (day * DAY + hour + part / 3) * HOUR_S
                yield Arrival(at_s, day, number)
                number += 1


def clusters() -> dict[str, Any]:
    """A small cluster of our own, and a broker whose hours are as short as those of the load."""
    node = {"name": "lab", "count": 1, "cpus": 32, "memory": "128Gi"}
    devices = {"kind": KIND, "count": LOCAL_DEVICES, "memory": "80Gi"}
    return {
        "clusters": [
            {
                "name": "lab",
                "backend": "simulated",
                "cluster": {"nodes": [{**node, "devices": devices}]},
            }
        ],
        "burst": _broker(),
    }


def _broker() -> dict[str, Any]:
    machine = {"cpu": 2, "memory_gib": 2, "kind": KIND, "devices": 2}
    return {
        "providers": {
            "process": {
                "types": {"duo": {**machine, "on_demand": 6.12, "spot": 1.95}},
                "zones": {"attic": {"most": 1, "boots": False}, "here": {"most": 5}},
                "lead_s": 2,
                "notice_s": 3,
                "grace_s": 2,
            }
        },
        "policy_allowed": False,
        "policy_per_hour": 25.0,
        "policy_hour_of_delay": 2.2,
        "forecast_step_s": HOUR_S,
        "forecast_period_s": HOUR_S,
        "commitment_s": 4 * HOUR_S,
        "period_s": 0.5,
        "decide_period_s": 0.5,
        "spend_period_s": 1,
        "offers_period_s": 5,
        "reaper_period_s": 5,
        "boot_deadline_s": 12,
        "instance_drain_s": 2,
        "instance_grace_s": 2,
        "instance_end_s": 1,
        "least_keep_s": 2,
    }


def _jobs_in(hour: int) -> int:
    return 3 if hour in PEAK else (hour + 1) % 2
