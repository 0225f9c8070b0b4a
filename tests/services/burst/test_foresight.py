"""From rows of jobs to what the broker decides on, and to what people see."""

import numpy as np
import pytest

from atoll.burst.forecasting.forecaster import Forecaster
from atoll.burst.forecasting.models import statistical
from atoll.burst.usecases import outlook
from atoll.burst.usecases.booked import nodes_in, windows_of
from atoll.burst.usecases.demand import demand_at, shares
from atoll.burst.usecases.demand_table import Columns, DemandTable
from atoll.burst.usecases.follower import Follower
from atoll.burst.usecases.foresight import Foresight, Policies, chosen, known_of, payers_of
from atoll.burst.usecases.outlook import futures, series_of
from atoll.burst.usecases.series import forecasts, series_from_bytes, series_to_bytes
from atoll.core.engine.burst.demand.forecast import LEVELS
from atoll.core.engine.burst.demand.series import STEP_S, Demand, Key
from atoll.core.model.booking import NodeShare, OccurrenceId, Owners
from atoll.core.model.burst import BurstPolicy
from atoll.core.model.ids import ClusterName, JobId, NodeId, QueueName, Tenant
from atoll.core.model.reservation import (
    Amount,
    Occurrence,
    Part,
    Reservation,
    ReservationId,
    ReservationSpec,
    What,
    When,
    WholeNodes,
)
from atoll.core.model.resources import DeviceGrant, DeviceRequest, TaskShape
from atoll.core.model.spec import TaskGroup
from atoll.ports.store.bookings import Kept
from atoll.ports.store.demand import DemandRow, NodeParts
from tests.adapters.burst_builders import offer
from tests.adapters.store_builders import cluster_with, node, spec, submit
from tests.services.burst.worlds import NLP, World

HOUR = 3600.0
DAY = 24 * HOUR
DAYS = 10
NOW = 1_800_000_000.0 // DAY * DAY
ALL = Key("", "H100")


def row(number: int, **given: object) -> DemandRow:
    fields: dict[str, object] = {
        "queue": NLP,
        "kind": "H100",
        "devices": 1.0,
        "submitted_at": NOW,
        "started_at": 0.0,
        **given,
    }
    return DemandRow(JobId(number), **fields)  # type: ignore[arg-type]


def columns(*rows: DemandRow) -> Columns:
    table = DemandTable()
    table.put(rows, now=NOW)
    return table.columns()


def daily(days: int = DAYS) -> list[DemandRow]:
    """From 8 to 16 o'clock a job every quarter of an hour, each for four hours."""
    begins = [
        NOW - day * DAY + 8 * HOUR + quarter * 900
        for day in range(1, days + 1)
        for quarter in range(32)
    ]
    return [
        row(n, submitted_at=at, started_at=at, ended_at=at + 4 * HOUR)
        for n, at in enumerate(begins)
    ]


def test_history_counts_what_ran_and_waited_at_each_full_step() -> None:
    rows = [
        row(1, submitted_at=NOW - 3 * HOUR, started_at=NOW - 2 * HOUR, ended_at=NOW - HOUR),
        row(2, submitted_at=NOW - 90 * 60, devices=2.5),
        row(3, submitted_at=NOW + 1),
    ]
    demand = demand_at(ALL, columns(*rows), NOW, steps=5, step_s=HOUR)
    assert demand.history.tolist() == [0, 1, 1, 2.5, 2.5]
    assert demand.jobs.over.tolist() == [True, False]
    assert demand.jobs.ran_s.tolist() == [HOUR, 0]
    # An hour of the forecast may last a minute: all times are stretched alike.
    quick = demand_at(ALL, columns(*rows), NOW, steps=5, step_s=60)
    assert quick.jobs.ran_s.tolist() == [60 * HOUR, 0]
    assert quick.at_s == NOW * 60


def test_a_daily_pattern_is_foreseen_with_its_futures() -> None:
    demand = demand_at(ALL, columns(*daily()), NOW + 7 * HOUR, steps=DAYS * 24, step_s=HOUR)
    forecaster = Forecaster(0)
    forecast = forecaster.forecast(demand)
    found = futures(demand, forecast)
    assert found.shape == (256, 24)
    middle = np.median(found, axis=0)
    assert middle[6] > 7
    assert middle[17] < 3
    # Each step has the quantiles of the calibrated forecast.
    low, high = np.quantile(found, [LEVELS[0], LEVELS[-1]], axis=0)
    assert np.allclose(low, forecast.quantiles[0], atol=0.5)
    assert np.allclose(high, forecast.quantiles[-1], atol=0.5)
    assert np.array_equal(found, futures(demand, forecast))


