"""Rolling maintenance: domain after domain, so many at once at most, around other bookings.

Where it is follows from what was booked: a node whose window was held is done, one whose window
was cancelled is not. So it goes on after a failure where it was, and every node is done once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from atoll.core.engine.bookings.recurrence import occurrences
from atoll.core.engine.bookings.rules.wishes import DONE, Book, Facts, Verdict, live, name_of
from atoll.core.model.reservation import (
    Flexible,
    Occurrence,
    ReservationSpec,
    What,
    When,
    WholeDomains,
    WholeNodes,
)
from atoll.core.model.standing_rule import RollingMaintenanceRule, Rule

AHEAD_S: Final = 90 * 86_400.0
MOST_STARTS: Final = 16
"""Starts within the hours that are tried for one domain."""


def rolling_maintenance(
    rule: Rule, kind: RollingMaintenanceRule, facts: Facts, *, now: float
) -> Verdict:
    """Windows for the next domains, as many as may be out at once.

    Raises BadTime when the rule's hours cannot be read.
    """
    made = _Round(rule, kind, facts)
    room = max(0, kind.most_at_once - len(made.out))
    late = bool(kind.end_at) and now + kind.length_s > kind.end_at
    due = [] if late else list(made.todo.items())[:room]
    wishes = tuple(
        book for domain, nodes in due for book in _book(made, domain, nodes=nodes, now=now)
    )
    return Verdict(wishes, _status(made, late=late))


@dataclass(frozen=True, slots=True)
class _Round:
    """A rule with what it has booked so far."""

    rule: Rule
    kind: RollingMaintenanceRule
    facts: Facts

    @property
    def out(self) -> list[Occurrence]:
        """Windows that are to come, or last."""
        return [at for _, at in live(self.facts.made)]

    @property
    def done(self) -> set[str]:
        """Nodes whose window was held."""
        held = (at for _, at in self.facts.made if at.state in DONE and at.started_at)
        return {node for at in held if at.start_at >= self.kind.start_at for node in _nodes(at)}

    @property
    def todo(self) -> Mapping[str, Sequence[str]]:
        """Domains by name, with those of their nodes that are neither done nor booked."""
        taken = self.done | {node for at in self.out for node in _nodes(at)}
        domains = sorted(self.facts.domains.items())
        left = {domain: [n for n in nodes if n not in taken] for domain, nodes in domains}
        return {domain: nodes for domain, nodes in left.items() if nodes}


def _nodes(at: Occurrence) -> Iterator[str]:
    return (f"{part.cluster}/{share.node_name}" for part in at.parts for share in part.shares)


def _book(made: _Round, domain: str, *, nodes: Sequence[str], now: float) -> Iterator[Book]:
    kind, total = made.kind, len(made.facts.domains[domain])
    whole = len(nodes) == total
    # Nodes that came to a domain after it was done are done alone.
    what = What(domains=WholeDomains(kind.level, names=(domain,)))
    if not whole:
        what = What(nodes=WholeNodes(names=tuple(sorted(nodes))))
    name = name_of(made.rule, domain.rpartition("/")[2])
    specs = [ReservationSpec(name, what, when) for when in _times(kind, now=now)]
    if specs:
        left = f"{len(made.todo)} of {len(made.facts.domains)} are left"
        told = "" if whole else f"; {len(nodes)} of its {total} nodes only"
        yield Book(specs[0], f"{domain} is next, {left}{told}", tuple(specs[1:]))


def _times(kind: RollingMaintenanceRule, *, now: float) -> Iterator[When]:
    earliest = max(now, kind.start_at)
    latest = kind.end_at or earliest + kind.length_s + AHEAD_S
    if not kind.hours_rrule:
        yield When(kind.length_s, flexible=Flexible(earliest, latest))
        return
    # The hours begin with the rule itself; they are as many as it takes to reach the present.
    hours = When(kind.length_s, start_at=kind.start_at, zone=kind.zone, rrule=kind.hours_rrule)
    spans = occurrences(hours, earliest, latest - kind.length_s, most=MOST_STARTS).spans
    for span in spans:
        yield When(kind.length_s, start_at=span.start)


def _status(made: _Round, *, late: bool) -> str:
    total = sum(len(nodes) for nodes in made.facts.domains.values())
    left = sum(len(nodes) for nodes in made.todo.values())
    out = f"{len(made.out)} windows are out"
    if left and late:
        return f"ended with {left:,} of {total:,} nodes left: there is no more time; {out}"
    if left:
        return f"{left:,} of {total:,} nodes are left, {next(iter(made.todo))} is next; {out}"
    return (
        f"all {total:,} nodes are done" if not made.out else f"the last of {total:,} nodes; {out}"
    )
