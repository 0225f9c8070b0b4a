"""Rents real agents on this machine for a load that outgrows its cluster. `make demo-burst`.

A day lasts half a minute, and half of that with `--quick`. On the first one nothing may be
rented; then the broker may, and when a day has gone by it knows when the peak comes. One instance
is taken back, one never boots. It ends what it started; the last line is one JSON object.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from atoll.client import Client
from atoll.client.burst_views import InstanceInfo
from atoll.client.views import JobInfo
from tools.demo_burst_load import DAY, KIND, QUICK, SHOWN, Arrival, Scale, arrivals, clusters
from tools.demo_show import Show
from tools.demo_stack import NAME, Stack, stack

LOOK_EVERY_S = 0.25
ENDS_WITHIN_S = 90.0
ENDED = frozenset({"TERMINATED", "FAILED"})
STORY = frozenset({"INTERRUPTED", "BOOT_DEADLINE", "IDLE"})
"""For what instances are to end before all are released by hand."""


@dataclass
class Days:
    """What was seen while the days went by."""

    began: float
    hour_s: float
    states: dict[int, str] = field(default_factory=dict)
    causes: set[str] = field(default_factory=set)
    interrupted: list[str] = field(default_factory=list)
    coverage: float = 0.0
    mase: float = 0.0

    def hour(self) -> float:
        """Since the beginning."""
        return (time.time() - self.began) / self.hour_s


class Demo:
    """One run, and what went wrong."""

    def __init__(self, on: Stack, client: Client, show: Show, *, scale: Scale) -> None:
        self.stack, self.client, self.show, self.scale = on, client, show, scale
        self.days = Days(time.time(), scale.hour_s)
        self.faults: list[str] = []

    def run(self) -> dict[str, Any]:
        """All days, then the numbers."""
        self.show.headline(
            f"{len(self.scale.days)} days, an hour of which lasts {self.scale.hour_s} s: "
            "at noon more is asked for than there is"
        )
        self.live_through()
        self.wait_for_jobs()
        self.wait_for_story()
        self.show.headline("$ atoll burst release --all --now, and nothing is rented any more")
        self.allow(False)
        self.client.burst.release(all=True, now=True)
        self.wait_for_ends()
        return self.numbers()

    def live_through(self) -> None:
        """Submit what comes; look around; allow renting after the first day."""
        self.days.began = time.time()
        coming, day = list(arrivals(self.scale)), -1
        while self.days.hour() < len(self.scale.days) * DAY:
            now_day = int(self.days.hour() // DAY)
            if now_day != day:
                day = now_day
                self.begin_day(day)
            while coming and coming[0].at_s <= time.time() - self.days.began:
                self.submit(coming.pop(0))
            self.look()
            if self.days.hour() >= self.scale.interrupt_at and not self.days.interrupted:
                self.interrupt()
            time.sleep(LOOK_EVERY_S)

    def begin_day(self, day: int) -> None:
        """Say so; renting is allowed from the second on."""
        self.show.line(f"\nday {day + 1} ({self.scale.days[day]})")
        if day == 1:
            self.allow(True)

    def allow(self, allowed: bool) -> None:
        """Whether anything may be rented."""
        policy = replace(self.client.burst.policy(), allowed=allowed)
        self.client.burst.set_policy(policy, ["allowed"])

    def submit(self, arrival: Arrival) -> None:
        """One job."""
        self.client.submit(arrival.spec())

    def look(self) -> None:
        """Tell what has become of instances."""
        for each in reversed(list(self.client.burst.instances(all=True))):
            state = str(each.state)
            self.days.causes.add(str(each.cause))
            if self.days.states.get(each.id) != state:
                self.days.states[each.id] = state
                self.tell(each, state)
        for series in self.client.burst.forecast(KIND):
            self.days.coverage, self.days.mase = series.coverage_90, series.mase

    def tell(self, each: InstanceInfo, state: str) -> None:
        """A line for a change."""
        hour = self.days.hour()
        cause = f" ({each.cause})" if each.cause not in {"", "NONE"} else ""
        why = f": {each.why}" if state == "REQUESTED" else ""
        at = f"day {int(hour // DAY) + 1} {hour % DAY:04.1f} h"
        self.show.line(f"  {at}  instance {each.id} {state}{cause}{why}")

    def interrupt(self) -> None:
        """Take one back that works, as a provider of spot capacity does."""
        ready = {each.cluster for each in self.client.burst.instances() if is_ready(each)}
        for folder in filter(lives, self.rented().iterdir()):
            cluster = json.loads((folder / "order.json").read_text())["cluster"]
            if cluster in ready:
                (folder / "interrupt").touch()
                self.days.interrupted.append(cluster)
                self.show.line(f"  the provider takes {cluster} back")
                return

    def rented(self) -> Path:
        """Where the instances are: a folder each."""
        return self.stack.folder / NAME / "data" / "rented" / "process"

    def wait_for_jobs(self) -> None:
        """Until all have ended."""
        self.until(lambda: all(job.done for job in self.jobs()), "jobs have not ended")

    def wait_for_story(self) -> None:
        """Until all has happened that is to happen by itself."""

        def told() -> bool:
            self.look()
            if not self.days.interrupted:
                self.interrupt()
            return self.days.causes >= STORY

        self.until(told, "not all happened that was to happen")

    def wait_for_ends(self) -> None:
        """Until the provider has confirmed every end."""

        def over() -> bool:
            self.look()
            return set(self.days.states.values()) <= ENDED

        self.until(over, "instances have not ended")

    def until(self, done: Callable[[], bool], fault: str) -> None:
        """Wait, within bounds."""
        end = time.monotonic() + ENDS_WITHIN_S
        while not done():
            if time.monotonic() > end:
                self.faults.append(fault)
                return
            time.sleep(LOOK_EVERY_S)

    def jobs(self) -> list[JobInfo]:
        """All of the load."""
        return [job.info for job in self.client.list() if "day" in job.info.labels]

    def numbers(self) -> dict[str, Any]:
        """Cost, waits, calibration, and what is left."""
        jobs, rented = self.jobs(), list(self.client.burst.instances(all=True))
        ahead = [each for each in rented if not each.jobs]
        left = [each.id for each in rented if str(each.state) not in ENDED]
        alive = [each.name for each in self.rented().iterdir() if lives(each)]
        found = {
            "jobs": len(jobs),
            "succeeded": sum(str(job.state) == "SUCCEEDED" for job in jobs),
            "wait_s": {
                name: waits(jobs, days)
                for name, days in (("without", range(1)), ("with", range(1, len(self.scale.days))))
            },
            "instances": len(rented),
            "rented_ahead": len(ahead),
            "interrupted": "INTERRUPTED" in self.days.causes,
            "drained_idle": sum(str(each.cause) == "IDLE" for each in rented),
            "never_booted": "BOOT_DEADLINE" in self.days.causes,
            "cost": float(sum(each.spent for each in rented)),
            "coverage_90": round(self.days.coverage, 3),
            "mase": round(self.days.mase, 3),
            "left": {"rows": left, "processes": alive},
        }
        self.check(found)
        return found | {"faults": self.faults}

    def check(self, found: dict[str, Any]) -> None:
        """What has to be so."""
        wanted = {
            "some jobs did not succeed": found["jobs"] == found["succeeded"] > 0,
            "nothing was rented": found["instances"] > 0,
            "nothing was interrupted": found["interrupted"],
            "nothing was rented before it was missed": found["rented_ahead"] > 0,
            "nothing was drained after a peak": found["drained_idle"] > 0,
            "everything booted": found["never_booted"],
            "instances are left": not found["left"]["rows"],
            "processes are left": not found["left"]["processes"],
            "renting made nobody wait less": not self.scale.compares
            or found["wait_s"]["with"] < found["wait_s"]["without"],
        }
        self.faults += [fault for fault, well in wanted.items() if not well]


def waits(jobs: Sequence[JobInfo], days: Sequence[int]) -> float:
    """Mean seconds from submit to start."""
    mine = [job for job in jobs if int(job.labels["day"]) in days and job.started_at]
    return round(fmean(job.started_at - job.submitted_at for job in mine), 2) if mine else 0.0


def is_ready(each: InstanceInfo) -> bool:
    """Whether it takes work."""
    return str(each.state) == "READY"


def lives(folder: Path) -> bool:
    """Whether an instance that was created is not gone."""
    return (folder / "order.json").exists() and not (folder / "gone").exists()


def main(scale: Scale) -> int:
    """The exit code: 0 when everything went as it was to."""
    show = Show()
    found: dict[str, Any] = {"faults": ["the stack did not come up"]}
    with stack() as on:
        file = on.write("clusters.yaml", json.dumps(clusters(scale), indent=1))
        show.headline(f"$ atoll up --clusters {file.name}")
        if on.shown("up", "--clusters", str(file)) == 0:
            with Client() as client:
                found = Demo(on, client, show, scale=scale).run()
        show.headline("$ atoll down")
    summary(show, found)
    print(json.dumps(found), flush=True)
    return 1 if found["faults"] else 0


def summary(show: Show, found: dict[str, Any]) -> None:
    """For people."""
    if "wait_s" in found:
        without, with_ = found["wait_s"]["without"], found["wait_s"]["with"]
        show.line(f"mean wait: {without} s without renting, {with_} s with it")
        show.line(
            f"{found['instances']} instances, {found['rented_ahead']} of them before they were "
            f"missed, ${found['cost']:.4f} by the second"
        )
        show.line(
            f"{found['coverage_90']:.0%} of what came was within the forecast's 90 % band; "
            f"nothing is left running: {not any(found['left'].values())}"
        )
    for fault in found["faults"]:
        show.line(f"NOT as expected: {fault}")


if __name__ == "__main__":
    try:
        sys.exit(main(QUICK if sys.argv[1:] == ["--quick"] else SHOWN))
    except KeyboardInterrupt:
        sys.exit(130)  # what it started has been ended
