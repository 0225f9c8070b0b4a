"""What becomes of the processes of runs on this machine: signals, guards, wrappers that die."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from itertools import groupby
from pathlib import Path

import pytest

from atoll.agent.localrun.cgroups import Cgroups
from atoll.agent.localrun.cutting import cut_declared
from atoll.agent.localrun.environment import Place
from atoll.agent.localrun.launch import Site, launch
from atoll.core.model.inventory import NodeInventory
from atoll.core.model.lifecycle import AttemptEvent, StopCause
from atoll.core.model.reason import ReasonCode
from atoll.core.model.spec import Checkpoint, OnLost
from atoll.ports.backend import StopOrder
from tests.contract.backends import SETTINGS, Opened, attempt, job, order
from tests.services.agent.here import dead, folder, said, text, wrapper_pid
from tests.support.waiting import eventually

STARTED, FINISHED, STOPPED = AttemptEvent.STARTED, AttemptEvent.FINISHED, AttemptEvent.STOPPED


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opened]:
    made = Opened(SETTINGS["local"](tmp_path))
    await made.open()
    yield made
    await made.end_all()
    await made.close()


async def test_a_stop_lets_work_be_saved_before_it_kills(opened: Opened) -> None:
    run = "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    await opened.backend.start(order(1, job(run=run, grace_s=20)))
    await said(opened, 1, "ready")
    opened.backend.stop(StopOrder(attempt(1)))
    assert (await opened.end(attempt(1))).event is STOPPED
    assert (await text(opened, 1)).endswith("saved\n")


async def test_a_run_that_ignores_its_stop_is_killed_after_its_grace(opened: Opened) -> None:
    run = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
    await opened.backend.start(order(1, job(run=run, grace_s=0.5)))
    await said(opened, 1, "ready")
    opened.backend.stop(StopOrder(attempt(1)))
    end = await opened.end(attempt(1))
    assert (end.event, end.exit_code) == (STOPPED, 128 + signal.SIGKILL)


async def test_only_who_listens_hears_the_checkpoint_signal(opened: Opened) -> None:
    script = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGUSR1, lambda *_: print('checkpoint', flush=True))\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('term', flush=True), sys.exit(0)))\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(0.05)\n"
    )
    run = f"cat > work.py <<'END'\n{script}END\npython3 work.py; echo shell lives"
    spec = job(run=run, grace_s=20, checkpoint=Checkpoint("SIGUSR1", grace_s=0.5))
    await opened.backend.start(order(1, spec))
    await said(opened, 1, "ready")
    opened.backend.stop(StopOrder(attempt(1)))
    assert (await opened.end(attempt(1))).event is STOPPED
    assert (await text(opened, 1)).splitlines()[:3] == ["ready", "checkpoint", "term"]


async def test_a_preempted_run_may_save_then_end_and_is_killed_only_then(opened: Opened) -> None:
    script = (
        "import signal, time\n"
        "def hear(number, frame): print(signal.Signals(number).name, flush=True)\n"
        "signal.signal(signal.SIGUSR1, hear)\n"
        "signal.signal(signal.SIGTERM, hear)\n"
        "while True: print('works', flush=True); time.sleep(0.02)\n"
    )
    run = f"cat > work.py <<'END'\n{script}END\nexec python3 work.py"
    grace_s = max(0.6, 3 * await opened.pace_s())
    spec = job(run=run, grace_s=grace_s, checkpoint=Checkpoint("SIGUSR1", grace_s=grace_s))
    await opened.backend.start(order(1, spec))
    await said(opened, 1, "works")
    opened.backend.stop(StopOrder(attempt(1), StopCause.PREEMPT))
    end = await opened.end(attempt(1))
    assert (end.event, end.exit_code) == (STOPPED, 128 + signal.SIGKILL)
    # In time that it was given to save, and then in that to end, it went on working.
    heard = [word for word, _ in groupby((await text(opened, 1)).split())]
    assert heard == ["works", "SIGUSR1", "works", "SIGTERM", "works"]


async def test_nothing_of_a_run_is_left_when_it_has_ended(opened: Opened) -> None:
    run = "setsid sleep 300 & echo $!; (sleep 301 & echo $!); sleep 0.2"
    await opened.backend.start(order(1, job(run=run)))
    assert (await opened.end(attempt(1))).event is FINISHED
    pids = [int(line) for line in (await text(opened, 1)).splitlines()]
    assert len(pids) == 2
    assert all(dead(pid) for pid in pids)


async def test_one_member_that_fails_ends_the_gang(opened: Opened) -> None:
    run = 'if [ "$ATOLL_RANK" = 1 ]; then exit 9; fi; sleep 300'
    await opened.backend.start(order(1, job(run=run), tasks=2))
    end = await opened.end(attempt(1))
    assert (end.event, end.exit_code) == (FINISHED, 9)


async def test_a_guarded_run_is_stopped_though_the_agent_is_gone(tmp_path: Path) -> None:
    made = Opened(SETTINGS["local"](tmp_path))
    await made.open(lease_s=0)
    await made.short_lease()
    await made.backend.start(order(1, job(run="sleep 300", on_lost=OnLost.REQUEUE)))
    pid = wrapper_pid(made, 1)
    await made.close()
    await eventually(lambda: dead(pid))
    found = await made.again()
    assert [(event.event, event.reason) for event in found] == [
        (STOPPED, ReasonCode.STOPPED_BY_GUARD)
    ]
    await made.close()


async def test_a_time_limit_is_kept_though_the_agent_is_gone(opened: Opened) -> None:
    await opened.backend.start(order(1, job(run="sleep 300", time_limit_s=1.0)))
    pid = wrapper_pid(opened, 1)
    await opened.close()
    await eventually(lambda: dead(pid))
    found = await opened.again()
    assert [(event.event, event.reason) for event in found] == [(FINISHED, ReasonCode.TIME_LIMIT)]


async def test_a_wrapper_that_was_killed_leaves_an_unknown_end_and_no_process(
    opened: Opened,
) -> None:
    await opened.backend.start(order(1, job(run="sleep 300 & echo $!; wait")))
    await said(opened, 1, "\n")
    os.kill(wrapper_pid(opened, 1), signal.SIGKILL)
    end = await opened.end(attempt(1))
    assert (end.event, end.reason) == (FINISHED, ReasonCode.EXIT_UNKNOWN)
    left = int(await text(opened, 1))
    await eventually(lambda: dead(left))
    found = await opened.again()
    assert [(event.event, event.reason) for event in found] == [(FINISHED, ReasonCode.EXIT_UNKNOWN)]


async def test_a_wrapper_that_died_while_no_agent_was_there_is_found_so(opened: Opened) -> None:
    await opened.backend.start(order(1, job(run="sleep 300")))
    pid = wrapper_pid(opened, 1)
    await opened.close()
    os.kill(pid, signal.SIGKILL)
    await eventually(lambda: dead(pid))
    found = await opened.again()
    assert [(event.event, event.reason) for event in found] == [(FINISHED, ReasonCode.EXIT_UNKNOWN)]
    await opened.backend.start(order(1))
    await opened.backend.start(order(2))
    await opened.end(attempt(2))
    assert opened.of(attempt(1)) == []


async def test_a_run_is_not_taken_for_another_process_with_its_number(opened: Opened) -> None:
    runs = folder(opened, 1)
    runs.mkdir(parents=True)
    mine = {"pid": os.getpid(), "start": "1", "boot": "another"}
    (runs / "started").write_text(json.dumps(mine))
    found = await opened.again()
    assert [(event.event, event.reason) for event in found] == [(FINISHED, ReasonCode.EXIT_UNKNOWN)]


async def test_the_guard_gives_no_more_grace_than_it_may(tmp_path: Path) -> None:
    settings = SETTINGS["local"](tmp_path).model_copy(update={"max_grace_s": 0.3})
    made = Opened(settings)
    await made.open(lease_s=0)
    await made.short_lease()
    run = "trap '' TERM; while :; do sleep 0.05; done"
    await made.backend.start(order(1, job(run=run, on_lost=OnLost.REQUEUE, grace_s=3600)))
    end = await made.end(attempt(1))
    assert (end.reason, end.exit_code) == (ReasonCode.STOPPED_BY_GUARD, 128 + signal.SIGKILL)
    await made.close()


async def test_of_two_wrappers_of_an_attempt_one_runs_it(tmp_path: Path) -> None:
    node = NodeInventory("n0", cpu_milli=1000, memory_bytes=1 << 30)
    lease, env = tmp_path / "lease", dict(os.environ)
    site = Site(lease, Cgroups(), base_env=env, max_grace_s=1.0, cut=cut_declared)
    marks, run = tmp_path / "marks", tmp_path / "1.1"
    given = order(1, job(run=f"echo ran >> {marks}"))
    words = await asyncio.gather(
        *(
            asyncio.to_thread(launch, run, given, Place(node, master_port=0), site=site)
            for _ in range(4)
        )
    )
    assert sorted(words) == ["started", "taken", "taken", "taken"]
    await eventually((run / "exit").exists)
    assert marks.read_text() == "ran\n"
