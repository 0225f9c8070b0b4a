"""A database of its own for every test."""

import asyncpg

from tests.support.servers import PostgresLike


async def create_database(server: PostgresLike, name: str, *, template: str = "template0") -> str:
    """The DSN of a new database, which begins as a copy of `template`.

    Nobody may be connected to the template meanwhile.
    """
    await _execute(server, f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    return server.dsn_of(name)


async def drop_database(server: PostgresLike, name: str) -> None:
    """Remove a database, cutting off whoever is still connected."""
    await _execute(server, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


async def _execute(server: PostgresLike, statement: str) -> None:
    connection = await asyncpg.connect(server.dsn, timeout=10)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
