"""The load of the demo of renting: days of a minute or less, with a peak at noon."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

KIND = "H100"
DAY = 24
LOCAL_DEVICES = 4
WORK_H = 3.2
PEAK = range(8, 13)
"""Hours."""


@dataclass(frozen=True)
class Scale:
    """How long it all lasts."""

    hour_s: float
    """An hour lasts so long."""
    days: tuple[str, ...]
    """What they are called; on the first one nothing may be rented."""
    boots_within_s: float = 12.0
    """Whatever has not come up then is given up."""
    compares: bool = True
    """Whether waits are to be shorter with renting than without."""

    @property
    def work_s(self) -> float:
        """Of every job."""
        return WORK_H * self.hour_s

    @property
    def interrupt_at(self) -> float:
        """Hour after which an instance is taken back: on the last day, when many work."""
        return (len(self.days) - 1) * DAY + PEAK.start + 2


SHOWN = Scale(1.25, ("without renting", "renting", "renting"))
QUICK = Scale(0.6, ("without renting", "renting"), boots_within_s=45.0, compares=False)
"""For tests. An agent takes as long to come up as in the other one, which is half of a noon, and
many times that on a machine with much to do."""


@dataclass(frozen=True)
class Arrival:
    """One job of the load."""

    at_s: float
    """From the beginning."""
    day: int
    number: int
    work_s: float

    def spec(self) -> dict[str, Any]:
        """As it is submitted; it sleeps where it is real, and ends as early where it is not."""
        return {
            "name": f"day{self.day}-{self.number}",
            "run": f"sleep {self.work_s:.2f}",
            "resources": {"cpus": "100m", "memory": "64Mi", "accelerators": f"{KIND}:1"},
            "envs": {"ATOLL_SIM_SECONDS": f"{self.work_s:.2f}"},
            "labels": {"day": str(self.day)},
            "burst": {"allow": True},
        }


def arrivals(scale: Scale) -> Iterator[Arrival]:
    """One job every two hours, and three an hour around noon."""
    for day in range(len(scale.days)):
        number = 0
        for hour in range(DAY):
            for part in range(_jobs_in(hour)):
                at_s = (day * DAY + hour + part / 3) * scale.hour_s
                yield Arrival(at_s, day, number, scale.work_s)
                number += 1


def clusters(scale: Scale) -> dict[str, Any]:
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
        "burst": _broker(scale),
    }


def _broker(scale: Scale) -> dict[str, Any]:
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
        "forecast_step_s": scale.hour_s,
        "forecast_period_s": scale.hour_s,
        "commitment_s": 4 * scale.hour_s,
        "period_s": 0.5,
        "decide_period_s": 0.5,
        "spend_period_s": 1,
        "offers_period_s": 5,
        "reaper_period_s": 5,
        "boot_deadline_s": scale.boots_within_s,
        "instance_drain_s": 2,
        "instance_grace_s": 2,
        "instance_end_s": 1,
        "least_keep_s": 2,
    }


def _jobs_in(hour: int) -> int:
    return 3 if hour in PEAK else (hour + 1) % 2
