"""What a world knows of rented machines, and whom capacity is held for, rented or not."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from atoll.core.model.burst import BurstPolicy, Rental
from atoll.core.model.ids import ClusterName, JobId, NodeId, job_of
from atoll.core.model.plan import Nomination
from atoll.core.state.backlog import Backlog
from atoll.core.state.columns import Nodes
from atoll.core.state.holds import Hold, HoldBook
from atoll.core.state.rental_view import NO_RENTALS, RentalView, rental_view
from atoll.core.state.rentals import COMING, stops_at
from atoll.core.state.run_columns import uses_of
from atoll.core.state.running import Running, RunningTable
from atoll.core.state.shares import DEVICES, Shares, amounts_of


class Renting(Backlog):
    """The part of a world that holds capacity for jobs, and has machines that come and go."""

    def __init__(self, half_life_s: float) -> None:
        super().__init__(half_life_s)
        self._running = RunningTable()
        self._holds = HoldBook(self._table, self.ledger)
        self._to_hold = False
        """Rented machines may have to be held for jobs."""

    @property
    def rentals(self) -> tuple[Rental, ...]:
        """Rented machines whose clusters are not forgotten, the cheapest first."""
        return self.ledger.rented.values

    def put_rentals(self, rentals: Iterable[Rental]) -> None:
        """Enter or replace rented machines; what is held on those that are to end is not any more.

        One that has ended stays until its cluster is forgotten, so that nothing is placed there.
        """
        changed = self.ledger.rented.put(rentals)
        if not changed:
            return
        rented, held = self.ledger.rented, self.ledger.nominations.values()
        self.drop_nominations([n.job for n in held if not rented.holds(n.cluster, n.job)])
        for rental in changed:
            self._table.clusters(rental.cluster)
        self._queues.rented(self._table.clusters.number[r.cluster] for r in self.rentals)
        self._to_hold = True
        self._stamps.settings_changed()

    def set_burst_policies(self, policies: Iterable[BurstPolicy]) -> None:
        """Replace what queues may rent."""
        if self.ledger.rented.set_policies(policies) and self.ledger.rented:
            self._to_hold = True
            self._stamps.settings_changed()

    def forget_rental(self, cluster: ClusterName) -> None:
        """The cluster of a rented machine was forgotten: its nodes are gone for good."""
        number = self._table.clusters.number.get(cluster)
        nodes = self._table.nodes
        self.remove_nodes([NodeId(n) for n in nodes.id[nodes.cluster == number].tolist()])
        self.ledger.rented.drop(cluster)
        self._queues.rented(self._table.clusters.number[r.cluster] for r in self.rentals)

    def set_nominations(self, nominations: Iterable[Nomination]) -> None:
        """Replace everything that is held for jobs; what they hold is nobody else's to take."""
        rented = self.ledger.rented
        self._holds.set(n for n in nominations if rented.holds(n.cluster, n.job))

    def add_nominations(
        self, nominations: Iterable[Nomination], *, instead_of: Iterable[JobId] = ()
    ) -> None:
        """Hold capacity for more jobs, also in place of what was held for others."""
        released = tuple(instead_of)
        self._holds.used(released)
        if released:
            self._stamps.settings_changed()
        self._holds.add(nominations)

    def drop_nominations(self, jobs: Iterable[JobId]) -> None:
        """End holds unused: their victims' queues come first in the next cycle."""
        wanted = [job for job in jobs if job in self.ledger.nominations]
        victims = [v for job in wanted for v in self.ledger.nominations[job].victims]
        found = (self._queue.get(job_of(victim)) for victim in victims)
        if self._holds.lapse(wanted, {job.id: job.queue for job in found if job is not None}):
            self._stamps.settings_changed()

    def _hold(self, nodes: Nodes, now: float) -> tuple[tuple[Hold, ...], RentalView]:
        """Take what is held from a snapshot's columns; the holds, and rentals with theirs."""
        found = (self._queue.get(job) for job in self.ledger.nominations)
        holds = self._holds.freeze(nodes, {job.id: job for job in found if job is not None})
        rented = self.ledger.rented
        if not rented:
            return holds, NO_RENTALS
        view = rental_view(rented, self._table.clusters.number, nodes.cluster)
        wanted = [
            (number, job)
            for number, rental in enumerate(view.values)
            if rental.state in COMING and not view.joined[number] and rental.give_up_at > now
            for job in map(self._queue.get, rental.jobs)
            if job is not None and job.id not in self.ledger.nominations and not job.depends_on
        ]
        wanted.sort(key=lambda each: (each[0], -each[1].priority, each[1].submitted_at, each[1].id))
        there = tuple(hold for hold in holds if hold.nomination.cluster in rented)
        rest = tuple(hold for hold in holds if hold.nomination.cluster not in rented)
        return rest, replace(view, holds=there, wanted=tuple(wanted))

    def _rental_is_due(self, now: float) -> bool:
        """Whether a cycle is to hold a rented machine, or to stop what runs on one."""
        rented = self.ledger.rented
        if not rented:
            return False
        numbers, ends = self._table.clusters.number, ((r, stops_at(r)) for r in self.rentals)
        over = [numbers[r.cluster] for r, at in ends if at is not None and at <= now]
        return self._to_hold or bool(len(overdue(self._running.freeze(), over)))

    def _rental_times(self) -> list[float]:
        """When what runs on rented machines is to stop; holds have their own times."""
        return [at for at in map(stops_at, self.rentals) if at is not None]

    def _locally(self, shares: Shares, running: Running, rentals: RentalView) -> Shares:
        """Shares without what runs on rented machines: they are not of these."""
        slots = np.flatnonzero(running.live & np.isin(running.runs.cluster, rentals.cluster))
        if not len(slots):
            return shares
        table, held, tree = self._table, shares.held.copy(), self._queues.tree
        holdings = [running.holdings[slot] for slot in slots.tolist()]
        amounts, _ = amounts_of(
            holdings,
            uses_of(running.tasks, slots, table.nodes),
            model=table.nodes.model,
            models=table.arrays()[0],
            kinds=held.shape[1] - DEVICES,
        )
        for holding, amount in zip(holdings, amounts, strict=True):
            held[list(tree.chain(tree(holding.queue)))] -= amount
        return replace(shares, held=held)


def overdue(running: Running, clusters: Sequence[int]) -> NDArray[np.int64]:
    """Slots on some clusters of runs that nobody has told to stop yet."""
    if not clusters:
        return np.zeros(0, np.int64)
    there = np.isin(running.runs.cluster, clusters)
    return np.flatnonzero(running.live & ~running.stopping & there)
