import asyncio
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from atoll.adapters.memory.clock import ManualClock
from atoll.runtime.roles import schema
from tests.conftest import FreshDatabase


async def role(job: str, *arguments: str) -> int:
    return await asyncio.to_thread(getattr(schema, job), arguments)


@pytest.fixture
async def dsn(
    fresh_database: FreshDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """An empty database, named by a file as in a container."""
    made = await fresh_database()
    (tmp_path / "dsn").write_text(f"{made}\n")
    monkeypatch.delenv("ATOLL_DSN", raising=False)
    monkeypatch.setenv("ATOLL_DSN_FILE", str(tmp_path / "dsn"))
    return made


async def test_services_wait_until_the_migrations_have_run(
    dsn: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await role("wait", "--within-s=0") == 1
    assert "has `migrate` run?" in capsys.readouterr().err
    waiting = asyncio.create_task(role("wait", "--within-s=60"))
    assert await role("migrate") == 0
    assert await waiting == 0
    assert await role("migrate") == 0


async def test_a_newer_schema_is_no_reason_to_wait(dsn: str) -> None:
    assert await role("migrate") == 0
    connection = await asyncpg.connect(dsn)
    await connection.execute("UPDATE alembic_version SET version_num = '9999'")
    await connection.close()
    assert await role("wait", "--within-s=0") == 0


async def test_a_server_that_is_not_there_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ATOLL_DSN", "postgresql://nobody@127.0.0.1:1/none")
    monkeypatch.delenv("ATOLL_DSN_FILE", raising=False)
    assert await role("migrate", "--within-s=0") == 1
    assert "Error" in capsys.readouterr().err


async def test_without_a_database_it_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("ATOLL_DSN", "ATOLL_DSN_FILE"):
        monkeypatch.delenv(name, raising=False)
    assert await role("migrate") == 2
    assert "ATOLL_DSN_FILE" in capsys.readouterr().err


def test_a_step_that_fails_is_tried_until_it_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "AGAIN_S", 0.0)
    outcomes: Iterator[Exception | bool] = iter([ConnectionRefusedError("not yet"), False, True])

    def step() -> bool:
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    assert schema.repeat(step, ManualClock(), within_s=60) == ""
    assert next(outcomes, None) is None
