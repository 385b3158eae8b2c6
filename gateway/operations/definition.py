"""An operation: one definition that MCP tools, `POST /api/<operation>` and the command line are made from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from gateway.operations.arguments import Arguments
from gateway.operations.json_value import JsonObject
from gateway.operations.parameters import Parameter, input_schema
from gateway.peers import Peers
from gateway.recall import Recall
from services.domain.context import OperationContext, Scope


class Effect(StrEnum):
    """What an operation does to the brain, for clients that ask before they let a model change anything."""

    READ = "read"
    ADD = "add"
    """Writes without taking anything away that could not be had back."""
    DESTROY = "destroy"
    """Replaces or removes what is there, though it can be had back for a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of an operation, as its handler sees it. The caller also travels with every call to a service."""

    peers: Peers
    recall: Recall
    caller: OperationContext
    arguments: Arguments
    new_id: Callable[[], str]

    def request_id(self) -> str:
        """The caller's idempotency key, or a fresh one."""
        return self.arguments.text("request_id") or self.new_id()


Handler = Callable[[Call], Awaitable[JsonObject]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What can be asked of a brain, under one name everywhere."""

    name: str
    title: str
    description: str
    """Written for the agent that decides whether to call it."""
    parameters: tuple[Parameter, ...] = ()
    scope: Scope
    effect: Effect = Effect.READ
    repeatable: bool = True
    """Whether calling it again with the same arguments changes nothing more."""
    handler: Handler
    timeout_seconds: float = 15
    """How long a call may take in all; what remains of it travels to every service."""
    tool: bool = True
    """Whether agents see it as an MCP tool; the others serve people at the command line and over HTTP."""

    def schema(self) -> JsonObject:
        """The JSON schema of the arguments."""
        return input_schema(self.parameters)
