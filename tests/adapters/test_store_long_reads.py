"""A read of everything may take longer than any transaction that writes."""

import pytest

from atoll.adapters.postgres import database
from atoll.adapters.postgres.database import Database, PoolSize, take_long
from atoll.ports.store.common import StoreUnavailable

LONGER = "SELECT pg_sleep(1.4)"


@pytest.fixture
async def impatient(store_dsn: str, monkeypatch: pytest.MonkeyPatch) -> Database:
    """Connections whose transactions may take a second."""
    monkeypatch.setitem(database.SESSION, "transaction_timeout", "1s")
    return Database(store_dsn, size=PoolSize(2), application="test")


async def test_a_snapshot_that_takes_long_is_let_go_on(impatient: Database) -> None:
    async with impatient.snapshot() as sql:
        await take_long(sql)
        await sql.run(LONGER)
        assert await sql.value("SELECT 1") == 1
    await impatient.close()


async def test_any_other_is_cut_off(impatient: Database) -> None:
    with pytest.raises(StoreUnavailable):
        async with impatient.snapshot() as sql:
            await sql.run(LONGER)
    await impatient.close()


async def test_the_next_transaction_of_a_connection_has_the_usual_time(
    impatient: Database,
) -> None:
    async with impatient.snapshot() as sql:
        await take_long(sql)
    with pytest.raises(StoreUnavailable):
        async with impatient.transaction() as sql:
            await sql.run(LONGER)
    await impatient.close()
