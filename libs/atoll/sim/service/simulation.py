"""Runs a scenario through the real services, and ends when all work has, or something is wrong."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from atoll.adapters.memory.store_rows import Rows
from atoll.agent.simcluster.progress import ProgressBook
from atoll.core.engine.timeline.track_record import Coverage
from atoll.core.model.errors import StaleEpoch, Unavailable
from atoll.core.model.ids import AttemptId, ClusterName
from atoll.core.model.job import Job
from atoll.core.model.lifecycle import TERMINAL_JOB
from atoll.placement.usecases.audit import audit
from atoll.sim.fleet import fragmentation, units_of, wanted_units
from atoll.sim.record import Record
from atoll.sim.scenario import Scenario
from atoll.sim.service import settings as told
from atoll.sim.service.clock import BOOT_S, SimClock, SimIds
from atoll.sim.service.ending import check_end
from atoll.sim.service.faults import Faults, generators
from atoll.sim.service.plane import Plane
from atoll.sim.service.rules import Rules
from atoll.sim.service.site import Site
from atoll.sim.service.truth import Truth
from atoll.sim.service.users import ACTOR, Users
from atoll.sim.service.witness import Court, Story, Violation, mishap
from atoll.sim.typical import typical_tasks
from atoll.sim.work import Work

AUDIT_S: Final = 60.0
QUIET_S: Final = 60.0
"""Within this time after the last job's end everything has to have converged."""
SAMPLES: Final = 500
LEAST_SAMPLE_S: Final = 30.0
LEDGER: Final = "I4 ledger = rows"
NO_MISHAP: Final = "no part fails in a way that is not foreseen"


@dataclass(slots=True)
class Result:
    """What came of a simulation."""

    record: Record
    violation: Violation | None
    happened: Counter[str] = field(default_factory=Counter)
    """Faults by name."""
    hit: Counter[str] = field(default_factory=Counter)
    """What they did."""
    ended: Counter[str] = field(default_factory=Counter)
    """Runs by how they ended."""
    refused: int = 0
    turns: int = 0
    """Of the event loop."""
    checks: int = 0
    """Commits and ledger entries that were checked."""
    leaders: int = 0
    """Epochs that were taken."""
    story: tuple[str, ...] = ()
    etas: Coverage | None = None
    """How far what waiting jobs were told of their starts held."""


