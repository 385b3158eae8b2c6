"""Calls a running brain over its Unix socket, with the standard library only: what the command line is made of."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gateway.operations.json_value import JsonObject, JsonValue
from services.domain.errors import BrainError, Internal, Unavailable

CALL_SECONDS = 60.0
"""Longer than any operation may take, so that the brain and not the client decides when it is over."""


class BrainGoneError(Exception):
    """Nobody answers at the socket: the brain went down. `sent` tells whether it may have got the call."""

    def __init__(self, path: Path, *, sent: bool) -> None:
        super().__init__(f"no brain answers at {path}")
        self.sent = sent


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path, timeout_seconds: float) -> None:
        super().__init__("localhost", timeout=timeout_seconds)
        self._path = path

    def connect(self) -> None:
        """Opens the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalClient:
    """One brain at one socket. Every call opens a connection of its own, so it may be used from any thread."""

    path: Path
    headers: Mapping[str, str] = field(default_factory=dict)

    def call(self, operation: str, arguments: JsonValue) -> JsonObject:
        """The operation's result.

        Raises:
            BrainError: What the brain answered, with its reason, field, value and next step.
            BrainGoneError: Nobody answers, or the brain went down before it answered.
        """
        status, body = self.request("POST", f"/api/{operation}", json.dumps(arguments).encode("utf-8"))
        reply = json.loads(body)
        if not isinstance(reply, dict):
            raise Internal("INTERNAL", "the brain's answer is not a JSON object")
        if status >= 400:
            raise error_of(reply, status)
        return reply

    def healthy(self, timeout_seconds: float = 2.0) -> bool:
        """Whether a brain answers at the socket."""
        try:
            return self.request("GET", "/healthz", None, timeout_seconds=timeout_seconds)[0] == 200
        except BrainGoneError:
            return False

    def request(
        self, method: str, path: str, body: bytes | None, *, timeout_seconds: float = CALL_SECONDS
    ) -> tuple[int, bytes]:
        """Status and body of one request."""
        connection = _UnixConnection(self.path, timeout_seconds)
        try:
            try:
                connection.connect()
            except OSError as error:
                raise BrainGoneError(self.path, sent=False) from error
            try:
                connection.request(method, path, body, {"content-type": "application/json", **self.headers})
                response = connection.getresponse()
                return response.status, response.read()
            except TimeoutError as error:
                raise Unavailable(
                    "PEER_UNAVAILABLE",
                    f"the brain did not answer within {timeout_seconds:g} s",
                    next_step="Look at `fleetbrain doctor`.",
                ) from error
            except (OSError, http.client.HTTPException) as error:
                raise BrainGoneError(self.path, sent=True) from error
        finally:
            connection.close()


def error_of(reply: JsonObject, status: int) -> BrainError:
    """The error that an error reply tells of."""
    shown = reply.get("error")
    if not isinstance(shown, dict):
        return Internal("INTERNAL", f"the brain answered with status {status}")
    details = shown.get("details")
    return BrainError(
        str(shown.get("reason", "INTERNAL")),
        str(shown.get("message", "")),
        field=str(shown.get("field", "")),
        value=shown.get("value", ""),
        next_step=str(shown.get("next_step", "")),
        metadata={k: str(v) for k, v in details.items()} if isinstance(details, dict) else None,
    )
