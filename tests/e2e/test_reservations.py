"""Bookings over real servers: they start once and on time whatever dies meanwhile."""

import asyncio
import time
from collections.abc import Iterable
from typing import Any

import pytest

from atoll.client import AsyncClient, BookingRefused, ClientConfig
from atoll.core.model.booking import Owners
from atoll.core.model.ids import QueueName
from atoll.core.model.reservation import Amount, Occurrence, ReservationSpec, What, When
from atoll.core.model.resources import DeviceRequest
from tests.e2e.load import job, quiet, rows, value
from tests.e2e.oracle import check
from tests.e2e.processes import ServiceProcess
from tests.e2e.stack import Stack, metrics_of
from tests.support.servers import PostgresLike
from tests.support.waiting import eventually

NODES = 8
EXAMS = QueueName("exams")


def booking(name: str, start_at: float, *, nodes: int = NODES, **more: Any) -> ReservationSpec:
    """Whole nodes for the queue `exams`, for an hour."""
    return ReservationSpec(
        name,
        What(amounts=(Amount(DeviceRequest("H100", 8), nodes),)),
        When(length_s=3600.0, start_at=start_at),
        owners=Owners(queues=(EXAMS,)),
        **more,
    )


async def test_a_window_opens_once_and_stays_its_owner_s_through_two_failovers(
    stack: Stack,
) -> None:
    await stack.start(("alpha",), placements=2, reservations=2)
    async with stack.client() as client:
        await client.create_queue(EXAMS)
        first = await loop_leader(stack)
        start_at = time.time() + 4
        made = await client.reservations.create(booking("exam", start_at, lend=False))
        exam = await client.submit(exam_job("exam-1"))
        stranger = await client.submit(job("stranger", seconds=0.2))
        await asyncio.sleep(start_at - time.time() - 0.05)
        first.kill()
        await ended(stack, exam.id)
        assert await loop_leader(stack, but=first) is not first
        await one_more_leader(stack)
        again = await client.submit(exam_job("exam-2"))
        await ended(stack, again.id)
        assert await state_of(stack, stranger.id) == "QUEUED"
        assert await happened(stack, made.id, "started") == 1
        (occurrence,) = (await client.reservations.get(made.id)).occurrences
        assert occurrence.state == "RUNNING"
        await client.reservations.release(made.id)
        ids = [exam.id, again.id, stranger.id]
        await quiet(stack, ids)
    assert await happened(stack, made.id, "released") == 1
    await check(stack, ids)


async def test_one_of_a_hundred_gets_the_last_window_and_postgres_may_restart(
    stack: Stack, postgres_server: PostgresLike
) -> None:
    await stack.start(("alpha",), reservations=2)
    other = ClientConfig(reservation=(stack.reservations[1].address,))
    async with stack.client() as client, AsyncClient(config=other) as second:
        await client.create_queue(EXAMS)
        start_at = time.time() + 7200
        results = await asyncio.gather(
            *(
                (client, second)[n % 2].reservations.create(booking(f"b{n}", start_at))
                for n in range(100)
            ),
            return_exceptions=True,
        )
        refused = [each for each in results if isinstance(each, BookingRefused)]
        (won,) = [each for each in results if not isinstance(each, BaseException)]
        assert len(refused) == 99
        assert all(len(each.alternatives) == 3 for each in refused)
        await client.reservations.create(booking("neighbour", start_at + 2 * 3600))
        longer = await client.reservations.extend(won.id, start_at + 2 * 3600)
        assert longer.end_at == start_at + 2 * 3600
        with pytest.raises(BookingRefused):
            await second.reservations.extend(won.id, start_at + 2 * 3600 + 60)
        soon = await client.reservations.create(booking("soon", time.time() + 3, nodes=1))
        await asyncio.to_thread(postgres_server.kill)
        await asyncio.sleep(1)
        await postgres_server.start()
        await eventually(lambda: has_happened(stack, soon.id, "started"))
        gone = await cancelled_during_its_start(client)
    assert await happened(stack, soon.id, "started") == 1
    assert await happened(stack, gone, "started") <= 1
    assert await value(stack, "SELECT count(*) FROM occurrences WHERE live") == 3


