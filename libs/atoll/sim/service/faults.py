"""Makes things go wrong, at given times or by chance, and counts what really happened."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import numpy as np
from numpy.random import Generator

from atoll.adapters.memory.store_rows import Rows
from atoll.agent.simcluster.misbehaviour import NO_FAULT, NodeFault
from atoll.core.model.errors import ErrorCode
from atoll.ports.clock import Clock
from atoll.ports.store.common import StoreUnavailable, UnknownOutcome
from atoll.sim.scenario import Fault
from atoll.sim.service.plane import Plane
from atoll.sim.service.site import Site
from atoll.sim.service.witness import Story

Happen = Callable[[Fault, Generator], Awaitable[None]]

ANY: Final = "any"


class Faults:
    """The faults of a simulation. `happened` counts them by name, `hit` what they did."""

    def __init__(
        self, plane: Plane, sites: Mapping[str, Site], *, story: Story, clock: Clock
    ) -> None:
        self.happened: Counter[str] = Counter()
        self.hit: Counter[str] = Counter()
        self._plane = plane
        self._sites = sites
        self._story = story
        self._clock = clock
        self._lose_replies: Counter[str] = Counter()
        self._away: Counter[str] = Counter()
        self._busy: set[str] = set()
        self._ways: Mapping[str, Happen] = {
            "node-death": self._node_death,
            "device-loss": self._device_loss,
            "revoked-spot": self._revoked_spot,
            "silent-agent": self._silent_agent,
            "agent-restart": self._agent_restart,
            "late-answers": self._late_answers,
            "slow-link": self._slow_link,
            "rejecting-cluster": self._rejecting,
            "leader-change": self._leader_change,
            "leader-death": self._leader_death,
            "dispatch-death": self._dispatch_death,
            "lost-commit-reply": self._lost_reply,
            "store-away": self._store_away,
            "lost-hints": self._lost_hints,
            "stream-down": self._stream_down,
            "stream-flushed": self._stream_flushed,
            "election-down": self._election_down,
        }

    async def run(self, fault: Fault, rng: Generator, *, until: float) -> None:
        """Let a fault happen at its times, up to `until` (seconds from the start)."""
        async with asyncio.TaskGroup() as group:
            for at in sorted(fault.at):
                await self._wait_for(at)
                group.create_task(self._once(fault, rng))
            while fault.every:
                at = self._story.now + float(rng.exponential(fault.every))
                if at > until:
                    return
                await self._wait_for(at)
                group.create_task(self._once(fault, rng))

    def before_commit(self, rows: Rows) -> None:
        """Raises StoreUnavailable while the store is away for who writes this."""
        if self._away and (who := self._among(self._away, rows)):
            self.hit[f"commits refused to {who}"] += 1
            raise StoreUnavailable("the store is away", code=ErrorCode.UNAVAILABLE)

    def after_commit(self, rows: Rows) -> None:
        """Raises UnknownOutcome when the reply to this commit is to be lost."""
        if self._lose_replies and (who := self._among(self._lose_replies, rows)):
            self._lose_replies[who] -= 1
            self._lose_replies = +self._lose_replies
            self.hit["replies lost"] += 1
            self._story.tell(f"the reply to a commit of {writer_of(rows)} is lost")
            raise UnknownOutcome("the reply was lost", code=ErrorCode.UNAVAILABLE)

    async def _once(self, fault: Fault, rng: Generator) -> None:
        self.happened[fault.what] += 1
        await self._ways[fault.what](fault, rng)

    async def _wait_for(self, at: float) -> None:
        await self._clock.sleep(max(0.0, at - self._story.now))

    def _among(self, wanted: Counter[str], rows: Rows) -> str:
        who = writer_of(rows)
        return who if wanted[who] > 0 else ANY if wanted[ANY] > 0 else ""

    def _site(self, fault: Fault, rng: Generator) -> Site:
        if fault.cluster:
            return self._sites[fault.cluster]
        return list(self._sites.values())[int(rng.integers(len(self._sites)))]

    def _chosen(self, fault: Fault, site: Site, rng: Generator) -> list[str]:
        """Healthy nodes by chance."""
        wanted = fault.labels.items()
        names = [
            node.name
            for node in site.described.nodes
            if wanted <= dict(node.labels).items() and site.switch.fault_of(node.name) is NO_FAULT
        ]
        count = min(fault.nodes, len(names))
        return sorted(names[i] for i in rng.choice(len(names), count, replace=False))

    async def _node_death(self, fault: Fault, rng: Generator) -> None:
        await self._break_nodes(fault, rng, NodeFault(down=True), told="dies")

    async def _revoked_spot(self, fault: Fault, rng: Generator) -> None:
        await self._break_nodes(fault, rng, NodeFault(gone=True), told="is revoked")

    async def _device_loss(self, fault: Fault, rng: Generator) -> None:
        site = self._site(fault, rng)
        most = max((len(node.devices) for node in site.described.nodes), default=0)
        lost = frozenset({int(rng.integers(most))} if most else ())
        await self._break_nodes(
            fault, rng, NodeFault(hidden=lost), told="loses a device", site=site
        )

    async def _break_nodes(
        self, fault: Fault, rng: Generator, wrong: NodeFault, *, told: str, site: Site | None = None
    ) -> None:
        site = site or self._site(fault, rng)
        names = self._chosen(fault, site, rng)
        for name in names:
            hit = sum(
                any(task.node_name == name for task in run.tasks) for run in site.running().values()
            )
            self.hit[f"runs on nodes of {fault.what}"] += hit
            self._story.tell(f"{fault.what}: {name} of {site.name} {told}; {hit} runs there")
        site.switch.turn_nodes(dict.fromkeys(names, wrong))
        await self._clock.sleep(fault.lasts)
        site.switch.turn_nodes(dict.fromkeys(names, NO_FAULT))
        self._story.tell(f"{', '.join(names)} of {site.name}: healed")

    async def _silent_agent(self, fault: Fault, rng: Generator) -> None:
        site = self._site(fault, rng)
        if not self._take(f"link {site.name}"):
            return
        self._story.tell(f"the agent of {site.name} is cut off; {len(site.running())} runs there")
        self.hit["runs of silent agents"] += len(site.running())
        before = site.link.delayed
        site.link.set_cut(on=True)
        await self._clock.sleep(fault.lasts)
        site.link.set_cut(on=False)
        self.hit["messages held up"] += site.link.delayed - before
        self._free(f"link {site.name}")
        self._story.tell(f"the agent of {site.name} is heard again")

    async def _slow_link(self, fault: Fault, rng: Generator) -> None:
        site = self._site(fault, rng)
        if not self._take(f"slow {site.name}"):
            return
        self._story.tell(f"messages of {site.name} take {fault.delay:g} s")
        before, site.link.slow_s = site.link.delayed, fault.delay
        await self._clock.sleep(fault.lasts)
        site.link.slow_s = 0.0
        self.hit["messages slowed"] += site.link.delayed - before
        self._free(f"slow {site.name}")

    async def _late_answers(self, fault: Fault, rng: Generator) -> None:
        site = self._site(fault, rng)
        self._story.tell(f"{site.name} answers {fault.delay:g} s late")
        site.switch.turn(delay_s=fault.delay)
        await self._clock.sleep(fault.lasts)
        site.switch.turn(delay_s=0.0)

    async def _rejecting(self, fault: Fault, rng: Generator) -> None:
        site = self._site(fault, rng)
        self._story.tell(f"{site.name} rejects everything")
        site.switch.turn(reject=True)
        await self._clock.sleep(fault.lasts)
        site.switch.turn(reject=False)
        self._story.tell(f"{site.name} rejects no longer")

    async def _agent_restart(self, fault: Fault, rng: Generator) -> None:
        site = self._site(fault, rng)
        if not self._take(f"agent {site.name}"):
            return
        self._story.tell(f"the agent of {site.name} is killed; {len(site.running())} runs go on")
        self.hit["runs of killed agents"] += len(site.running())
        await site.kill()
        await self._clock.sleep(fault.lasts)
        await site.start()
        self._free(f"agent {site.name}")
        self._story.tell(f"the agent of {site.name} is back")

    async def _leader_change(self, fault: Fault, rng: Generator) -> None:
        """The lease of the leader is revoked though it is healthy."""
        if (leading := self._plane.leading()) is not None:
            self._story.tell(f"the lease of {leading.identity} is revoked")
            self.hit["leaders deposed"] += 1
            self._plane.elections.revoke(leading.identity)

    async def _leader_death(self, fault: Fault, rng: Generator) -> None:
        if (leading := self._plane.leading()) is None:
            return
        self._story.tell(f"{leading.identity} is killed")
        self.hit["leaders killed"] += 1
        await self._plane.kill_placement(leading)
        await self._clock.sleep(fault.lasts)
        await self._plane.start_placement()

    async def _dispatch_death(self, fault: Fault, rng: Generator) -> None:
        if not self._plane.dispatch:
            return
        served = self._plane.dispatch[int(rng.integers(len(self._plane.dispatch)))]
        self._story.tell(f"{served.address} is killed; {len(served.replica.table)} sessions")
        self.hit["sessions broken"] += len(served.replica.table)
        await self._plane.kill_dispatch(served)
        await self._clock.sleep(fault.lasts)
        await self._plane.start_dispatch(served.address)

    async def _lost_reply(self, fault: Fault, rng: Generator) -> None:
        self._lose_replies[fault.of] += fault.nodes

    async def _store_away(self, fault: Fault, rng: Generator) -> None:
        self._story.tell(f"the store refuses all commits of {fault.of}")
        self._away[fault.of] += 1
        await self._clock.sleep(fault.lasts)
        self._away[fault.of] -= 1
        self._away = +self._away
        self._story.tell("the store is back")

    async def _lost_hints(self, fault: Fault, rng: Generator) -> None:
        hints = self._plane.hints
        hints.down = True
        await self._clock.sleep(fault.lasts)
        hints.reconnect()

    async def _stream_down(self, fault: Fault, rng: Generator) -> None:
        self._plane.stream.down = True
        await self._clock.sleep(fault.lasts)
        self._plane.stream.down = False

    async def _stream_flushed(self, fault: Fault, rng: Generator) -> None:
        self._plane.stream.lose_everything()

    async def _election_down(self, fault: Fault, rng: Generator) -> None:
        self._story.tell("nobody can be elected, or stay so")
        self._plane.elections.stop()
        await self._clock.sleep(fault.lasts)
        self._plane.elections.resume()

    def _take(self, what: str) -> bool:
        """Faults of one kind at one place do not overlap."""
        if what in self._busy:
            return False
        self._busy.add(what)
        return True

    def _free(self, what: str) -> None:
        self._busy.discard(what)


def writer_of(rows: Rows) -> str:
    """Which service makes this commit, by what it alone writes."""
    if any(True for _ in rows.shards.changes()):
        return "placement"
    if any(before is None for _, before, _ in rows.jobs.changes()):
        return "submission"
    return "dispatch"


def generators(seed: int, faults: int) -> list[Generator]:
    """One for each fault, so that one more changes none of the others."""
    return [np.random.default_rng((seed, 2, number)) for number in range(faults)]
