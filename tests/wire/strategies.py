"""Values of the model as random as their types allow."""

from hypothesis import strategies as st

from atoll.core.model.ids import AttemptId, ClusterName, Epoch, JobId, NodeId, QueueName
from atoll.core.model.inventory import Device, LocalUse, NodeInventory
from atoll.core.model.lifecycle import AttemptEvent, JobEvent, JobState, StopCause
from atoll.core.model.messages import Decision, DecisionKind, Event, Report
from atoll.core.model.plan import TaskPlacement
from atoll.core.model.reason import ReasonCode
from atoll.core.model.resources import DeviceGrant, DeviceRequest, TaskShape
from atoll.core.model.spec import (
    AntiAffinity,
    Checkpoint,
    Elastic,
    JobSpec,
    OnLost,
    Spread,
    TaskGroup,
    Topology,
)

texts = st.text(st.characters(codec="utf-8"), max_size=8)
# What a row can hold; of the rest a report is cleaned, which a test of its own shows.
storable = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
names = st.text("abcxyz019.-", min_size=1, max_size=8)
amounts = st.integers(0, 2**62)
small = st.integers(1, 1000)
seconds = st.floats(0, 2e9, allow_nan=False)
pairs = st.dictionaries(names, texts, max_size=3).map(lambda found: tuple(sorted(found.items())))

device_requests = st.builds(
    DeviceRequest,
    kind=texts,
    count=small,
    blocks=st.integers(0, 100),
    profile=texts,
    memory_bytes=amounts,
)
shapes = st.builds(
    TaskShape,
    cpu_milli=amounts,
    memory_bytes=amounts,
    device=st.none() | device_requests,
    labels=pairs,
    labels_not=st.sets(st.tuples(names, texts), max_size=3).map(lambda s: tuple(sorted(s))),
)
spreads = st.builds(Spread, level=names, most=small)
groups = st.builds(
    TaskGroup,
    name=names,
    count=small,
    min_count=small,
    shapes=st.lists(shapes, min_size=1, max_size=3).map(tuple),
    run=texts,
    setup=texts,
    envs=pairs,
    spread=st.none() | spreads,
)
elastics = st.builds(
    Elastic,
    throughput=st.dictionaries(small, seconds, max_size=3).map(lambda d: tuple(sorted(d.items()))),
    work=seconds,
    rescale_cost_s=seconds,
)
topologies = st.builds(Topology, level=names, required=st.booleans())
specs = st.builds(
    JobSpec,
    name=names,
    queue=names,
    groups=st.lists(groups, min_size=1, max_size=3).map(tuple),
    priority_class=names,
    labels=pairs,
    secrets=pairs,
    output=texts,
    ports=st.lists(st.integers(1, 65535), max_size=3).map(tuple),
    time_limit_s=seconds,
    begin_at=seconds,
    depends_on=st.lists(small.map(JobId), max_size=3).map(tuple),
    topology=st.none() | topologies,
    deadline_at=seconds,
    best_effort=st.booleans(),
    elastic=st.none() | elastics,
    preemptible=st.booleans(),
    preempts=st.booleans(),
    restart_cost_s=seconds,
    anti_affinity=st.none() | st.builds(AntiAffinity, name=names, level=names),
    checkpoint=st.none() | st.builds(Checkpoint, signal=names, grace_s=seconds, interval_s=seconds),
    on_lost=st.sampled_from(OnLost),
    retries=st.integers(0, 100),
    grace_s=st.floats(0.5, 1000),
    reservation=st.just("") | names,
    burst=st.booleans(),
    burst_max_cost=st.integers(0, 2**40),
)

grants = st.builds(
    DeviceGrant,
    index=st.integers(0, 15),
    blocks=st.integers(0, 100),
    slice_mask=st.integers(0, 255),
    profile=texts,
)
tasks = st.builds(
    TaskPlacement,
    group=st.integers(0, 3),
    rank=st.integers(0, 1000),
    node=small.map(NodeId),
    node_name=names,
    cpu_milli=amounts,
    memory_bytes=amounts,
    devices=st.lists(grants, max_size=3).map(tuple),
)
attempt_ids = st.integers(1, 2**46).map(lambda job: AttemptId(job << 16 | 1))
decisions = st.builds(
    Decision,
    cluster=st.just(ClusterName("north")),
    number=amounts,
    epoch=st.builds(Epoch, small, amounts),
    kind=st.sampled_from(DecisionKind),
    attempt=attempt_ids,
    tasks=st.lists(tasks, max_size=3).map(tuple),
    cause=st.sampled_from(StopCause),
    bind_by=seconds,
    trace=texts,
)
reports = st.builds(
    Report,
    cluster=st.just(ClusterName("north")),
    number=amounts,
    attempt=attempt_ids,
    event=st.sampled_from(sorted(set(AttemptEvent) - {AttemptEvent.VOIDED, AttemptEvent.LOST})),
    at=seconds,
    reason=st.none() | st.sampled_from(ReasonCode),
    message=storable,
    exit_code=st.none() | st.integers(-200, 200),
    suspects=st.lists(small.map(NodeId), max_size=3).map(tuple),
    inventory_number=amounts,
)
events = st.builds(
    Event,
    job=small.map(JobId),
    queue=names.map(QueueName),
    event=st.none() | st.sampled_from(JobEvent),
    state=st.sampled_from(JobState),
    at=seconds,
    attempt=st.none() | attempt_ids,
    cluster=st.none() | names.map(ClusterName),
    reason=st.none() | st.sampled_from(ReasonCode),
    message=texts,
    principal=texts,
)

devices = st.builds(
    Device,
    index=st.integers(0, 15),
    kind=texts,
    memory_bytes=amounts,
    uuid=texts,
    healthy=st.booleans(),
    mig=st.booleans(),
    mig_dynamic=st.booleans(),
    mig_instances=st.lists(st.tuples(names, st.integers(0, 7), texts), max_size=2).map(tuple),
)
local_uses = st.builds(
    LocalUse,
    cpu_milli=amounts,
    memory_bytes=amounts,
    blocks=st.dictionaries(st.integers(0, 15), st.integers(0, 100), max_size=3).map(
        lambda found: tuple(sorted(found.items()))
    ),
)
nodes = st.builds(
    NodeInventory,
    name=names,
    cpu_milli=amounts,
    memory_bytes=amounts,
    devices=st.lists(devices, max_size=3).map(tuple),
    labels=pairs,
    domains=st.lists(st.tuples(names, texts), max_size=3).map(tuple),
    up=st.booleans(),
    address=texts,
    local_use=local_uses,
)
