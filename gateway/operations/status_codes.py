"""Which HTTP status an error has."""

from __future__ import annotations

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

BY_REASON = {
    "PAGE_TOO_LARGE": 413,
    "OPERATION_UNKNOWN": 404,
    # A state that no waiting changes is a conflict with it; everything else that is not ready yet will be.
    "FEATURE_OFF": 409,
    "DATA_FOLDER_HELD": 409,
}
BY_TYPE: tuple[tuple[type[BrainError], int], ...] = (
    (InvalidArgument, 400),
    (Unauthenticated, 401),
    (PermissionDenied, 403),
    (NotFound, 404),
    (AlreadyExists, 409),
    (Conflict, 409),
    (NotReady, 503),
    (Overloaded, 429),
    (Unavailable, 503),
    (DeadlineExceeded, 504),
    (Internal, 500),
)


def http_status(error: BrainError) -> int:
    """The status of an error's response."""
    by_reason = BY_REASON.get(error.reason)
    if by_reason is not None:
        return by_reason
    return next((status for kind, status in BY_TYPE if isinstance(error, kind)), 500)
