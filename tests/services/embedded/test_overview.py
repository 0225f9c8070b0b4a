"""What `atoll status` shows, and what `atoll up` shows on its way."""

import io
import json
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from rich.console import Console

from atoll.client.burst_views import BudgetInfo, BurstStatus, PolicyInfo, SpendInfo
from atoll.client.views import ClusterInfo, PlacementStatus
from atoll.embedded import overview
from atoll.embedded.layout import Layout
from atoll.embedded.lock import FolderLock
from atoll.embedded.overview import Overview, as_json, show, tables
from atoll.embedded.progress import LineProgress
from atoll.embedded.say import readable
from atoll.embedded.state import Board, PartState, PartView, Phase, Report

NOW = 1_000_000.0
REPORT = Report(
    name="default",
    pid=4242,
    started_at=NOW - 60,
    phase=Phase.READY,
    parts=(
        PartView(name="postgres", state=PartState.HEALTHY, pid=11, address="127.0.0.1:7090"),
        PartView(name="submission", state=PartState.HEALTHY, pid=12, address="127.0.0.1:7070"),
        PartView(name="placement", state=PartState.BACKOFF, restarts=2, detail="died"),
    ),
)
CLUSTER = ClusterInfo(
    name="hopper",
    backend="simulated",
    state="ACTIVE",
    cordoned=False,
    cordon_reason="",
    nodes_up=63,
    nodes=64,
    devices={"H100": 512},
    free_blocks={"H100": 51200},
    cpu_milli=1000,
    free_cpu_milli=1000,
    memory_bytes=1,
    free_memory_bytes=1,
    last_seen=NOW - 2,
    head_seq=0,
    sent_seq=0,
    acked_seq=0,
    live_attempts=0,
    can_guard=True,
)
STATUS = PlacementStatus(
    leader=True,
    leader_address="127.0.0.1:7072",
    epoch="7",
    queued=0,
    live_attempts=0,
    cycles=9,
    placements=3,
    rollbacks=1,
    placement_ms=(1.0, 2.0, 3.0),
)
WELL = Overview(REPORT, "127.0.0.1:7072", STATUS, clusters=(CLUSTER,))


RENTING = BurstStatus(
    leader="127.0.0.1:7078",
    policy=PolicyInfo(queue=""),
    instances={"READY": 2, "BOOTING": 1, "FAILED": 0},
    spend=SpendInfo(
        queue="",
        hour=Decimal("0.1"),
        month=Decimal(1),
        rate_per_hour=Decimal("0.052"),
        budget=BudgetInfo(per_hour=Decimal("0.25")),
    ),
    last=None,
    providers=(),
    next_at=NOW,
)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(name="default", data=tmp_path)


def printed(layout: Layout, seen: Overview) -> str:
    out = io.StringIO()
    console = Console(file=out, width=160)
    for piece in tables(layout, seen, now=NOW):
        console.print(piece)
    return out.getvalue()


def test_every_process_is_shown_with_what_is_known_of_it(layout: Layout) -> None:
    lines = [line.split() for line in printed(layout, WELL).splitlines()]
    assert ["postgres", "healthy", "11", "127.0.0.1:7090", "0"] in lines
    assert ["placement", "backoff", "-", "-", "2", "died"] in lines


def test_clusters_and_leader_are_shown(layout: Layout) -> None:
    text = printed(layout, WELL)
    assert "Leader: 127.0.0.1:7072" in text
    assert "hopper simulated ACTIVE 63/64 512 H100 2 s ago" in " ".join(text.split())


def test_it_is_told_how_far_forecasts_held(layout: Layout) -> None:
    assert "Forecasts" not in printed(layout, WELL)
    status = replace(STATUS, eta_starts=1234, eta_within=(0.5, 0.9), eta_error_s=321.0)
    text = printed(layout, replace(WELL, placement=status))
    assert "of 1,234 jobs that had to wait, 50% of the latest started by their p50" in text
    assert "90% by their p90; 321 s off" in text


