"""A dispatch that knows less than the agent's journal."""

from tests.services.agent.fake_dispatch import FakeDispatch
from tests.services.agent.jobs import attempt, job, on
from tests.services.agent.running import Running


async def test_a_dispatch_that_forgot_decisions_is_not_obeyed(
    dispatch: FakeDispatch, agent: Running
) -> None:
    await agent.start()
    for number in (1, 2):
        dispatch.start_attempt(attempt(number), job(), on(0))
    dispatch.push()
    await dispatch.until(lambda: dispatch.ended(attempt(1), attempt(2)))
    dispatch.drop()
    dispatch.decisions.clear()
    dispatch.void(attempt(3))
    await dispatch.until(lambda: len(dispatch.hellos) == 2)
    for number in (4, 5):
        dispatch.start_attempt(attempt(number), job(), on(0))
    assert dispatch.stream is not None
    dispatch.stream.next_number = 1
    dispatch.push()
    seen = len(dispatch.heartbeats)
    await dispatch.until(lambda: len(dispatch.heartbeats) >= seen + 3)
    assert {entry["attempt"] for entry in agent.ledger("start")} == {attempt(1), attempt(2)}
    assert dispatch.heartbeats[-1].applied_seq == 2
