"""One connection to NATS: many requests in flight at once, each with a time limit, and typed errors when it breaks.

The client library's own request costs a task and a random token each; the page log makes several requests a page, so
this module keeps one inbox, numbers its requests and bounds how many are under way.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeVar

import nats.errors
import orjson
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from services.domain.errors import BrainError, InvalidArgument, Unavailable
from services.runtime.nats_config import MAX_PAYLOAD_BYTES
from services.runtime.nats_storage import Storage

log = logging.getLogger(__name__)

T = TypeVar("T")

REQUEST_SECONDS = 5.0
"""How long one request may take: an append waits for the disk, and a busy disk has been seen to need a second."""
CONNECT_SECONDS = 3.0
"""How long the first connection may take. A server that comes later finds this process restarted by its supervisor."""
RECONNECT_SECONDS = 2.0
"""How long a request waits for a lost connection: a server that was killed is back in well under a second."""
IN_FLIGHT_MAX = 64
"""Requests of one pipelined call under way: enough to hide the round trip, few enough to hold the largest pages."""
INBOX_MESSAGES_MAX = 65_536
INBOX_BYTES_MAX = 512 * 1024 * 1024
"""Replies waiting to be handed over: as large as IN_FLIGHT_MAX of the largest reply, so that none is dropped."""


class Request(NamedTuple):
    """One message that is answered."""

    subject: str
    payload: bytes = b""
    headers: Mapping[str, str] | None = None


class ApiError(Exception):
    """JetStream refused a request; `error_code` is its own number for the cause."""

    def __init__(self, code: int, error_code: int, description: str) -> None:
        super().__init__(f"{description} ({error_code})")
        self.code = code
        self.error_code = error_code
        self.description = description


class NatsConnection:
    """Requests over one connection. Safe to use from any task of the loop that opened it."""

    def __init__(self, client: Client, storage: Storage | None = None) -> None:
        self._client = client
        self._storage = storage
        self._stop_storage = storage.listen(self._on_storage_failure) if storage is not None else ignore
        self._inbox = client.new_inbox()
        self._numbers = itertools.count()
        self._waiting: dict[str, asyncio.Future[Msg]] = {}
        self._storing: set[asyncio.Future[Msg]] = set()
        self._connected = asyncio.Event()
        self._connected.set()
        self._listeners: set[Callable[[], None]] = set()

    @property
    def connected(self) -> bool:
        """Whether the server is there as far as is known."""
        return bool(self._client.is_connected)

    @property
    def storing(self) -> bool:
        """Whether the server is there and has room for writes, as far as is known."""
        return self.connected and (self._storage is None or self._storage.problem() is None)

    @property
    def payload_bytes_max(self) -> int:
        """The largest message the server takes."""
        return int(self._client.max_payload)

    @property
    def server_version(self) -> tuple[int, int]:
        """Major and minor version of the server."""
        version = self._client.connected_server_version
        return int(version.major), int(version.minor)

    @property
    def clustered(self) -> bool:
        """Whether the server is one of several."""
        # The server's own words about itself; the client keeps them without offering all of them.
        return "cluster" in self._client._server_info  # noqa: SLF001

    async def start(self) -> None:
        """Opens the inbox for replies."""
        await self._client.subscribe(
            f"{self._inbox}.*",
            cb=self._on_reply,
            pending_msgs_limit=INBOX_MESSAGES_MAX,
            pending_bytes_limit=INBOX_BYTES_MAX,
        )

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        *,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = REQUEST_SECONDS,
    ) -> Msg:
        """Sends one request and returns its reply.

        Raises:
            Unavailable: No connection, nobody there to answer, no answer in time, or the connection broke meanwhile:
                then the request may have been carried out. `STORAGE_FULL` when the server has no room for it.
        """
        future = await self._send(Request(subject, payload, headers), timeout_seconds)
        return await future

    async def request_all(
        self, requests: Sequence[Request], read: Callable[[Msg], T], *, timeout_seconds: float = REQUEST_SECONDS
    ) -> list[T]:
        """Sends many requests, IN_FLIGHT_MAX at a time, and returns what `read` made of each reply, in their order.

        `read` runs as its reply is next in order, so that a large reply need not be kept.
        The first failure is raised and the other replies are ignored.
        """
        results: list[T] = []
        flying: list[asyncio.Future[Msg]] = []
        try:
            for request in requests:
                if len(flying) >= IN_FLIGHT_MAX:
                    results.append(read(await flying.pop(0)))
                flying.append(await self._send(request, timeout_seconds))
            while flying:
                results.append(read(await flying.pop(0)))
        finally:
            for future in flying:
                forget(future)
        return results

    async def api(self, subject: str, body: Mapping[str, object] | None = None) -> dict[str, object]:
        """Makes one request of the JetStream API and returns its answer.

        Raises:
            ApiError: JetStream refused it.
            Unavailable: As for `request`.
        """
        reply = await self.request(f"$JS.API.{subject}", orjson.dumps(body) if body is not None else b"")
        return read_api(reply)

    async def publish(
        self, subject: str, payload: bytes, *, headers: Mapping[str, str] | None = None, reply: str = ""
    ) -> None:
        """Sends a message that nobody answers, or not to us; it is on its way, not stored, when this returns."""
        await self._await_connected(RECONNECT_SECONDS)
        try:
            await self._client.publish(subject, payload, reply=reply, headers=dict(headers) if headers else None)
        except nats.errors.Error as error:
            raise translated(error, subject) from error

    async def subscribe(
        self, subject: str, handle: Callable[[Msg], None], *, messages_max: int, bytes_max: int
    ) -> Subscription:
        """Calls `handle`, which must not block, for each message until the subscription is ended."""

        async def call(message: Msg) -> None:
            handle(message)

        return await self._client.subscribe(
            subject, cb=call, pending_msgs_limit=messages_max, pending_bytes_limit=bytes_max
        )

    def new_inbox(self) -> str:
        """A subject that only this connection listens to."""
        return str(self._client.new_inbox())

    async def on_disconnect(self) -> None:
        """Fails what is under way: its replies cannot come any more."""
        self._connected.clear()
        for future in list(self._waiting.values()):
            if not future.done():
                future.set_exception(unavailable("the connection to NATS broke"))

    async def on_reconnect(self) -> None:
        """Lets waiting requests go on, and tells those whose standing requests the server has forgotten."""
        self._connected.set()
        for listener in list(self._listeners):
            listener()

    def listen_reconnects(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Calls `listener` after each new connection until the function returned here is called."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    async def _send(self, request: Request, timeout_seconds: float) -> asyncio.Future[Msg]:
        stores = not request.subject.startswith("$JS.")
        if stores and self._storage is not None:
            self._storage.check(housekeeping=request.subject.startswith("$KV."))
        await self._await_connected(min(timeout_seconds, RECONNECT_SECONDS))
        loop = asyncio.get_running_loop()
        number = str(next(self._numbers))
        future: asyncio.Future[Msg] = loop.create_future()
        timer = loop.call_later(timeout_seconds, expire, future, request.subject)

        def finished(_: asyncio.Future[Msg]) -> None:
            timer.cancel()
            self._waiting.pop(number, None)
            self._storing.discard(future)

        future.add_done_callback(finished)
        self._waiting[number] = future
        if stores:
            self._storing.add(future)
        headers = dict(request.headers) if request.headers else None
        try:
            await self._client.publish(request.subject, request.payload, f"{self._inbox}.{number}", headers)
        except BaseException as error:
            forget(future)
            if isinstance(error, nats.errors.Error):
                raise translated(error, request.subject) from error
            raise
        return future

    def _on_storage_failure(self, error: Unavailable) -> None:
        """Fails the writes under way: the server answers none of them."""
        for future in list(self._storing):
            if not future.done():
                future.set_exception(error)

    def close(self) -> None:
        """Listens to nothing any more."""
        self._stop_storage()

    async def _await_connected(self, timeout_seconds: float) -> None:
        if self._client.is_connected:
            return
        if self._client.is_closed:
            raise unavailable("the connection to NATS is closed")
        self._connected.clear()
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._connected.wait()
        except TimeoutError as error:
            raise unavailable(f"NATS has not answered for {timeout_seconds:g} s") from error

    async def _on_reply(self, message: Msg) -> None:
        future = self._waiting.get(message.subject[len(self._inbox) + 1 :])
        if future is None or future.done():
            return
        if not message.data and message.headers and message.headers.get("Status") == "503":
            future.set_exception(unavailable("nobody answers at NATS: is JetStream on?"))
        else:
            future.set_result(message)


@asynccontextmanager
async def open_connection(url: str, *, name: str, storage: Storage | None = None) -> AsyncIterator[NatsConnection]:
    """A connection that is made again by itself whenever it breaks.

    Args:
        url: Where the server answers; several addresses are separated by commas.
        name: What the server calls this connection.
        storage: What is known of the room of a server on this machine; None for one elsewhere.

    Raises:
        Unavailable: The server does not answer.
        InvalidArgument: The server refuses messages of MAX_PAYLOAD_BYTES.
    """
    client = Client()
    connection = NatsConnection(client, storage)

    async def on_error(error: Exception) -> None:
        log.warning("NATS connection error", extra={"error": repr(error), "connection": name})

    try:
        async with asyncio.timeout(CONNECT_SECONDS):  # the client itself would try for ever
            await client.connect(
                [part.strip() for part in url.split(",")],
                name=name,
                error_cb=on_error,
                disconnected_cb=connection.on_disconnect,
                reconnected_cb=connection.on_reconnect,
                allow_reconnect=True,
                connect_timeout=2,
                reconnect_time_wait=0.1,  # type: ignore[arg-type]  # seconds; a restarted child is back at once
                max_reconnect_attempts=-1,
                ping_interval=10,
                max_outstanding_pings=2,
                # What was not sent when the connection broke is sent by the next one, after its caller was told that
                # it failed: harmless, for an append carries an expectation and an acknowledgement may be repeated.
                pending_size=16 * 1024 * 1024,
                flusher_queue_size=1024,
                drain_timeout=5,
                skip_subject_validation=True,  # slugs.subject_of makes them, a token at a time
            )
    except (OSError, nats.errors.Error, TimeoutError) as error:
        await client.close()
        raise unavailable(f"NATS does not answer: {error!r}") from error
    try:
        if client.max_payload < MAX_PAYLOAD_BYTES:
            raise InvalidArgument(
                "FIELD_INVALID",
                f"the NATS server takes messages of at most {client.max_payload} bytes",
                field="max_payload",
                value=client.max_payload,
                next_step=f"Set max_payload: {MAX_PAYLOAD_BYTES} in the server's configuration.",
            )
        await connection.start()
        yield connection
    finally:
        connection.close()
        await client.close()


def read_api(reply: Msg) -> dict[str, object]:
    """The answer of a JetStream API request, or ApiError."""
    answer: dict[str, object] = orjson.loads(reply.data)
    if "error" in answer:
        raise api_error(answer["error"])
    return answer


def api_error(error: object) -> ApiError:
    """JetStream's error object as an exception."""
    assert isinstance(error, dict)
    return ApiError(int(error.get("code", 0)), int(error.get("err_code", 0)), str(error.get("description", "")))