def test_what_is_rented_is_shown_with_what_it_costs(layout: Layout) -> None:
    assert "Rented" not in printed(layout, WELL)
    text = printed(layout, replace(WELL, burst=RENTING))
    assert "Rented: 1 BOOTING, 2 READY; $0.052 an hour, $0.25 at most" in text
    told = json.loads(json.dumps(as_json(layout, replace(WELL, burst=RENTING))))
    assert told["rented"]["READY"] == 2
    nothing = replace(RENTING, instances={}, spend=replace(RENTING.spend, budget=BudgetInfo()))
    text = printed(layout, replace(WELL, burst=nothing))
    assert "Rented: nothing; $0.052 an hour, no bound" in text


def test_what_could_not_be_asked_is_named(layout: Layout) -> None:
    text = printed(layout, Overview(REPORT, unread=("clusters: no answer",)))
    assert "Leader: none" in text
    assert "Not read: clusters: no answer" in text


def test_json_has_everything(layout: Layout) -> None:
    told = json.loads(json.dumps(as_json(layout, WELL)))
    assert told["phase"] == "ready"
    assert told["leader"] == "127.0.0.1:7072"
    assert told["placement"]["rollbacks"] == 1
    assert [process["name"] for process in told["processes"]] == [
        "postgres",
        "submission",
        "placement",
    ]
    assert told["processes"][2]["restarts"] == 2
    assert told["clusters"][0]["last_seen"] == NOW - 2


def test_nothing_that_runs_is_told_with_exit_code_5(
    layout: Layout, capsys: pytest.CaptureFixture[str]
) -> None:
    assert show(layout, output="json") == 5
    assert json.loads(capsys.readouterr().out)["phase"] == "stopped"
    assert show(layout, output="table") == 5
    assert "does not run" in capsys.readouterr().out


@pytest.fixture
async def held(layout: Layout) -> AsyncIterator[None]:
    """The folder as a running supervisor holds it."""
    lock = await FolderLock.take(layout.lock)
    Board(layout.report, REPORT.model_copy(update={"pid": os.getpid()}))
    yield
    lock.release()


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize(
    ("seen", "code"),
    [
        (Overview(REPORT.model_copy(update={"parts": REPORT.parts[:2]}), leader="x"), 0),
        (Overview(REPORT.model_copy(update={"parts": REPORT.parts[:2]})), 1),
        (Overview(REPORT, leader="x"), 1),
    ],
    ids=["all is well", "no leader", "a process is not healthy"],
)
def test_the_exit_code_says_whether_all_is_well(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, seen: Overview, code: int
) -> None:
    monkeypatch.setattr(overview, "look", lambda _: seen)
    assert show(layout, output="table") == code


def test_off_a_terminal_each_change_is_a_line_once() -> None:
    out = io.StringIO()
    report = REPORT.model_copy(update={"step": "starting the services", "phase": Phase.STARTING})
    with LineProgress(Console(file=out)) as shown:
        shown.show(report)
        shown.show(report)
        shown.show(report.model_copy(update={"parts": (REPORT.parts[0],), "step": ""}))
    assert out.getvalue().splitlines() == [
        "postgres: healthy 127.0.0.1:7090",
        "submission: healthy 127.0.0.1:7070",
        "placement: backoff restarts: 2 (died)",
        "starting the services",
    ]


def test_of_a_running_stack_only_what_changes_is_told() -> None:
    out = io.StringIO()
    with LineProgress(Console(file=out)) as shown:
        shown.show(REPORT)
        ended = REPORT.parts[0].model_copy(update={"state": PartState.ENDED})
        shown.show(REPORT.model_copy(update={"parts": (ended, *REPORT.parts[1:])}))
    assert out.getvalue().splitlines() == ["postgres: ended"]


def test_a_log_is_told_as_a_person_would() -> None:
    entry = {
        "event": "service failed",
        "level": "error",
        "timestamp": "2026-01-02T03:04:05Z",
        "logger": "atoll.x",
        "service": "x",
        "cluster": "sim",
        "exception": "Traceback\n  a\n  b\n  c\n  d\nOSError: taken",
    }
    assert readable(f"plain\n{json.dumps(entry)}\n[1]").splitlines() == [
        "plain",
        "2026-01-02T03:04:05Z error service failed cluster=sim",
        "      b",
        "      c",
        "      d",
        "    OSError: taken",
        "[1]",
    ]