def test_people_see_what_it_rests_on(monkeypatch: pytest.MonkeyPatch) -> None:
    demand = demand_at(ALL, columns(*daily(1)), NOW, steps=24, step_s=60)
    monkeypatch.setattr(statistical, "library", lambda name: None)
    forecaster = Forecaster(0)
    monkeypatch.setattr(outlook, "library", lambda name: None)
    shown = series_of(demand, forecaster.forecast(demand), forecaster, capacity=8.0, step_s=60)
    assert shown.from_at == NOW - 23 * 60
    assert (len(shown.actual), len(shown.quantiles), len(shown.quantiles[0])) == (24, 7, 24)
    assert "short history: 24 of the 72 hours" in shown.message
    assert "statsforecast are not installed" in shown.message.replace(" and lightgbm", "")
    assert shown.model == "known + median of last, seasonal"
    assert series_from_bytes(series_to_bytes([shown])) == [shown]
    assert series_from_bytes(b"[{}]") == series_from_bytes(None) == []


def test_series_are_of_all_together_of_queues_with_policies_and_of_the_largest() -> None:
    rows = [row(n, queue=QueueName(f"q{n}.x"), devices=float(n)) for n in range(1, 30)]
    rows.append(row(99, waits=True, devices=500.0))
    policies: Policies = {QueueName("q1"): BurstPolicy(QueueName("q1"), allowed=True)}
    known = known_of(columns(*rows), {}, capacity={}, policies=policies, now=NOW, step_s=HOUR)
    keys = [each.queue for each in chosen(known)]
    assert keys[:3] == ["", "q1", "q29"]
    assert len(keys) == 9
    assert len(known.columns) == 29
    assert shares(known.columns, "H100", now=NOW)["q1"] == 1 / 435
    assert payers_of(policies) == [QueueName("q1")]
    assert payers_of({None: BurstPolicy(None, allowed=True)}) == [None]


async def test_the_leader_forecasts_and_every_replica_shows_it() -> None:
    world = World()
    await world.allow()
    await cluster_with(world.store, node("n1", gpus=2))
    shape = TaskShape(1000, 1 << 30, DeviceRequest("H100", 1))
    wanted = spec(groups=(TaskGroup("main", 1, 1, shapes=(shape,), run="true"),))
    now = world.clock.now()
    await submit(world.store, 3, spec=wanted, submitted_at=now)
    leader = await world.lead()
    await world.clock.advance(60)
    await leader.foresight.look()
    # A new leader goes on with what the old one has learnt.
    other = Foresight((await world.lead()).term, Follower(28 * DAY))
    for _ in range(30):
        await world.clock.advance(HOUR)
        await other.look()
    (found,) = other.outlooks
    assert (found.kind, found.queue, found.step_s) == ("H100", None, STEP_S)
    assert found.excess.shape == (256, 24)
    assert 0 <= np.median(found.excess[:, 0]) <= 1.1
    # A forecast that nothing has followed for long says less and less.
    (later,) = other.ahead(other.made_at + 20 * HOUR)
    assert np.array_equal(later.excess, found.excess[:, 20:])
    assert other.ahead(other.made_at + 24 * HOUR) == ()
    (shown,) = await forecasts(
        world.store.burst, kind="", queue="", horizon_s=2 * HOUR, past_s=3 * HOUR
    )
    assert shown.actual == (3.0, 3.0, 3.0)
    assert shown.capacity == (2.0, 2.0)
    assert shown.coverage_90 > 0
    (queue,) = await forecasts(
        world.store.burst, kind="H100", queue="default", horizon_s=0, past_s=0
    )
    assert len(queue.quantiles[0]) == 24


def test_what_is_booked_ahead_is_demand_for_certain() -> None:
    what = What(amounts=(Amount(DeviceRequest("H100", 4), 2), Amount(None, 1)))
    wanted = ReservationSpec("exam", what, When(1.0), owners=Owners(queues=(QueueName("nlp.x"),)))
    reservation = Reservation(ReservationId(1), wanted, Tenant("t"), "ann", NOW)
    kept = [
        Kept(reservation, Occurrence(OccurrenceId(n), reservation.id, "exam", at, at + DAY))
        for n, at in enumerate((NOW - 1, NOW + 2 * HOUR))
    ]
    windows = windows_of(kept, {}, now=NOW)
    assert {key.queue for key in windows} == {"", "nlp", "nlp.x"}
    demand = demand_at(ALL, columns(), NOW, steps=1, step_s=HOUR, windows=windows[ALL])
    assert Forecaster(0).forecast(demand).median[:4].tolist() == [0.0, 8.0, 8.0, 8.0]
    quick = demand_at(ALL, columns(), NOW, steps=1, step_s=60, windows=windows[ALL])
    assert quick.booked[0].from_s == 120 * HOUR


