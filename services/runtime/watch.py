"""What the serving side notes of each call, however it came: time, status, one line, its error as others see it."""

from __future__ import annotations

import logging
import time

import grpc

from services.domain.errors import BrainError, Internal
from services.runtime.calls import CurrentCall
from services.runtime.status import code_of, deadline_exceeded
from services.runtime.telemetry import RPC_SECONDS

log = logging.getLogger(__name__)

CALL_SECONDS_MAX = 60.0
"""How long a call without a deadline may take: longer work is a job, whose driver sends a deadline."""
OURS = "/brain.v1."


class Watch:
    """Measures one call and writes its one line."""

    def __init__(self, method: str) -> None:
        self._method = method.removeprefix(OURS)
        self._began = time.monotonic()
        self._code = grpc.StatusCode.CANCELLED
        self._reason = ""
        self.call: CurrentCall | None = None

    def failure(self, error: Exception) -> BrainError:
        """The error as the caller may see it; one of no kind of ours is logged here, with its stack, and hidden."""
        trace_id = self.call.trace.split("-")[1] if self.call is not None else ""
        if isinstance(error, TimeoutError):
            error = deadline_exceeded(self._method)
        if not isinstance(error, BrainError):
            log.error("call failed", exc_info=error, extra={"method": self._method, "trace_id": trace_id})
            error = Internal(
                "INTERNAL",
                "something went wrong inside the brain",
                metadata={"trace_id": trace_id},
                next_step=f"Look for trace {trace_id} in the logs." if trace_id else "Look into the logs.",
            )
        self._code, self._reason = code_of(error), error.reason
        return error

    def succeeded(self) -> None:
        """Notes that the response is on its way."""
        self._code = grpc.StatusCode.OK

    def finished(self) -> None:
        """Counts the call and writes its line; a call that neither succeeded nor failed was cancelled."""
        seconds = time.monotonic() - self._began
        RPC_SECONDS.labels(self._method, self._code.name).observe(seconds)
        # What went well is told by the operation's own line and by the metrics; five such lines a query cost 2 ms.
        level = logging.DEBUG if self._code is grpc.StatusCode.OK else logging.INFO
        if not log.isEnabledFor(level):
            return
        extra: dict[str, object] = {
            "method": self._method,
            "status": self._code.name,
            "milliseconds": round(1000 * seconds, 3),
        }
        if self._reason:
            extra["reason"] = self._reason
        if self.call is not None:
            extra["principal"] = self.call.context.principal
            extra["trace_id"] = self.call.trace.split("-")[1]
        log.log(level, "call", extra=extra)
