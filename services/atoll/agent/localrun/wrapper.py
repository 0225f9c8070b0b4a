"""Stands between the agent and one run on this machine, and outlives the agent.

It imports nothing but the standard library, so that it starts in an instant and
needs no packages: `launch.py` runs it, with its order as JSON on standard input.

Its first act is to create `started`, which only one wrapper of an attempt can;
its last is `exit`. In between it is the run's guard, keeps its time limit, stops
it on SIGTERM, and leaves nothing of it behind.
It says one word to whoever started it: `started`, `taken` or `lease`.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, Final

from atoll.agent.localrun.processes import (
    boot_id,
    boottime,
    catches,
    create_once,
    group_lives,
    group_members,
    kill_children,
    oom_kills,
    quietly,
    reap_one,
    start_ticks,
    write_whole,
)
from atoll.agent.localrun.ranks import libc, remove_folder, spawn

PR_SET_CHILD_SUBREAPER: Final = 36
GUARD_LOOK_S: Final = 0.5
"""A suspended machine sleeps through timers: the guard looks at the clock itself."""
LOOK_S: Final = 30.0
EMPTY_LOOK_S: Final = 0.2
HEARD: Final = frozenset({signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP})
"""SIGHUP: there is a new size in `resize`."""
UNHEARD: Final = frozenset({
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
})
NEVER: Final = float("inf")


def main() -> None:
    """Become the wrapper of one attempt."""
    order = json.load(sys.stdin)
    if os.fork():
        os._exit(0)  # nobody's child, it is not killed along with the agent
    folder = Path(order["folder"])
    lease = Lease(order["lease"])
    if lease.over(boottime()):
        say("lease")
        return
    # From the claim on it may be told to stop, and must not die of that.
    signal.pthread_sigmask(signal.SIG_BLOCK, HEARD | UNHEARD)
    if not claim(folder):
        say("taken")
        return
    libc().prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    run = Run(order, lease)
    run.begin()
    say("started")
    run.watch()
    write_whole(folder / "exit", json.dumps(run.result()))


class Lease:
    """What the agent last wrote: until when guarded runs may go on. No path: no guard."""

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None
        self._boot = boot_id()
        self.until = 0.0 if path else NEVER

    def over(self, now: float) -> bool:
        """Whether it is over; reads the file again only when it seems so."""
        if self._path is None or now < self.until:
            return False
        try:
            boot, until = self._path.read_text().split()
            self.until = float(until) if boot == self._boot else 0.0
        except (OSError, ValueError):
            self.until = 0.0
        return now >= self.until


class Run:
    """The ranks of one attempt on this machine, which live and die together."""

    def __init__(self, order: dict[str, Any], lease: Lease) -> None:
        self._order = order
        self._lease = lease
        self._began = boottime()
        self._mains: dict[int, int] = {}
        """Rank by the pid of its first process, which leads its group."""
        self._codes: dict[int, int] = {}
        """Exit codes by rank, in the order in which they came."""
        self._leaving: set[int] = set()
        """Of those, the ones that end because the run has become smaller."""
        self._generation = 0
        """Of the last change of size that was begun."""
        self._sized = True
        self._folder = Path(order["folder"])
        self._steps: list[tuple[float, int, bool, tuple[int, ...]]] = []
        """When to send which signal, to which groups (none: to all); True: only to processes
        that listen for it."""
        self._reason = ""
        self._message = ""
        self._guard_tripped = False

    def begin(self) -> None:
        """Start every rank, and note who they are."""
        for rank in self._order["ranks"]:
            self._mains[spawn(rank)] = rank["rank"]
        self._note_pids()

    def watch(self) -> None:
        """Return when nothing of the run is left."""
        while not self._over():
            self._judge(boottime())
            wait_s = min(max(0.0, self._next() - boottime()), self._look_s())
            heard = signal.sigtimedwait(HEARD, wait_s)
            self._reap()
            if heard is not None and heard.si_signo == signal.SIGHUP:
                self._resize()
            self._settle_size()
            # A run that had completed before the stop came has finished.
            if heard is not None and heard.si_signo == signal.SIGTERM and not self._over():
                self._stop("STOPPED")
        self._signal(signal.SIGKILL, listeners=False)
        kill_children()
        self._message = self._out_of_memory()
        for folder in self._order["cgroups"]:
            remove_folder(Path(folder))

    def result(self) -> dict[str, Any]:
        """What `exit` says."""
        codes = list(self._codes.values())
        code = next((code for code in codes if code), codes[0] if codes else None)
        return {
            "code": code,
            "reason": self._reason,
            "message": self._message,
            "at": time.clock_gettime(time.CLOCK_REALTIME),
        }

    def _over(self) -> bool:
        if len(self._codes) < len(self._mains.keys() - self._leaving):
            return False
        # A stop gives all processes their grace, not only the shells that lead them.
        return not self._reason or not any(group_lives(pid) for pid in self._mains)

    def _judge(self, now: float) -> None:
        """Stop it if its time, its lease or one of its ranks says so; go on stopping it."""
        limit_s = self._order["time_limit_s"]
        if limit_s and now >= self._began + limit_s:
            self._stop("TIME_LIMIT")
        if any(self._codes.values()):
            self._stop("FAILED")
        if not self._guard_tripped and self._lease.over(now):
            self._guard_tripped = True
            self._stop("GUARD")
            self._hurry(now + self._order["max_grace_s"])
        while self._steps and self._steps[0][0] <= now:
            _, number, listeners, groups = self._steps.pop(0)
            self._signal(number, listeners=listeners, groups=groups)

    def _stop(self, reason: str) -> None:
        if self._reason:
            return
        self._reason = reason
        self._end_gently(())

    def _end_gently(self, groups: tuple[int, ...]) -> None:
        """Let groups save their work and end, as the job asks for it."""
        at = boottime()
        if self._order["checkpoint_signal"]:
            self._steps.append((at, self._order["checkpoint_signal"], True, groups))
            at += self._order["checkpoint_grace_s"]
        self._steps.append((at, signal.SIGTERM, False, groups))
        self._steps.append((at + self._order["grace_s"], signal.SIGKILL, False, groups))
        self._steps.sort()

    def _hurry(self, until: float) -> None:
        """The guard's time is short: whatever is left of the grace, it ends then."""
        self._steps = [(min(step[0], until), *step[1:]) for step in self._steps]

    def _resize(self) -> None:
        """Begin what is new, and let go what is not wanted any more."""
        wanted = json.loads((self._folder / "resize").read_text())
        if self._reason or wanted["generation"] <= self._generation:
            return
        self._generation = wanted["generation"]
        ranks = {rank["rank"]: rank for rank in wanted["ranks"]}
        had = self._order["ranks"][0]["env"]
        secrets = {key: had[key] for key in wanted["secrets"] if key in had}
        for number in ranks.keys() - set(self._mains.values()):
            ranks[number]["env"] |= secrets
            self._order["ranks"].append(ranks[number])
            self._order["cgroups"] += ranks[number]["cgroups"]
            self._mains[spawn(ranks[number])] = number
        self._note_pids()
        leaving = {pid for pid, number in self._mains.items() if number not in ranks}
        if new := leaving - self._leaving:
            self._leaving |= new
            self._end_gently(tuple(new))
        self._sized = False

    def _settle_size(self) -> None:
        """Say that a change of size is done, to the agent and to the ranks that want to know."""
        if self._sized or any(group_lives(pid) for pid in self._leaving):
            return
        self._sized = True
        for pid in self._leaving:
            self._codes.pop(self._mains.pop(pid), None)
        self._leaving.clear()
        done = {"generation": self._generation, "ranks": sorted(self._mains.values())}
        write_whole(self._folder / "resized", json.dumps(done))
        self._signal(signal.SIGHUP, listeners=True)

    def _note_pids(self) -> None:
        who = [[pid, start_ticks(pid)] for pid in self._mains]
        (self._folder / "pids").write_text(json.dumps(who))

    def _next(self) -> float:
        limit_s = self._order["time_limit_s"]
        limit = self._began + limit_s if limit_s and not self._reason else NEVER
        return min(self._steps[0][0] if self._steps else NEVER, limit)

    def _look_s(self) -> float:
        if self._leaving or len(self._codes) == len(self._mains):
            return EMPTY_LOOK_S
        return GUARD_LOOK_S if self._order["lease"] else LOOK_S

    def _signal(self, number: int, *, listeners: bool, groups: tuple[int, ...] = ()) -> None:
        wanted = [group for group in groups or tuple(self._mains) if group in self._mains]
        if not listeners:
            for group in wanted:
                quietly(os.killpg, group, number)
            return
        # Whoever does not listen would die of it, the shell around the work first of all.
        for pid in (pid for group in wanted for pid in group_members(group)):
            if catches(pid, number):
                quietly(os.kill, pid, number)

    def _reap(self) -> None:
        while (ended := reap_one()) is not None:
            pid, code = ended
            if pid in self._mains and pid not in self._leaving:
                self._codes[self._mains[pid]] = code

    def _out_of_memory(self) -> str:
        for rank in self._order["ranks"]:
            if any(oom_kills(Path(folder)) for folder in rank["cgroups"]):
                limit = rank["memory_bytes"] / (1 << 20)
                return f"rank {rank['rank']} was killed: it needed more than its {limit:.0f} MiB"
        return ""


def claim(folder: Path) -> bool:
    """Create `started`, durably; False when somebody else has."""
    who = {"pid": os.getpid(), "start": start_ticks(os.getpid()), "boot": boot_id()}
    return create_once(folder / "started", json.dumps(who))


def say(word: str) -> None:
    """Tell whoever started this, if anybody still listens."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    quietly(os.write, 1, f"{word}\n".encode())
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)


if __name__ == "__main__":
    main()
