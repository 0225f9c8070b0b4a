"""Asks the placement leader for promises."""

from collections.abc import Callable, Sequence
from typing import Final

import grpc

from atoll.api.common.v1 import common_pb2
from atoll.api.placement.v1 import placement_pb2, placement_pb2_grpc
from atoll.core.model.deadline import Verdict
from atoll.core.model.errors import DomainError, ErrorCode, Unavailable
from atoll.core.model.ids import ShardId
from atoll.core.model.spec import JobSpec
from atoll.ports.registry import RegistryPort, RegistryUnavailable
from atoll.runtime.rpc.channel import outgoing_metadata
from atoll.wire.deadline import verdict_from_proto
from atoll.wire.errors import error_of_call
from atoll.wire.spec import spec_to_proto

PLACEMENT: Final = "placement"
TIMEOUT_S: Final = 2.0
"""A submit waits no longer for the answers of one shard's replica."""
MOST_CHANNELS: Final = 16


class PlacementDesk:
    """A PromiseDesk over PlacementService; remembers who answered last, and keeps channels."""

    def __init__(
        self, registry: RegistryPort | None, dial: Callable[[str], grpc.aio.Channel]
    ) -> None:
        self._registry = registry
        self._dial = dial
        self._leader: dict[ShardId, str] = {}
        self._channels: dict[str, grpc.aio.Channel] = {}

    async def answers(
        self, shard: ShardId, specs: Sequence[JobSpec], *, waits: Sequence[bool], keep: bool
    ) -> list[Verdict]:
        """An answer for each job; raises Unavailable."""
        request = placement_pb2.AdmitDeadlinesRequest(
            shard=shard,
            jobs=[_job(spec, wait) for spec, wait in zip(specs, waits, strict=True)],
            validate_only=not keep,
        )
        last: DomainError | None = None
        for address in await self._replicas(shard):
            try:
                reply = await self._asked(address, request)
            except DomainError as error:
                last = error
                continue
            self._leader[shard] = address
            return [verdict_from_proto(answer) for answer in reply.answers]
        self._leader.pop(shard, None)
        told = f" ({last.message})" if last else ""
        raise Unavailable(f"no placement leader answers{told}", code=ErrorCode.UNAVAILABLE)

    async def close(self) -> None:
        """Close all channels."""
        for channel in self._channels.values():
            await channel.close()
        self._channels.clear()

    async def _replicas(self, shard: ShardId) -> list[str]:
        """Addresses, the one that answered last before all others."""
        known = self._leader.get(shard)
        try:
            found = await self._registry.list(PLACEMENT) if self._registry else ()
        except RegistryUnavailable:
            found = ()
        addresses = dict.fromkeys([known] if known else [])
        return list(addresses | dict.fromkeys(entry.address for entry in found))

    async def _asked(
        self, address: str, request: placement_pb2.AdmitDeadlinesRequest
    ) -> placement_pb2.AdmitDeadlinesResponse:
        stub = placement_pb2_grpc.PlacementServiceStub(await self._channel(address))
        try:
            return await stub.AdmitDeadlines(
                request, timeout=TIMEOUT_S, metadata=outgoing_metadata()
            )
        except grpc.aio.AioRpcError as error:
            raise _refusal(error, address) from None

    async def _channel(self, address: str) -> grpc.aio.Channel:
        if address not in self._channels:
            if len(self._channels) >= MOST_CHANNELS:
                await self._channels.pop(next(iter(self._channels))).close()
            self._channels[address] = self._dial(address)
        return self._channels[address]


def _job(spec: JobSpec, waits: bool) -> common_pb2.JobSpec:
    proto = spec_to_proto(spec)
    if waits and not proto.depends_on:
        proto.depends_on.add(name="of this call")
    return proto


def _refusal(error: grpc.aio.AioRpcError, address: str) -> DomainError:
    found = error_of_call(
        error.code().value[0], error.details() or "", tuple(error.trailing_metadata() or ())
    )
    return found or Unavailable(
        f"{address}: {error.code().name.lower()}", code=ErrorCode.UNAVAILABLE
    )
