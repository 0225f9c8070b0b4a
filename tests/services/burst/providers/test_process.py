"""Instances that are processes: they outlive the broker, and nothing outlives them."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from atoll.adapters.system import SystemClock
from atoll.agent.settings import AgentSettings
from atoll.burst.providers.folders import FORCE_AFTER_S, Folder
from atoll.burst.providers.process import ProcessProvider, ProcessSettings
from atoll.burst.providers.processes import is_alive, writers
from atoll.burst.providers.site import Site
from atoll.core.model.burst import Market, Offer
from atoll.ports.provider import Phase, Sighting
from tests.services.burst.providers.grounds import end_all
from tests.services.burst.providers.orders import DEPLOYMENT, order
from tests.services.burst.providers.waiting import until, until_asked

BROKER = """
import asyncio, os, signal, sys
from pathlib import Path
from atoll.adapters.system import SystemClock
from atoll.burst.providers.registry import Site, make_provider
from tests.services.burst.providers.orders import DEPLOYMENT, order

async def main():
    site = Site(SystemClock(), DEPLOYMENT, Path(sys.argv[1]))
    broker = make_provider("process", {"boot_s": 3600}, site)
    await broker.create(order("one", (await broker.offers())[0]))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
STUBBORN = "trap '' TERM; echo up; while :; do sleep 60; done"
WITH_CHILD = "setsid bash -c \"trap '' TERM; echo child; sleep 600\" & wait"


@pytest.fixture
async def root(tmp_path: Path) -> AsyncIterator[Path]:
    """Of all instances; what runs there is ended."""
    yield tmp_path
    await end_all(provider(tmp_path))


def provider(root: Path, *, deployment: str = DEPLOYMENT, **given: Any) -> ProcessProvider:
    settings = ProcessSettings.model_validate({"grace_s": 0.2} | given)
    dispatch = ("127.0.0.1:9",)
    return ProcessProvider("process", settings, Site(SystemClock(), deployment, root, dispatch))


async def first_offer(broker: ProcessProvider, market: Market = Market.SPOT) -> Offer:
    return next(offer for offer in await broker.offers() if offer.market is market)


async def seen_as(broker: ProcessProvider, phase: Phase, token: str = "one") -> Sighting:
    async def is_so() -> bool:
        return (await broker.describe([token]))[0].phase is phase

    await until_asked(is_so)
    return (await broker.describe([token]))[0]


def staged(root: Path, script: str, **machine: Any) -> Folder:
    """An instance with a script in the agent's place."""
    folder = Folder(root / "process" / "one")
    order = {
        "deployment": DEPLOYMENT,
        "cluster": "burst-1",
        "zone": "here",
        "instance_type": "process",
        "market": "spot",
        "created_at": 1.0,
    }
    defaults = {"boot_s": 0, "boots": True, "lasts_s": 0, "notice_s": 0, "grace_s": 0.2}
    told = defaults | {"argv": ["/bin/bash", "-c", script], "ends_with": 0} | machine
    folder.create(order, {"machine.json": json.dumps(told)})
    return folder


def log_of(folder: Folder) -> str:
    path = folder.path / "agent.log"
    return path.read_text() if path.exists() else ""


async def test_a_real_agent_runs_and_is_ended(root: Path) -> None:
    types = {"big": {"cpu": 3, "kind": "H100", "devices": 2}}
    broker = provider(root, types=types, grace_s=10.0)
    made = await broker.create(order("one", await first_offer(broker)))
    folder = root / "process" / "one"
    journal = folder / "data" / "journal"
    await until(lambda: journal.exists() or "error" in log_of(Folder(folder)))
    assert journal.exists(), log_of(Folder(folder))
    assert (await seen_as(broker, Phase.RUNNING)).zone == "here"
    assert (folder / "agent.yaml").stat().st_mode & 0o077 == 0
    await broker.terminate(made.provider_id)
    await seen_as(broker, Phase.GONE)
    assert not writers(folder)
    assert not (folder / "data").exists()
    assert not (folder / "agent.yaml").exists()


async def test_an_agent_may_show_several_machines(root: Path) -> None:
    types = {"pair": {"kind": "H100", "devices": 2, "nodes": 2, "on_demand": 3}}
    broker = provider(root, types=types, zones={"here": {"boots": False}})
    offer = await first_offer(broker, Market.ON_DEMAND)
    assert (offer.nodes, offer.units, offer.price) == (2, 4, 3_000_000)
    await broker.create(order("one", offer))
    told = yaml.safe_load((root / "process" / "one" / "agent.yaml").read_text())["agent"]
    assert AgentSettings(**told).node_count == 2


async def test_it_outlives_a_broker_that_is_killed_and_is_found_again(root: Path) -> None:
    died = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", BROKER, str(root)], check=False, timeout=60
    )
    assert died.returncode == -signal.SIGKILL
    broker = provider(root)
    (seen,) = await broker.list_tagged()
    assert seen.phase is Phase.PENDING
    keeper = (root / "process" / "one" / "pid").read_text()
    again = await broker.create(order("one", await first_offer(broker)))
    assert again.provider_id == seen.provider_id
    assert (root / "process" / "one" / "pid").read_text() == keeper
    assert is_alive(keeper)


