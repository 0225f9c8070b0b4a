"""The text in which a cycle's cases are written: a world and its queue, then what is decided.

    # A sentence that says what the case shows.
    cluster c1 [guard] [cordoned] [silent] [behind] [booting]
    rented burst-1 READY [price=2] [jobs=1,2] [queue=a] [until=900] [stop=50]
    node n1..n4 c1 cpu=64 mem=256 gpus=8xH100:80 [mig] [rack=r1] [label.zone=a] [cordoned] [suspect]
    queue a.b limit=4                  devices
    avoid c1 until 50                  or: avoid n2 until 50
    run 7 queue=a on n1 cpu=8 mem=8 dev=0:100,1:30        or dev=0:1g.10gb@6
    job 1 queue=a prio=2 at=3 cpu=8 mem=8 gpu=H100:2 x4 [min=2] [same=rack|rack!] [guard]
          [home] [begin=9] [after=7] [label.zone=a] [| cpu=4 gpu=A100:1 ...] [+ cpu=1 x2 ...]
    done 7                             a job that others wait for has succeeded
    now 5                              freezes and plans; more lines and `now` may follow
    ---
    what was decided, one block per `now`

Memory is in GiB, CPU in cores. `gpu=H100:2` takes whole devices, `H100:0.3` blocks,
`H100:40gb` memory, `H100:1g.10gb` a slice, `*:1` a device of any kind.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from atoll.core.engine.cycle import plan
from atoll.core.engine.verify import verify
from atoll.core.model.burst import BurstPolicy
from atoll.core.model.ids import (
    AttemptId,
    ClusterName,
    JobId,
    QueueName,
    Tenant,
    attempt_id,
    job_of,
)
from atoll.core.model.inventory import Avoidance, Cluster, ClusterState, Node
from atoll.core.model.job import Queue
from atoll.core.model.plan import GangPlacement, PendingJob, Plan, TaskPlacement
from atoll.core.model.resources import DeviceGrant
from atoll.core.policies.registry import policies
from atoll.core.state.world import World
from tests.golden.words import (
    GIB,
    read_grant,
    read_list,
    read_node,
    read_rental,
    read_request,
    read_values,
)


@dataclass
class Case:
    """A world that lines are said to, and what it answered."""

    world: World = field(default_factory=World)
    out: list[str] = field(default_factory=list)
    _nodes: dict[str, Node] = field(default_factory=dict)
    _avoided: list[Avoidance] = field(default_factory=list)

    def say(self, line: str) -> None:
        """Carry out one line."""
        word, _, rest = line.partition(" ")
        getattr(self, f"_{word}")(rest)

    def _cluster(self, rest: str) -> None:
        name, *flags = rest.split()
        cluster = Cluster(
            ClusterName(name),
            can_guard="guard" in flags,
            cordoned="cordoned" in flags,
            state=next((s for s in ClusterState if s.lower() in flags), ClusterState.ACTIVE),
            inventory_number=int("booting" not in flags),
        )
        behind = {cluster.name} if "behind" in flags else frozenset[ClusterName]()
        self.world.set_clusters([cluster], behind=behind)

    def _rented(self, rest: str) -> None:
        self.world.set_burst_policies([BurstPolicy(None, allowed=True)])
        self.world.put_rentals([read_rental(rest)])

    def _node(self, rest: str) -> None:
        names, cluster, *words = rest.split()
        first, _, last = names.partition("..")
        numbers = range(int(first[1:]), int((last or first)[1:]) + 1)
        fresh = [read_node(number, ClusterName(cluster), words) for number in numbers]
        for node in fresh:
            self._nodes[node.inventory.name] = node
        self.world.upsert_nodes(fresh)

    def _queue(self, rest: str) -> None:
        name, limit = rest.split()
        devices = float(limit.removeprefix("limit="))
        self.world.set_queues([
            Queue(QueueName(name), Tenant(""), device_limit=round(devices * 100))
        ])

    def _avoid(self, rest: str) -> None:
        name, _, until = rest.split()
        node = self._nodes.get(name)
        cluster = node.cluster if node else ClusterName(name)
        avoidance = Avoidance(cluster, node.id if node else None, "", 3, until=float(until))
        self._avoided.append(avoidance)
        self.world.set_avoidances(self._avoided)

    def _run(self, rest: str) -> None:
        job, queue, _, name, *words = rest.split()
        node, values = self._nodes[name], read_values(words)
        task = TaskPlacement(
            group=0,
            rank=0,
            node=node.id,
            node_name=name,
            cpu_milli=round(float(values.get("cpu", 0)) * 1000),
            memory_bytes=round(float(values.get("mem", 0)) * GIB),
            devices=tuple(read_grant(node, text) for text in read_list(values.get("dev", ""))),
        )
        self.world.add_allocation(
            attempt_id(JobId(int(job)), 1),
            QueueName(queue.removeprefix("queue=")),
            node.cluster,
            tasks=(task,),
        )

    def _end(self, rest: str) -> None:
        held = self.world.end_allocation(AttemptId(attempt_id(JobId(int(rest)), 1)))
        assert held, f"job {rest} holds nothing"

    def _done(self, rest: str) -> None:
        self.world.dependency_done(JobId(int(rest)))

    def _job(self, rest: str) -> None:
        number, _, words = rest.partition(" ")
        first, _, last = number.partition("..")
        values = read_values(words.split())
        self.world.upsert_pending([
            PendingJob(
                JobId(job),
                1,
                QueueName(values.get("queue", "default")),
                int(values.get("prio", 0)),
                submitted_at=float(values.get("at", job)),
                request=read_request(words),
                begin_at=float(values.get("begin", 0)),
                depends_on=tuple(JobId(int(j)) for j in read_list(values.get("after", ""))),
            )
            for job in range(int(first), int(last or first) + 1)
        ])

    def _now(self, rest: str) -> None:
        now = float(rest)
        snapshot = self.world.freeze(now)
        fifo = policies(order="priority_fifo")
        made = plan(snapshot, fifo, now=now, rng=np.random.default_rng(0))
        verify(made, self.world.ledger)
        self._take(made)
        self.world.note_waiting(snapshot, made)
        self.out.append(f"at {rest}:")
        self.out.extend(f"  {line}" for line in _told(made))
        wakeup = self.world.next_wakeup(now)
        if wakeup is not None:
            self.out.append(f"  again at {wakeup:g}")

    def _take(self, made: Plan) -> None:
        for p in made.placements:
            self.world.add_allocation(p.attempt, p.queue, p.cluster, tasks=p.tasks)
        self.world.remove_pending([p.job for p in made.placements])
        self.world.stopping(e.attempt for e in made.evictions)
        self.world.add_nominations(made.nominations, instead_of=made.released)


def answer(text: str) -> str:
    """What is decided in the case that `text` begins with: the part after `---`."""
    case = Case()
    for line in given(text):
        case.say(line)
    return "\n".join(case.out) + "\n"


def given(text: str) -> Iterator[str]:
    """The lines of the world, continued ones joined."""
    lines: list[str] = []
    for line in text.partition("\n---\n")[0].splitlines():
        if line.startswith(" "):
            lines[-1] += " " + line.strip()
        elif line and not line.startswith("#"):
            lines.append(line)
    return iter(lines)


def _told(made: Plan) -> Iterator[str]:
    for placement in made.placements:
        yield f"job {placement.job} -> {placement.cluster}: {_tasks(placement)}"
    for eviction in made.evictions:
        yield f"job {job_of(eviction.attempt)} stops: {eviction.cause}"
    for held in made.nominations:
        yield f"job {held.job} holds {held.cluster} until {held.until:g}"
    for job in made.released:
        yield f"job {job} holds nothing any more"
    for waiting in made.waiting:
        yield f"{waiting.jobs} of {waiting.queue} wait:"
        yield from (f"  {reason.code}: {reason.message}" for reason in waiting.reasons)


def _tasks(placement: GangPlacement) -> str:
    return ", ".join(_task(task) for task in sorted(placement.tasks, key=lambda t: t.rank))


def _task(task: TaskPlacement) -> str:
    group = f"{task.group}:" if task.group else ""
    devices = " ".join(_share(grant) for grant in task.devices)
    return f"{group}{task.node_name}" + (f" [{devices}]" if devices else "")


def _share(grant: DeviceGrant) -> str:
    if grant.slice_mask:
        start = (grant.slice_mask & -grant.slice_mask).bit_length() - 1
        return f"{grant.index}:{grant.profile}@{start}"
    return f"{grant.index}" if grant.blocks == 100 else f"{grant.index}:{grant.blocks}%"
