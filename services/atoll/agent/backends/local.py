"""This machine as a cluster, mostly of one node: every attempt is a wrapper with its processes.

The wrapper outlives the agent. What an agent finds when it comes back stands in
the folders of the runs: `started` and no process and no `exit` means that nobody
will ever know how it ended.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Final

from atoll.agent.events import Events
from atoll.agent.floor import Floor
from atoll.agent.localrun.cgroups import find_cgroups
from atoll.agent.localrun.cutting import CannotCut, cut_declared, cut_found
from atoll.agent.localrun.environment import Place, inherited, instances, master_ports
from atoll.agent.localrun.folders import Folders
from atoll.agent.localrun.ground import Ground
from atoll.agent.localrun.keeper import Keeper
from atoll.agent.localrun.launch import Site, first_free, port_is_free
from atoll.agent.localrun.processes import boot_id
from atoll.agent.settings import AgentSettings
from atoll.agent.sizes import changed_tasks
from atoll.core.model.errors import ErrorCode, NotFound
from atoll.core.model.ids import AttemptId, attempt_name
from atoll.core.model.inventory import NodeInventory
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.reason import ReasonCode
from atoll.ports.backend import (
    Capabilities,
    LogPiece,
    Refusal,
    Refused,
    ResizeOrder,
    RunEvent,
    StartOrder,
    StopOrder,
)
from atoll.ports.clock import Clock
from atoll.runtime import logs

log = logs.logger(__name__)

LEASE_FILE: Final = "lease"


class LocalBackend:
    """A `Backend` over this machine."""

    def __init__(self, settings: AgentSettings, clock: Clock) -> None:
        self.capabilities = Capabilities("local", can_guard=True)
        self._keep = settings.keep_ended
        self._lease = settings.data_dir / LEASE_FILE
        self._folders = Folders(settings.data_dir)
        self._events = Events()
        self._floor = Floor()
        self._cgroups = find_cgroups(group_name(settings))
        site = Site(
            lease=self._lease,
            cgroups=self._cgroups,
            base_env=inherited(settings.pass_env),
            max_grace_s=settings.max_grace_s,
            cut=cut_found if settings.devices_file is None else cut_declared,
        )
        self._cut = site.cut
        self._keeper = Keeper(self._folders, site, self._floor, clock=clock, emit=self._events.put)
        self._ground = Ground(settings, clock, self._keeper.wrappers)
        self._looking: asyncio.Task[None] | None = None

    async def open(self) -> tuple[RunEvent, ...]:
        """Look at the machine, and find the runs of an earlier agent."""
        self._folders.make()
        await self._ground.look()
        found = await self._keeper.adopt()
        self._looking = asyncio.create_task(self._ground.run(), name="look at the machine")
        return found

    def inventory(self) -> tuple[NodeInventory, ...]:
        """This machine, as one node or as several."""
        return self._ground.nodes

    async def inventory_changed(self) -> None:
        """Return when the machine has changed."""
        await self._ground.changed()

    async def refresh_inventory(self) -> None:
        """Look at the devices now."""
        await self._ground.look()

    async def check(self, order: StartOrder) -> Refusal | None:
        """Whether node, devices, capacity and ports are there and free."""
        if self._keeper.known(order.attempt):
            return None
        refusal = self._objection(order)
        if refusal is not None:
            await self._keeper.refuse(order.attempt)
        return refusal

    async def start(self, order: StartOrder) -> None:
        """Start the wrapper; it starts all members or, at the first failure, ends them."""
        if self._keeper.known(order.attempt):
            return
        if (refusal := self._objection(order)) is not None:
            raise Refused(refusal)
        port = first_free(master_ports(order), self._keeper.ports() | set(order.spec.ports))
        await self._keeper.start(order, Place(self._ground.node, port))

    async def resize(self, order: ResizeOrder) -> None:
        """Let a run go on with other tasks; those that are not free now are left out."""
        here = self._keeper.tasks(order.attempt)
        kept, new = changed_tasks(here, order.start.tasks)
        if new and not await self._can_have(new):
            start = replace(order.start, tasks=kept)
            order = replace(order, start=start)
        await self._keeper.resize(order, Place(self._ground.node, 0))

    def stop(self, order: StopOrder) -> None:
        """Stop a run, or make sure that there never is one."""
        self._keeper.stop(order)

    def events(self) -> AsyncIterator[Sequence[RunEvent]]:
        """What became of the runs."""
        return self._events.batches()

    async def renew_lease(self, valid_until: float) -> None:
        """Let guarded runs go on until then; their wrappers read it from a file."""
        draft = self._lease.with_name(f"{LEASE_FILE}.new")
        draft.write_text(f"{boot_id()} {valid_until}\n")
        draft.replace(self._lease)

    def log_ranks(self, attempt: AttemptId) -> tuple[int, ...]:
        """Ranks with output; raises NotFound."""
        folder = self._folders.kept(attempt)
        if folder is None:
            raise _not_found(attempt)
        names = [path.stem.partition("-")[2] for path in folder.glob("rank-*.log")]
        return tuple(sorted(int(name) for name in names if name.isdigit()))

    async def read_log(self, attempt: AttemptId, rank: int, *, offset: int, limit: int) -> LogPiece:
        """A piece of a rank's output; raises NotFound."""
        # Asked first: what is written before the end is then surely read.
        ended = not self._keeper.running(attempt)
        return await asyncio.to_thread(
            self._read_piece, attempt, rank, offset=offset, limit=limit, ended=ended
        )

    def forget(self, attempt: AttemptId) -> None:
        """Its end is known: its folder goes to those that may go."""
        self._keeper.forget(attempt, keep=self._keep)

    async def close(self) -> None:
        """Let go; the wrappers live on."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        await self._keeper.close()
        self._cgroups.tidy()

    def _objection(self, order: StartOrder) -> Refusal | None:
        objection = self._floor.objection(order.tasks, self._node)
        if objection is not None:
            if objection.violation is not None:
                log.error(
                    "decision gives away what is taken",
                    attempt_id=order.attempt,
                    why=str(objection.violation),
                )
            return objection.refusal
        return self._without_instance(order) or self._port_taken(order)

    async def _can_have(self, tasks: Sequence[TaskPlacement]) -> bool:
        if self._floor.objection(tasks, self._node) is not None:
            return False
        try:
            await asyncio.to_thread(self._cut, self._ground.node, tasks)
        except CannotCut as error:
            log.warning("cannot grow", why=str(error))
            return False
        return True

    def _node(self, name: str) -> NodeInventory | None:
        return next((node for node in self._ground.nodes if node.name == name), None)

    def _without_instance(self, order: StartOrder) -> Refusal | None:
        devices = {device.index: device for device in self._ground.node.devices}
        for task in order.tasks:
            for grant in task.devices:
                device = devices[grant.index]
                if device.mig_dynamic:
                    continue
                if grant.slice_mask and not instances(device, grant):
                    message = f"device {grant.index} has no instance {grant.profile} at that place"
                    return Refusal(ReasonCode.DEVICE_ABSENT, message, (task.node,))
        return None

    def _port_taken(self, order: StartOrder) -> Refusal | None:
        """Every member listens on all ports of its job, and all members are here."""
        taken = self._keeper.ports()
        crowded = len(order.tasks) > 1
        for port in order.spec.ports:
            if crowded or port in taken or not port_is_free(port):
                return Refusal(
                    ReasonCode.PORT_TAKEN,
                    f"port {port} is taken on {self._ground.node.name}",
                    (order.tasks[0].node,),
                )
        return None

    def _read_piece(
        self, attempt: AttemptId, rank: int, *, offset: int, limit: int, ended: bool
    ) -> LogPiece:
        folder = self._folders.kept(attempt)
        if folder is None:
            raise _not_found(attempt)
        try:
            with (folder / f"rank-{rank}.log").open("rb") as file:
                size = file.seek(0, 2)
                begin = min(offset, size)
                file.seek(begin)
                return LogPiece(begin, file.read(limit), size, ended)
        except FileNotFoundError:
            if ended:
                raise _not_found(attempt) from None
            return LogPiece(0, b"", 0, ended=False)


def make(settings: AgentSettings, clock: Clock) -> LocalBackend:
    """This machine; raises BadDescription when the devices file is wrong."""
    return LocalBackend(settings, clock)


def group_name(settings: AgentSettings) -> str:
    """Of this agent's control group: two agents of one machine must not share one."""
    folder = hashlib.sha256(str(settings.data_dir.resolve()).encode()).hexdigest()
    return f"atoll-{settings.cluster}-{folder[:12]}"


def _not_found(attempt: AttemptId) -> NotFound:
    return NotFound(
        f"no such output of attempt {attempt_name(attempt)} is kept here",
        code=ErrorCode.ATTEMPT_NOT_FOUND,
    )
