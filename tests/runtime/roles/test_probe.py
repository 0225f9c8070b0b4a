import socket
from pathlib import Path

import pytest

from atoll.runtime.http import HttpServer
from atoll.runtime.roles import dev_ca, probe
from atoll.runtime.settings import ServiceSettings


@pytest.fixture
def secured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServiceSettings:
    """Settings of a service that others reach by TLS, in the environment as well."""
    dev_ca.main([f"--out={tmp_path}", "submission"])
    ca, cert, key = (tmp_path / name for name in ("ca.pem", "submission.pem", "submission.key"))
    for name, path in {"CA": ca, "CERT": cert, "KEY": key}.items():
        monkeypatch.setenv(f"ATOLL_TLS_{name}", str(path))
    return ServiceSettings(metrics_listen="0.0.0.0:0", tls_ca=ca, tls_cert=cert, tls_key=key)


@pytest.mark.parametrize("ready", [True, False])
def test_it_says_whether_the_service_is_ready(ready: bool) -> None:
    server = HttpServer(ServiceSettings(), alive=lambda: True, ready=lambda: ready)
    try:
        assert probe.main([server.address]) == (0 if ready else 1)
    finally:
        server.close()


@pytest.mark.parametrize("ready", [True, False])
def test_it_asks_by_tls_where_the_service_has_a_certificate(
    secured: ServiceSettings, monkeypatch: pytest.MonkeyPatch, *, ready: bool
) -> None:
    server = HttpServer(secured, alive=lambda: True, ready=lambda: ready)
    monkeypatch.setenv("ATOLL_METRICS_LISTEN", server.address)
    try:
        assert probe.main([]) == (0 if ready else 1)
    finally:
        server.close()


def test_a_caller_who_stalls_in_the_handshake_holds_up_nobody(secured: ServiceSettings) -> None:
    server = HttpServer(secured, alive=lambda: True, ready=lambda: True)
    port = int(server.address.rpartition(":")[2])
    try:
        with socket.create_connection(("127.0.0.1", port)) as silent:
            assert probe.main([server.address]) == 0
            assert silent.getpeername()[1] == port
    finally:
        server.close()


def test_nobody_there_is_not_ready(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert probe.main([f"127.0.0.1:{bound.getsockname()[1]}"]) == 1
    assert "refused" in capsys.readouterr().err


def test_without_an_address_it_asks_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATOLL_METRICS_LISTEN", raising=False)
    with pytest.raises(SystemExit):
        probe.main([])
