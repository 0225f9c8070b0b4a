"""What the local backend does beyond the contract: processes, signals, limits, environment."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from atoll.agent.backends.local import group_name
from atoll.agent.localrun.cgroups import find_cgroups
from atoll.agent.settings import AgentSettings
from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.reason import ReasonCode
from atoll.core.model.resources import DeviceGrant
from atoll.core.model.spec import JobSpec
from atoll.ports.backend import ResizeOrder, StartOrder
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


async def printed(opened: Opened, given: StartOrder) -> dict[str, str]:
    """The environment that a job sees."""
    await opened.backend.start(given)
    end = await opened.end(given.attempt)
    assert end.exit_code == 0
    lines = (await text(opened, given.attempt >> 16)).splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


async def test_members_know_their_place_and_each_other(opened: Opened) -> None:
    given = order(7, job(run="env"), tasks=2)
    env = await printed(opened, given)
    assert env["ATOLL_JOB_ID"] == "7"
    assert env["ATOLL_ATTEMPT"] == "7.1"
    assert (env["ATOLL_RANK"], env["ATOLL_NODE_RANK"], env["ATOLL_LOCAL_RANK"]) == ("0", "0", "0")
    assert (env["ATOLL_WORLD_SIZE"], env["WORLD_SIZE"], env["PET_NNODES"]) == ("2", "2", "2")
    assert env["ATOLL_HOSTS"] == "127.0.0.1,127.0.0.1"
    assert env["MASTER_ADDR"] == "127.0.0.1"
    other = dict(line.split("=", 1) for line in (await text(opened, 7, 1)).splitlines())
    assert (other["ATOLL_RANK"], other["PET_NODE_RANK"], other["RANK"]) == ("1", "1", "1")
    assert other["MASTER_PORT"] == env["MASTER_PORT"]


async def test_this_machine_can_be_shown_as_several_nodes(tmp_path: Path) -> None:
    devices = tmp_path / "two.yaml"
    devices.write_text("[{kind: H100, count: 2}]")
    several = AgentSettings(
        cluster="pair",
        data_dir=tmp_path,
        node_name="n",
        node_count=2,
        measure_load=False,
        cpu_milli=4000,
        memory_bytes=8 << 30,
        devices_file=devices,
    )
    opened = Opened(several)
    await opened.open()
    try:
        nodes = opened.backend.inventory()
        assert [(n.name, n.cpu_milli, len(n.devices)) for n in nodes] == [
            ("n-0", 4000, 2),
            ("n-1", 4000, 2),
        ]
        both = (DeviceGrant(0, 100), DeviceGrant(1, 100))
        plain = order(7, job(run="env"), tasks=2)
        tasks = tuple(
            task._replace(node_name=f"n-{task.rank}", devices=both) for task in plain.tasks
        )
        addresses = {node.name: node.address for node in nodes}
        env = await printed(opened, replace(plain, tasks=tasks, addresses=addresses))
        assert (env["ATOLL_NODE"], env["ATOLL_HOSTS"]) == ("n-0", "127.0.0.1,127.0.0.1")
        other = dict(line.split("=", 1) for line in (await text(opened, 7, 1)).splitlines())
        assert (other["ATOLL_NODE"], other["ATOLL_DEVICES"]) == ("n-1", "0,1")
    finally:
        await opened.end_all()
        await opened.close()


def test_what_is_found_on_a_machine_is_there_once(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="needs cpu_milli, memory_bytes and devices_file"):
        AgentSettings(cluster="pair", data_dir=tmp_path, node_count=2)


async def test_a_member_that_fails_ends_the_others(opened: Opened) -> None:
    run = 'test "$ATOLL_RANK" = 1 && exit 3; echo begun; sleep 600'
    await opened.backend.start(order(1, job(run=run), tasks=2))
    end = await opened.end(attempt(1))
    assert (end.event, end.exit_code) == (FINISHED, 3)
    assert dead(wrapper_pid(opened, 1))


async def test_the_agents_own_environment_stays_its_own(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ATOLL_TOKEN", "hush")
    monkeypatch.setenv("DATABASE_PASSWORD", "hush")
    await opened.close()
    made = Opened(SETTINGS["local"](tmp_path))
    await made.open()
    spec = replace(job(run="env", envs={"COLOUR": "red"}), secrets=(("KEY", "s3cret"),))
    env = await printed(made, order(1, spec))
    assert "hush" not in env.values()
    assert (env["COLOUR"], env["KEY"]) == ("red", "s3cret")
    kept = [path for path in folder(made, 1).rglob("*") if path.is_file()]
    assert not [
        path for path in kept if "rank-" not in path.name and b"s3cret" in path.read_bytes()
    ]
    await made.close()


async def test_a_share_of_a_device_is_limited_by_mps(opened: Opened) -> None:
    env = await printed(opened, order(1, job(run="env"), devices=[DeviceGrant(1, 25)]))
    assert env["CUDA_VISIBLE_DEVICES"] == "1"
    assert env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "25"
    assert env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == f"0={20 * 1024}M"


async def test_whole_devices_are_all_visible_and_none_to_who_asked_for_none(opened: Opened) -> None:
    both = [DeviceGrant(0, 100), DeviceGrant(1, 100)]
    env = await printed(opened, order(1, job(run="env"), devices=both))
    assert env["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert env["PET_NPROC_PER_NODE"] == "2"
    assert not [key for key in env if key.startswith("CUDA_MPS")]
    assert (await printed(opened, order(2, job(run="env"))))["CUDA_VISIBLE_DEVICES"] == ""


async def test_slices_are_named_by_the_uuids_of_their_instances(tmp_path: Path) -> None:
    settings = SETTINGS["local"](tmp_path)
    assert settings.devices_file is not None
    instances = [
        {"profile": "1g.10gb", "start": 0, "uuid": "MIG-a"},
        {"profile": "1g.10gb", "start": 1, "uuid": "MIG-b"},
        {"profile": "3g.40gb", "start": 4, "uuid": "MIG-c"},
    ]
    settings.devices_file.write_text(json.dumps([{"kind": "H100", "mig": instances}]))
    made = Opened(settings)
    await made.open()
    small = DeviceGrant(0, slice_mask=0b10, profile="1g.10gb")
    large = DeviceGrant(0, slice_mask=0b11110000, profile="3g.40gb")
    env = await printed(made, order(1, job(run="env"), devices=[small, large]))
    assert env["CUDA_VISIBLE_DEVICES"] == "MIG-b,MIG-c"
    absent = DeviceGrant(0, slice_mask=0b100, profile="1g.10gb")
    refusal = await made.backend.check(order(2, devices=[absent]))
    assert refusal is not None
    assert refusal.reason is ReasonCode.DEVICE_ABSENT
    await made.close()


async def test_a_device_is_whole_for_one_run_and_in_slices_for_the_next(tmp_path: Path) -> None:
    settings = SETTINGS["local"](tmp_path)
    assert settings.devices_file is not None
    settings.devices_file.write_text(json.dumps([{"kind": "H100", "mig": "dynamic"}]))
    made = Opened(settings)
    await made.open()
    small = DeviceGrant(0, slice_mask=0b10, profile="1g.10gb")
    env = await printed(made, order(1, job(run="env"), devices=[small]))
    assert env["CUDA_VISIBLE_DEVICES"] == "MIG-0/1g.10gb/1"
    env = await printed(made, order(2, job(run="env"), devices=[DeviceGrant(0, 100)]))
    assert env["CUDA_VISIBLE_DEVICES"] == "0"
    await made.close()


async def test_a_port_that_somebody_has_is_refused(opened: Opened) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        spec = replace(job(), ports=(held.getsockname()[1],))
        refusal = await opened.backend.check(order(1, spec))
        assert refusal is not None
        assert refusal.reason is ReasonCode.PORT_TAKEN
    assert await opened.backend.check(order(1, spec)) is None
    await opened.backend.start(order(2, replace(job(60), ports=spec.ports)))
    refusal = await opened.backend.check(order(1, spec))
    assert refusal is not None
    assert refusal.reason is ReasonCode.PORT_TAKEN


async def test_setup_comes_first_and_its_failure_is_the_runs(opened: Opened) -> None:
    def with_setup(setup: str) -> JobSpec:
        spec = job(run="echo $MADE; false; echo on")
        return replace(spec, groups=(replace(spec.groups[0], setup=setup),))

    await opened.backend.start(order(1, with_setup("export MADE=here")))
    assert (await opened.end(attempt(1))).exit_code == 0
    assert await text(opened, 1) == "here\non\n"
    await opened.backend.start(order(2, with_setup("false; echo never")))
    assert (await opened.end(attempt(2))).exit_code == 1
    assert await text(opened, 2) == ""


async def test_output_goes_where_the_pattern_says_and_is_read_from_there(
    opened: Opened, tmp_path: Path
) -> None:
    spec = replace(job(), output=str(tmp_path / "out" / "%x-%j-%t-%%.txt"))
    await opened.backend.start(order(5, spec))
    await opened.end(attempt(5))
    assert (tmp_path / "out" / "job-5-0-%.txt").read_text() == "hello 0\n"
    assert await text(opened, 5) == "hello 0\n"


async def test_only_the_newest_ended_runs_are_kept(tmp_path: Path) -> None:
    settings = SETTINGS["local"](tmp_path).model_copy(update={"keep_ended": 2})
    made = Opened(settings)
    await made.open()
    for number in range(1, 5):
        await made.backend.start(order(number))
        await made.end(attempt(number))
        made.backend.forget(attempt(number))
        await asyncio.sleep(0.05)
    await made.close()
    assert sorted(path.name for path in (settings.data_dir / "ended").iterdir()) == ["3.1", "4.1"]
    assert list((settings.data_dir / "runs").iterdir()) == []


@pytest.mark.parametrize("tasks", [1, 2])
async def test_memory_beyond_its_limit_is_not_given(opened: Opened, tasks: int) -> None:
    run = "python3 -c 'x = bytearray(512 << 20); print(len(x))'"
    await opened.backend.start(order(1, job(run=run), tasks=tasks))
    end = await opened.end(attempt(1))
    assert (end.event, end.reason) == (FINISHED, ReasonCode.EXIT_NONZERO)
    assert "536870912" not in await text(opened, 1)
    if find_cgroups(group_name(opened.settings)).memory is not None:
        assert "more than its 64 MiB" in end.message
    else:
        assert "MemoryError" in await text(opened, 1)


async def test_members_are_told_of_a_new_size_and_secrets_stay_off_the_disk(
    opened: Opened,
) -> None:
    run = (
        "trap 'cat $ATOLL_MEMBERS; echo; echo again' HUP; echo rank $ATOLL_RANK key $KEY;"
        " while :; do sleep 0.1; done"
    )
    spec = replace(job(run=run), secrets=(("KEY", "s3cret"),))
    await opened.backend.start(order(1, spec))
    await said(opened, 1, "rank 0")
    await opened.backend.resize(ResizeOrder(order(1, spec, tasks=2), 1))
    await said(opened, 1, "again")
    assert '"world_size": 2' in await text(opened, 1)

    async def second() -> bool:
        return "rank 1 key s3cret" in await text(opened, 1, 1)

    await eventually(second)
    kept = [path for path in folder(opened, 1).rglob("*") if path.is_file()]
    leaks = [p.name for p in kept if "rank-" not in p.name and b"s3cret" in p.read_bytes()]
    assert not leaks
