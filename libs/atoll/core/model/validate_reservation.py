"""The rules that a reservation and a standing rule keep, as far as no clock or cluster is needed.

All violations at once, named by path. Of times and recurrences `engine/bookings/checks` knows more.
"""

import re
from collections.abc import Collection
from typing import Final

from atoll.core.model.booking import OnEnd, Owners
from atoll.core.model.mig import ALL_PROFILES
from atoll.core.model.reservation import (
    Amount,
    Flexible,
    ReservationSpec,
    What,
    When,
    WholeDomains,
    WholeNodes,
)
from atoll.core.model.validate_faults import Faults, shown
from atoll.core.model.validate_shape import (
    MOST_CPU_MILLI,
    MOST_MEMORY_BYTES,
    check_device,
)
from atoll.core.model.validate_text import (
    CONTROL,
    check_labels,
    check_queue_name,
    check_text,
    check_topology_level,
)
from atoll.core.model.validate_wishes import MOST_GRACE_S, MOST_UNIX_S, YEAR_S

NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,63}", re.ASCII)
CLUSTER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
SHORTEST_S: Final = 60.0
LONGEST_S: Final = 2.0 * YEAR_S
MOST_AMOUNTS: Final = 16
MOST_UNITS: Final = 1_000_000
MOST_NAMES: Final = 10_000
MOST_OWNERS: Final = 64
MOST_NOTE: Final = 4_096
MOST_EXDATES: Final = 1_000
MOST_PRIORITY: Final = 1_000_000


def check_booking(
    faults: Faults, at: str, spec: ReservationSpec, *, profiles: Collection[str] = ALL_PROFILES
) -> None:
    """Everything that is wrong with a spec; `at` is its path."""
    check_booking_name(faults, f"{at}.name", spec.name)
    check_what(faults, f"{at}.what", spec.what, profiles=profiles)
    check_owners(faults, f"{at}.owners", spec.owners)
    check_when(faults, f"{at}.when", spec.when)
    faults.number(f"{at}.priority", spec.priority, least=-MOST_PRIORITY, most=MOST_PRIORITY)
    faults.number(f"{at}.bind_before_s", spec.bind_before_s, least=0, most=YEAR_S)
    faults.number(f"{at}.release_after_idle_s", spec.release_after_idle_s, least=0, most=YEAR_S)
    _check_end(faults, at, spec)
    if spec.charge and not spec.owners.queues:
        faults.add(f"{at}.charge", "there is no queue among the owners that could be charged")
    if len(spec.note) > MOST_NOTE or "\0" in spec.note:
        faults.add(f"{at}.note", f"is longer than {MOST_NOTE:,} characters, or holds a NUL")


def check_booking_name(faults: Faults, at: str, name: str) -> None:
    """1 to 63 letters, digits, `.`, `_`, `-`."""
    if not NAME.fullmatch(name):
        faults.add(at, f"{shown(name)} is no name: 1 to 63 letters, digits, `.`, `_` and `-`")


def check_what(
    faults: Faults, at: str, what: What, *, profiles: Collection[str] = ALL_PROFILES
) -> None:
    """Exactly one thing, in amounts that can be counted."""
    given = [bool(what.amounts), what.nodes is not None, what.domains is not None, what.percent > 0]
    if sum(given) != 1:
        faults.add(at, "needs exactly one of amounts, nodes, domains and percent")
    faults.length(f"{at}.amounts", len(what.amounts), least=0, most=MOST_AMOUNTS, of="amounts")
    for i, amount in enumerate(what.amounts):
        _check_amount(faults, f"{at}.amounts[{i}]", amount, profiles=profiles)
    if what.nodes is not None:
        _check_nodes(faults, f"{at}.nodes", what.nodes)
    if what.domains is not None:
        _check_domains(faults, f"{at}.domains", what.domains)
    faults.number(f"{at}.percent", what.percent, least=0, most=100)
    if what.percent and not what.clusters:
        faults.add(f"{at}.clusters", "is empty; `percent` is of clusters that are named")
    _check_clusters(faults, f"{at}.clusters", what.clusters)
    if what.split and not what.amounts:
        faults.add(f"{at}.split", "only amounts can be put together from several clusters")


def check_owners(faults: Faults, at: str, owners: Owners) -> None:
    """Names that are names."""
    count = len(owners.queues) + len(owners.users)
    faults.length(at, count, least=0, most=MOST_OWNERS, of="queues and users")
    for i, queue in enumerate(owners.queues):
        check_queue_name(faults, f"{at}.queues[{i}]", queue)
    for i, user in enumerate(owners.users):
        check_text(faults, f"{at}.users[{i}]", user, most=256)
        if not user:
            faults.add(f"{at}.users[{i}]", "is empty")
    check_labels(faults, f"{at}.labels", owners.labels)


