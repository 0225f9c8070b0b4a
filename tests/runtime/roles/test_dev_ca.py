import asyncio
import ssl
from pathlib import Path

import pytest

from atoll.runtime.roles import dev_ca

ARGUMENTS = ("--postgres=postgres:5432", "--redis=redis:6379", "submission", "agent")


def run(folder: Path, *arguments: str) -> dict[str, bytes]:
    assert dev_ca.main([f"--out={folder}", *arguments]) == 0
    return {path.name: path.read_bytes() for path in folder.iterdir()}


async def greeted(folder: Path, *, server: str, caller: str, dialled: str) -> str:
    """Serve as `server`, asking for a certificate; what the server sees of `caller`."""
    seen: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        subject = writer.get_extra_info("peercert")["subject"]
        seen.extend(value for part in subject for key, value in part if key == "commonName")
        writer.write(b"hello\n")
        writer.close()

    inside = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(folder / "ca.pem"))
    inside.load_cert_chain(folder / f"{server}.pem", folder / f"{server}.key")
    inside.verify_mode = ssl.CERT_REQUIRED
    outside = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    outside.load_cert_chain(folder / f"{caller}.pem", folder / f"{caller}.key")
    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=inside)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=outside, server_hostname=dialled
        )
        assert await reader.readline() == b"hello\n"
        writer.close()
    return seen[0]


@pytest.mark.parametrize("dialled", ["submission", "localhost"])
async def test_those_who_are_named_trust_each_other(tmp_path: Path, dialled: str) -> None:
    run(tmp_path, *ARGUMENTS)
    assert await greeted(tmp_path, server="submission", caller="agent", dialled=dialled) == "agent"


async def test_a_name_that_was_not_given_is_not_covered(tmp_path: Path) -> None:
    run(tmp_path, *ARGUMENTS)
    with pytest.raises(ssl.SSLCertVerificationError):
        await greeted(tmp_path, server="submission", caller="agent", dialled="placement-1")


async def test_a_second_run_keeps_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(tmp_path, *ARGUMENTS)
    capsys.readouterr()
    second = run(tmp_path, *ARGUMENTS, "placement-1")
    assert "made placement-1.key, placement-1.pem\n" in capsys.readouterr().out
    assert {name: second[name] for name in first} == first
    assert (
        await greeted(tmp_path, server="placement-1", caller="agent", dialled="placement-1")
        == "agent"
    )


def test_passwords_are_the_same_for_servers_and_services(tmp_path: Path) -> None:
    found = {name: text.decode() for name, text in run(tmp_path, *ARGUMENTS).items() if text}
    password = found["postgres-password"]
    assert found["dsn"] == f"postgresql://atoll:{password}@postgres:5432/atoll"
    assert found["redis-url"] == f"redis://:{found['redis-password']}@redis:6379/0"
    assert found["redis-auth.conf"] == f"requirepass {found['redis-password']}\n"
    assert password != found["redis-password"]


def test_keys_are_not_for_everybody(tmp_path: Path) -> None:
    run(tmp_path, *ARGUMENTS)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    public = {name for name, mode in modes.items() if mode & 0o007}
    assert public == {"ca.pem", "submission.pem", "agent.pem"}
    assert modes["ca.key"] == 0o600


def test_one_can_be_given_its_own_and_no_more(tmp_path: Path) -> None:
    whole, own = tmp_path / "whole", tmp_path / "own"
    found = run(whole, f"--give=agent={own}", *ARGUMENTS)
    given = {path.name: path.read_bytes() for path in own.iterdir()}
    assert given == {name: found[name] for name in ("ca.pem", "agent.pem", "agent.key")}
