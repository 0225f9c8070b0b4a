import hashlib

import pytest

from atoll.api.agent.v1 import agent_pb2
from atoll.dispatch.messages import claim_of
from atoll.dispatch.settings import DispatchSettings


@pytest.mark.parametrize(("shown", "kept"), [("", b""), ("word", hashlib.sha256(b"word").digest())])
def test_a_join_token_is_kept_by_its_hash_alone(shown: str, kept: bytes) -> None:
    hello = agent_pb2.Hello(cluster="burst-1", agent_instance="one", join_token=shown)
    claim = claim_of(hello, holder="here:1", settings=DispatchSettings.model_validate({}))
    assert claim.join_hash == kept
    assert "word" not in repr(claim)
