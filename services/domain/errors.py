"""The errors of fleetbrain: typed once here, mapped once to and from the wire in `services.runtime`.

Every error carries data, so that callers branch on `reason` and never on text: the field and the value that were
wrong, and the next step that helps. `metadata` holds whatever else the message says in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

VALUE_CHARACTERS_MAX = 200
"""A wrong value is quoted back at most this long: errors are read by people and by models with small windows."""


class BrainError(Exception):
    """Base of all errors that a caller may see.

    Attributes:
        reason: A name of `brain.v1.ErrorReason` without its prefix, such as `PAGE_NOT_FOUND`.
        field: The request field that was wrong, dotted for nested fields; empty when no field was.
        value: The wrong value as text, shortened; empty when there is none.
        next_step: One sentence that says what the caller can do now.
        metadata: Every other variable part of the message, by name.
        retry_after_seconds: When trying again may help; None when unknown or never.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        field: str = "",
        value: object = "",
        next_step: str = "",
        metadata: Mapping[str, str] | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.field = field
        self.value = shortened(str(value))
        self.next_step = next_step
        self.metadata: Mapping[str, str] = MappingProxyType(dict(metadata or {}))
        self.retry_after_seconds = retry_after_seconds


class InvalidArgument(BrainError):
    """The request can never succeed as it stands."""


class Unauthenticated(BrainError):
    """The caller did not show who it is."""


class PermissionDenied(BrainError):
    """The caller may not do this; what it may not see is `NotFound` instead."""


class NotFound(BrainError):
    """Nothing is there that this caller may see."""


class AlreadyExists(BrainError):
    """What should be created is there already."""


class Conflict(BrainError):
    """Somebody else was faster; read again, decide again."""


class NotReady(BrainError):
    """The state the request needs has not been reached yet."""


class Overloaded(BrainError):
    """A limit of ours is reached; the same request may succeed later."""


class Unavailable(BrainError):
    """A peer or an engine does not answer."""


class DeadlineExceeded(BrainError):
    """The time the caller gave ran out. A write may or may not have happened; its request_id tells on retry."""


class Internal(BrainError):
    """Our own mistake. Carries a trace id and no inner text."""


def shortened(text: str, limit: int = VALUE_CHARACTERS_MAX) -> str:
    """The text, or its beginning with an ellipsis, at most `limit` characters; control characters are escaped."""
    printable = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text[: limit + 1])
    return printable if len(printable) <= limit else printable[: limit - 1] + "…"
