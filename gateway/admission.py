"""Who may come in over HTTP: names of hosts, browsers' origins, the bearer token, the size of a body, how many at once.

Wraps the whole application once per listener, so that no route can forget a check. What it lets through carries the
caller's `OperationContext` in `scope["state"]["caller"]`.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import orjson
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.operations.run import error_reply
from gateway.operations.status_codes import http_status
from services.domain.context import OperationContext
from services.domain.context import Scope as CallScope
from services.domain.errors import BrainError, InvalidArgument, Overloaded, PermissionDenied, Unauthenticated

BODY_BYTES_MAX = 12_000_000
"""A page of 5,000,000 bytes of Chinese grows by JSON escapes to twice its size."""
DRAINED_BYTES_MAX = 64_000_000
"""So much of a body that is too large is read and thrown away: a client that is cut off while it still sends often
never reads why. Larger ones are cut off."""
IN_FLIGHT_MAX = 256
"""Calls at once. More agents than that wait less when they are told to come back than when they queue blindly."""
RETRY_SECONDS = 1.0
PRINCIPAL_CHARACTERS_MAX = 128

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""What supervisors ask by address and without a token; they tell nothing about the brain."""

REMOTE_HEADER = "brain-remote"
PRINCIPAL_HEADER = "brain-principal"
"""Believed on the Unix socket only, where the file mode lets nobody but the owner in."""


@dataclass(slots=True)
class InFlight:
    """How many calls are running, over all listeners of a process."""

    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """What one listener demands."""

    local: bool
    """A Unix socket that only its owner can open: callers are local unless they say otherwise."""
    token: str = ""
    """Compared whenever set, also on loopback."""
    hosts: frozenset[str] = LOOPBACK_HOSTS
    in_flight: InFlight = field(default_factory=InFlight)
    in_flight_max: int = IN_FLIGHT_MAX


class Admission:
    """An ASGI application that lets calls through to another one."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers for the inner application when a call may not come in."""
        if scope["type"] != "http":
            return
        if scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        body = _Body(receive)
        try:
            scope.setdefault("state", {})["caller"] = self._caller(headers)
            body.expect(headers.get("content-length"))
            if self._door.in_flight.count >= self._door.in_flight_max:
                raise Overloaded(
                    "LIMIT_REACHED",
                    f"{self._door.in_flight_max} calls are running",
                    next_step="Try again in a second.",
                    metadata={"limit": "calls at once"},
                    retry_after_seconds=RETRY_SECONDS,
                )
        except BrainError as error:
            await body.drain()
            await refuse(error, send)
            return
        started = _Started(send)
        self._door.in_flight.count += 1
        try:
            await self._app(scope, body.receive, started.send)
        except _TooLargeError as error:
            # The inner application reads the body before it answers; once it has answered nothing can be taken back.
            if started.begun:
                raise
            await body.drain()
            await refuse(error.refusal, send)
        finally:
            self._door.in_flight.count -= 1

    def _caller(self, headers: Headers) -> OperationContext:
        if self._door.local:
            remote = headers.get(REMOTE_HEADER, "") == "1"
            principal = headers.get(PRINCIPAL_HEADER, "")[:PRINCIPAL_CHARACTERS_MAX] or "local"
            return _context(principal, remote=remote)
        _check_host(headers.get("host", ""), self._door.hosts)
        _check_origin(headers.get("origin"), self._door.hosts)
        if self._door.token:
            _check_token(headers.get("authorization", ""), self._door.token)
        return _context("token" if self._door.token else "loopback", remote=True)


def _context(principal: str, *, remote: bool) -> OperationContext:
    """One token, and the owner's own machine, may do everything; what remote callers may not is decided by `remote`."""
    return OperationContext(
        principal=principal, remote=remote, scopes=frozenset(CallScope), read_sources=None, write_sources=None
    )


def _check_host(host: str, allowed: frozenset[str]) -> None:
    """A page in a browser can make any name lead to this machine; only names we know are answered."""
    if (urlsplit(f"//{host}").hostname or "") not in allowed:
        raise PermissionDenied(
            "HOST_DENIED",
            f"this brain does not answer to the host name {host[:80]!r}",
            field="host",
            value=host,
            next_step="Use a loopback address, or add the name to FLEETBRAIN_HTTP_HOSTS.",
        )


def _check_origin(origin: str | None, allowed: frozenset[str]) -> None:
    if origin is None:
        return
    if (urlsplit(origin).hostname or "") not in allowed:
        raise PermissionDenied(
            "HOST_DENIED",
            f"pages of {origin[:80]!r} may not call this brain",
            field="origin",
            value=origin,
            next_step="Call from a program, or add the page's host to FLEETBRAIN_HTTP_HOSTS.",
        )


def _check_token(authorization: str, token: str) -> None:
    kind, _, given = authorization.partition(" ")
    if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
        raise Unauthenticated(
            "TOKEN_INVALID",
            "the bearer token is not the one of this brain" if authorization else "a bearer token is needed",
            field="authorization",
            next_step="Send the header `Authorization: Bearer <token>` with the value of FLEETBRAIN_TOKEN.",
        )


def too_large() -> InvalidArgument:
    """The refusal of a body that is over the limit."""
    return InvalidArgument(
        "PAGE_TOO_LARGE",
        f"the request has more than {BODY_BYTES_MAX} bytes",
        field="body",
        next_step="A page has at most 5,000,000 bytes: split it, and link the parts.",
    )


class _TooLargeError(Exception):
    """The body turned out to be over the limit while the inner application read it."""

    def __init__(self) -> None:
        super().__init__()
        self.refusal = too_large()


class _Body:
    """The body of one request, counted while it is read."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._bytes = 0
        self._ended = False

    def expect(self, content_length: str | None) -> None:
        """Raises InvalidArgument when the sender announces more than is taken."""
        if content_length is not None and content_length.isdigit() and int(content_length) > BODY_BYTES_MAX:
            raise too_large()

    async def receive(self) -> Message:
        message = await self._receive()
        self._count(message)
        if self._bytes > BODY_BYTES_MAX:
            raise _TooLargeError
        return message

    async def drain(self) -> None:
        """Reads what is left, up to a bound, so that the sender gets to reading the refusal."""
        while not self._ended and self._bytes <= DRAINED_BYTES_MAX:
            self._count(await self._receive())

    def _count(self, message: Message) -> None:
        if message["type"] == "http.request":
            self._bytes += len(message.get("body", b""))
            self._ended = not message.get("more_body", False)
        else:
            self._ended = True


class _Started:
    """Remembers whether a response has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False

    async def send(self, message: Message) -> None:
        self.begun = True
        await self._send(message)


async def refuse(error: BrainError, send: Send) -> None:
    """Answers with an error."""
    body = orjson.dumps(error_reply(error))
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += error_headers(error)
    await send({"type": "http.response.start", "status": http_status(error), "headers": headers})
    await send({"type": "http.response.body", "body": body})


def error_headers(error: BrainError) -> list[tuple[bytes, bytes]]:
    """The headers by which HTTP clients know what to do about an error."""
    headers = []
    if isinstance(error, Unauthenticated):
        headers.append((b"www-authenticate", b"Bearer"))
    if error.retry_after_seconds is not None:
        headers.append((b"retry-after", str(max(1, round(error.retry_after_seconds))).encode()))
    return headers
