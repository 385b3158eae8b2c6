"""What travels beside a call: who calls, how long there is, and which trace it belongs to.

gRPC passes neither deadline nor context on by itself (measured: client, middle, leaf, and the leaf saw none). So the
server's interceptor keeps them in a context variable for the handler, and every outgoing call takes them from there.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from services.domain.context import OperationContext
from services.domain.errors import Internal

TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentCall:
    """The operation that this task works on."""

    context: OperationContext
    deadline: float | None
    """On the clock of `time.monotonic`; None when nobody set one."""
    trace: str
    """A W3C `traceparent`."""


_current: ContextVar[CurrentCall | None] = ContextVar("brain_call", default=None)


def current_call() -> CurrentCall | None:
    """The operation that this task works on; None outside of any."""
    return _current.get()


def current_context() -> OperationContext:
    """Who called, of the gRPC call that runs or of the enclosing `operation`.

    Raises:
        Internal: There is none: our own mistake, and never a reason to go on with more rights.
    """
    call = _current.get()
    if call is None:
        raise Internal("INTERNAL", "code that needs a caller ran outside of any operation")
    return call.context


def remaining_seconds() -> float | None:
    """How much time the operation has left, 0 when it is over; None when nobody set a deadline."""
    call = _current.get()
    if call is None or call.deadline is None:
        return None
    return max(0.0, call.deadline - time.monotonic())


def trace_id() -> str:
    """The trace's id for logs; empty outside of any operation."""
    call = _current.get()
    return call.trace.split("-")[1] if call is not None else ""


@contextmanager
def operation(
    context: OperationContext, *, timeout_seconds: float | None, trace: str | None = None
) -> Iterator[CurrentCall]:
    """Makes everything inside part of one operation: outgoing calls carry its caller, its deadline and its trace.

    Args:
        context: Who asks.
        timeout_seconds: How long it may take in all; None only for a server that has its own maximum.
        trace: The `traceparent` it came with; a new one when there is none, or one that is not well formed.
    """
    deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    call = CurrentCall(context=context, deadline=deadline, trace=checked_trace(trace))
    token = _current.set(call)
    try:
        yield call
    finally:
        _current.reset(token)


def checked_trace(trace: str | None) -> str:
    """The trace if it is a `traceparent`, else a new one."""
    if trace is not None and TRACEPARENT.fullmatch(trace):
        return trace
    return f"00-{_hex(16)}-{_hex(8)}-01"


def child_trace(trace: str) -> str:
    """The same trace with a span of its own, for an outgoing call."""
    version, trace_part, _, flags = trace.split("-")
    return f"{version}-{trace_part}-{_hex(8)}-{flags}"


def _hex(size: int) -> str:
    """An id that no other call has; all zeros are none.

    Nothing secret hangs on it, and the kernel's own randomness cost more than the rest of a call inside one process.
    """
    return f"{random.getrandbits(8 * size) or 1:0{2 * size}x}"
