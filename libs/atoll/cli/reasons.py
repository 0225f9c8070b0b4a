"""Reasons, tallies, holders and forecasts as lines that a person reads."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from atoll.cli.moments import lasting
from atoll.cli.render import aligned
from atoll.cli.words import ago, bytes_text, cpus_text, devices_text, plural, span
from atoll.client.candidates import Candidate
from atoll.client.views import Eta, Hold, Holder, Reason, Tally

_MINUTE_S: Final = 60.0


def reason_lines(reasons: Iterable[Reason]) -> Iterator[str]:
    """Every blocker, the strongest first, each after an empty line."""
    for n, reason in enumerate(reasons, start=1):
        yield ""
        yield f"{n}. {reason.code}{f' on {reason.cluster}' if reason.cluster else ''}"
        yield f"   {reason.message}"
        if numbers := _numbers(reason):
            yield f"   {numbers}"
        if reason.help:
            yield f"   What would help: {reason.help}"


def tally_lines(tallies: Sequence[Tally]) -> Iterator[str]:
    """Nodes by reason, a line a cluster."""
    if tallies:
        yield ""
        yield "Nodes:"
        yield from (f"  {_tally(tally)}" for tally in tallies)


def holder_lines(holders: Sequence[Holder], now: float) -> Iterator[str]:
    """Who holds what is needed, the first to end first."""
    if not holders:
        return
    yield ""
    yield "Held by:"
    rows = [
        (
            holder.attempt,
            holder.queue,
            holder.cluster,
            amount_text(holder.amount, holder.unit),
            _until(holder, now),
        )
        for holder in holders
    ]
    yield from (f"  {line}" for line in aligned(rows, (True, False, False, False, False)))


def eta_lines(eta: Eta | None, now: float) -> Iterator[str]:
    """When it will start, as far as somebody can tell."""
    if eta is None:
        return
    yield ""
    where = f" on {eta.cluster}" if eta.cluster else ""
    if eta.promised:
        yield f"Starts by {_at(eta.p50_at, now)}{where}: {eta.cause}."
        return
    yield f"Starts{where} about {_at(eta.p50_at, now)}, with 90 % by {_at(eta.p90_at, now)}."
    if eta.cause:
        yield f"  {eta.cause}"
    if eta.if_nothing_arrives_at:
        yield f"  If nothing else is submitted: {_at(eta.if_nothing_arrives_at, now)}."


def hold_lines(hold: Hold | None, now: float) -> Iterator[str]:
    """What is held for it."""
    if hold is not None:
        yield ""
        victims = ", ".join(hold.victims) or "nobody"
        left = span(hold.until - now)
        yield f"Its place on {hold.cluster} is held for another {left}; being stopped: {victims}."


def candidate_lines(candidates: Sequence[Candidate], now: float) -> Iterator[str]:
    """Where it could run, the best first."""
    if not candidates:
        return
    yield ""
    yield "Where it could run:"
    rows = [("PLACE", "STARTS", "ENDS", "COST", "TOTAL", "WHY")]
    rows += [_place(each, now) for each in candidates]
    yield from (f"  {line}" for line in aligned(rows, (False, True, True, True, True, False)))


def amount_text(number: int, unit: str) -> str:
    """`2 devices`, `1.5 CPU`, `3GiB`."""
    match unit:
        case "bytes":
            return bytes_text(number)
        case "milli-CPU":
            return f"{cpus_text(number)} CPU"
        case "blocks":
            return f"{devices_text(number)} devices"
        case _:
            return f"{number:,} {unit}".rstrip()


def as_of_line(as_of: float, now: float) -> str:
    """How old what was told is."""
    age = ago(as_of, now)
    return "As of now." if age == "0s" else f"As of {age} ago."


def _until(holder: Holder, now: float) -> str:
    if holder.stopping:
        return "being stopped"
    return f"ends in {span(holder.until - now)} at the latest" if holder.until else "no time limit"


def _at(then: float, now: float) -> str:
    clock = datetime.fromtimestamp(then, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"{clock} (in {span(then - now)})"


def _place(each: Candidate, now: float) -> tuple[str, str, str, str, str, str]:
    place = each.offer or each.cluster
    if not (each.start_at and each.allowed):
        return place, "-", "-", "-", "-", each.why
    starts, ends = _in(each.start_at, now), _in(each.finish_at, now)
    return place, starts, ends, f"${each.price:,.2f}", f"${each.total:,.2f}", each.why


def _in(then: float, now: float) -> str:
    wait_s = then - now
    if wait_s < 1:
        return "now"
    return f"in {lasting(wait_s) if wait_s >= _MINUTE_S else span(wait_s)}"


def _numbers(reason: Reason) -> str:
    if not (reason.needed or reason.available):
        return ""
    at = f", on {plural(reason.count, 'node')}" if reason.count else ""
    return f"needs {amount_text(reason.needed, reason.unit)}, there {_are(reason)}{at}"


def _are(reason: Reason) -> str:
    verb = "is" if reason.available == 1 else "are"
    return f"{verb} {amount_text(reason.available, reason.unit)} at best"


def _tally(tally: Tally) -> str:
    parts = sorted(tally.counts.items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"{count:,} {code}" for code, count in parts)
    return f"{tally.cluster} ({tally.nodes:,}): {shown}"