async def test_a_broker_killed_between_record_and_start_starts_it_the_next_time(
    root: Path,
) -> None:
    folder = staged(root, "echo up; sleep 600")
    broker = provider(root)
    assert (await seen_as(broker, Phase.PENDING)).provider_id
    await broker.create(order("one", await first_offer(broker)))
    await seen_as(broker, Phase.RUNNING)
    await until(lambda: "up" in log_of(folder))


async def test_one_that_was_ended_before_it_began_never_begins(root: Path) -> None:
    folder = staged(root, "echo up; sleep 600")
    broker = provider(root)
    await broker.terminate("process-one")
    assert (await broker.create(order("one", await first_offer(broker)))).phase is Phase.GONE
    folder.start({}, within_s=60)
    assert not (folder.path / "pid").exists()


async def test_the_agent_is_started_again(root: Path) -> None:
    folder = staged(root, "echo again; exit 1")
    folder.start(dict(os.environ), within_s=60)
    await until(lambda: log_of(folder).count("again") >= 2)


async def test_what_does_not_hear_is_killed_after_the_grace(root: Path) -> None:
    folder = staged(root, STUBBORN)
    folder.start(dict(os.environ), within_s=60)
    await until(lambda: "up" in log_of(folder))
    broker = provider(root)
    await broker.terminate("process-one")
    assert (await seen_as(broker, Phase.GONE)).message == "told to end"
    assert not writers(folder.path)


async def test_what_left_its_parent_is_ended_with_the_machine(root: Path) -> None:
    folder = staged(root, WITH_CHILD)
    folder.start(dict(os.environ), within_s=60)
    await until(lambda: "child" in log_of(folder))
    broker = provider(root)
    await broker.terminate("process-one")
    await seen_as(broker, Phase.GONE)
    assert not writers(folder.path)


async def test_without_its_keeper_it_is_gone_only_when_all_its_processes_are(root: Path) -> None:
    folder = staged(root, WITH_CHILD)
    folder.start(dict(os.environ), within_s=60)
    await until(lambda: "child" in log_of(folder))
    os.kill(int((folder.path / "pid").read_text().split()[0]), signal.SIGKILL)
    broker = provider(root)
    assert (await seen_as(broker, Phase.GONE)).message == "its processes died"
    assert not writers(folder.path)
    assert not await broker.list_tagged()


async def test_a_keeper_that_does_not_end_is_ended_by_force(root: Path) -> None:
    folder = staged(root, WITH_CHILD)
    folder.start(dict(os.environ), within_s=60)
    await until(lambda: "child" in log_of(folder))
    keeper = (folder.path / "pid").read_text()
    os.kill(int(keeper.split()[0]), signal.SIGSTOP)
    folder.end(100.0, grace_s=1.0)
    assert folder.phase() is Phase.ENDING
    assert is_alive(keeper)
    folder.end(101.0 + FORCE_AFTER_S + 0.1, grace_s=1.0)
    await until(lambda: folder.phase() is Phase.GONE)


async def test_an_interruption_is_a_notice_and_then_the_end(root: Path) -> None:
    folder = staged(root, "sleep 600", notice_s=0.7)
    folder.start(dict(os.environ), within_s=60)
    broker = provider(root)
    await seen_as(broker, Phase.RUNNING)
    (folder.path / "interrupt").touch()
    await until((folder.path / "interrupted").exists)
    gone = await seen_as(broker, Phase.GONE)
    assert gone.interrupted_at > 0
    assert gone.message == "taken back"


async def test_spot_may_last_a_time_only_and_some_zones_never_boot(root: Path) -> None:
    zones = {"here": {"spot_lasts_s": 0.1}, "dead": {"boots": False}}
    broker = provider(root, zones=zones, notice_s=3600.0)
    offers = {(o.zone, o.market): o for o in await broker.offers()}
    await broker.create(order("spot", offers["here", Market.SPOT]))
    await broker.create(order("kept", offers["here", Market.ON_DEMAND]))
    await broker.create(order("dead", offers["dead", Market.SPOT]))
    await until((root / "process" / "spot" / "interrupted").exists)
    seen = {s.token: s for s in await broker.list_tagged()}
    assert seen["spot"].interrupted_at > 0
    assert seen["kept"].interrupted_at == 0
    assert seen["dead"].phase is Phase.PENDING


async def test_all_end_with_the_process_that_they_were_told(root: Path) -> None:
    owner = await asyncio.create_subprocess_exec("/bin/sleep", "600")
    folder = staged(root, "sleep 600", ends_with=owner.pid)
    folder.start(dict(os.environ), within_s=60)
    await seen_as(provider(root), Phase.RUNNING)
    owner.kill()
    await owner.wait()
    await seen_as(provider(root), Phase.GONE)


async def test_only_this_deployments_are_seen(root: Path) -> None:
    staged(root, "true")
    other = provider(root, deployment="other")
    assert not await other.list_tagged()
    assert not await other.describe(["one", "../one", ""])
    await other.terminate("process-one")
    assert (await seen_as(provider(root), Phase.PENDING)).token == "one"
