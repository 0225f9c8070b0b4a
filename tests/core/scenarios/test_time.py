"""What jobs may expect of time: reservations, and what goes around them."""

from dataclasses import replace

from atoll.core.model.ids import JobId
from atoll.core.model.inventory import Node
from atoll.core.model.plan import Plan, RunTerms
from atoll.core.model.spec import Topology

from . import claims
from .claims import Shard, gpus, queue


def for_(seconds: float) -> RunTerms:
    return RunTerms(time_limit_s=seconds)


def placed(made: Plan) -> list[JobId]:
    return [placement.job for placement in made.placements]


def start_of(made: Plan, job: JobId) -> float | None:
    return next((promise.start for promise in made.promises if promise.job == job), None)


def test_a_large_job_without_a_present_fit_gets_a_reservation_and_starts_by_it() -> None:
    shard = Shard(claims.nodes(1))
    running = shard.submit("a", gpus(4, terms=for_(100)))
    shard.cycle()
    large = shard.submit("a", gpus(8, terms=for_(1000)))
    promised = start_of(shard.cycle(), large)
    assert promised == shard.now - 2 + 100
    for _ in range(20):
        # A stream of small jobs, each of which would fit.
        shard.submit("a", gpus(1, terms=for_(500)))
        assert placed(shard.cycle()) == []
    shard.now = promised - 1
    shard.end(running)
    assert large in placed(shard.cycle())
    assert shard.now <= promised


def test_what_ends_before_the_start_goes_into_the_place() -> None:
    shard = Shard(claims.nodes(1))
    shard.submit("a", gpus(4, terms=for_(100)))
    shard.cycle()
    large = shard.submit("a", gpus(8, terms=for_(1000)))
    shard.cycle()
    long = shard.submit("a", gpus(2, terms=for_(500)))
    short = shard.submit("a", gpus(2, terms=for_(50)))
    made = shard.cycle()
    assert placed(made) == [short]
    assert start_of(made, large) is not None
    assert long in shard.jobs
    assert placed(shard.cycle()) == []


def test_what_the_reservation_leaves_is_there_for_long_jobs() -> None:
    shard = Shard(claims.nodes(2))
    shard.submit("a", gpus(8, terms=for_(100)))
    shard.submit("a", gpus(2, terms=for_(5000)))
    shard.cycle()
    large = shard.submit("a", gpus(8, terms=for_(1000)))
    assert start_of(shard.cycle(), large) is not None
    # It will be on the node that comes free: of the other, nothing is kept.
    others = [shard.submit("a", gpus(2)) for _ in range(3)]
    assert placed(shard.cycle()) == others


def test_a_gang_of_a_required_domain_reserves_inside_it() -> None:
    """Racks of nodes 1, 2 and 3, 4; one node of each is free soon, the others late."""
    shard = Shard([racked(node) for node in claims.nodes(4)])
    for node in range(1, 5):
        for device in range(8):
            shard.put("a", node, device, terms=for_({1: 100, 2: 700, 3: 100}.get(node, 900)))
    gang = shard.submit("a", gpus(8, tasks=2, terms=for_(50), topology=Topology("rack")))
    promised = start_of(shard.cycle(), gang)
    # The runs of node 2 were put there one by one, a second apart, the last as the 16th.
    assert promised == 1000 + 16 + 700


def racked(node: Node) -> Node:
    rack = ("rack", f"r{(node.id - 1) // 2}")
    return replace(node, inventory=replace(node.inventory, domains=(rack,)))


def test_quota_100_60_used_a_job_of_50_does_not_wait_for_ever_behind_jobs_of_40() -> None:
    shard = Shard(claims.nodes(25), queues=(queue("a", limit=100),))
    first = shard.submit("a", gpus(4, tasks=15, terms=for_(100)))
    shard.cycle()
    large = shard.submit("a", gpus(5, tasks=10, terms=for_(100)))
    stream = [shard.submit("a", gpus(4, tasks=10, terms=for_(100)))]
    assert placed(shard.cycle()) == stream
    for _ in range(3):
        stream.append(shard.submit("a", gpus(4, tasks=10, terms=for_(100))))
        assert placed(shard.cycle()) == []
    assert any(start_of(made, large) for made in shard.plans)
    shard.end(first)
    assert placed(shard.cycle()) == [large]


def test_a_job_of_8_does_not_block_a_job_of_1_while_8_devices_idle() -> None:
    """4 nodes x 8 GPUs with eight 1-GPU jobs scattered; nobody may be stopped."""
    shard = Shard(claims.nodes(4))
    for number in range(8):
        shard.put("a", number % 4 + 1, number // 4, terms=for_(1000))
    large = shard.submit("a", gpus(8, tasks=2, terms=for_(1000)))
    assert start_of(shard.cycle(), large) is not None
    small = [shard.submit("a", gpus(1, terms=for_(10_000))) for _ in range(8)]
    assert placed(shard.cycle()) == small


def test_a_run_without_a_limit_is_not_taken_to_end() -> None:
    shard = Shard(claims.nodes(1))
    shard.submit("a", gpus(4))
    shard.cycle()
    large = shard.submit("a", gpus(8, terms=for_(10)))
    assert start_of(shard.cycle(), large) is None
    small = shard.submit("a", gpus(1))
    assert placed(shard.cycle()) == [small]


def test_a_second_cluster_gets_a_reservation_only_for_another_job() -> None:
    shard = Shard(claims.nodes(1))
    shard.submit("a", gpus(8, terms=for_(100)))
    shard.cycle()
    jobs = [shard.submit(name, gpus(8, terms=for_(10))) for name in ("a", "b")]
    made = shard.cycle()
    assert [promise.job for promise in made.promises] == jobs[:1]


def test_a_promise_is_kept_while_the_order_changes() -> None:
    shard = Shard(claims.nodes(1))
    shard.submit("a", gpus(8, terms=for_(100)))
    shard.cycle()
    large = shard.submit("a", gpus(8, terms=for_(10)))
    assert start_of(shard.cycle(), large) is not None
    shard.submit("a", gpus(7, terms=for_(10)), priority=0)
    assert [promise.job for promise in shard.cycle().promises] == [large]
