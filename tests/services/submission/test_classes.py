"""Priority classes: what the platform names, and what jobs get of them."""

from atoll.core.model.errors import InvalidInput
from atoll.core.model.priority import PriorityClass
from tests.services.submission.worlds import Caller, Stores, World, refusal, spec


async def test_a_class_gives_its_priority_and_whether_it_stops_others(
    world: World, ann: Caller
) -> None:
    numbers = await ann.submit(
        spec("a", priority_class="low"),
        spec("b", priority_class="urgent"),
        spec("c", priority_class="urgent", preempts=False),
        spec("d", priority_class="low", preempts=True),
    )
    jobs = [await world.stored(number) for number in numbers]
    assert [job.priority for job in jobs] == [-1000, 1500, 1500, -1000]
    assert [job.spec.preempts for job in jobs] == [False, True, False, False]


async def test_an_unknown_class_is_refused_with_the_nearest(ann: Caller) -> None:
    found = await refusal(ann.submit(spec(priority_class="urgnt")))
    assert isinstance(found, InvalidInput)
    assert found.violations[0].field == "jobs[0].priority_class"
    assert "did you mean 'urgent'?" in found.message


async def test_the_platform_names_its_classes(stores: Stores) -> None:
    classes = [PriorityClass("normal", 5), PriorityClass("paper", 70, preempts=False)]
    world = World(stores, classes=classes)
    await world.start()
    caller = world.caller()
    (number,) = await caller.submit(spec(priority_class="paper"))
    assert (await caller.job(number)).priority == 70
    found = await refusal(caller.submit(spec(priority_class="high")))
    assert "It is one of normal, paper" in found.message
    await world.close()
