"""Calls between services of one process: from the caller's task into the handler, past sockets and bytes.

Everything else is as over the wire: who calls, what is left of the deadline, the trace, errors mapped once, cancelling.
What is not served here, or not any more, has no handler here and goes over the wire, which knows what to answer then.
A message that was sent or answered belongs to who got it: neither side keeps it or changes it afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Protocol, TypeAlias, cast

from google.protobuf.message import Message
from grpc import aio

from services.domain.errors import BrainError
from services.runtime.calls import CurrentCall, child_trace, operation
from services.runtime.context_codec import missing
from services.runtime.status import code_of, decode_status, encode_status
from services.runtime.watch import OURS, Watch

Handler: TypeAlias = Callable[[Message, object], Awaitable[Message]]
"""A servicer's method with one request and one response."""


class Registered(Protocol):
    """What generated code registers for a method; the member that fits the method is not None."""

    unary_unary: Handler | None


class Here:
    """Stands where gRPC gives its context, and has nothing: who calls, `services.runtime.calls` says."""


HERE = Here()


class LocalCalls:
    """The methods that this process serves, for callers inside of it. One belongs to one server."""

    def __init__(self) -> None:
        self._addresses: Collection[str] = ()
        self._handlers: Mapping[str, Handler] = {}

    def begin(self, addresses: Collection[str], registers: Iterable[Callable[[aio.Server], None]]) -> None:
        """From now on calls to these addresses end here.

        Args:
            addresses: Where the server of this process answers.
            registers: What registers each module's services.
        """
        recorder = _Recorder()
        for register in registers:
            register(cast("aio.Server", recorder))
        self._addresses, self._handlers = addresses, recorder.handlers

    def end(self) -> None:
        """New calls go over the wire again, where a server that stops refuses them; running ones finish."""
        self._addresses, self._handlers = (), {}

    def handler(self, address: str, method: str) -> Handler | None:
        """The handler of a method at an address; None where that is somebody else's, or not unary."""
        return self._handlers.get(method) if address in self._addresses else None


class _Recorder:
    """Takes what generated code adds to a server."""

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """The same handlers once more, for servers that know no other way."""

    def add_registered_method_handlers(self, service: str, methods: Mapping[str, Registered]) -> None:
        """Notes the unary methods of ours; streams are long, and gain nothing."""
        for name, registered in methods.items():
            method = f"/{service}/{name}"
            if registered.unary_unary is not None and method.startswith(OURS):
                self.handlers[method] = registered.unary_unary


async def serve_here(
    handler: Handler, request: Message, *, method: str, peer: str, caller: CurrentCall, deadline: float
) -> Message:
    """What the server's interceptor does for a call over the wire, and what the caller's side makes of an error.

    Args:
        handler: Who answers.
        request: Not touched by the caller any more.
        method: Full name, for metrics and logs.
        peer: The service, for errors.
        caller: The operation that calls.
        deadline: On the clock of `time.monotonic`; keeping it is the caller's part.
    """
    watch = Watch(method)
    try:
        if not caller.context.principal:
            raise missing("the call carries no operation context")
        remaining = max(0.0, deadline - time.monotonic())
        with operation(caller.context, timeout_seconds=remaining, trace=child_trace(caller.trace)) as call:
            watch.call = call
            response = await handler(request, HERE)
            watch.succeeded()
            return response
    except Exception as error:  # noqa: BLE001 - the edge: every failure becomes what it would be over the wire
        failure = as_received(watch.failure(error), peer=peer)
    finally:
        watch.finished()
    raise failure


def as_received(error: BrainError, *, peer: str) -> BrainError:
    """The error as it arrives over the wire: the same words, a base class of ours, nothing of the other's stack."""
    return decode_status(code_of(error), error.message, encode_status(error).SerializeToString(), peer=peer)
