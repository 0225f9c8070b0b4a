import asyncio
import ssl
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import URLError

import grpc
import pytest
import trustme

from atoll.api.submission.v1 import submission_pb2 as api
from atoll.api.submission.v1 import submission_pb2_grpc as api_grpc
from atoll.runtime.http import HttpServer
from atoll.runtime.rpc.channel import channel
from atoll.runtime.settings import ServiceSettings
from tests.runtime.echo import echo_server

CALL_TIMEOUT_S = 20


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One pair for all services, the roots it hangs on, and roots of somebody else."""
    folder = tmp_path_factory.mktemp("tls")
    authority, stranger = trustme.CA(), trustme.CA()
    pair = authority.issue_cert("127.0.0.1", "localhost")
    files = {name: folder / f"{name}.pem" for name in ("cert", "key", "ca", "other_ca")}
    files["cert"].write_bytes(b"".join(blob.bytes() for blob in pair.cert_chain_pems))
    pair.private_key_pem.write_to_path(str(files["key"]))
    authority.cert_pem.write_to_path(str(files["ca"]))
    stranger.cert_pem.write_to_path(str(files["other_ca"]))
    return files


async def called(address: str, settings: ServiceSettings) -> int:
    async with channel(address, settings) as dialled:
        stub: Any = api_grpc.SubmissionServiceStub(dialled)
        answer = await stub.GetJob(api.GetJobRequest(job_id=7), timeout=CALL_TIMEOUT_S)
        return int(answer.job.id)


async def refused(address: str, settings: ServiceSettings) -> bool:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await called(address, settings)
    return raised.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_client_that_knows_the_roots_gets_in(material: dict[str, Path]) -> None:
    settings = ServiceSettings(tls_cert=material["cert"], tls_key=material["key"], drain_s=0)
    async with echo_server(settings) as server:
        assert await called(server.address, ServiceSettings(tls_ca=material["ca"])) == 7
        assert await refused(server.address, ServiceSettings(tls_ca=material["other_ca"]))
        assert await refused(server.address, ServiceSettings())


async def test_client_auth_asks_for_a_certificate(material: dict[str, Path]) -> None:
    settings = ServiceSettings(
        tls_cert=material["cert"],
        tls_key=material["key"],
        tls_ca=material["ca"],
        tls_client_auth=True,
        drain_s=0,
    )
    async with echo_server(settings) as server:
        assert await called(server.address, settings) == 7
        assert await refused(server.address, ServiceSettings(tls_ca=material["ca"]))


async def test_with_tls_any_address_may_be_listened_on(material: dict[str, Path]) -> None:
    settings = ServiceSettings(
        listen="0.0.0.0:0", tls_cert=material["cert"], tls_key=material["key"], drain_s=0
    )
    async with echo_server(settings) as server:
        port = server.address.rpartition(":")[2]
        assert not server.advertised.startswith("0.0.0.0")
        assert server.advertised.endswith(f":{port}")
        settings = ServiceSettings(tls_ca=material["ca"])
        assert await called(f"127.0.0.1:{port}", settings) == 7


async def test_an_insecure_address_is_warned_of_at_every_start(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        caplog.clear()
        settings = ServiceSettings(listen="0.0.0.0:0", insecure=True, drain_s=0)
        async with echo_server(settings):
            printed = capsys.readouterr()
        # Where it goes depends on whether somebody has set logging up in this process.
        assert "insecure" in printed.out + printed.err + caplog.text


async def test_metrics_beyond_loopback_are_served_over_tls(material: dict[str, Path]) -> None:
    settings = ServiceSettings(
        metrics_listen="0.0.0.0:0", tls_cert=material["cert"], tls_key=material["key"]
    )
    server = HttpServer(settings, alive=lambda: True, ready=lambda: False)
    port = server.address.rpartition(":")[2]
    trusted = ssl.create_default_context(cafile=str(material["ca"]))

    def fetched(url: str, context: ssl.SSLContext | None) -> int:
        with urllib.request.urlopen(url, context=context, timeout=CALL_TIMEOUT_S) as answer:
            return int(answer.status)

    url = f"https://127.0.0.1:{port}/metrics"
    assert await asyncio.to_thread(fetched, url, trusted) == 200
    with pytest.raises(URLError):
        await asyncio.to_thread(fetched, url, ssl.create_default_context())
    server.close()
