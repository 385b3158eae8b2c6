"""OpenSearch's errors as ours, told apart by status and type: its messages may hold a page's words and stay inside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opensearchpy.exceptions import ConnectionError as NoAnswer
from opensearchpy.exceptions import OpenSearchException, SerializationError, TransportError

from services.domain.errors import BrainError, DeadlineExceeded, Internal, InvalidArgument, Overloaded, Unavailable

BLOCKED = "cluster_block_exception"
"""An index that takes no writes: a disk is nearly full, or somebody closed or froze it."""


@contextmanager
def translated() -> Iterator[None]:
    """Turns what the client and the server raise into ours."""
    try:
        yield
    except NoAnswer as error:
        raise unavailable(f"OpenSearch does not answer ({type(error).__name__})") from error
    except SerializationError as error:
        raise unavailable("what answers at FLEETBRAIN_LEXICAL_URL is no OpenSearch") from error
    except TransportError as error:
        status = error.status_code if isinstance(error.status_code, int) else 0
        raise of_status(status, str(error.error)) from error
    except OpenSearchException as error:
        raise unavailable(f"OpenSearch failed ({type(error).__name__})") from error
    except TimeoutError as error:
        raise DeadlineExceeded(
            "DEADLINE_EXCEEDED",
            "OpenSearch took longer than a call may",
            next_step="Ask for less: a smaller limit, or one source.",
        ) from error
    except OSError as error:
        raise unavailable(f"OpenSearch cannot be reached ({type(error).__name__})") from error


def of_status(status: int, kind: str) -> BrainError:
    """What the server said, or said of one item of a bulk."""
    if kind == BLOCKED:
        return unavailable(
            "OpenSearch takes no writes into this index",
            next_step="Look whether its disk is nearly full: it then makes indices read-only, and undoes that by itself"
            " once there is room.",
        )
    if status in (401, 403):
        return unavailable(
            "OpenSearch refuses the user or the password",
            next_step="Set the user in FLEETBRAIN_LEXICAL_URL and FLEETBRAIN_LEXICAL_PASSWORD as the cluster knows"
            " them; the user needs all rights on indices with the prefix.",
        )
    if status == 429:
        return Overloaded("OVERLOADED", "OpenSearch has too much to do", next_step="Try again in some seconds.")
    if status == 400:
        return Internal("INTERNAL", f"OpenSearch does not understand a request of ours ({kind})")
    return unavailable(f"OpenSearch failed (status {status}, {kind})")


def unavailable(message: str, *, next_step: str = "") -> Unavailable:
    """An engine that is not there for us."""
    return Unavailable(
        "PEER_UNAVAILABLE",
        message,
        metadata={"peer": "opensearch"},
        next_step=next_step or "Try again; if it stays, look whether what FLEETBRAIN_LEXICAL_URL names runs.",
        retry_after_seconds=1.0,
    )


def unsupported(found: str, needed: str) -> InvalidArgument:
    """A server of another kind or age."""
    return InvalidArgument(
        "FIELD_INVALID",
        f"what FLEETBRAIN_LEXICAL_URL names is {found}; {needed} or newer is needed",
        field="FLEETBRAIN_LEXICAL_URL",
        value=found,
        next_step=f"Run {needed} or newer.",
    )
