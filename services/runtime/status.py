"""Our errors as gRPC statuses with google.rpc details, and back: the one table for both directions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]

from services.domain.errors import (
    AlreadyExists,
    BrainError,
    Conflict,
    DeadlineExceeded,
    Internal,
    InvalidArgument,
    NotFound,
    NotReady,
    Overloaded,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)

DOMAIN = "brain"
DETAILS_KEY = "grpc-status-details-bin"
OWN_KEYS: Final = ("field", "value", "next_step")
"""Parts of every error that ErrorInfo has no place for; they travel in its metadata."""

CODES: Mapping[type[BrainError], grpc.StatusCode] = MappingProxyType(
    {
        InvalidArgument: grpc.StatusCode.INVALID_ARGUMENT,
        Unauthenticated: grpc.StatusCode.UNAUTHENTICATED,
        PermissionDenied: grpc.StatusCode.PERMISSION_DENIED,
        NotFound: grpc.StatusCode.NOT_FOUND,
        AlreadyExists: grpc.StatusCode.ALREADY_EXISTS,
        Conflict: grpc.StatusCode.ABORTED,
        NotReady: grpc.StatusCode.FAILED_PRECONDITION,
        Overloaded: grpc.StatusCode.RESOURCE_EXHAUSTED,
        Unavailable: grpc.StatusCode.UNAVAILABLE,
        DeadlineExceeded: grpc.StatusCode.DEADLINE_EXCEEDED,
        Internal: grpc.StatusCode.INTERNAL,
    }
)
CLASSES: Mapping[grpc.StatusCode, type[BrainError]] = MappingProxyType({code: cls for cls, code in CODES.items()})


def code_of(error: BrainError) -> grpc.StatusCode:
    """The status code of an error; that of its nearest base for a class of its own."""
    return next((CODES[cls] for cls in type(error).__mro__ if cls in CODES), grpc.StatusCode.INTERNAL)


def encode_status(error: BrainError) -> status_pb2.Status:
    """The error as a status with exactly one ErrorInfo, and BadRequest or RetryInfo where they say more."""
    own = {key: str(getattr(error, key)) for key in OWN_KEYS if getattr(error, key)}
    info = error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN, metadata={**error.metadata, **own})
    status = status_pb2.Status(code=number_of(code_of(error)), message=error.message)
    status.details.append(packed(info))
    if isinstance(error, InvalidArgument) and error.field:
        violation = error_details_pb2.BadRequest.FieldViolation(field=error.field, description=error.message)
        status.details.append(packed(error_details_pb2.BadRequest(field_violations=[violation])))
    if error.retry_after_seconds is not None:
        delay = Duration()
        delay.FromNanoseconds(round(error.retry_after_seconds * 1e9))
        status.details.append(packed(error_details_pb2.RetryInfo(retry_delay=delay)))
    return status


def decode_status(code: grpc.StatusCode, message: str, details: bytes | None, *, peer: str) -> BrainError:
    """The error that a peer's status stands for; one without our details, as gRPC makes them itself, by its code."""
    info, retry_after = read_details(details)
    if info is None:
        return without_details(code, message, peer=peer)
    own = {key: info.metadata[key] for key in OWN_KEYS if key in info.metadata}
    metadata = {key: value for key, value in info.metadata.items() if key not in OWN_KEYS}
    return CLASSES.get(code, Internal)(
        info.reason,
        message,
        field=own.get("field", ""),
        value=own.get("value", ""),
        next_step=own.get("next_step", ""),
        metadata=metadata,
        retry_after_seconds=retry_after,
    )


def read_details(details: bytes | None) -> tuple[error_details_pb2.ErrorInfo | None, float | None]:
    """Our ErrorInfo and the seconds of a RetryInfo, as far as they are there."""
    info: error_details_pb2.ErrorInfo | None = None
    retry_after: float | None = None
    for detail in status_pb2.Status.FromString(details).details if details else ():
        if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
            found = error_details_pb2.ErrorInfo.FromString(detail.value)
            info = found if found.domain == DOMAIN else info
        elif detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
            delay = error_details_pb2.RetryInfo.FromString(detail.value).retry_delay
            retry_after = delay.ToNanoseconds() / 1e9
    return info, retry_after


def without_details(code: grpc.StatusCode, message: str, *, peer: str) -> BrainError:
    """What gRPC itself says: no connection, no time left, a message over the limit, an unknown method."""
    match code:
        case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.CANCELLED:
            return Unavailable(
                "PEER_UNAVAILABLE",
                f"{peer} does not answer",
                metadata={"peer": peer, "cause": message[:200]},
                next_step="Try again; if it stays so, look whether that process runs.",
                retry_after_seconds=1.0,
            )
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return deadline_exceeded(peer)
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return Overloaded(
                "LIMIT_REACHED",
                f"a message to or from {peer} is over the limit of 8 MB",
                metadata={"limit": "grpc_message_bytes", "cause": message[:200]},
                next_step="Ask for less, or send less, in one call.",
            )
        case _:
            return Internal(
                "INTERNAL", f"{peer} failed with {code.name}", metadata={"peer": peer, "cause": message[:200]}
            )


def deadline_exceeded(peer: str) -> DeadlineExceeded:
    """The time of an operation is over."""
    return DeadlineExceeded(
        "DEADLINE_EXCEEDED",
        f"the time for this operation ran out at {peer}",
        metadata={"peer": peer},
        next_step="Give it more time. A write may have happened: send it again with the same request_id.",
    )


def number_of(code: grpc.StatusCode) -> int:
    """The number of a code on the wire."""
    number: int = code.value[0]
    return number


def packed(message: Message) -> AnyMessage:
    """A detail as an Any."""
    wrapped = AnyMessage()
    wrapped.Pack(message)
    return wrapped
