"""Options that say what is booked, for whom, and when."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from cyclopts import Parameter

from atoll.cli.failures import WrongUse
from atoll.cli.moments import is_local, length, local_text, moment
from atoll.cli.pairs import labels_of
from atoll.client.spec.accelerators import parse_accelerators
from atoll.client.spec.quantities import cpu_milli, memory_bytes
from atoll.core.model.booking import Owners
from atoll.core.model.ids import ClusterName, QueueName
from atoll.core.model.reservation import (
    Amount,
    Flexible,
    Preference,
    What,
    When,
    WholeDomains,
    WholeNodes,
)
from atoll.core.model.resources import DeviceRequest

Words = Annotated[tuple[str, ...], Parameter(negative=())]
Prefer = Literal["early", "late", "cheapest"]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Capacity:
    """What is booked."""

    gpus: Annotated[
        Words, Parameter(help="H100:16, H100:0.25, H100:1g.10gb:4; may be given again.")
    ] = ()
    per_node: Annotated[
        int, Parameter(help="Whole accelerators of --gpus that are to be on one node.")
    ] = 1
    cpus: Annotated[
        str | None, Parameter(help="CPUs of each unit; its share of the node if not given.")
    ] = None
    memory: Annotated[
        str | None, Parameter(help="Memory of each unit; its share of the node if not given.")
    ] = None
    nodes: Annotated[int, Parameter(help="Whole nodes.")] = 0
    node: Annotated[Words, Parameter(help="CLUSTER/NODE, as a whole; may be given again.")] = ()
    node_label: Annotated[
        Words, Parameter(help="Label that whole nodes must have, KEY=VALUE; may be given again.")
    ] = ()
    domains: Annotated[str, Parameter(help="Whole domains: LEVEL:NUMBER, such as rack:2.")] = ""
    domain: Annotated[
        Words, Parameter(help="CLUSTER/LEVEL/DOMAIN, such as west/rack/r7; may be given again.")
    ] = ()
    percent: Annotated[int, Parameter(help="Per cent of each --cluster.")] = 0
    cluster: Annotated[Words, Parameter(help="Only there; may be given again.")] = ()
    split: Annotated[
        bool, Parameter(negative=(), help="It may be put together from several clusters.")
    ] = False

    def what(self) -> What | None:
        """What is given, as the client takes it; None when nothing is."""
        if not (self.gpus or self.nodes or self.node or self.domains or self.domain) and (
            not self.percent
        ):
            return None
        return What(
            amounts=tuple(self._amounts()),
            nodes=self._nodes(),
            domains=self._domains(),
            percent=self.percent,
            clusters=tuple(ClusterName(name) for name in self.cluster),
            split=self.split,
        )

    def wanted(self) -> What:
        """What is given; WrongUse when nothing is."""
        what = self.what()
        if what is None:
            raise WrongUse("say what to book: --gpus, --nodes, --node, --domains or --percent")
        return what

    def _amounts(self) -> Iterator[Amount]:
        for text in self.gpus:
            try:
                unit, count = _unit(parse_accelerators(text), self.per_node)
                cpu = cpu_milli(self.cpus) if self.cpus is not None else None
                memory = memory_bytes(self.memory) if self.memory is not None else None
            except ValueError as error:
                raise WrongUse(f"--gpus {text}: {error}") from None
            yield Amount(unit, count, cpu, memory)

    def _nodes(self) -> WholeNodes | None:
        if not (self.nodes or self.node):
            return None
        labels = labels_of(self.node_label, "node-label")
        return WholeNodes(self.nodes, self.node, tuple(sorted(labels.items())))

    def _domains(self) -> WholeDomains | None:
        if self.domains:
            level, colon, count = self.domains.partition(":")
            if not (colon and count.isdigit()):
                raise WrongUse(f"--domains {self.domains}: write LEVEL:NUMBER, such as rack:2")
            return WholeDomains(level, int(count))
        if not self.domain:
            return None
        parts = [name.split("/") for name in self.domain]
        levels = {part[1] for part in parts if len(part) == 3}
        if len(levels) != 1 or any(len(part) != 3 for part in parts):
            raise WrongUse("--domain: write CLUSTER/LEVEL/DOMAIN, all of one level")
        names = tuple(f"{cluster}/{domain}" for cluster, _, domain in parts)
        return WholeDomains(levels.pop(), names=names)


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Whom:
    """For whom it is booked."""

    queue: Annotated[
        Words, Parameter(name=("--queue", "-q"), help="Queue, and all below; may be given again.")
    ] = ()
    user: Annotated[Words, Parameter(help="User; may be given again.")] = ()
    label: Annotated[
        Words, Parameter(help="Label of jobs, KEY=VALUE, each enough; may be given again.")
    ] = ()
    maintenance: Annotated[bool, Parameter(negative=(), help="For nobody: nothing runs there.")] = (
        False
    )

    def owners(self) -> Owners | None:
        """Whom it is for; None when nothing is said."""
        labels = labels_of(self.label, "label")
        found = Owners(
            queues=tuple(QueueName(name) for name in self.queue),
            users=self.user,
            labels=tuple(sorted(labels.items())),
        )
        if self.maintenance and not found.nobody:
            raise WrongUse("--maintenance is for nobody: leave --queue, --user and --label out")
        return None if found.nobody and not self.maintenance else found


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Time:
    """When, and how often."""

    start: Annotated[
        str, Parameter(help="2026-12-07T09:00 (in --zone), 2026-12-07T09:00+01:00, +2h or now.")
    ] = ""
    length: Annotated[str, Parameter(help="How long: 4h, 90m, 2d.")] = ""
    zone: Annotated[str, Parameter(help="Time zone, such as Europe/Berlin; UTC.")] = ""
    repeat: Annotated[
        str, Parameter(help="RFC 5545 rule: FREQ=WEEKLY;BYDAY=MO,WE. Follows --zone.")
    ] = ""
    except_: Annotated[
        Words,
        Parameter(name="--except", help="Local start that is left out; may be given again."),
    ] = ()
    earliest: Annotated[
        str, Parameter(help="Instead of --start: any time from here on, until --latest-end.")
    ] = ""
    latest_end: Annotated[str, Parameter(help="By when it has ended, with --earliest.")] = ""
    prefer: Annotated[Prefer, Parameter(help="Which of several windows is taken.")] = "early"

    @property
    def given(self) -> bool:
        """Whether anything is said of a time."""
        return bool(self.start or self.length or self.earliest or self.repeat or self.latest_end)

    def when(self, now: float) -> When:
        """As the client takes it; relative times count from `now`."""
        if not self.length:
            raise WrongUse("say how long: --length 4h")
        if bool(self.start) == bool(self.earliest):
            raise WrongUse("say when: --start TIME, or --earliest TIME with --latest-end TIME")
        return self.changed(When(0.0), now)

    def changed(self, old: When, now: float) -> When:
        """`old` with what is given."""
        new = replace(
            old,
            length_s=length(self.length, "length") if self.length else old.length_s,
            zone=self.zone or old.zone,
            rrule=self.repeat or old.rrule,
            exdates=tuple(map(local_text, self.except_)) or old.exdates,
        )
        if self.earliest:
            return replace(new, flexible=self.span(now), start_at=None, start_local="")
        if is_local(self.start):
            local = local_text(self.start)
            return replace(new, start_local=local, start_at=None, flexible=None)
        if self.start:
            at = moment(self.start, "start", now=now)
            return replace(new, start_at=at, start_local="", flexible=None)
        return new

    def span(self, now: float) -> Flexible:
        """The span in which it may lie."""
        if not self.latest_end:
            raise WrongUse("--earliest needs --latest-end")
        return Flexible(
            moment(self.earliest, "earliest", now=now, zone=self.zone),
            moment(self.latest_end, "latest-end", now=now, zone=self.zone),
            Preference(self.prefer),
        )


def _unit(request: DeviceRequest, per_node: int) -> tuple[DeviceRequest, int]:
    """One unit of a booking, and how many of it: accelerators need not be on one node."""
    if not (request.whole or request.profile):
        return request, 1
    if per_node < 1 or request.count % per_node:
        raise ValueError(f"{request.count} cannot be had in units of {per_node} (--per-node)")
    unit = DeviceRequest(request.kind, per_node, request.blocks, request.profile)
    return unit, request.count // per_node


NO_CAPACITY, NO_OWNERS, NO_TIME = Capacity(), Whom(), Time()
