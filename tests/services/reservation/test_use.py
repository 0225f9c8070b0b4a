"""What owners use of their windows is counted, and keeps them."""

from atoll.core.model.ids import AttemptId
from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.reservation import OccurrenceState
from tests.adapters.store_builders import lead, node_ids, place, placement, report, submit
from tests.adapters.store_builders import spec as job_spec
from tests.services.reservation.worlds import HOUR, World, spec

SOON = 2 * HOUR


async def run_on(world: World, name: str, *, gpus: int) -> AttemptId:
    """A job that runs on a node of `north`; its attempt."""
    fence = await lead(world.leader)
    (job,) = await submit(world.store, spec=job_spec())
    number = (await node_ids(world.store))[name]
    made = placement(job, number, gpus=tuple(range(gpus)))
    _, won = await place(world.leader, fence, made)
    assert won
    return made.attempt


async def test_device_hours_of_owners_are_counted_and_written(timed: World) -> None:
    await timed.cluster("n1", "n2")
    made = await timed.book(spec("exam", timed.clock.now() + SOON))
    (node,) = {s.node_name for p in made.occurrences[0].parts for s in p.shares}
    term = await timed.term()
    await timed.pass_time(SOON)
    await timed.look(term)
    await run_on(timed, node, gpus=4)
    await term.ground.replica.follow()
    await term.measure()
    await timed.pass_time(HOUR / 2)
    await term.measure()
    await term.save_use()
    (running,) = (await timed.shown(made)).occurrences
    assert running.used_device_hours == 2.0
    await timed.pass_time(HOUR)
    await term.measure()
    assert await timed.look(term) == ["ended"]
    kept = await timed.store.reservation.kept([running.id])
    assert kept[running.id].occurrence.used_device_hours == 4.0


async def test_a_window_in_use_is_kept_and_an_idle_one_is_given_back(timed: World) -> None:
    await timed.cluster("n1", "n2")
    made = await timed.book(spec("exam", timed.clock.now() + SOON, release_after_idle_s=600))
    (node,) = {s.node_name for p in made.occurrences[0].parts for s in p.shares}
    term = await timed.term()
    await timed.pass_time(SOON)
    await timed.look(term)
    attempt = await run_on(timed, node, gpus=1)
    await term.ground.replica.follow()
    for _ in range(3):
        await timed.pass_time(500)
        await term.measure()
        assert await timed.look(term) == []
    await report(timed.store, attempt, AttemptEvent.ACCEPTED)
    await report(timed.store, attempt, AttemptEvent.STARTED)
    await report(timed.store, attempt, AttemptEvent.FINISHED, exit_code=0)
    await term.ground.replica.follow()
    await term.measure()
    await timed.pass_time(601)
    assert await timed.look(term) == ["released"]


async def test_strangers_on_other_nodes_are_no_use(timed: World) -> None:
    await timed.cluster("n1", "n2")
    made = await timed.book(spec("exam", timed.clock.now() + SOON, release_after_idle_s=600))
    (node,) = {s.node_name for p in made.occurrences[0].parts for s in p.shares}
    (other,) = {"n1", "n2"} - {node}
    term = await timed.term()
    await timed.pass_time(SOON)
    await timed.look(term)
    await run_on(timed, other, gpus=1)
    await term.ground.replica.follow()
    await timed.pass_time(300)
    await term.measure()
    await timed.pass_time(301)
    assert await timed.look(term) == ["released"]
    gone = await timed.store.reservation.kept([made.occurrences[0].id])
    assert {k.occurrence.state for k in gone.values()} == {OccurrenceState.RELEASED}
