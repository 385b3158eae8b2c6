"""Channels to other services: each call carries its caller, what is left of the deadline, and its trace.

The channel wraps gRPC's own instead of adding interceptors: calls come back as plain coroutines and iterators that
raise our errors, and a call costs one context variable more, not a task. Where the service lives in this very process,
unary calls go straight to it, at a thirtieth of the cost: see `services.runtime.local_calls`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Generic, Protocol, TypeVar, cast

import grpc
import orjson
from google.protobuf import descriptor_pool
from google.protobuf.message import Message
from grpc import aio

from services.domain.errors import BrainError, Internal, Unavailable
from services.runtime.calls import CurrentCall, child_trace, current_call, remaining_seconds
from services.runtime.context_codec import CONTEXT_KEY, encode_context
from services.runtime.local_calls import Handler, LocalCalls, serve_here
from services.runtime.status import DETAILS_KEY, deadline_exceeded, decode_status, without_details
from services.runtime.tls import TlsFiles, channel_credentials
from services.runtime.watch import CALL_SECONDS_MAX

MESSAGE_BYTES_MAX = 8 * 1024 * 1024
METADATA_BYTES_MAX = 64 * 1024
"""Contexts with many sources and errors with all their details; gRPC's own limit of 8 KB is too small for either."""
MARGIN_SECONDS = 0.005
"""Kept back from the deadline of an outgoing call, so that its answer can still be used."""
MARGIN_SHARE = 0.01
"""Kept back besides: gRPC writes a deadline with two or three digits and rounds up, by at most a hundredth."""
RETRIES_MAX = 3
RETRY_SECONDS = (0.05, 0.1)
"""Waited between the tries: what the service config below says, for calls that stay in this process."""
KEEPALIVE_MS = 30_000
RESOLVE_MS = 1_000
"""gRPC's own 30 s would leave a client without a server for so long when all pods of a service are replaced."""

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)
Metadata = tuple[tuple[str, str | bytes], ...]


class Failed(Protocol):
    """What gRPC's client raises."""

    def code(self) -> grpc.StatusCode:
        """The status."""

    def details(self) -> str | None:
        """Its message."""

    def trailing_metadata(self) -> object:
        """Pairs of key and value."""


@asynccontextmanager
async def open_channel(
    address: str,
    *,
    service: str,
    token: str = "",
    tls: TlsFiles | None = None,
    certified_as: str = "",
    local: LocalCalls | None = None,
) -> AsyncIterator[aio.Channel]:
    """A channel for the generated stubs of one service.

    Calls on it need an enclosing `calls.operation`, or a gRPC call that is being served. They raise BrainError:
    DeadlineExceeded at once when no time is left, Unavailable when nobody answers. UNAVAILABLE is retried for unary
    calls, which are reads or writes with a request_id.

    Args:
        address: `unix:PATH`, `host:port` or `dns:///host:port`.
        service: Full name, such as `brain.v1.IngestService`; its stub module must be imported.
        token: Shown as bearer token, to servers that are reached over TCP.
        tls: Whom to believe and what to show, for servers that are reached over TCP; without it calls are plain.
        certified_as: The name that the server's certificate must have, when it is not the address's own.
        local: What this process serves itself, for unary calls that need no wire.
    """
    options = [
        ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
        ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
        ("grpc.max_metadata_size", METADATA_BYTES_MAX),
        ("grpc.absolute_max_metadata_size", METADATA_BYTES_MAX),
        ("grpc.keepalive_time_ms", KEEPALIVE_MS),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.initial_reconnect_backoff_ms", 50),
        ("grpc.min_reconnect_backoff_ms", 50),
        ("grpc.max_reconnect_backoff_ms", 2_000),
        ("grpc.enable_retries", 1),
        # New replicas are found by asking the name again, which gRPC does when a connection ends, at most this often.
        ("grpc.dns_min_time_between_resolutions_ms", RESOLVE_MS),
        ("grpc.service_config", orjson.dumps(service_config(service)).decode()),
    ]
    # One connection of its own for each channel: the global pool would let one service's big calls delay another's.
    options.append(("grpc.use_local_subchannel_pool", 1))
    if certified_as:
        options.append(("grpc.ssl_target_name_override", certified_as))
    plain = tls is None or address.startswith("unix:")
    credentials = None if tls is None or plain else channel_credentials(tls)
    async with (
        aio.insecure_channel(address, options=options)
        if credentials is None
        else aio.secure_channel(address, credentials, options=options)
    ) as inner:
        yield BrainChannel(inner, peer=service, token=token, address=address, local=local)


