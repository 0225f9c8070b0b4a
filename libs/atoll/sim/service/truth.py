"""What clusters really start and stop: held against the rows, and put on record.

The ledgers of the simulated clusters are written by nobody but them, so they are what the control
plane's belief is compared with.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from atoll.adapters.memory.store_rows import Tables
from atoll.agent.simcluster.progress import Progress
from atoll.agent.simcluster.runs import Run, from_entry
from atoll.core.model.ids import AttemptId, ClusterName, JobId, attempt_name, job_of
from atoll.sim.record import Record
from atoll.sim.report import EVICTED
from atoll.sim.service.clock import START
from atoll.sim.service.witness import Court
from atoll.sim.work import blocks_of, cpu_of

ONCE: Final = "I3 an attempt starts once"
ALONE: Final = "I3 a job's runs never overlap"
HELD: Final = "I4 what runs holds its capacity"
AS_TOLD: Final = "I4 a cluster runs what it was told to"
NO_VIOLATION: Final = "I4 no cluster is told to give a share twice"


class Truth:
    """The runs of all clusters, as their ledgers tell them."""

    def __init__(self, court: Court, tables: Tables, record: Record, *, devices: bool) -> None:
        self._court = court
        self._tables = tables
        self._record = record
        self._devices = devices
        self._runs: dict[AttemptId, tuple[ClusterName, Run]] = {}
        self._seen: set[AttemptId] = set()
        self._of_job: defaultdict[JobId, set[AttemptId]] = defaultdict(set)
        self.finished: set[JobId] = set()
        """Whose work was completed."""
        self.ended: defaultdict[str, int] = defaultdict(int)
        """Runs by how they ended."""
        self.checked = 0

    def entry(self, cluster: ClusterName, entry: Mapping[str, Any]) -> None:
        """A cluster writes into its ledger."""
        self.checked += 1
        match entry["t"]:
            case "start":
                self._start(cluster, from_entry(entry))
            case "stop":
                self._stop(AttemptId(entry["attempt"]), entry)
            case "resize":
                self._resize(AttemptId(entry["attempt"]))
            case "violation":
                job = job_of(AttemptId(entry["attempt"]))
                self._court.accuse(NO_VIOLATION, str(dict(entry)), job)
            case other:
                self._court.accuse(NO_VIOLATION, f"{cluster} writes {other}")

    def _start(self, cluster: ClusterName, run: Run) -> None:
        number, job = run.attempt, job_of(run.attempt)
        name = f"{attempt_name(number)} on {cluster}"
        told = "begins to bind" if run.partial else "runs"
        self._court.story.tell(f"{name} {told} on {_nodes(run)}", job)
        self._court.require(run.partial or number not in self._seen, ONCE, name, job=job)
        others = self._of_job[job] - {number}
        self._court.require(not others, ALONE, name, "beside", sorted(others), job=job)
        held = self._tables.allocations.get(number)
        self._court.require(held, HELD, name, "holds nothing", job=job)
        attempt = self._tables.attempts.get(number)
        if attempt is not None and not run.partial:
            same = attempt.tasks == run.tasks and attempt.cluster == cluster
            self._court.require(same, AS_TOLD, name, job=job)
        self._runs[number] = (cluster, run)
        self._of_job[job].add(number)
        if not run.partial:
            self._seen.add(number)
            units = blocks_of(run.tasks) if self._devices else cpu_of(run.tasks)
            self._record.begin(number, cluster, at=run.began - START, units=units)

    def _stop(self, number: AttemptId, entry: Mapping[str, Any]) -> None:
        cluster, run = self._runs.pop(number)
        job = job_of(number)
        self._of_job[job].discard(number)
        run.ended, run.how = entry["at"], entry["how"]
        self.ended[run.how] += 1
        self._court.story.tell(f"{attempt_name(number)} on {cluster} ends: {run.how}", job)
        if run.partial:
            return
        if run.how == "FINISHED":
            self.finished.add(job)
        why = self._why(run.how, number)
        if why in EVICTED:
            self._record.evict([job])
        script, before = run.script, run.script.progress
        after = script.seconds if run.how == "FINISHED" else _saved(run)
        self._record.stop(
            number,
            why,
            at=run.ended - START,
            useful_s=max(0.0, after - before.saved_s),
            restart_s=min(run.ended - run.began, before.restart_s(script.saving)),
        )

    def _resize(self, number: AttemptId) -> None:
        self._record.jobs[job_of(number)].rescales += 1

    def _why(self, how: str, number: AttemptId) -> str:
        attempt = self._tables.attempts.get(number)
        return attempt.cause.value if how == "STOPPED" and attempt is not None else how


def _saved(run: Run) -> float:
    if run.script.saving.interval_s <= 0:
        return 0.0
    progress: Progress = run.progress
    return progress.saved_s


def _nodes(run: Run) -> str:
    names = sorted({task.node_name for task in run.tasks})
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
