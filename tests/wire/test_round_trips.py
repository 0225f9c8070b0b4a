"""What goes over the wire comes back as it was."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.api.agent.v1 import agent_pb2
from atoll.api.common.v1 import common_pb2
from atoll.core.model.ids import AttemptId, ClusterName, JobId, QueueName
from atoll.core.model.inventory import NodeInventory
from atoll.core.model.lifecycle import AttemptEvent, JobState
from atoll.core.model.messages import Decision, Event, Report
from atoll.core.model.plan import GangRequest, GroupRequest, TaskPlacement, request_of
from atoll.core.model.reason import Reason, ReasonCode
from atoll.core.model.spec import JobSpec
from atoll.wire.decision import (
    StartOrder,
    decode_decision,
    encode_decision,
    start_from_proto,
    start_to_proto,
)
from atoll.wire.enums import WireError
from atoll.wire.event import event_from_proto, event_to_proto
from atoll.wire.inventory import combined, decode_node, encode_node, inventory_hash
from atoll.wire.job import state_from_proto, state_to_proto
from atoll.wire.placement import decode_tasks, encode_tasks
from atoll.wire.reason import reason_from_proto, reason_to_proto
from atoll.wire.report import MOST_MESSAGE, report_from_proto, report_to_proto
from atoll.wire.request import decode_request, encode_request
from atoll.wire.spec import (
    dependency_ids,
    dependency_names,
    encode_spec,
    parse_spec,
    spec_from_proto,
    spec_to_proto,
)
from tests.wire import strategies as make

NORTH = ClusterName("north")


@given(make.specs)
def test_a_spec_comes_back(spec: JobSpec) -> None:
    assert spec_from_proto(parse_spec(encode_spec(spec, secrets=True))) == spec


@given(make.specs)
def test_secrets_are_shown_by_name_only(spec: JobSpec) -> None:
    shown = spec_to_proto(spec)
    assert set(shown.secrets) == {key for key, _ in spec.secrets}
    assert not any(shown.secrets.values())


def test_a_members_place_in_its_array_and_its_dependencies_are_arguments() -> None:
    proto = common_pb2.JobSpec(
        name="a", depends_on=[common_pb2.Dependency(id=7), common_pb2.Dependency(name="first")]
    )
    assert dependency_ids(proto) == (7,)
    assert dependency_names(proto) == ("first",)
    spec = spec_from_proto(proto, priority=5, depends_on=[JobId(7), JobId(8)], array=(JobId(40), 3))
    assert (spec.depends_on, spec.array_id, spec.array_index, spec.priority) == ((7, 8), 40, 3, 5)


def test_what_a_user_leaves_out_gets_the_documented_default() -> None:
    spec = spec_from_proto(common_pb2.JobSpec(groups=[common_pb2.TaskGroup(count=3)]))
    assert (spec.queue, spec.priority_class, spec.grace_s) == ("default", "normal", 10.0)
    assert spec.groups[0].min_count == 3


@given(make.specs)
def test_a_request_comes_back_as_the_same_object(spec: JobSpec) -> None:
    request = request_of(spec)
    data = encode_request(request)
    assert decode_request(data) == request
    assert decode_request(bytes(data)) is decode_request(data)


@pytest.mark.parametrize(("allow", "most"), [(True, 0), (True, 5), (False, 0), (False, 7)])
def test_what_a_job_says_of_renting_is_in_its_request(allow: bool, most: int) -> None:
    request = GangRequest((GroupRequest(1, 1, ()),), burst=allow, burst_max_cost=most)
    assert decode_request(encode_request(request)) == request


@given(make.specs)
def test_only_what_decides_where_a_job_fits_is_in_its_request(spec: JobSpec) -> None:
    other = replace(spec, name="other", labels=(), secrets=(), retries=spec.retries + 1)
    assert encode_request(request_of(other)) == encode_request(request_of(spec))
    wider = replace(spec, groups=(replace(spec.groups[0], count=spec.groups[0].count + 1),))
    assert encode_request(request_of(wider)) != encode_request(request_of(spec))


@given(make.decisions)
def test_a_decision_comes_back(decision: Decision) -> None:
    assert decode_decision(encode_decision(decision), NORTH) == decision


@given(make.decisions, make.specs, st.dictionaries(make.names, make.texts, max_size=2))
def test_a_start_brings_its_spec_with_secrets(
    decision: Decision, spec: JobSpec, addresses: dict[str, str]
) -> None:
    member = replace(spec, array_id=JobId(9), array_index=2)
    order = StartOrder(member, addresses)
    assert start_from_proto(start_to_proto(decision, order)) == order


def test_an_unknown_kind_of_decision_and_random_bytes_are_refused() -> None:
    unknown = agent_pb2.Decision(number=1)
    with pytest.raises(WireError, match="decision kind"):
        decode_decision(unknown.SerializeToString(), NORTH)
    with pytest.raises(WireError):
        decode_decision(b"\xff\xff\xff", NORTH)
    with pytest.raises(WireError):
        decode_tasks(b"\xff\xff\xff")


@given(st.lists(make.tasks, max_size=4).map(tuple))
def test_tasks_come_back(tasks: tuple[TaskPlacement, ...]) -> None:
    assert decode_tasks(encode_tasks(tasks)) == tasks


@given(make.reports)
def test_a_report_comes_back(report: Report) -> None:
    assert report_from_proto(report_to_proto(report), NORTH) == report


def test_a_report_cannot_carry_what_no_row_can_hold() -> None:
    proto = agent_pb2.Report(event=agent_pb2.ATTEMPT_EVENT_FINISHED, message="a\0b" * 5000)
    message = report_from_proto(proto, NORTH).message
    assert len(message) <= MOST_MESSAGE
    assert message.startswith("abab")


@given(make.specs)
def test_large_requests_come_back_too(spec: JobSpec) -> None:
    wide = replace(spec.groups[0].shapes[0], labels=(("k", "v" * 5000),))
    request = request_of(replace(spec, groups=(replace(spec.groups[0], shapes=(wide,)),)))
    assert decode_request(encode_request(request)) == request


@pytest.mark.parametrize("event", [AttemptEvent.VOIDED, AttemptEvent.LOST])
def test_what_only_the_leader_can_conclude_is_no_report(event: AttemptEvent) -> None:
    with pytest.raises(WireError):
        report_to_proto(Report(NORTH, 1, attempt=AttemptId(65537), event=event, at=0.0))


@given(make.events)
def test_an_event_comes_back(event: Event) -> None:
    assert event_from_proto(event_to_proto(event)) == event


def test_the_first_event_is_the_submit_and_a_change_is_told_from_it() -> None:
    first = Event(JobId(1), QueueName("q"), event=None, state=JobState.QUEUED, at=1.0)
    assert event_to_proto(first).event == "SUBMITTED"
    assert event_to_proto(replace(first, message="priority 7")).event == "CHANGED"


@pytest.mark.parametrize("state", JobState)
def test_every_state_has_its_number(state: JobState) -> None:
    assert state_from_proto(state_to_proto(state)) is state


@given(st.sampled_from(ReasonCode), make.texts, make.amounts)
def test_a_reason_comes_back(code: ReasonCode, text: str, amount: int) -> None:
    reason = Reason(code, text, cluster=text, needed=amount, available=3, unit=text, count=amount)
    assert reason_from_proto(reason_to_proto(reason)) == reason


@given(make.nodes)
def test_a_node_comes_back(node: NodeInventory) -> None:
    assert decode_node(encode_node(node)) == node


@given(st.lists(make.nodes, unique_by=lambda node: node.name, max_size=5))
def test_the_hash_of_an_inventory_knows_no_order(nodes: list[NodeInventory]) -> None:
    forward = {node.name: node for node in nodes}
    backward = {node.name: node for node in reversed(nodes)}
    assert inventory_hash(forward) == inventory_hash(backward)


@given(st.lists(make.nodes, unique_by=lambda node: node.name, min_size=2, max_size=5), make.nodes)
def test_the_hash_follows_deltas(nodes: list[NodeInventory], changed: NodeInventory) -> None:
    before = {node.name: node for node in nodes}
    new = replace(changed, name=nodes[0].name)
    after = {**before, new.name: new}
    del after[nodes[1].name]
    delta = combined(inventory_hash(before), add=(new,), remove=(nodes[0], nodes[1]))
    assert delta == inventory_hash(after)
    assert (inventory_hash(before) == inventory_hash(after)) is (before == after)