def service_config(service: str) -> dict[str, object]:
    """Retries of UNAVAILABLE for the unary calls of a service, and round robin over the replicas behind a name."""
    methods = descriptor_pool.Default().FindServiceByName(service).methods
    unary = [m.name for m in methods if not (m.client_streaming or m.server_streaming)]
    retry = {
        "maxAttempts": RETRIES_MAX,
        "initialBackoff": "0.05s",
        "maxBackoff": "0.5s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE"],
    }
    names = [{"service": service, "method": name} for name in unary]
    return {
        "loadBalancingConfig": [{"round_robin": {}}],
        "methodConfig": [{"name": names, "retryPolicy": retry}] if names else [],
    }


def check_size(message: Message, peer: str) -> None:
    """Raises Overloaded for a message that would not go over the wire: a brain does not depend on where it runs."""
    size = message.ByteSize()
    if size > MESSAGE_BYTES_MAX:
        cause = f"message of {size} bytes, at most {MESSAGE_BYTES_MAX}"
        raise without_details(grpc.StatusCode.RESOURCE_EXHAUSTED, cause, peer=peer)


class BrainChannel(aio.Channel):
    """A gRPC channel whose calls belong to the current operation and raise our errors."""

    def __init__(
        self, inner: aio.Channel, *, peer: str, token: str, address: str = "", local: LocalCalls | None = None
    ) -> None:
        self.peer = peer
        self._inner = inner
        self._token = token
        self._address = address
        self._local = local

    async def __aenter__(self) -> BrainChannel:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        """Ends the channel."""
        await self._inner.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """The channel's state, as gRPC has it."""
        return self._inner.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Returns when the state is another."""
        await self._inner.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """Returns when there is a connection."""
        await self._inner.channel_ready()

    def unary_unary(self, method: str, *args: object, **options: object) -> UnaryCall[Message, Message]:  # type: ignore[override]
        """One request, one response."""
        return UnaryCall(self._inner.unary_unary(method, *args, **options), self, method)  # type: ignore[arg-type]

    def stream_unary(self, method: str, *args: object, **options: object) -> UnaryCall[Message, Message]:  # type: ignore[override]
        """Many requests, one response."""
        return UnaryCall(self._inner.stream_unary(method, *args, **options), self)  # type: ignore[arg-type]

    def unary_stream(self, method: str, *args: object, **options: object) -> StreamCall[Message, Message]:  # type: ignore[override]
        """One request, many responses."""
        return StreamCall(self._inner.unary_stream(method, *args, **options), self)  # type: ignore[arg-type]

    def stream_stream(self, method: str, *args: object, **options: object) -> StreamCall[Message, Message]:  # type: ignore[override]
        """Many requests, many responses."""
        return StreamCall(self._inner.stream_stream(method, *args, **options), self)  # type: ignore[arg-type]

    def prepare(self, timeout: float | None) -> tuple[float | None, Metadata]:
        """The time limit and the metadata of a call that is made now.

        Raises:
            DeadlineExceeded: The operation's time is over.
            Internal: There is no operation.
        """
        call, timeout = self.limited(timeout)
        metadata: list[tuple[str, str | bytes]] = [
            (CONTEXT_KEY, encode_context(call.context)),
            ("traceparent", child_trace(call.trace)),
        ]
        if self._token:
            metadata.append(("authorization", f"Bearer {self._token}"))
        return timeout, tuple(metadata)

    def limited(self, timeout: float | None) -> tuple[CurrentCall, float | None]:
        """The operation that calls now, and the time limit of its call; raises as `prepare` does."""
        call = current_call()
        if call is None:
            raise Internal("INTERNAL", f"{self.peer} was called outside of any operation")
        remaining = remaining_seconds()
        if remaining is not None:
            remaining -= MARGIN_SECONDS + remaining * MARGIN_SHARE
            if remaining <= 0:
                raise deadline_exceeded(self.peer)
            timeout = remaining if timeout is None else min(timeout, remaining)
        return call, timeout

    def handler_here(self, method: str) -> Handler | None:
        """Who answers the method in this process; None when it goes over the wire."""
        return self._local.handler(self._address, method) if self._local is not None else None

    def translated(self, error: aio.AioRpcError) -> BrainError:
        """GRPC's error as ours."""
        failed = cast("Failed", error)
        trailing = cast("Iterable[tuple[str, str | bytes]]", failed.trailing_metadata() or ())
        details = next((value for key, value in trailing if key == DETAILS_KEY), None)
        raw = details.encode("latin-1") if isinstance(details, str) else details
        return decode_status(failed.code(), failed.details() or "", raw, peer=self.peer)


