"""`atoll sim burst`, on traces made in the test."""

import gzip
import io
import json
import tarfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atoll.burst.settings import BurstSettings
from atoll.core.model.burst import EndCause, Market
from atoll.core.model.errors import InvalidInput
from atoll.sim.commands.burst import burst
from atoll.sim.readers.elasticflow_raw import RawJob
from atoll.sim.readers.spot import SpotWindow
from atoll.sim.renting.easy import starting
from atoll.sim.renting.machines import Purse
from atoll.sim.renting.market import SEEN_AS, TYPES, boot_of, offers_of
from atoll.sim.renting.play import Played, play
from atoll.sim.renting.setting import OPTIONS, OURS, PEERS, ZONES, Setting, Wish, setting_of
from atoll.sim.renting.world import World

HOURS = 40
TICKS = 12
TICK_S = 600.0
WISH = Wish(0.7, 0.0, 1.0, 0.3, 0)
CHANGE_S = 20 * 3600.0
Capture = pytest.CaptureFixture[str]


def test_the_broker_has_the_options_of_the_service() -> None:
    service = BurstSettings().terms.options
    # The loop is the simulation's own, and how soon it tries again what never booted.
    assert replace(service, loop_s=OPTIONS.loop_s, again_s=OPTIONS.again_s) == OPTIONS


def jobs_by_day(seed: int, *, until_h: int = HOURS) -> list[RawJob]:
    """A few jobs each hour, many in the middle of the day; some are wider than any machine."""
    draw = np.random.default_rng(seed)
    found = []
    for hour in range(until_h):
        for _ in range(draw.poisson(4 if 8 <= hour % 24 < 16 else 1)):
            gpus = int(draw.choice([1, 1, 1, 2, 8, 16], p=[0.3, 0.2, 0.2, 0.15, 0.1, 0.05]))
            found.append(RawJob(hour * 3600 + draw.uniform(0, 3600), draw.exponential(5000), gpus))
    return sorted(found)


def windows_of(seed: int, count: int = 4) -> list[SpotWindow]:
    draw = np.random.default_rng(seed)
    names = [f"{zone}_{SEEN_AS.get(name, name)}" for zone in ZONES for name, _ in TYPES]
    return [
        SpotWindow(name, n, TICK_S, tuple(bool(up) for up in draw.random(TICKS) < 0.7))
        for name in dict.fromkeys(names)
        for n in range(count)
    ]


def a_setting(jobs: Sequence[RawJob] = (), wish: Wish = WISH) -> Setting:
    return setting_of(jobs or jobs_by_day(1), windows_of(2), wish)


def played(setting: Setting, rule: str) -> tuple[World, Played]:
    world = setting.world()
    return world, play(setting.rules()[rule](), world)


def rents(found: Played, before_s: float) -> list[tuple[float, str, tuple[int, ...]]]:
    made = [(each.asked_at, each.offer.key, each.jobs) for each in found.machines]
    return sorted(each for each in made if each[0] <= before_s)


def ends(found: Played, before_s: float) -> list[tuple[int, float, EndCause]]:
    made = [(each.number, each.ended_at, each.cause) for each in found.machines]
    return sorted(each for each in made if each[1] <= before_s)


@pytest.mark.parametrize("rule", [OURS, *PEERS])
def test_all_jobs_run_and_nothing_is_left(rule: str) -> None:
    setting = a_setting()
    world, found = played(setting, rule)
    assert all(world.over)
    assert not world.machines
    assert found.machines
    assert world.free == setting.capacity
    assert world.purse.rate == 0
    assert found.above == 0
    ran = np.array([world.ran_s(job) for job in range(len(world.over))])
    assert (ran >= setting.work.run_s - 1e-6).all()
    assert (found.queued_s >= found.waited_s - 1e-6).all()


@pytest.mark.parametrize("rule", [OURS, *PEERS])
def test_nothing_costs_more_than_the_budget(rule: str) -> None:
    setting = a_setting(wish=Wish(0.7, 7.0, 1.0, 0.3, 0))
    _, found = played(setting, rule)
    points = sorted(
        [(each.asked_at, each.offer.price) for each in found.machines]
        + [(each.ended_at, -each.offer.price) for each in found.machines]
    )
    rate = np.cumsum([price for _, price in points])
    assert 0 < rate.max() <= setting.per_hour
    assert found.above == 0


