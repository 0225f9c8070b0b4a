"""The leader's answers as messages of the API."""

from atoll.api.placement.v1 import placement_pb2
from atoll.core.engine.explain import ClusterTally
from atoll.core.engine.holders import Holder
from atoll.core.model.ids import attempt_name
from atoll.core.model.plan import Nomination
from atoll.core.policies.factors import Factor, KindShare, ShareRow
from atoll.placement.usecases.etas import Eta
from atoll.placement.usecases.explain import Answer
from atoll.placement.usecases.questions import (
    Planned,
    PriorityAnswer,
    SharesAnswer,
    VictimView,
    WaitView,
)
from atoll.wire.candidate import candidate_to_proto
from atoll.wire.job import state_to_proto
from atoll.wire.placement import task_to_proto
from atoll.wire.reason import reason_to_proto


def explained(answer: Answer) -> placement_pb2.ExplainJobResponse:
    """Why a job is where it is."""
    return placement_pb2.ExplainJobResponse(
        state=state_to_proto(answer.state),
        summary=answer.summary,
        reasons=[reason_to_proto(reason) for reason in answer.reasons],
        tallies=[_tally(tally) for tally in answer.tallies],
        jobs_ahead=answer.jobs_ahead,
        as_of=answer.as_of,
        fits_now=answer.fits_now,
        holders=[_holder(holder) for holder in answer.holders],
        eta=_eta(answer.eta),
        hold=_hold(answer.hold),
        candidates=[candidate_to_proto(each) for each in answer.candidates],
    )


def planned(found: Planned) -> placement_pb2.PlanJobResponse:
    """What would become of a job."""
    trial = found.trial
    return placement_pb2.PlanJobResponse(
        summary=found.summary,
        fits_now=bool(trial.cluster) and not trial.victims,
        never_fits=not trial.ever,
        cluster=trial.cluster or "",
        tasks=[task_to_proto(task) for task in trial.tasks],
        victims=[_victim(victim) for victim in found.victims],
        reasons=[reason_to_proto(reason) for reason in trial.explanation.reasons],
        tallies=[_tally(tally) for tally in trial.explanation.tallies],
        jobs_ahead=trial.explanation.jobs_ahead,
        holders=[_holder(holder) for holder in found.holders],
        eta=_eta(found.eta),
        as_of=found.as_of,
        candidates=[candidate_to_proto(each) for each in found.candidates],
    )


def shared_out(answer: SharesAnswer) -> placement_pb2.GetSharesResponse:
    """What queues hold, deserve and borrow."""
    rows = [_share(row) for row in answer.rows]
    return placement_pb2.GetSharesResponse(shares=rows, as_of=answer.as_of)


def prioritised(answer: PriorityAnswer, order: str) -> placement_pb2.GetPriorityResponse:
    """What places a job; `order` is the name of the policy."""
    return placement_pb2.GetPriorityResponse(
        state=state_to_proto(answer.state),
        order=order,
        factors=[_factor(factor) for factor in answer.factors],
        jobs_ahead=answer.jobs_ahead,
        as_of=answer.as_of,
    )


def wait_to_proto(wait: WaitView) -> placement_pb2.Wait:
    """Why one job waits."""
    reason = wait.reason
    return placement_pb2.Wait(
        job_id=wait.job,
        code=reason.code.value if reason is not None else "",
        message=reason.message if reason is not None else "",
        eta=_eta(wait.eta),
    )


def _tally(tally: ClusterTally) -> placement_pb2.ClusterTally:
    return placement_pb2.ClusterTally(
        cluster=tally.cluster, nodes=tally.nodes, counts=dict(tally.counts)
    )


def _holder(holder: Holder) -> placement_pb2.Holder:
    return placement_pb2.Holder(
        attempt=attempt_name(holder.attempt),
        queue=holder.queue,
        cluster=holder.cluster,
        amount=holder.amount,
        unit=holder.unit,
        nodes=holder.nodes,
        until=holder.until,
        stopping=holder.stopping,
    )


def _hold(hold: Nomination | None) -> placement_pb2.Hold | None:
    if hold is None:
        return None
    return placement_pb2.Hold(
        cluster=hold.cluster,
        until=hold.until,
        victims=[attempt_name(victim) for victim in hold.victims],
        tasks=[task_to_proto(task) for task in hold.tasks],
    )


def _eta(eta: Eta | None) -> placement_pb2.Eta | None:
    if eta is None:
        return None
    return placement_pb2.Eta(
        p50_at=eta.p50_at,
        p90_at=eta.p90_at,
        if_nothing_arrives_at=eta.if_nothing_arrives_at,
        cause=eta.cause,
        promised=eta.promised,
        cluster=eta.cluster,
    )


def _victim(victim: VictimView) -> placement_pb2.Victim:
    return placement_pb2.Victim(
        attempt=victim.attempt,
        queue=victim.queue,
        cluster=victim.cluster,
        priority=victim.priority,
        grace_s=victim.grace_s,
    )


def _share(row: ShareRow) -> placement_pb2.QueueShare:
    return placement_pb2.QueueShare(
        queue=row.queue,
        weight=row.weight,
        cpu_milli=row.cpu_milli,
        memory_bytes=row.memory_bytes,
        kinds=[_kind(kind) for kind in row.kinds],
        dominant_share=row.dominant_share,
        past_share=row.past_share,
        bias=row.bias,
    )


def _kind(share: KindShare) -> placement_pb2.KindShare:
    return placement_pb2.KindShare(
        kind=share.kind,
        held=share.held,
        deserved=share.deserved,
        borrowed=max(0, share.held - share.deserved),
        capacity=share.capacity,
    )


def _factor(factor: Factor) -> placement_pb2.PriorityFactor:
    return placement_pb2.PriorityFactor(
        name=factor.name, value=factor.value, unit=factor.unit, queue=factor.queue
    )
