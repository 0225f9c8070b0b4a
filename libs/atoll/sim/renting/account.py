"""What a run came to, and what it saves against others."""

from collections.abc import Mapping
from statistics import fmean
from typing import Any, Final

import numpy as np

from atoll.core.model.burst import MICROS, Market
from atoll.sim.renting.machines import by_hour, cost_of
from atoll.sim.renting.play import Played
from atoll.sim.renting.setting import OURS, PEERS
from atoll.sim.renting.world import RESTART_S

LATE: Final = 0.95
CENT: Final = 0.01


def numbers_of(played: Played, per_hour: int) -> dict[str, Any]:
    """Dollars, seconds, parts. `above_budget`: hours in which more was spent, and breaches.

    `wait`: from submit to the first start; `queued`: in the line in all, after stops too; `delay`:
    with what is done again after stops.
    """
    machines = list(played.machines)
    paid_s = sum(each.paid_s(each.ended_at) * each.offer.devices for each in machines)
    used_s = sum(each.used_s for each in machines)
    spot = [each for each in machines if each.offer.market is Market.SPOT]
    hours = by_hour(machines)
    delay_s = float(played.queued_s.mean()) + RESTART_S * played.stopped / len(played.queued_s)
    above = sum(spent > per_hour / MICROS + CENT for spent in hours.values())
    return {
        "cost": round(cost_of(machines), 2),
        "mean_wait_s": round(float(played.waited_s.mean()), 1),
        "p95_wait_s": round(float(np.quantile(played.waited_s, LATE)), 1),
        "mean_queued_s": round(float(played.queued_s.mean()), 1),
        "p95_queued_s": round(float(np.quantile(played.queued_s, LATE)), 1),
        "mean_delay_s": round(delay_s, 1),
        "used": round(used_s / paid_s, 4) if paid_s else 0.0,
        "instances": len(machines),
        "spot": round(len(spot) / len(machines), 4) if machines else 0.0,
        "stopped": played.stopped,
        "above_budget": above + played.above,
    }


def savings(policies: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Part of the cost that ours saves against each peer; 0 where nobody rents."""
    ours = policies[OURS]["cost"]
    costs = {peer: policies[peer]["cost"] for peer in PEERS}
    return {peer: round(1 - ours / cost, 4) if cost else 0.0 for peer, cost in costs.items()}


def no_longer(policies: Mapping[str, Mapping[str, Any]]) -> dict[str, bool]:
    """Whether the P95 wait of ours is equal or lower than that of each peer."""
    ours = policies[OURS]["p95_wait_s"]
    return {peer: ours <= policies[peer]["p95_wait_s"] for peer in PEERS}


def report(clusters: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The mean over clusters."""
    found = list(clusters.values())
    saving = {peer: round(fmean(each["saving"][peer] for each in found), 4) for peer in PEERS}
    return {
        "saving": saving,
        "saving_mean": round(fmean(saving.values()), 4),
        "p95_wait_s": {
            name: round(fmean(each["policies"][name]["p95_wait_s"] for each in found), 1)
            for name in (OURS, *PEERS)
        },
        "no_longer": {peer: sum(each["no_longer"][peer] for each in found) for peer in PEERS},
        "above_budget": sum(each["policies"][OURS]["above_budget"] for each in found),
        "clusters": dict(clusters),
    }
