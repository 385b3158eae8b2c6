"""The server's side of every call: who calls, how long there is, our errors as statuses, one line in the log.

The only place besides the consumers and the gateway's edge that catches everything: what is not one of our errors is
logged once with its stack and leaves as INTERNAL with a trace id and no inner text.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import grpc
from google.protobuf.message import Message
from grpc import aio
from grpc_status import rpc_status

from services.domain.errors import Unauthenticated
from services.runtime.calls import operation
from services.runtime.channels import MESSAGE_BYTES_MAX, METADATA_BYTES_MAX
from services.runtime.context_codec import CONTEXT_KEY, decode_context
from services.runtime.status import encode_status
from services.runtime.watch import CALL_SECONDS_MAX, OURS, Watch

Q = TypeVar("Q")
R = TypeVar("R")
Context = aio.ServicerContext[Any, Any]


def make_server(*, token: str) -> aio.Server:
    """A server with our limits and the interceptor.

    Args:
        token: Bearer token that callers over TCP must show; empty asks nobody.
    """
    return aio.server(
        interceptors=(CallInterceptor(token),),
        options=[
            ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
            ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
            ("grpc.max_metadata_size", METADATA_BYTES_MAX),
            ("grpc.absolute_max_metadata_size", METADATA_BYTES_MAX),
            ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.max_connection_age_ms", 3_600_000),  # so that replicas added later get their share of clients
            ("grpc.max_connection_age_grace_ms", 600_000),
            ("grpc.so_reuseport", 0),  # a second server on a port is an error, not a silent half of the calls
        ],
    )


class CallInterceptor(aio.ServerInterceptor):
    """Gives each call of ours its operation and each failure its status. Health and reflection pass untouched."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Q, R] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Q, R] | None:
        """Wraps the handler of the called method; None, as gRPC has it, for a method that nobody serves."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or not method.startswith(OURS):
            return handler
        parts = cast("Any", handler)  # gRPC's handlers are named tuples whose type says nothing
        wrap = self._streaming if parts.response_streaming else self._unary
        kind = f"{'stream' if parts.request_streaming else 'unary'}_{'stream' if parts.response_streaming else 'unary'}"
        make = getattr(grpc, f"{kind}_rpc_method_handler")
        wrapped: grpc.RpcMethodHandler[Q, R] = make(
            wrap(method, getattr(parts, kind)),
            request_deserializer=parts.request_deserializer,
            response_serializer=parts.response_serializer,
        )
        return wrapped

    def _unary(self, method: str, inner: Callable[[object, Context], Awaitable[Message]]) -> object:
        async def handle(request: object, context: Context) -> Message:
            watch = Watch(method)
            try:
                with self._operation(context, watch):
                    async with asyncio.timeout(own_limit(context)):
                        response = await inner(request, context)
                        watch.succeeded()
                        return response
            except Exception as error:  # noqa: BLE001 - the edge: every failure becomes a status here
                await context.abort_with_status(rpc_status.to_status(encode_status(watch.failure(error))))
            finally:
                watch.finished()

        return handle

    def _streaming(self, method: str, inner: Callable[[object, Context], AsyncIterator[Message]]) -> object:
        async def handle(request: object, context: Context) -> AsyncIterator[Message]:
            watch = Watch(method)
            try:
                with self._operation(context, watch):
                    async with asyncio.timeout(own_limit(context)):
                        async for response in inner(request, context):
                            yield response
                        watch.succeeded()
            except Exception as error:  # noqa: BLE001 - the edge: every failure becomes a status here
                await context.abort_with_status(rpc_status.to_status(encode_status(watch.failure(error))))
            finally:
                watch.finished()

        return handle

    @contextmanager
    def _operation(self, context: Context, watch: Watch) -> Iterator[None]:
        metadata = dict(cast("Sequence[tuple[str, str | bytes]]", context.invocation_metadata() or ()))
        self._check_token(context.peer(), metadata.get("authorization", ""))
        value = metadata.get(CONTEXT_KEY)
        caller = decode_context(value if isinstance(value, bytes) else None)
        remaining = time_remaining(context)
        trace = metadata.get("traceparent")
        with operation(
            caller,
            timeout_seconds=CALL_SECONDS_MAX if remaining is None else remaining,
            trace=trace if isinstance(trace, str) else None,
        ) as call:
            watch.call = call
            yield

    def _check_token(self, peer: str, shown: str | bytes) -> None:
        if not self._token or peer.startswith("unix:"):
            return
        given = shown if isinstance(shown, bytes) else shown.encode()
        if not hmac.compare_digest(given, b"Bearer " + self._token):
            raise Unauthenticated(
                "TOKEN_INVALID",
                "this server wants the brain's bearer token",
                field="authorization",
                next_step="Start the calling process with the same FLEETBRAIN_TOKEN.",
            )


def own_limit(context: Context) -> float | None:
    """Our maximum for a call without a deadline; gRPC itself ends one that has a deadline."""
    return CALL_SECONDS_MAX if time_remaining(context) is None else None


def time_remaining(context: Context) -> float | None:
    """Seconds until the caller's deadline; None when it set none."""
    remaining: float | None = context.time_remaining()
    return remaining