def ignore() -> None:
    """Has nothing to end."""


def forget(future: asyncio.Future[Msg]) -> None:
    """Ends a request whose reply nobody wants any more."""
    if not future.cancel() and not future.cancelled():
        future.exception()  # marks it as seen


def expire(future: asyncio.Future[Msg], subject: str) -> None:
    """Fails a request that was not answered in time."""
    if not future.done():
        shown = ".".join(subject.split(".")[:5])  # no page names in logs
        future.set_exception(unavailable(f"NATS did not answer in time at {shown}"))


def translated(error: nats.errors.Error, subject: str) -> BrainError:
    """The client library's error as ours."""
    if isinstance(error, nats.errors.MaxPayloadError):
        return InvalidArgument(
            "PAGE_TOO_LARGE",
            f"a message is larger than {MAX_PAYLOAD_BYTES} bytes",
            field="body",
            next_step="Split the page.",
        )
    return unavailable(f"the connection to NATS is not usable: {error!r}", subject=subject.split(".", 1)[0])


def unavailable(message: str, **metadata: str) -> Unavailable:
    """NATS is not there, or did not answer."""
    return Unavailable(
        "PEER_UNAVAILABLE",
        message,
        metadata={"peer": "nats", **metadata},
        next_step="Send the request again, with the same request_id.",
        retry_after_seconds=1.0,
    )
