"""A Bolt server's errors as ours, told apart by their codes: the only text of theirs that stays the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from neo4j.exceptions import ClientError, DriverError, Neo4jError

from services.domain.errors import BrainError, DeadlineExceeded, Internal, InvalidArgument, Overloaded, Unavailable

CREDENTIALS = ("Neo.ClientError.Security.Unauthorized", "Neo.ClientError.Security.CredentialsExpired")
TIMED_OUT = (
    "Neo.ClientError.Transaction.TransactionTimedOut",
    "Neo.ClientError.Transaction.TransactionTimedOutClientConfiguration",
    "Neo.TransientError.Transaction.LockAcquisitionTimeout",
)
OUT_OF_MEMORY = "Neo.TransientError.General.MemoryPoolOutOfMemoryError"


@contextmanager
def translated() -> Iterator[None]:
    """Turns what the driver and the server raise into ours."""
    try:
        yield
    except Neo4jError as error:
        raise of_server(error) from error
    except DriverError as error:
        raise unavailable(f"the graph's server does not answer ({type(error).__name__})") from error
    except TimeoutError as error:
        raise too_long() from error
    except OSError as error:
        raise unavailable(f"the graph's server cannot be reached ({type(error).__name__})") from error


def of_server(error: Neo4jError) -> BrainError:
    """What the server said. Its message may hold a page's words, so only its code goes on."""
    code = error.code or ""
    if code in CREDENTIALS:
        return unavailable(
            "the graph's server refuses the user or the password",
            next_step="Set the user in FLEETBRAIN_GRAPH_URL and FLEETBRAIN_GRAPH_PASSWORD as the server knows them.",
        )
    if code in TIMED_OUT:
        return too_long()
    if code == OUT_OF_MEMORY:
        return Overloaded(
            "OVERLOADED",
            "the graph's server has no memory left for this",
            next_step="Ask for less: fewer pages, a smaller depth or limit, or one source.",
        )
    if isinstance(error, ClientError) and code.startswith("Neo.ClientError.Statement"):
        return Internal("INTERNAL", f"the graph's server does not understand a statement of ours ({code})")
    return unavailable(f"the graph's server failed ({code})")


def unavailable(message: str, *, next_step: str = "") -> Unavailable:
    """An engine that is not there for us."""
    return Unavailable(
        "PEER_UNAVAILABLE",
        message,
        metadata={"peer": "neo4j"},
        next_step=next_step or "Try again; if it stays, look whether the server that FLEETBRAIN_GRAPH_URL names runs.",
        retry_after_seconds=1.0,
    )


def too_long() -> DeadlineExceeded:
    """A read or a write that was stopped by its clock."""
    return DeadlineExceeded(
        "DEADLINE_EXCEEDED",
        "the graph took longer than a call may",
        next_step="Ask for less: fewer pages, a smaller depth or limit, or one source.",
    )


def unsupported(agent: str, needed: str) -> InvalidArgument:
    """A server of another kind or age."""
    return InvalidArgument(
        "FIELD_INVALID",
        f"the graph's server is {agent}; {needed} or newer is needed",
        field="FLEETBRAIN_GRAPH_URL",
        value=agent,
        next_step=f"Run {needed} or newer.",
    )