async def test_nodes_that_die_before_and_during_a_window_are_replaced(stack: Stack) -> None:
    await stack.start(("alpha",), reservations=1)
    async with stack.client() as client:
        await client.create_queue(EXAMS)
        start_at = time.time() + 5
        made = await client.reservations.create(booking("exam", start_at, nodes=2))
        before = names(made.occurrences)
        dead = [min(before)]
        stack.misbehave("alpha", down(dead))
        await eventually(lambda: moved_off(client, made.id, dead))
        await eventually(lambda: has_happened(stack, made.id, "started"))
        (during,) = (await client.reservations.get(made.id)).occurrences
        assert (during.missing_devices, len(names([during]))) == (0, 2)
        dead.append(min(names([during])))
        stack.misbehave("alpha", down(dead))
        await eventually(lambda: moved_off(client, made.id, dead))
        both = await client.submit([exam_job("one"), exam_job("two")])
        ids = [each.id for each in both]
        await quiet(stack, ids)
        (after,) = (await client.reservations.get(made.id)).occurrences
        ran = await rows(stack, "SELECT id FROM attempts WHERE state = 'FINISHED'")
        assert len(ran) == 2
    assert names([after]).isdisjoint(dead)
    assert after.missing_devices == 0
    await check(stack, ids)


def exam_job(name: str) -> dict[str, Any]:
    """A job that waits for the window."""
    return job(name, gpus="H100:8", queue=EXAMS, reservation="exam")


async def cancelled_during_its_start(client: AsyncClient) -> int:
    """A booking that its owner takes back in the moment of its start."""
    start_at = time.time() + 1.5
    made = await client.reservations.create(booking("regret", start_at, nodes=1))
    await asyncio.sleep(start_at - time.time())
    gone = await client.reservations.cancel(made.id)
    assert gone.state == "CANCELLED"
    return made.id


async def loop_leader(stack: Stack, *, but: ServiceProcess | None = None) -> ServiceProcess:
    """The replica that leads the loop."""
    for _ in range(1200):
        for replica in stack.reservations:
            if replica is not but and replica.running():
                metrics = await asyncio.to_thread(metrics_of, replica)
                if metrics.get("atoll_reservation_leading_info") == 1.0:
                    return replica
        await asyncio.sleep(0.1)
    raise AssertionError("\n".join(r.tail() for r in stack.reservations))


async def one_more_leader(stack: Stack) -> None:
    """Placement's leader dies, and another one leads."""
    first = await stack.leader()
    first.kill()
    await stack.leader(but=first)


async def ended(stack: Stack, number: int) -> None:
    """Wait until a job has succeeded."""

    async def succeeded() -> bool:
        return await state_of(stack, number) == "SUCCEEDED"

    await eventually(succeeded)


async def state_of(stack: Stack, number: int) -> str:
    return str(await value(stack, "SELECT state FROM jobs WHERE id = $1", number))


async def happened(stack: Stack, reservation: int, event: str) -> int:
    """How often something happened to a booking."""
    counted = await value(
        stack,
        "SELECT count(*) FROM booking_events WHERE reservation = $1 AND event = $2",
        reservation,
        event,
    )
    return int(counted)


async def has_happened(stack: Stack, reservation: int, event: str) -> bool:
    return await happened(stack, reservation, event) > 0


async def moved_off(client: AsyncClient, reservation: int, dead: Iterable[str]) -> bool:
    """Whether a booking has no dead node any more."""
    info = await client.reservations.get(reservation)
    return names(info.occurrences).isdisjoint(dead)


def names(occurrences: Iterable[Occurrence]) -> set[str]:
    return {s.node_name for each in occurrences for part in each.parts for s in part.shares}


def down(nodes: Iterable[str]) -> dict[str, Any]:
    return {"nodes": {name: {"down": True} for name in nodes}}
