"""Runs one operation for one caller: the same steps for MCP, HTTP and the command line."""

from __future__ import annotations

import difflib
import logging
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gateway.operations.arguments import read_arguments
from gateway.operations.definition import Call, Operation
from gateway.operations.json_value import JsonObject, JsonValue
from gateway.peers import Peers
from gateway.recall import Recall
from services.domain.context import OperationContext
from services.domain.errors import BrainError, Internal, InvalidArgument
from services.runtime.calls import operation as calling

log = logging.getLogger(__name__)


INNER = ("filter.", "query.")
"""Messages inside requests, whose fields are arguments of their own here."""


def _uuid() -> str:
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Everything a call needs besides its caller and its arguments."""

    operations: Mapping[str, Operation]
    peers: Peers
    recall: Recall
    new_id: Callable[[], str] = _uuid

    async def run(
        self, name: str, raw: JsonValue, *, caller: OperationContext, trace: str | None = None, tools_only: bool = False
    ) -> JsonObject:
        """The operation's result, with `notes` where the arguments were read differently from how they were written.

        Raises:
            BrainError: Whatever went wrong; what nobody foresaw is logged once with its stack and becomes Internal.
        """
        operation = find_operation(self.operations, name, tools_only=tools_only)
        began = time.perf_counter()
        reason = "OK"
        try:
            caller.require(operation.scope)
            arguments = read_arguments(raw, operation.parameters)
            call = Call(peers=self.peers, recall=self.recall, caller=caller, arguments=arguments, new_id=self.new_id)
            with calling(caller, timeout_seconds=operation.timeout_seconds, trace=trace):
                result = await operation.handler(call)
        except BrainError as error:
            reason = error.reason
            # What a service calls by the path in its message has, to the caller, the name of an argument.
            last = error.field.rpartition(".")[2]
            if error.field.startswith(INNER) and any(p.name == last for p in operation.parameters):
                error.field = last
            raise
        except Exception as error:  # the edge: no inner text may reach a caller
            reason = "INTERNAL"
            trace_id = self.new_id()
            log.exception("operation failed", extra={"operation": name, "trace_id": trace_id})
            raise Internal(
                "INTERNAL",
                "something went wrong on our side",
                next_step=f"Try again; if it stays, look for {trace_id} in the log.",
                metadata={"trace_id": trace_id},
            ) from error
        finally:
            milliseconds = round((time.perf_counter() - began) * 1000, 1)
            extra = {"operation": name, "reason": reason, "milliseconds": milliseconds, "principal": caller.principal}
            log.info("operation", extra=extra)
        return result | {"notes": list(arguments.notes)} if arguments.notes else result


def find_operation(operations: Mapping[str, Operation], name: str, *, tools_only: bool = False) -> Operation:
    """The operation of this name; raises InvalidArgument naming the nearest one."""
    operation = operations.get(name)
    if operation is None or (tools_only and not operation.tool):
        names = [known.name for known in operations.values() if known.tool or not tools_only]
        close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        hint = f"Did you mean {close[0]!r}? " if close else ""
        raise InvalidArgument(
            "OPERATION_UNKNOWN",
            f"there is no operation {name[:80]!r}",
            field="operation",
            value=name,
            next_step=f"{hint}Operations: {', '.join(names)}.",
            metadata={"nearest": close[0]} if close else None,
        )
    return operation


def error_reply(error: BrainError) -> JsonObject:
    """An error as every edge shows it: what failed, where, and what to do now."""
    shown: JsonObject = {
        "reason": error.reason,
        "message": error.message,
        "field": error.field,
        "value": error.value,
        "next_step": error.next_step,
    }
    details: JsonObject = {name: _number(text) for name, text in error.metadata.items() if name not in shown}
    if details:
        shown["details"] = details
    if error.retry_after_seconds is not None:
        shown["retry_after_seconds"] = error.retry_after_seconds
    return {"error": shown}


def _number(text: str) -> JsonValue:
    """Revisions travel as text in error details; a caller wants to put the number into its next call as it is."""
    return (
        int(text)
        if text.isascii() and text.isdigit() and len(text) < 19 and not (len(text) > 1 and text[0] == "0")
        else text
    )
