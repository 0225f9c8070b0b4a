"""By what bookings know jobs: their users, their labels, and each by itself; in both stores."""

from atoll.core.model.booking import Owners, job_owner
from atoll.core.model.ids import DEFAULT_SHARD, JobId
from tests.adapters.store_builders import lead, spec, submit
from tests.adapters.store_worlds import StoreWorld


async def test_jobs_are_known_by_user_label_and_themselves(world: StoreWorld) -> None:
    store = world.store
    await lead(store)
    (ann,) = await submit(store)
    (bob,) = await submit(store, principal="bob", spec=spec(labels=(("team", "nlp"),)))

    async def known(**owners: object) -> list[JobId]:
        asked = Owners(**owners)  # type: ignore[arg-type]
        return sorted(await store.placement.marked(DEFAULT_SHARD, asked))

    assert await known(users=("ann",)) == [ann.id]
    assert await known(labels=(("team", "nlp"),)) == [bob.id]
    assert await known(labels=(job_owner(ann.id), ("team", "nlp"))) == [ann.id, bob.id]
    assert await known(labels=(job_owner(JobId(99)),)) == []
    marks = await store.placement.marked(DEFAULT_SHARD, Owners(users=("bob",)))
    loaded = await store.placement.load(DEFAULT_SHARD)
    assert {
        view.pending.id: view.marks for view in loaded.jobs if view.pending.id == bob.id
    } == marks
    assert marks[bob.id] == ("label:team=nlp", "user:bob", f"label:atoll.job={bob.id}")
