"""Reports of agents."""

from typing import Final

from atoll.api.agent.v1 import agent_pb2
from atoll.core.model.ids import AttemptId, ClusterName, NodeId
from atoll.core.model.lifecycle import AttemptEvent
from atoll.core.model.messages import Report
from atoll.wire.enums import WireError, inverse, known, to_numbers
from atoll.wire.reason import code_from_text, code_to_text

MOST_MESSAGE: Final = 4096
"""Characters of a message that are kept; it goes into three rows."""

_EVENTS = to_numbers(AttemptEvent, agent_pb2.AttemptEvent, prefix="ATTEMPT_EVENT_")
_EVENTS_BACK = inverse(_EVENTS)


def report_to_proto(report: Report) -> agent_pb2.Report:
    """A report; raises WireError for VOIDED and LOST, which no agent can know."""
    if report.event not in _EVENTS:
        raise WireError(f"{report.event} is no report of an agent")
    return agent_pb2.Report(
        number=report.number,
        attempt_id=report.attempt,
        event=_EVENTS[report.event],
        at=report.at,
        reason=code_to_text(report.reason),
        message=report.message,
        exit_code=report.exit_code,
        suspect_node_ids=report.suspects,
        inventory_number=report.inventory_number,
        generation=report.generation,
        ranks=report.ranks,
    )


def report_from_proto(proto: agent_pb2.Report, cluster: ClusterName) -> Report:
    """A report; raises WireError for an event that this version does not know.

    The message is cut, and loses what a database cannot hold: one agent's must not keep the
    reports of others from being written.
    """
    return Report(
        cluster=cluster,
        number=proto.number,
        attempt=AttemptId(proto.attempt_id),
        event=known(_EVENTS_BACK, proto.event, what="attempt event"),
        at=proto.at,
        reason=code_from_text(proto.reason),
        message=proto.message[:MOST_MESSAGE].replace("\0", ""),
        exit_code=proto.exit_code if proto.HasField("exit_code") else None,
        suspects=tuple(NodeId(node) for node in proto.suspect_node_ids),
        inventory_number=proto.inventory_number,
        generation=proto.generation,
        ranks=tuple(proto.ranks),
    )