def check_when(faults: Faults, at: str, when: When) -> None:
    """One start, a length, and nothing that contradicts it."""
    given = [when.start_at is not None, bool(when.start_local), when.flexible is not None]
    if sum(given) != 1:
        faults.add(at, "needs exactly one of start_at, start_local and flexible")
    faults.number(f"{at}.length_s", when.length_s, least=SHORTEST_S, most=LONGEST_S, unit="s")
    if when.start_at is not None:
        faults.number(f"{at}.start_at", when.start_at, least=0, most=MOST_UNIX_S)
    if when.flexible is not None:
        _check_flexible(faults, f"{at}.flexible", when.flexible, length_s=when.length_s)
        if when.rrule:
            faults.add(f"{at}.rrule", "a flexible window cannot recur")
    faults.length(f"{at}.exdates", len(when.exdates), least=0, most=MOST_EXDATES, of="dates")
    if when.exdates and not when.rrule:
        faults.add(f"{at}.exdates", "there is no recurrence to leave anything out of")


def _check_flexible(faults: Faults, at: str, span: Flexible, *, length_s: float) -> None:
    faults.number(f"{at}.earliest_at", span.earliest_at, least=0, most=MOST_UNIX_S)
    if not faults.number(f"{at}.latest_end_at", span.latest_end_at, least=0, most=MOST_UNIX_S):
        return
    if span.latest_end_at <= span.earliest_at:
        faults.add(f"{at}.latest_end_at", "is not after earliest_at: it ends before it starts")
    elif span.latest_end_at - span.earliest_at < length_s:
        room = span.latest_end_at - span.earliest_at
        faults.add(f"{at}.latest_end_at", f"leaves {room:,.0f} s for a window of {length_s:,.0f} s")


def _check_end(faults: Faults, at: str, spec: ReservationSpec) -> None:
    faults.number(f"{at}.end_grace_s", spec.end_grace_s, least=0, most=MOST_GRACE_S)
    if spec.on_end is OnEnd.GRACE and not spec.end_grace_s > 0:
        faults.add(f"{at}.end_grace_s", "is 0, but on_end grants a grace")
    if spec.on_end is not OnEnd.GRACE and spec.end_grace_s > 0:
        faults.add(f"{at}.end_grace_s", "means nothing unless on_end grants a grace")


def _check_amount(faults: Faults, at: str, amount: Amount, *, profiles: Collection[str]) -> None:
    faults.number(f"{at}.count", amount.count, least=1, most=MOST_UNITS, unit="units")
    if amount.cpu_milli is not None:
        faults.number(f"{at}.cpu_milli", amount.cpu_milli, least=0, most=MOST_CPU_MILLI)
    if amount.memory_bytes is not None:
        faults.number(f"{at}.memory_bytes", amount.memory_bytes, least=0, most=MOST_MEMORY_BYTES)
    if amount.device is not None:
        check_device(faults, f"{at}.device", amount.device, profiles=profiles)
    elif not (amount.cpu_milli or amount.memory_bytes):
        faults.add(at, "is of nothing: it names neither a device nor CPU nor memory")


def _check_nodes(faults: Faults, at: str, nodes: WholeNodes) -> None:
    _check_counted(faults, at, nodes.count, names=nodes.names, of="nodes")
    check_labels(faults, f"{at}.labels", nodes.labels)
    if nodes.names and nodes.labels:
        faults.add(f"{at}.labels", "nodes are named already")


def _check_domains(faults: Faults, at: str, domains: WholeDomains) -> None:
    check_topology_level(faults, f"{at}.level", domains.level)
    _check_counted(faults, at, domains.count, names=domains.names, of="domains")


def _check_counted(faults: Faults, at: str, count: int, *, names: tuple[str, ...], of: str) -> None:
    if names and count:
        faults.add(f"{at}.count", f"is {count:,}, but the {of} are named: leave it at 0")
    elif not names:
        faults.number(f"{at}.count", count, least=1, most=MOST_NAMES, unit=of)
    faults.length(f"{at}.names", len(names), least=0, most=MOST_NAMES, of="names")
    for i, name in enumerate(names):
        cluster, slash, rest = name.partition("/")
        if not (slash and rest and CLUSTER.fullmatch(cluster)) or CONTROL.search(name):
            faults.add(f"{at}.names[{i}]", f"{shown(name)} is not of the form cluster/name")
    if len(set(names)) < len(names):
        faults.add(f"{at}.names", "a name is listed twice")


def _check_clusters(faults: Faults, at: str, clusters: tuple[str, ...]) -> None:
    faults.length(at, len(clusters), least=0, most=MOST_NAMES, of="clusters")
    for i, name in enumerate(clusters):
        if not CLUSTER.fullmatch(name):
            faults.add(f"{at}[{i}]", f"{shown(name)} is no name of a cluster")
    if len(set(clusters)) < len(clusters):
        faults.add(at, "a cluster is listed twice")
