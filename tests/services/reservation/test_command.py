"""`atoll resv` against the service: what people type, and what they read."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from atoll.cli.main import run
from atoll.runtime.rpc.server import GrpcServer
from atoll.runtime.settings import ServiceSettings
from tests.services.reservation.worlds import HOUR, World

Call = Callable[..., Awaitable[tuple[int, str, str]]]
H100 = ("--gpus", "H100:8", "--queue", "default")


@pytest.fixture
async def resv(
    timed: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> AsyncIterator[Call]:
    """Calls the command; its exit code and what it printed."""
    await timed.cluster("n1", "n2")
    server = GrpcServer(
        ServiceSettings(drain_s=0), timed.service.services(), clock=timed.clock, ids=timed.ids
    )
    await server.start()
    monkeypatch.setenv("ATOLL_RESERVATION", server.address)

    async def call(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = await asyncio.to_thread(run, ["resv", *words])
        return code, *capsys.readouterr()

    yield call
    timed.service.wake.stop()
    await server.drain()


def at(world: World, hours: float) -> str:
    """A time on the world's clock, in UTC."""
    return datetime.fromtimestamp(world.clock.now() + hours * HOUR, UTC).isoformat()


async def test_a_booking_is_made_shown_listed_and_cancelled(timed: World, resv: Call) -> None:
    times = ("--start", at(timed, 2), "--length", "4h")
    code, told, _ = await resv("create", "exam", *H100, *times, "--note", "for the exam")
    assert code == 0
    for line in ("  books    8 x H100", "  for      default", "  note     for the exam"):
        assert line in told.splitlines()
    assert "PLANNED  north: n" in told
    _, listed, _ = await resv("ls")
    assert [line.split()[1] for line in listed.splitlines()] == ["NAME", "exam"]
    _, shown, _ = await resv("show", "exam", "-o", "json")
    assert json.loads(shown)["spec"]["note"] == "for the exam"
    assert await resv("cancel", "exam") == (0, "exam cancelled\n", "")
    assert (await resv("ls"))[2] == "no reservations\n"


async def test_a_refusal_names_what_is_in_the_way_and_what_could_be_had(
    timed: World, resv: Call
) -> None:
    times = ("--start", at(timed, 2), "--length", "4h")
    assert (await resv("create", "all", "--nodes", "2", "--maintenance", *times))[0] == 0
    code, _, told = await resv("create", "late", *H100, *times)
    assert code == 4
    assert "BOOKING_REFUSED" in told
    assert "all" in told.split("could be had instead:", maxsplit=1)[0]
    assert [line[:4] for line in told.splitlines() if "north" in line][-3:] == [
        "  1.", "  2.", "  3.",
    ]  # fmt: skip


async def test_windows_are_found_and_ends_are_moved(timed: World, resv: Call) -> None:
    code, found, _ = await resv("find", *H100[:2], "--length", "1h", "-n", "1", "-o", "json")
    assert code == 0
    assert len(json.loads(found)["windows"]) == 1
    code, never, _ = await resv("find", "--gpus", "H100:99", "--length", "1h")
    assert (code, never.splitlines()[0]) == (6, "no window; in the way:")
    await resv("create", "exam", *H100, "--start", at(timed, 2), "--length", "4h")
    code, told, _ = await resv("extend", "exam", "--by", "30m")
    assert (code, "4h30m" in told) == (0, True)
    assert (await resv("set", "exam", "--length", "2h", "--priority", "3"))[0] == 0
    changed = json.loads((await resv("show", "exam", "-o", "json"))[1])
    assert (changed["spec"]["when"]["length_s"], changed["spec"]["priority"]) == (7200, 3)


async def test_the_calendar_is_drawn_and_carried_over(
    timed: World, resv: Call, tmp_path: Path
) -> None:
    await resv("create", "exam", *H100, "--start", at(timed, 24), "--length", "24h")
    span = ("--since", at(timed, 0), "--until", at(timed, 96), "--step", "12h")
    _, chart, _ = await resv("calendar", *span)
    lines = chart.splitlines()
    booked = next(line for line in lines if line.startswith("north H100 (16)"))
    assert booked.rpartition("booked  ")[2] == "  ▄▄    "
    assert next(line for line in lines if line.startswith("exam")).split()[1] == "··━━····"
    picture = tmp_path / "calendar.png"
    assert (await resv("calendar", *span, "--png", str(picture)))[0] == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    text = tmp_path / "exam.ics"
    assert (await resv("export", "--since", at(timed, 0), "-f", str(text)))[0] == 0
    assert "SUMMARY:exam" in text.read_text(encoding="utf-8")


async def test_rules_are_put_from_a_file(resv: Call, tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("name: large\nlarge_job: {devices_above: 8, gaurantee: true}\n")
    code, _, told = await resv("rules", "put", str(file))
    assert (code, "did you mean `guaranteed`?" in told) == (3, True)
    file.write_text(
        "name: large\nlarge_job: {devices_above: 8, guaranteed: true}\n---\n"
        "name: racks\nrolling_maintenance: {cluster: north, level: rack, length: 2h}\n"
    )
    assert (await resv("rules", "put", str(file)))[1] == "rule large set\nrule racks set\n"
    _, listed, _ = await resv("rules", "ls")
    assert "books for jobs above 8 devices and guaranteed deadlines" in listed
    assert "maintains north, 1 rack at once, 2h each" in listed
    assert "rule racks deleted" in (await resv("rules", "delete", "racks"))[1]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("create", "x", "--start", "+1h", "--length", "1h"), "say for whom"),
        (("create", "x", "--maintenance", "--start", "+1h", "--length", "1h"), "what to book"),
        (("create", "x", *H100, "--length", "1h"), "say when"),
        (("create", "x", *H100, "--start", "noon", "--length", "1h"), "`noon` is no time"),
        (("create", "x", *H100, "--start", "+1h"), "say how long"),
        (("find", "--gpus", "H100:9", "--per-node", "2", "--length", "1h"), "units of 2"),
        (("extend", "x"), "say either --until TIME or --by LENGTH"),
    ],
)
async def test_what_is_missing_is_told(resv: Call, words: tuple[str, ...], told: str) -> None:
    code, _, error = await resv(*words)
    assert (code, told in error) == (2, True)
