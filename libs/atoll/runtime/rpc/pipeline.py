"""The one interceptor of every server: undecodable requests, the call's scope, validation.

One interceptor and not four: each costs a coroutine per call, and their order matters (a refusal
by validation has to be counted and traced too).
"""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final, TypeAlias

import grpc
from google.protobuf.message import DecodeError, Message

from atoll.core.model.errors import FieldViolation, InvalidInput
from atoll.runtime.rpc.call import CallScope, Context
from atoll.runtime.rpc.validation import validate

# Quoted: generic for the type checker only.
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Found: TypeAlias = "grpc.RpcMethodHandler[Any, Any] | None"
UnaryCall = Callable[[Any, Context], Awaitable[Any]]
StreamCall = Callable[[Any, Context], AsyncIterator[Any]]

UNSCOPED: Final = ("/grpc.health.", "/grpc.reflection.")
"""Probes would drown the calls that matter, in metrics and traces alike."""


class Undecodable:
    """Stands for a request whose bytes are no message: malformed, or nested too deep."""


class Pipeline(grpc.aio.ServerInterceptor):
    """Wraps each handler once, and serves it from then on."""

    def __init__(self, scope: CallScope) -> None:
        self._scope = scope
        self._wrapped: dict[str, Handler] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Found]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Found:
        """The wrapped handler of the method; unknown methods stay unknown."""
        path = handler_call_details.method
        known = self._wrapped.get(path)
        if known is not None:
            return known
        found = await continuation(handler_call_details)
        if found is None or path.startswith(UNSCOPED):
            return found
        wrapped = self._wrapped[path] = self._wrap(path.removeprefix("/"), found)
        return wrapped

    def _wrap(self, method: str, handler: Handler) -> Handler:
        decode = safe_deserializer(handler.request_deserializer)
        encode = handler.response_serializer
        if handler.request_streaming and handler.response_streaming:
            return grpc.stream_stream_rpc_method_handler(
                self._streaming(method, handler.stream_stream), decode, encode
            )
        if handler.request_streaming:
            return grpc.stream_unary_rpc_method_handler(
                self._unary(method, handler.stream_unary), decode, encode
            )
        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(
                self._streaming(method, handler.unary_stream), decode, encode
            )
        return grpc.unary_unary_rpc_method_handler(
            self._unary(method, handler.unary_unary), decode, encode
        )

    def _unary(self, method: str, inner: Any) -> UnaryCall:
        async def call(request: Any, context: Context) -> Any:
            async with self._scope.around(method, context):
                return await inner(_checked(request), context)

        return call

    def _streaming(self, method: str, inner: Any) -> Any:
        # Written with write() and not as a generator: a generator that grpc drops is closed
        # later and in another context, where the scope could not be left.
        async def call(request: Any, context: Context) -> None:
            async with (
                self._scope.around(method, context),
                aclosing(inner(_checked(request), context)) as answers,
            ):
                async for answer in answers:
                    await context.write(answer)

        async def writing_call(request: Any, context: Context) -> None:
            async with self._scope.around(method, context):
                await inner(_checked(request), context)

        return call if inspect.isasyncgenfunction(inner) else writing_call


def safe_deserializer(decode: Any) -> Any:
    """Like `decode`, but gives Undecodable where that raises."""
    if decode is None:
        return None

    def safe(data: bytes) -> Any:
        try:
            return decode(data)
        except DecodeError:
            return Undecodable()

    return safe


def checked_message(message: Any) -> Any:
    """A message that was decoded and keeps its proto's rules; raises InvalidInput."""
    if isinstance(message, Undecodable):
        raise InvalidInput((
            FieldViolation("request", "is malformed, or nested deeper than any message is"),
        ))
    if isinstance(message, Message):
        validate(message)
    return message


def _checked(request: Any) -> Any:
    """One request checked now, or a stream that checks each as it comes."""
    return _each_checked(request) if hasattr(request, "__aiter__") else checked_message(request)


async def _each_checked(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for request in requests:
        yield checked_message(request)
