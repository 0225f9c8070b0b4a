"""How an agent finds a dispatch: one of several, over TLS, and another when one is gone."""

from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
import trustme

from atoll.runtime.servers.ports import free_ports
from tests.services.agent.fake_dispatch import FakeDispatch
from tests.services.agent.jobs import attempt, job, on
from tests.services.agent.running import Running, simulated
from tests.support.waiting import eventually


@pytest.fixture
async def another() -> AsyncIterator[FakeDispatch]:
    made = FakeDispatch()
    await made.start()
    yield made
    await made.stop()


async def test_an_address_where_nobody_is_does_not_matter(
    dispatch: FakeDispatch, tmp_path: Path
) -> None:
    (dead,) = free_ports(1)
    addresses = (f"127.0.0.1:{dead}", dispatch.address)
    settings = simulated(tmp_path, dispatch)
    agent = Running(settings.model_copy(update={"dispatch": addresses}))
    await agent.start()
    dispatch.start_attempt(attempt(1), job(), on(0))
    await dispatch.until(lambda: dispatch.ended(attempt(1)))
    await agent.stop()


async def test_another_replica_goes_on_where_one_has_ended(
    dispatch: FakeDispatch, another: FakeDispatch, tmp_path: Path
) -> None:
    addresses = (dispatch.address, another.address)
    settings = simulated(tmp_path, dispatch)
    agent = Running(settings.model_copy(update={"dispatch": addresses}))
    for one in (dispatch, another):
        one.start_attempt(attempt(1), job(), on(0))
        one.start_attempt(attempt(2), job(300), on(0))
    await agent.start()
    await eventually(lambda: bool(dispatch.hellos or another.hellos))
    first = dispatch if dispatch.hellos else another
    second = another if first is dispatch else dispatch
    await first.until(lambda: first.ended(attempt(1)))
    second.report_seq = first.report_seq
    await first.stop()
    await second.until(lambda: bool(second.heartbeats))
    assert second.hellos[-1].applied_seq == 2
    second.stop_attempt(attempt(2))
    second.push()
    await second.until(lambda: second.ended(attempt(2)))
    assert len(agent.ledger("start")) == 2
    await agent.stop()


@pytest.mark.parametrize("trusted", [True, False], ids=["trusted", "not trusted"])
async def test_dispatch_has_to_show_who_it_is(trusted: bool, tmp_path: Path) -> None:
    authority, stranger = trustme.CA(), trustme.CA()
    cert = authority.issue_cert("127.0.0.1")
    pair = (cert.private_key_pem.bytes(), cert.cert_chain_pems[0].bytes())
    dispatch = FakeDispatch()
    await dispatch.start(grpc.ssl_server_credentials([pair]))
    roots = tmp_path / "ca.pem"
    (authority if trusted else stranger).cert_pem.write_to_path(str(roots))
    agent = Running(simulated(tmp_path, dispatch, tls_ca=roots))
    await agent.start()
    if trusted:
        dispatch.start_attempt(attempt(1), job(), on(0))
        await dispatch.until(lambda: dispatch.ended(attempt(1)))
    else:
        with pytest.raises(TimeoutError):
            await dispatch.until(lambda: bool(dispatch.hellos), within_s=1.5)
    await agent.stop()
    await dispatch.stop()
