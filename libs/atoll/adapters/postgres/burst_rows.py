"""Rows of renting, and back. Everybody's queue is the empty one."""

from typing import Final, TypeVar

from pydantic import TypeAdapter

from atoll.adapters.postgres.sql import Record
from atoll.core.model.burst import (
    BurstPolicy,
    EndCause,
    Instance,
    InstanceId,
    InstanceState,
    Offer,
    Rental,
    rental_of,
)
from atoll.core.model.burst_wants import BurstDecision, Want
from atoll.core.model.ids import ClusterName, JobId, QueueName
from atoll.ports.store.burst import NewInstance

T = TypeVar("T")

OFFER: Final = TypeAdapter(Offer)
OFFERS: Final = TypeAdapter(tuple[Offer, ...])
WANTS: Final = TypeAdapter(tuple[Want, ...])
POLICY: Final = TypeAdapter(BurstPolicy)
DECISION: Final = TypeAdapter(BurstDecision)
STATES: Final = {state.value: state for state in InstanceState}
CAUSES: Final = {cause.value: cause for cause in EndCause}

INSTANCE_MUTABLE: Final = {
    "state": "text",
    "why": "text",
    "provider_id": "text",
    "created_at": "double precision",
    "ready_at": "double precision",
    "idle_since": "double precision",
    "stop_at": "double precision",
    "drain_by": "double precision",
    "keep_until": "double precision",
    "ended_at": "double precision",
    "cause": "text",
    "message": "text",
}
INSTANCE_INSERTED: Final = (
    "id", "token", "cluster", "offer", "price", "queue", "requested_at", "jobs", "spent",
    "revision", *INSTANCE_MUTABLE, "shard", "join_hash", "expected_at", "give_up_at",
)  # fmt: skip
INSTANCE_COLUMNS: Final = (
    "i.id, i.token, i.cluster, i.offer, i.queue, i.requested_at, i.jobs, i.spent, i.revision, "
    + ", ".join(f"i.{name}" for name in INSTANCE_MUTABLE)
)


def encoded(adapter: "TypeAdapter[T]", value: T) -> str:
    """As JSON."""
    return adapter.dump_json(value).decode()


def new_values(new: NewInstance, instance: Instance) -> tuple[object, ...]:
    """Values of INSTANCE_INSERTED."""
    return (
        instance.id, instance.token, instance.cluster, encoded(OFFER, instance.offer),
        instance.offer.price, instance.queue or "", instance.requested_at, list(instance.jobs),
        instance.spent, instance.revision, *instance_mutable(instance), new.shard, new.join_hash,
        new.ready_at, new.give_up_at,
    )  # fmt: skip


def instance_mutable(instance: Instance) -> tuple[object, ...]:
    """Values of INSTANCE_MUTABLE."""
    return (
        instance.state.value, instance.why, instance.provider_id, instance.created_at,
        instance.ready_at, instance.idle_since, instance.stop_at, instance.drain_by,
        instance.keep_until, instance.ended_at, instance.cause.value, instance.message,
    )  # fmt: skip


def instance_from(row: Record) -> Instance:
    """An instance from INSTANCE_COLUMNS."""
    return Instance(
        id=InstanceId(row["id"]),
        token=row["token"],
        offer=OFFER.validate_json(row["offer"]),
        state=STATES[row["state"]],
        requested_at=row["requested_at"],
        queue=queue_from(row["queue"]),
        jobs=tuple(JobId(job) for job in row["jobs"]),
        why=row["why"],
        provider_id=row["provider_id"],
        cluster=ClusterName(row["cluster"]),
        created_at=row["created_at"],
        ready_at=row["ready_at"],
        idle_since=row["idle_since"],
        stop_at=row["stop_at"],
        drain_by=row["drain_by"],
        keep_until=row["keep_until"],
        ended_at=row["ended_at"],
        cause=CAUSES[row["cause"]],
        message=row["message"],
        spent=row["spent"],
        revision=row["revision"],
    )


def rental_from(row: Record) -> Rental:
    """A rental from INSTANCE_COLUMNS, `expected_at` and `give_up_at`."""
    return rental_of(instance_from(row), ready_at=row["expected_at"], give_up_at=row["give_up_at"])


def queue_from(name: str) -> QueueName | None:
    """Whose it is; None: everybody's."""
    return QueueName(name) if name else None