class UnaryCall(Generic[Q, R]):
    """A method with one response. Cancelling the task that awaits it cancels the call at the peer."""

    def __init__(self, inner: Callable[..., Awaitable[R]], channel: BrainChannel, method: str = "") -> None:
        self._inner = inner
        self._channel = channel
        self._method = method

    async def __call__(
        self,
        request: Q | AsyncIterable[Q] | Iterable[Q],
        *,
        timeout: float | None = None,
        wait_for_ready: bool | None = None,
    ) -> R:
        """Calls and returns the response, or raises a BrainError."""
        handler = self._channel.handler_here(self._method)
        if handler is not None:
            return cast("R", await self._here(handler, cast("Message", request), timeout))
        seconds, metadata = self._channel.prepare(timeout)
        try:
            return await self._inner(request, timeout=seconds, metadata=metadata, wait_for_ready=wait_for_ready)
        except aio.AioRpcError as error:
            raise self._channel.translated(error) from error

    async def _here(self, handler: Handler, request: Message, timeout: float | None) -> Message:
        """The call without a wire, within the same limits of time and size and with the same tries."""
        peer = self._channel.peer
        call, seconds = self._channel.limited(timeout)
        seconds = CALL_SECONDS_MAX if seconds is None else seconds
        deadline = time.monotonic() + seconds
        check_size(request, peer)
        try:
            async with asyncio.timeout(seconds):
                for wait in (*RETRY_SECONDS, None):
                    try:
                        response = await serve_here(
                            handler, request, method=self._method, peer=peer, caller=call, deadline=deadline
                        )
                        check_size(response, peer)
                        return response
                    except Unavailable:
                        if wait is None:
                            raise
                        await asyncio.sleep(wait)
        except TimeoutError:
            raise deadline_exceeded(peer) from None
        raise AssertionError  # the last try returned or raised


class StreamCall(Generic[Q, R]):
    """A method with many responses. Leaving the loop over them cancels the call at the peer."""

    def __init__(self, inner: Callable[..., aio.UnaryStreamCall[Q, R]], channel: BrainChannel) -> None:
        self._inner = inner
        self._channel = channel

    async def __call__(
        self,
        request: Q | AsyncIterable[Q] | Iterable[Q],
        *,
        timeout: float | None = None,
        wait_for_ready: bool | None = None,
    ) -> AsyncIterator[R]:
        """Calls and yields the responses as they come; raises a BrainError when the call fails."""
        seconds, metadata = self._channel.prepare(timeout)
        call = self._inner(request, timeout=seconds, metadata=metadata, wait_for_ready=wait_for_ready)
        try:
            async for response in call:
                yield response
        except aio.AioRpcError as error:
            raise self._channel.translated(error) from error
        finally:
            call.cancel()