@pytest.mark.parametrize("rule", [OURS, *PEERS])
def test_the_future_changes_no_earlier_decision(rule: str) -> None:
    before = jobs_by_day(1)
    after = [each for each in before if each.submitted_s <= CHANGE_S]
    after += [
        RawJob(each.submitted_s, 9000.0, 8)
        for each in jobs_by_day(5)
        if each.submitted_s > CHANGE_S
    ]
    first = a_setting(before)
    second = Setting(
        setting_of(after, first.windows, WISH).work,
        first.capacity,
        first.per_hour,
        first.windows,
        WISH,
    )
    (_, one), (_, other) = played(first, rule), played(second, rule)
    assert rents(one, CHANGE_S)
    assert rents(one, CHANGE_S) == rents(other, CHANGE_S)
    assert ends(one, CHANGE_S) == ends(other, CHANGE_S)
    assert rents(one, np.inf) != rents(other, np.inf)


def test_the_same_seed_gives_the_same_run() -> None:
    (_, one), (_, other) = (played(a_setting(), OURS) for _ in range(2))
    assert rents(one, np.inf) == rents(other, np.inf)
    assert boot_of(3, 7) == boot_of(3, 7) != boot_of(3, 8)


def test_peers_rent_one_instance_for_each_job_after_their_wait() -> None:
    setting = a_setting()
    _, found = played(setting, PEERS[1])
    submitted = setting.work.submitted_s
    for each in found.machines:
        (job,) = each.jobs
        assert each.asked_at - submitted[job] >= 300
        assert each.offer.devices >= setting.work.devices[job]


def test_spot_that_goes_takes_its_jobs_back_to_the_line() -> None:
    setting = a_setting()
    world = setting.world()
    found = play(setting.rules()[PEERS[1]](), world)
    taken = [each for each in found.machines if each.cause is EndCause.INTERRUPTED]
    assert taken
    assert all(each.offer.market is Market.SPOT for each in taken)
    assert found.stopped > 0


def test_a_job_behind_the_first_never_delays_it() -> None:
    def begun(waiting: list[tuple[int, int, float]], free: int) -> list[int]:
        return list(starting(waiting, free=free, now=0.0, ends=lambda: [(100.0, 4)]))

    assert begun([(0, 6, 50.0), (1, 2, 99.0), (2, 2, 101.0)], 4) == [1, 2]
    assert begun([(0, 6, 50.0), (1, 2, 101.0), (2, 1, 101.0)], 4) == [1]
    assert begun([(0, 2, 10.0), (1, 2, 10.0), (2, 1, 1.0)], 4) == [0, 1]
    assert begun([(0, 2, 200.0), (1, 6, 10.0), (2, 2, 500.0)], 4) == [0]


def test_a_purse_is_never_overdrawn() -> None:
    offer = offers_of(ZONES)[0]
    purse = Purse(offer.price)
    assert purse.take(offer.price)
    assert not purse.take(1)
    purse.give(offer.price)
    assert purse.take(1)


def traces(folder: Path) -> Path:
    rows = [f"{n},{j.submitted_s:.0f},{j.run_s:.0f},{j.gpus}" for n, j in enumerate(jobs_by_day(1))]
    text = "\n".join(["job_id,submission_time,duration,num_gpu", *rows]).encode()
    (folder / "elasticflow").mkdir()
    with tarfile.open(folder / "elasticflow" / "raw-traces.tar.gz", "w:gz") as tar:
        info = tarfile.TarInfo("cluster03.csv")
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
    lines = [
        json.dumps({
            "zone": each.zone,
            "window": each.window,
            "gap_s": each.tick_s,
            "unavailable": "".join("01"[not up] for up in each.up),
        })
        for each in windows_of(2)
    ]
    (folder / "spot").mkdir()
    (folder / "spot" / "windows.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return folder


def test_the_command_prints_one_object_last(tmp_path: Path, capsys: Capture) -> None:
    assert burst(cluster=3, traces=traces(tmp_path), forecast=False) == 0
    head: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    policies = head["clusters"]["cluster03"]["policies"]
    assert set(policies) == {OURS, *PEERS}
    assert head["above_budget"] == 0
    for peer in PEERS:
        saved = 1 - policies[OURS]["cost"] / policies[peer]["cost"]
        assert head["saving"][peer] == pytest.approx(saved, abs=1e-3)


@pytest.mark.parametrize(
    "wrong",
    [{}, {"cluster": 4}, {"cluster": 3, "clusters": "all"}, {"clusters": "3,x"}],
    ids=["none", "unknown", "both", "no number"],
)
def test_what_is_wrong_is_said(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        burst(traces=traces(tmp_path), **wrong)