def test_a_demand_without_jobs_is_forecast() -> None:
    demand = demand_at(ALL, columns(), NOW, steps=1, step_s=HOUR)
    assert isinstance(demand, Demand)
    assert Forecaster(0).forecast(demand).median.tolist() == [0.0] * 24


def test_what_is_booked_of_nodes_counts_as_what_they_have() -> None:
    wanted = ReservationSpec("exam", What(nodes=WholeNodes(2)), When(1.0))
    reservation = Reservation(ReservationId(1), wanted, Tenant("t"), "ann", NOW)
    shares = (
        NodeShare(NodeId(1), "n1", whole=True),
        NodeShare(NodeId(2), "n2", whole=True),
        NodeShare(NodeId(3), "n3", 4000, devices=(DeviceGrant(0), DeviceGrant(1, blocks=25))),
        NodeShare(NodeId(9), "gone", whole=True),
    )
    nodes = {
        NodeId(1): NodeParts(("H100", "", "H100", "A100"), 64.0),
        NodeId(2): NodeParts((), 32.0),
        NodeId(3): NodeParts(("A100", "H100"), 64.0),
    }
    parts = (Part(ClusterName("c"), shares),)
    occurrence = Occurrence(
        OccurrenceId(1), reservation.id, "exam", NOW + HOUR, NOW + DAY, parts=parts
    )
    kept = [Kept(reservation, occurrence)]
    assert nodes_in(kept) == {1, 2, 3, 9}
    found = windows_of(kept, nodes, now=NOW)
    assert {key.kind: windows[0].devices for key, windows in found.items()} == {
        "H100": 2.25, "A100": 2.0, "cpu": 100.0,
    }  # fmt: skip


def test_jobs_without_devices_are_a_series_of_their_own_in_processors() -> None:
    rows = [
        row(1, kind="", devices=0.0, cores=48.0),
        row(2, kind="", devices=0.0, cores=16.0, started_at=NOW),
        row(3, kind="", devices=2.0, cores=8.0),
        row(4, started_at=NOW, cores=12.0),
    ]
    capacity = {"H100": 8.0, "A100": 4.0, "cpu": 100.0}
    known = known_of(columns(*rows), {}, capacity=capacity, policies={}, now=NOW, step_s=HOUR)
    # Who takes any devices counts as one that takes those that there are most of.
    assert (known.sizes[Key("", "cpu")], known.sizes[ALL]) == (64.0, 3.0)
    assert known.capacity["cpu"] == 88.0
    assert {key.kind for key in chosen(known)} == {"cpu", "H100"}


@pytest.mark.parametrize(("offers", "rented"), [(True, {"", "H100"}), (False, {"H100"})])
async def test_machines_without_devices_are_rented_ahead_where_they_are_on_offer(
    offers: bool, rented: set[str]
) -> None:
    world = World()
    await world.allow()
    await cluster_with(world.store, node("n1", gpus=2), node("n2"))
    tasks = (TaskGroup("main", 40, 40, shapes=(TaskShape(4000, 1 << 30),), run="true"),)
    leader = await world.lead()
    if offers:
        async with world.store.burst.begin() as tx:
            await tx.put_offers("plain", [offer(kind="", devices=0, cpu_milli=16_000)])
    shape = TaskShape(1000, 1 << 30, DeviceRequest("H100", 1))
    device = (TaskGroup("main", 1, 1, shapes=(shape,), run="true"),)
    now = world.clock.now()
    await submit(world.store, 1, spec=spec(groups=tasks), submitted_at=now)
    await submit(world.store, 1, spec=spec(groups=device), submitted_at=now)
    await world.clock.advance(60)
    shown = await leader.foresight.look()
    cpu = next(each for each in shown if (each.kind, each.queue) == ("cpu", ""))
    assert (cpu.actual[-1], cpu.capacity[0]) == (160.0, 128.0)
    outlooks = {each.kind: each for each in leader.foresight.outlooks}
    assert outlooks.keys() == rented
    if offers:
        # 32 processors are missing, which are two machines of 16.
        assert outlooks[""].excess[:, 0].max() == pytest.approx(2.0, abs=0.1)
