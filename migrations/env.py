"""Runs migrations over asyncpg, one process at a time, never waiting long for a lock."""

import asyncio
from typing import Any, Final

import asyncpg
from alembic import context
from sqlalchemy import Connection, pool, text
from sqlalchemy.ext.asyncio import create_async_engine

LOCK_TIMEOUT: Final = "5s"
STATEMENT_TIMEOUT: Final = "60s"
ADVISORY_LOCK: Final = 0x61746F6C6C  # "atoll"


def migrate(connection: Connection) -> None:
    # Whoever comes second waits here and finds nothing left to do.
    connection.execute(text(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})"))
    connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"))
    connection.execute(text(f"SET LOCAL statement_timeout = '{STATEMENT_TIMEOUT}'"))
    context.configure(connection=connection)
    context.run_migrations()


async def online(dsn: str) -> None:
    async def connect() -> Any:
        return await asyncpg.connect(dsn, timeout=10)

    engine = create_async_engine(
        "postgresql+asyncpg://", async_creator=connect, poolclass=pool.NullPool
    )
    async with engine.begin() as connection:
        await connection.run_sync(migrate)
    await engine.dispose()


def offline() -> None:
    context.configure(dialect_name="postgresql", literal_binds=True)
    with context.begin_transaction():
        context.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
        context.execute(f"SET LOCAL statement_timeout = '{STATEMENT_TIMEOUT}'")
        context.run_migrations()


if context.is_offline_mode():
    offline()
else:
    asyncio.run(online(context.config.attributes["dsn"]))
