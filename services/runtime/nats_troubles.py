"""What goes wrong with a connection to NATS, in our words: who waits is told at once, and logs are not flooded."""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from collections.abc import Callable
from typing import Final

import orjson

from services.domain.errors import BrainError, InvalidArgument, PermissionDenied, Unavailable
from services.runtime.nats_options import URL

log = logging.getLogger(__name__)

LOG_SECONDS: Final = 5.0
"""The same trouble is logged once in so long; the client tries a lost server ten times a second."""
LEADERLESS: Final = frozenset({10008, 10009, 10118, 10119})
"""JetStream's numbers for: no leader of the servers, of the cluster, of a stream or of a consumer at the moment."""
PERMISSIONS: Final = re.compile(r'permissions violation for publish to "([^"]+)"', re.IGNORECASE)


class Troubles:
    """What the client library reports about one connection."""

    def __init__(self, name: str, *, on_refused_subject: Callable[[str], None], on_lost: Callable[[], None]) -> None:
        self._name = name
        self._on_refused_subject = on_refused_subject
        self._on_lost = on_lost
        self._logged: dict[str, float] = {}
        self.refused: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        """Why no server will ever take us as we are, once one has said so."""
        self.last: Exception | None = None
        self.connected = False
        self.closing = False

    async def on_error(self, error: Exception) -> None:
        """Takes an error of the client library."""
        self.last = error
        found = PERMISSIONS.search(str(error))
        if found is not None:
            self._on_refused_subject(found[1])
        if hopeless(error) and not self.connected and not self.refused.done():
            self.refused.set_result(error)
        now = asyncio.get_running_loop().time()
        text = repr(error)
        # Who opens a connection is told by its error.
        if self.connected and now >= self._logged.get(text, now) and not self.closing:
            self._logged = {text: now + LOG_SECONDS}
            log.warning("NATS connection error", extra={"error": text, "connection": self._name})

    async def on_closed(self) -> None:
        """The client library has given the connection up."""
        if self.connected and not self.closing:
            log.error("NATS ended the connection for good", extra={"error": repr(self.last), "connection": self._name})
            self._on_lost()


def hopeless(error: Exception) -> bool:
    """Whether trying again as we are cannot help: we are not let in, or do not believe the server."""
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return False
    return isinstance(error, ssl.SSLError) or "authorization violation" in str(error).lower()


def leaderless(data: bytes) -> bool:
    """Whether a reply only says that nobody leads at the moment."""
    if len(data) > 1000 or b'"error"' not in data:
        return False
    answer = orjson.loads(data)
    error = answer.get("error") if isinstance(answer, dict) else None
    return isinstance(error, dict) and error.get("err_code") in LEADERLESS


def cannot_work(error: Exception, shown: str) -> InvalidArgument:
    """The servers and we do not go together."""
    if isinstance(error, ssl.SSLError):
        return InvalidArgument(
            "FIELD_INVALID",
            f"no TLS with NATS at {shown}: {error.reason or error}: {getattr(error, 'verify_message', '') or error}",
            field=URL,
            value=shown,
            next_step="Set FLEETBRAIN_NATS_CA to the authority of the servers' certificates, "
            "FLEETBRAIN_NATS_CERTIFICATE and _KEY where they ask for ours, and look when they expire.",
        )
    return InvalidArgument(
        "FIELD_INVALID",
        f"NATS at {shown} refuses this user or password",
        field=URL,
        value=shown,
        next_step="Set the user and password in FLEETBRAIN_NATS_URL, or FLEETBRAIN_NATS_CREDENTIALS_FILE.",
    )


def absent(error: Exception, shown: str) -> Unavailable:
    """No server answers."""
    why = str(error) or type(error).__name__
    return Unavailable(
        "PEER_UNAVAILABLE",
        f"NATS does not answer at {shown}: {why}",
        metadata={"peer": "nats"},
        next_step="Start NATS there, or correct FLEETBRAIN_NATS_URL; without it a whole brain runs its own.",
        retry_after_seconds=1.0,
    )


def not_permitted(subject: str) -> BrainError:
    """The servers let this user not use a subject."""
    shown = ".".join(subject.split(".")[:5])  # no page names in logs
    return PermissionDenied(
        "SCOPE_MISSING",
        f"NATS does not let this user publish to {shown}",
        field=URL,
        metadata={"peer": "nats"},
        next_step="Give the user of this service the permissions of deploy/nats/.",
    )
