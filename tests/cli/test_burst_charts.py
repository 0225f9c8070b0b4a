"""Forecasts and spending as charts and pictures."""

import json
from pathlib import Path

import pytest

from atoll.api.burst.v1 import burst_pb2 as pb
from tests.cli.conftest import Atoll
from tests.client.world import World

EVENING = 1_796_061_600.0  # Mon 2026-11-30 18:00 UTC
PNG = b"\x89PNG\r\n"


@pytest.fixture
def rising(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("COLUMNS", "60")
    levels = {0.05: -8, 0.25: -3, 0.5: 0, 0.75: 3, 0.95: 8}
    world.burst.series = [
        pb.Series(
            kind="H100", from_at=EVENING - 11 * 3600, step_s=3600,
            actual=[float(n) for n in range(12)],
            quantiles=[
                pb.Quantile(level=level, values=[max(0, 12 + n + off) for n in range(12)])
                for level, off in levels.items()
            ],
            capacity=[16.0] * 12, coverage_90=0.91, mase=0.74, model="ensemble",
            message="short history: two days",
        )
    ]  # fmt: skip
    world.burst.explanation.decisions.add(at=EVENING - 3 * 3600 - 1, action="rent", kind="H100")
    world.burst.explanation.decisions.add(at=EVENING - 1, action="drain")
    world.burst.explanation.decisions.add(at=EVENING - 7200, action="rent", kind="A10G")
    world.burst.explanation.decisions.add(at=EVENING - 90 * 3600, action="rent", kind="H100")
    return world


CHART = """\
H100, all queues: 11 in use or wanted, a peak of 15 to 31 in the next 12h, 16 there without renting
    40             │
                   │
                   │           ░
                   │       ░░░░░
                   │    ░░░░░▓▓▓
    20             │ ░░░░░▓▓▓━━━
                   │░░▓▓▓━━━━▓▓▓
                   │┄┄━━━┄┄┄┄┄┄┄
                  █│━━▓▓▓░░░░░
              █████│▓▓░░░░░
           ████████│░░░
     0  ███████████│
               ▲  ▼
       Mon 06:00       Mon 22:00 UTC
█ in use or wanted, ━ median, ░ 90 % band, ▓ 50 % band, ┄ there is without renting, ▲ rented, ▼ drained, a column: 1h
model: ensemble; 91 % of the past were inside the 90 % band; error 0.74 times that of repeating the day before
short history: two days
"""  # noqa: E501 - as it is printed


def test_a_forecast_is_a_chart_of_bands_against_what_was(atoll: Atoll, rising: World) -> None:
    done = atoll("burst", "forecast", "--ahead", "12h", "--past", "12h")
    assert done.code == 0
    assert done.out == CHART
    asked = next(each for each in rising.burst.asked if isinstance(each, pb.GetForecastRequest))
    assert (asked.horizon_s, asked.past_s) == (43_200, 43_200)


def test_a_narrow_terminal_shows_the_most_of_each_column(
    atoll: Atoll, rising: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    rising.burst.series[0].actual[:] = [float(n % 60) for n in range(600)]
    monkeypatch.setenv("COLUMNS", "40")
    lines = atoll("burst", "forecast").out.splitlines()
    assert max(len(line) for line in lines[1:13]) <= 40
    assert "a column: 20h" in lines[-3]


def test_forecasts_are_for_programs_too(atoll: Atoll, rising: World) -> None:
    (shown,) = json.loads(atoll("burst", "forecast", "-o", "json").out)
    assert (shown["coverage_90"], shown["quantiles"][0]["level"]) == (0.91, 0.05)
    assert shown["from_at"].startswith("2026-11-30T")
    assert atoll("burst", "forecast", "-o", "name").out == "H100\n"
    nothing = atoll("burst", "forecast", "--kind", "A10G")
    assert "nothing is forecast yet: the first forecast comes a minute after" in nothing.out


def test_a_forecast_without_models_or_capacity_is_still_drawn(
    atoll: Atoll, rising: World, tmp_path: Path
) -> None:
    rising.burst.series = [pb.Series(kind="", from_at=EVENING, step_s=60, actual=[0.0, 0.0])]
    assert "model: none yet" in atoll("burst", "forecast").out
    assert atoll("burst", "forecast", "--png", str(tmp_path / "x.png")).code == 0


def test_a_forecast_is_drawn_with_its_decisions(
    atoll: Atoll, rising: World, tmp_path: Path
) -> None:
    path = tmp_path / "forecast.png"
    assert atoll("burst", "forecast", "--png", str(path)).out == f"{path} written\n"
    assert path.read_bytes().startswith(PNG)
    assert atoll("burst", "forecast", "--kind", "none", "--png", str(path)).code == 0


@pytest.fixture
def spent(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("COLUMNS", "60")
    budget = pb.Budget(per_hour=20_000_000, per_month=3_000_000_000)
    world.burst.spend = pb.GetSpendResponse(
        spend=pb.Spend(hour=5_000_000, month=300_000_000, rate=6_300_000, budget=budget),
        queues=[
            pb.Spend(queue="nlp", hour=5_000_000, month=300_000_000, rate=6_300_000),
            pb.Spend(queue="vision", budget=pb.Budget(per_month=0)),
        ],
        from_at=EVENING - 3 * 3600, step_s=3600, spent=[0, 20_000_000, 5_000_000],
    )  # fmt: skip
    return world


SPENT = """\
QUEUE       NOW  THIS HOUR      OF                              THIS MONTH         OF
(all)   $6.30/h      $5.00  $20.00  █████···············  25 %     $300.00  $3,000.00  ██··················  10 %
nlp     $6.30/h      $5.00       -                                 $300.00          -
vision  $0.00/h      $0.00       -                                   $0.00      $0.00

Mon 30 16:00       $20.00  █████████████████████████████│
Mon 30 17:00        $5.00  ███████                      │
█ spent in 1h, │ the budget of $20.00
"""  # noqa: E501 - as it is printed


def test_spending_is_shown_against_budgets(atoll: Atoll, spent: World) -> None:
    done = atoll("burst", "spend", "--queue", "")
    assert (done.code, done.out) == (0, SPENT)
    asked = spent.burst.asked[-1]
    assert (asked.step_s, asked.from_at % 3600) == (3600, 0)


def test_spending_is_drawn(atoll: Atoll, spent: World, tmp_path: Path) -> None:
    path = tmp_path / "spend.png"
    assert atoll("burst", "spend", "--png", str(path)).code == 0
    assert path.read_bytes().startswith(PNG)
    shown = json.loads(atoll("burst", "spend", "-o", "json").out)
    assert (shown["spent"], shown["spend"]["budget"]["per_hour"]) == ([0.0, 20.0, 5.0], 20.0)
    spent.burst.spend = pb.GetSpendResponse(from_at=EVENING, step_s=3600, spent=[0, 0])
    assert "nothing was spent in the last 2h" in atoll("burst", "spend").out
    assert atoll("burst", "spend", "--png", str(path)).code == 0
