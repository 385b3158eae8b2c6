"""The operation context as gRPC metadata, `brain-context-bin`, and back. What is missing is no right."""

from __future__ import annotations

from brain.v1 import context_pb2
from services.domain.context import OperationContext, Scope
from services.domain.errors import PermissionDenied

CONTEXT_KEY = "brain-context-bin"


def encode_context(context: OperationContext) -> bytes:
    """The metadata's value."""
    return context_pb2.OperationContext(
        principal=context.principal,
        local=not context.remote,
        scopes=sorted(scope.value for scope in context.scopes),
        read_sources=source_set(context.read_sources),
        write_sources=source_set(context.write_sources),
        write_prefixes=context.write_prefixes,
    ).SerializeToString()


def decode_context(value: bytes | None) -> OperationContext:
    """The context of an incoming call.

    Raises:
        PermissionDenied: There is none, or one that cannot be read or names nobody. Scopes that only a newer version
            knows are left out.
    """
    try:
        message = context_pb2.OperationContext.FromString(value) if value else None
    except Exception as error:
        raise missing("the operation context cannot be read") from error
    if message is None or not message.principal:
        raise missing("the call carries no operation context")
    known = {scope.value: scope for scope in Scope}
    return OperationContext(
        principal=message.principal,
        remote=not message.local,
        scopes=frozenset(known[scope] for scope in message.scopes if scope in known),
        read_sources=sources(message.read_sources),
        write_sources=sources(message.write_sources),
        write_prefixes=tuple(message.write_prefixes),
    )


def source_set(names: frozenset[str] | None) -> context_pb2.SourceSet:
    """Sources as a message; None is every source."""
    return context_pb2.SourceSet(every=True) if names is None else context_pb2.SourceSet(names=sorted(names))


def sources(message: context_pb2.SourceSet) -> frozenset[str] | None:
    """Sources from a message; one that was not set is the empty set."""
    return None if message.every else frozenset(message.names)


def missing(message: str) -> PermissionDenied:
    """The refusal of a call that does not say who makes it."""
    return PermissionDenied(
        "CONTEXT_MISSING",
        message,
        field=CONTEXT_KEY,
        next_step="Call through the gateway, or send brain.v1.OperationContext as this metadata.",
    )
