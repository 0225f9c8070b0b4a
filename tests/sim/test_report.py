"""What a record amounts to, by hand."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from atoll.core.model.ids import ClusterName, JobId, attempt_id
from atoll.sim.export import write
from atoll.sim.plots import draw, span
from atoll.sim.record import Record
from atoll.sim.report import report, size_class, timeline
from atoll.sim.service.clock import START
from tests.sim.jobs import work

C = ClusterName("c1")


def record() -> Record:
    """Eight devices for 100 s, six of them up after 50; one job of 4, one of 1 stopped once."""
    made = Record()
    made.set_capacity(0.0, 800)
    made.set_capacity(50.0, 600)
    one, two = JobId(1), JobId(2)
    made.submit(one, work(0, 40, gpus=4, queue="a", deadline_at=START + 45), at=0.0, units=400)
    made.submit(two, work(0, 30, queue="b", deadline_at=START + 60), at=0.0, units=100)
    made.begin(attempt_id(one, 1), C, at=0.0, units=400)
    made.begin(attempt_id(two, 1), C, at=10.0, units=100)
    made.stop(attempt_id(two, 1), "PREEMPT", at=30.0, useful_s=10.0)
    made.evict([two])
    made.stop(attempt_id(one, 1), "FINISHED", at=40.0, useful_s=40.0)
    made.move(one, "RUNNING", "SUCCEEDED")
    made.finish(one, at=40.0)
    made.sample(45.0, 0.25)
    made.begin(attempt_id(two, 2), C, at=60.0, units=100)
    made.stop(attempt_id(two, 2), "FINISHED", at=85.0, useful_s=20.0, restart_s=5.0)
    made.move(two, "RUNNING", "SUCCEEDED")
    made.finish(two, at=85.0)
    made.ended = 100.0
    return made


def test_goodput_is_useful_time_over_capacity() -> None:
    numbers = report(record())
    held = 40 * 400 + 20 * 100 + 25 * 100
    assert numbers["occupancy"] == pytest.approx(held / 70_000, abs=1e-4)
    assert numbers["goodput"] == {
        "goodput": pytest.approx(19_000 / 70_000, abs=1e-4),
        "scheduling": pytest.approx(held / 70_000, abs=1e-4),
        "runtime": pytest.approx(19_000 / held, abs=1e-4),
        "useful_unit_s": 19_000.0,
        "lost_unit_s": 1_000.0,
        "restart_unit_s": 500.0,
        "capacity_unit_s": 70_000.0,
    }


def test_waits_deadlines_and_evictions() -> None:
    numbers = report(record())
    assert numbers["deadlines"] == {"jobs": 2, "met": 1, "met_ratio": 0.5}
    assert numbers["evictions"] == 1
    assert numbers["wait_s"]["mean"] == 5.0
    assert {name: waits["jobs"] for name, waits in numbers["waits_by_size"].items()} == {
        "1": 1,
        "3-4": 1,
    }
    assert numbers["bounded_slowdown"] == pytest.approx((1 + 85 / 30) / 2, abs=1e-4)
    assert numbers["queues"]["b"]["lost_unit_s"] == 1_000.0
    assert numbers["queues"]["a"]["share"] == pytest.approx(16_000 / 20_500, abs=1e-4)


def test_what_is_held_over_time() -> None:
    import numpy as np

    points = np.array([0.0, 5.0, 10.0, 35.0, 50.0, 70.0, 90.0])
    assert timeline(record(), points).tolist() == [400, 400, 500, 400, 0, 100, 0]


@pytest.mark.parametrize(
    ("devices", "name"),
    [(0, "0"), (0.5, "<1"), (1, "1"), (2, "2"), (3, "3-4"), (8, "5-8"), (9, "9-16")],
)
def test_sizes_are_told_in_doublings(devices: float, name: str) -> None:
    assert size_class(devices) == name


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.1, "0 s"), (42, "42 s"), (90, "1.5 min"), (86_400, "1 d")]
)
def test_times_are_told_as_people_say_them(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_files_tell_what_happened(tmp_path: Path) -> None:
    made = record()
    written = write(made, report(made), tmp_path)
    assert sorted(path.name for path in written) == [
        "jobs.parquet", "report.json", "runs.parquet", "samples.parquet",
    ]  # fmt: skip
    runs = pq.read_table(tmp_path / "runs.parquet").to_pylist()
    assert [(run["how"], run["lost_s"]) for run in runs] == [
        ("FINISHED", 0.0), ("PREEMPT", 10.0), ("FINISHED", 0.0),
    ]  # fmt: skip
    jobs = pq.read_table(tmp_path / "jobs.parquet").to_pylist()
    assert [job["ended_s"] for job in jobs] == [40.0, 85.0]


def test_pictures_are_drawn(tmp_path: Path) -> None:
    drawn = draw(record(), tmp_path)
    assert [path.name for path in drawn] == ["utilisation.png", "waits.png", "fairness.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)


def test_nothing_at_all_can_be_reported_and_drawn(tmp_path: Path) -> None:
    numbers = report(Record())
    assert numbers["jobs"] == 0
    assert numbers["wait_s"]["p50"] is None
    assert len(draw(Record(), tmp_path)) == 3
