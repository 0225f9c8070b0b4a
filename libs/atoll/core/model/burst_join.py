"""Whether an agent may join as a rented cluster: its token is good for the first that shows it."""

from hmac import compare_digest

from atoll.core.model.burst import CLUSTER_PREFIX, GIVEN_UP, Instance
from atoll.core.model.errors import ErrorCode, FailedPrecondition
from atoll.core.model.ids import ClusterName


def is_rented(cluster: ClusterName) -> bool:
    """Whether a cluster of that name has to be rented."""
    return cluster.startswith(CLUSTER_PREFIX)


def refused(why: str) -> FailedPrecondition:
    """What an agent is told that may not join."""
    return FailedPrecondition(why, code=ErrorCode.JOIN_REFUSED)


def unknown(cluster: ClusterName) -> FailedPrecondition:
    """What is said of a name of which there is no instance."""
    return refused(
        f"nothing was rented as {cluster}; names that begin with {CLUSTER_PREFIX} are kept for"
        " rented clusters"
    )


def join_refusal(
    instance: Instance, *, agent: str, joined_by: str, shown: bytes, expected: bytes
) -> FailedPrecondition | None:
    """Why an agent may not join as an instance's cluster; None when it may.

    `joined_by`: agent instance that showed the token first; `shown`, `expected`: its SHA-256.
    """
    if not compare_digest(shown, expected):
        return refused(f"the join token is not the one of {instance.cluster}")
    if joined_by not in ("", agent):
        return refused(f"the join token of {instance.cluster} was used by another agent")
    if instance.state in GIVEN_UP:
        return refused(f"{instance.cluster} was given up: it is {instance.state}")
    return None
