from dataclasses import replace

import pytest

from atoll.core.model.ids import ClusterName
from atoll.core.model.inventory import Cluster, ClusterState
from atoll.placement.usecases.silence import SilenceLimits, SilenceWatch, Verdict

LIMITS = SilenceLimits(
    unschedulable_after_s=15.0, lost_after_s=120.0, takeover_grace_s=0.0, longest_step_s=1000.0
)
RENTED = Cluster(ClusterName("burst-1"), state=ClusterState.BOOTING)


@pytest.mark.parametrize(
    "state", [ClusterState.BOOTING, ClusterState.QUARANTINED, ClusterState.RETIRED]
)
def test_silence_of_who_is_not_listened_to_says_nothing(state: ClusterState) -> None:
    watch = SilenceWatch(LIMITS, since=0.0)
    for now in (1.0, 500.0, 1400.0):
        assert watch.look([replace(RENTED, state=state)], now=now, dispatch_alive=True) == []


def test_silence_of_a_rented_cluster_counts_from_when_it_has_joined() -> None:
    watch = SilenceWatch(LIMITS, since=0.0)
    watch.look([RENTED], now=500.0, dispatch_alive=True)
    joined = replace(RENTED, state=ClusterState.ACTIVE, last_seen=900.0)
    watch.look([joined], now=501.0, dispatch_alive=True)
    found = watch.look([joined], now=520.0, dispatch_alive=True)
    assert found == [Verdict(RENTED.name, ClusterState.SILENT, 20.0)]
