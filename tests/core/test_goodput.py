"""What the objective changes: who grows, and what a device more or less is worth."""

from atoll.core.engine.deadlines.borrowing import borrowers, work_lost
from atoll.core.engine.deadlines.elastic import ElasticRun
from atoll.core.engine.deadlines.pools import Pool
from atoll.core.model.ids import ClusterName, JobId, NodeId, QueueName, attempt_id
from atoll.core.model.plan import RunFacts, RunTerms, TaskPlacement
from atoll.core.model.resources import DeviceGrant
from atoll.core.model.spec import Elastic
from atoll.core.policies.interfaces import Objective
from atoll.core.policies.registry import policies
from atoll.core.policies.victim_order import Goodput, MinimalLoss
from atoll.core.state.ledger import Holding

HOUR = 3600.0
NOW = 10 * HOUR
POOL: Pool = (ClusterName("c1"), "H100")


def run(
    number: int,
    throughput: tuple[tuple[int, float], ...],
    *,
    hours: float,
    tasks: int = 1,
    cost_s: float = 60.0,
) -> ElasticRun:
    """A run with work for so many hours of its least size; each task has one device."""
    elastic = Elastic(throughput, hours * HOUR, rescale_cost_s=cost_s)
    held = tuple(
        TaskPlacement(0, rank, NodeId(1), "n1", 0, 0, devices=(DeviceGrant(rank, 100),))
        for rank in range(tasks)
    )
    facts = RunFacts(JobId(number), started_at=0.0, terms=RunTerms(elastic=elastic))
    attempt = attempt_id(JobId(number), 1)
    holding = Holding(attempt, QueueName("a"), POOL[0], held, facts)
    return ElasticRun(holding, facts, elastic, POOL, 1, since=NOW, done=0.0, generation=0)


def grown(runs: list[ElasticRun], objective: Objective, *, spare: int, after: float) -> list[int]:
    """Jobs that grow."""
    found = borrowers(runs, lambda pool, seconds: spare, now=NOW + after, objective=objective)
    return [run.holding.attempt >> 16 for run, _ in found]


def test_speed_gives_a_device_to_who_saves_most_time_goodput_to_who_makes_most_of_it() -> None:
    long = run(1, ((1, 1.0), (2, 1.5)), hours=100)
    steep = run(2, ((1, 1.0), (2, 1.9)), hours=2)
    assert grown([long, steep], Objective.SPEED, spare=1, after=600) == [1]
    assert grown([long, steep], Objective.GOODPUT, spare=1, after=600) == [2]
    assert grown([long, steep], Objective.GOODPUT, spare=2, after=600) == [1, 2]


def test_a_change_that_costs_nothing_is_weighed_to_the_end_of_the_job() -> None:
    free = run(1, ((1, 1.0), (2, 1.9)), hours=2, cost_s=0.0)
    assert grown([free], Objective.GOODPUT, spare=1, after=600) == [1]


def test_a_device_given_back_costs_what_it_did_and_the_pause() -> None:
    flat = run(1, ((1, 1.0), (2, 1.2)), hours=100, tasks=2)
    steep = run(2, ((1, 1.0), (2, 1.9)), hours=100, tasks=2)
    assert work_lost(flat, 1, now=NOW + 600) == (1.2 - 1.0) * 600 + 1.0 * 60
    assert work_lost(steep, 1, now=NOW + 600) > work_lost(flat, 1, now=NOW + 600)


def test_the_objective_chooses_the_price_of_victims_unless_told_otherwise() -> None:
    assert isinstance(policies().victims, MinimalLoss)
    assert isinstance(policies(objective="goodput").victims, Goodput)
    mixed = policies(objective="goodput", victims="minimal_loss")
    assert isinstance(mixed.victims, MinimalLoss)
    assert mixed.objective is Objective.GOODPUT
