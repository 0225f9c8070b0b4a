"""Brings a database to the newest schema."""

import asyncio
import threading
from pathlib import Path
from typing import Final

import asyncpg
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

_ONE_IN_THIS_PROCESS: Final = threading.Lock()
"""Alembic keeps its context in a module."""

HERE: Final = Path(__file__).resolve().parent


def upgrade(dsn: str) -> None:
    """Apply what is missing, all in one transaction; nothing happens when nothing is.

    Runs an event loop of its own: inside one, call it by `asyncio.to_thread`. Several processes
    at once are safe. `dsn` is `postgresql://…`, as asyncpg takes it.
    """
    with _ONE_IN_THIS_PROCESS:
        command.upgrade(_config(dsn), "head")


def newest() -> str:
    """The revision that this version of the program was written for."""
    head = _scripts().get_current_head()
    assert head is not None
    return head


def is_current(dsn: str) -> bool:
    """Whether the schema is as new as this program, or newer; False when there is none.

    Runs an event loop of its own. Raises OSError or what asyncpg raises when it cannot be asked.
    """
    applied = asyncio.run(_applied(dsn))
    known = {script.revision for script in _scripts().walk_revisions()}
    return applied is not None and (applied == newest() or applied not in known)


def scripts() -> Path:
    """Where the migrations are: in an installed wheel beside this file, else in the source tree."""
    packaged = HERE / "migrations"
    return packaged if packaged.is_dir() else HERE.parents[3] / "migrations"


async def _applied(dsn: str) -> str | None:
    connection = await asyncpg.connect(dsn, timeout=10)
    try:
        if await connection.fetchval("SELECT to_regclass('alembic_version')") is None:
            return None
        revision: str | None = await connection.fetchval("SELECT version_num FROM alembic_version")
        return revision
    finally:
        await connection.close()


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config(""))


def _config(dsn: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["dsn"] = dsn
    return config