class Simulation:
    """One run of a scenario. Everything is made inside `run`, on the loop that it runs on."""

    def __init__(
        self,
        scenario: Scenario,
        works: Sequence[Work],
        folder: Path,
        *,
        on_progress: Callable[[float, int], None] | None = None,
    ) -> None:
        self._scenario = scenario
        self._works = works
        self._folder = folder
        self._on_progress = on_progress
        self._cancelled = max((part.cancelled for part in scenario.synthetic), default=0.0)
        self._by_name = {work.spec.name: work for work in works}
        self._over = 0
        self._record = Record()

    async def run(self) -> Result:
        """Boot, submit, break, wait, check."""
        self._build()
        await self._plane.start()
        for site in self._sites.values():
            await site.start()
        await self._clock.sleep(BOOT_S - self._clock.monotonic())
        await self._make_queues()
        script = asyncio.ensure_future(self._script())
        try:
            await asyncio.wait({script, self._broken}, return_when=asyncio.FIRST_COMPLETED)
            if script.done():
                script.result()
        finally:
            script.cancel()
            await asyncio.gather(script, return_exceptions=True)
        result = self._result()
        await self._close()
        return result

    def _build(self) -> None:
        scenario, seed = self._scenario, self._scenario.seed
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._unheard)
        self._broken: asyncio.Future[None] = loop.create_future()
        self._all_over = asyncio.Event()
        self._clock = SimClock()
        ids = SimIds(np.random.default_rng((seed, 0)))
        self._story = Story(self._clock, BOOT_S)
        self._court = Court(self._story, self._break)
        self._plane = Plane(
            told.plane_settings(scenario.settings),
            clock=self._clock,
            ids=ids,
            on_mishap=lambda what, error: self._court.accuse(NO_MISHAP, mishap(what, error)),
        )
        book = ProgressBook()
        described = told.clusters(scenario)
        self._devices = any(node.devices for each in described.values() for node in each.nodes)
        self._record.unit = "device blocks" if self._devices else "milli-CPU"
        self._truth = Truth(
            self._court, self._plane.database.tables, self._record, devices=self._devices
        )
        self._sites = {
            name: Site(
                each,
                told.agent_settings(
                    scenario, name, folder=self._folder, dispatch=self._plane.addresses
                ),
                exchange=self._plane.exchange,
                book=book,
                clock=self._clock,
                ids=ids,
                on_entry=lambda site, entry: self._truth.entry(site.name, entry),
                on_turn=self._capacity,
            )
            for name, each in described.items()
        }
        self._rules = Rules(self._court, self._really_runs, self._on_job)
        self._faults = Faults(self._plane, self._sites, story=self._story, clock=self._clock)
        self._users = Users(
            self._plane.use,
            np.random.default_rng((seed, 3)),
            story=self._story,
            clock=self._clock,
            cancelled=self._cancelled,
        )
        self._plane.database.before_commit = self._before_commit
        self._plane.database.after_commit = self._faults.after_commit

    def _before_commit(self, rows: Rows) -> None:
        self._faults.before_commit(rows)
        self._rules.check(rows)

    async def _make_queues(self) -> None:
        self._capacity()
        for queue in told.queues(self._scenario, self._works):
            await self._plane.use.queues.create(ACTOR, queue)

    async def _script(self) -> None:
        scenario = self._scenario
        last = max((work.at for work in self._works), default=0.0)
        until = scenario.length or max((
            last,
            *(at for fault in scenario.faults for at in fault.at),
        ))
        beside = [
            asyncio.ensure_future(
                self._sample(scenario.sample or max(LEAST_SAMPLE_S, until / SAMPLES))
            ),
            asyncio.ensure_future(self._audit()),
        ]
        try:
            await self._busy(until)
            await self._drain()
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    async def _busy(self, until: float) -> None:
        faults = self._scenario.faults
        rngs = generators(self._scenario.seed, len(faults))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._users.submit_all(self._works))
            for fault, rng in zip(faults, rngs, strict=True):
                group.create_task(self._faults.run(fault, rng, until=until))
            group.create_task(self._clock.sleep(until))

    async def _drain(self) -> None:
        if self._over < len(self._record.jobs):
            with suppress(TimeoutError):
                async with asyncio.timeout(self._scenario.settle):
                    await self._all_over.wait()
        ends = [job.ended or self._story.now for job in self._record.jobs.values()]
        self._record.ended = max(ends, default=self._story.now)
        await self._clock.sleep(QUIET_S)
        acknowledged = self._users.acknowledged
        check_end(
            self._court, self._plane, self._sites, truth=self._truth, acknowledged=acknowledged
        )

    def _on_job(self, before: Job | None, after: Job) -> None:
        record, now = self._record, self._story.now
        if before is None:
            work = self._by_name[after.name]
            units = wanted_units(work.spec, devices=self._devices)
            record.submit(after.id, work, at=now, units=units)
            return
        record.move(after.id, before.state.value, after.state.value)
        if after.state in TERMINAL_JOB:
            record.finish(after.id, at=now)
            self._over += 1
            if self._over == len(self._works) - self._users.refused:
                self._all_over.set()

    def _really_runs(self, cluster: ClusterName, attempt: AttemptId) -> bool:
        return attempt in self._sites[cluster].running()

    def _capacity(self) -> None:
        up = sum(
            units_of(node, devices=self._devices)
            for site in self._sites.values()
            for node in site.shown()
        )
        self._record.set_capacity(max(0.0, self._story.now), up)

    async def _sample(self, every_s: float) -> None:
        typical = typical_tasks(self._works)
        while True:
            leader = self._plane.leader
            lost = 0.0
            if leader is not None:
                nodes = leader.memory.world.ledger.table.nodes
                free = np.maximum(nodes.blocks_free, 0)
                lost = fragmentation(free, nodes.cpu_free, typical)
            self._record.sample(self._story.now, lost)
            if self._on_progress is not None:
                self._on_progress(self._story.now, self._over)
            await self._clock.sleep(every_s)

    async def _audit(self) -> None:
        """The product's own audit: what its ledger and the rows do not agree on."""
        while True:
            await self._clock.sleep(AUDIT_S)
            leader = self._plane.leader
            for site in self._sites.values():
                if (error := site.failed()) is not None:
                    self._court.accuse(NO_MISHAP, mishap(f"the agent of {site.name}", error))
            if leader is None:
                continue
            with suppress(StaleEpoch, Unavailable):
                async with leader.lock:
                    await leader.catch_up()
                    found = await audit(leader)
                self._court.require(not found, LEDGER, *found[:3])

    def _unheard(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        """A task failed, and nobody was there to hear of it."""
        error = context.get("exception")
        if error is not None:
            self._court.accuse(NO_MISHAP, mishap(context["message"], error))

    def _break(self) -> None:
        if not self._broken.done():
            self._broken.set_result(None)

    def _result(self) -> Result:
        faults, loop = self._faults, asyncio.get_running_loop()
        leader = self._plane.leader
        self._record.ended = self._record.ended or self._story.now
        return Result(
            record=self._record,
            violation=self._court.first,
            happened=Counter(dict(sorted(faults.happened.items()))),
            hit=Counter(dict(sorted(faults.hit.items()))),
            ended=Counter(dict(sorted(self._truth.ended.items()))),
            refused=self._users.refused,
            turns=getattr(loop, "turns", 0),
            checks=self._rules.checked + self._truth.checked,
            leaders=self._plane.terms,
            story=tuple(map(str, self._story.notes)),
            etas=None if leader is None else leader.foresight.record.coverage_ever(),
        )

    async def _close(self) -> None:
        for site in self._sites.values():
            await site.kill()
        await self._plane.close()
