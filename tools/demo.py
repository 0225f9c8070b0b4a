"""Runs the whole control plane on this machine and shows what it does. `make demo`.

This machine is one cluster; two larger ones are simulated. It ends what it started,
and its exit code is 0 only when every job ended as it was to.
"""

import sys
import time
from collections.abc import Callable, Sequence

from atoll.client import Client
from atoll.client.views import JobInfo, PlacementStatus
from tools import demo_jobs
from tools.demo_jobs import Want
from tools.demo_show import Show, table
from tools.demo_stack import Stack, stack

A100_NODES = ("a100-0000", "a100-0001")
NEVER_FITS = 6
LOOK_EVERY_S = 0.25
MOST_S = 180.0


class Demo:
    """One run: what was wanted, and what went wrong."""

    def __init__(self, on: Stack, client: Client, show: Show) -> None:
        self.stack = on
        self.client = client
        self.show = show
        self.wants: list[Want] = []
        self.faults: list[str] = []

    def run(self) -> bool:
        """All scenes, then the summary; whether everything went as it should."""
        self.one_command()
        self.many_jobs()
        self.refused()
        self.never_fits()
        self.replayed()
        self.summary()
        return not self.faults

    def one_command(self) -> None:
        """A command, as a person runs it."""
        self.show.headline("$ atoll run -- hostname")
        self.check(self.stack.shown("run", "--", "hostname") == 0, "atoll run -- hostname failed")

    def many_jobs(self) -> None:
        """Gangs, shares, slices, an array, at once."""
        self.show.headline("Jobs of every kind, in one request")
        wants = demo_jobs.first_jobs()
        self.wants += wants
        self.client.submit([want.spec for want in wants])
        self.follow(wants)

    def refused(self) -> None:
        """A cluster hides devices that the control plane believes in."""
        self.show.headline("A cluster refuses what it was given")
        probe = demo_jobs.probe()
        self.wants.append(probe)
        self.client.submit([probe.spec])
        (first,) = self.follow([probe])
        self.show.line(f"A100s were given on {first.cluster}: its nodes now hide them.")
        hidden = {node: {"hide_devices": [0, 1, 2, 3]} for node in A100_NODES}
        self.stack.misbehave(first.cluster, {"nodes": hidden, "inventory_lag_s": 600})
        want = demo_jobs.refused("nvl" if first.cluster == "hopper" else "hopper")
        self.wants.append(want)
        self.client.submit([want.spec])
        (second,) = self.follow([want])
        self.check(second.rollbacks >= 1, "the refused job was not rolled back")
        self.stack.misbehave(first.cluster, {})

    def never_fits(self) -> None:
        """One that no cluster can ever run is refused at once."""
        spec = demo_jobs.never()
        file = self.stack.write("never.json", demo_jobs.as_json(spec))
        self.show.headline(f"$ atoll submit {file.name}     # wants 9 devices of one node")
        done = self.stack.atoll("submit", str(file))
        self.show.line(done.stderr.strip())
        self.show.line(f"exit code {done.returncode}")
        self.check(done.returncode == NEVER_FITS, "a job that cannot fit was not refused")

    def replayed(self) -> None:
        """A list of pods in the form of a public trace."""
        nodes = self.stack.write("nodes.csv", demo_jobs.openb_nodes())
        pods = self.stack.write("pods.csv", demo_jobs.openb_pods())
        ledger = self.stack.agent_folder("hopper") / "ledger.jsonl"
        words = {"--nodes": nodes, "--pods": pods, "--speed": 2, "--ledger": ledger}
        self.show.headline("$ atoll replay openb --nodes nodes.csv --pods pods.csv --speed 2")
        code = self.stack.shown("replay", "openb", *(str(w) for two in words.items() for w in two))
        self.check(code == 0, "atoll replay failed")
        self.wants.append(demo_jobs.replayed())

    def follow(self, wants: Sequence[Want]) -> list[JobInfo]:
        """Show the jobs until all have ended; TimeoutError if they do not."""
        end = time.monotonic() + MOST_S
        with self.show.following():
            while True:
                jobs = self.jobs(wants)
                self.show.jobs(wants, jobs)
                if jobs and all(job.done for job in jobs):
                    return jobs
                if time.monotonic() > end:
                    raise TimeoutError(f"not all jobs have ended after {MOST_S:.0f} s")
                time.sleep(LOOK_EVERY_S)

    def jobs(self, wants: Sequence[Want]) -> list[JobInfo]:
        """The jobs of some wants, as they stand."""
        every = [job.info for job in self.client.list()]
        return [job for want in wants for job in every if want.about(job)]

    def summary(self) -> None:
        """The table, the latencies, the roll-backs, what went wrong."""
        jobs = self.jobs(self.wants)
        self.show.headline("What became of the jobs")
        self.show.console.print(table(self.wants, jobs))
        self.check_ends(jobs)
        status = self.client.placement_status()
        self.show.line("\n" + latencies(status))
        self.show.line(f"rolled back: {status.rollbacks}")
        self.check(status.rollbacks >= 1, "nothing was rolled back")
        for fault in self.faults:
            self.show.line(f"NOT as expected: {fault}")

    def check_ends(self, jobs: Sequence[JobInfo]) -> None:
        """Each job against what was wanted of it."""
        for want in self.wants:
            mine = [job for job in jobs if want.about(job)]
            self.check(bool(mine), f"{want.title}: there is no such job")
            for job in mine:
                told = f"job {job.id} {job.name}: {job.state} on {job.cluster} {job.message}"
                self.check(want.met(job), told)

    def check(self, well: bool, fault: str) -> None:
        """Note what went wrong."""
        if not well:
            self.faults.append(fault)


def latencies(status: PlacementStatus) -> str:
    """From submit to placed, as the leader measured."""
    named = zip(("P50", "P95", "P99"), status.placement_ms, strict=False)
    return "placement latency: " + ", ".join(f"{name} {ms:.1f} ms" for name, ms in named)


def main(make: Callable[[], Show] = Show) -> int:
    """The exit code: 0 when every job ended as it was to."""
    show = make()
    show.headline("$ atoll up --clusters demo")
    with stack() as on:
        if on.shown("up", "--clusters", "demo") != 0:
            return 1
        with Client() as client:
            well = Demo(on, client, show).run()
        show.headline("$ atoll down")
    show.line("Every job ended as expected." if well else "The demo FAILED.")
    return 0 if well else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)  # what it started has been ended
