"""The client over TLS, with certificates made for the test."""

from pathlib import Path

import grpc
import pytest
import trustme

from atoll.client.config import ClientConfig
from atoll.core.model.errors import Unavailable
from tests.client.both import Looping, Waiting
from tests.client.fake import Server
from tests.client.world import World


@pytest.mark.parametrize("kind", [Waiting, Looping])
def test_a_client_trusts_the_authority_that_it_is_given(
    kind: type[Waiting | Looping], tmp_path: Path
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    server = Server(World(), credentials=server_credentials(authority))
    try:
        config = ClientConfig(
            endpoint=server.address.replace("127.0.0.1", "localhost"),
            tls="on",
            tls_ca=str(tmp_path / "ca.pem"),
        )
        one = kind(config)
        assert one.do(one.client.submit({"run": "x"})).id == 1
        one.close()
    finally:
        server.stop()


def test_a_server_of_another_authority_is_not_trusted(tmp_path: Path) -> None:
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    server = Server(World(), credentials=server_credentials(trustme.CA()))
    config = ClientConfig(endpoint=server.address, tls="on", tls_ca=str(tmp_path / "ca.pem"))
    one = Waiting(config)
    try:
        with pytest.raises(Unavailable, match="ATOLL_TLS_CA"):
            one.do(one.client.submit({"run": "x"}))
        assert not server.world.jobs
    finally:
        one.close()
        server.stop()


def server_credentials(authority: trustme.CA) -> grpc.ServerCredentials:
    issued = authority.issue_cert("localhost", "127.0.0.1")
    chain = b"".join(pem.bytes() for pem in issued.cert_chain_pems)
    return grpc.ssl_server_credentials([(issued.private_key_pem.bytes(), chain)])
