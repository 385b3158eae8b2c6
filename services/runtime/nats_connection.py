"""One connection to NATS: many requests in flight at once, each with a time limit, and typed errors when it breaks.

The client library's own request costs a task and a random token each; the page log makes several requests a page, so
this module keeps one inbox, numbers its requests and bounds how many are under way.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple, Protocol, TypeVar

import nats.errors
import orjson
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.aio.transport import TcpTransport

from services.domain.errors import BrainError, InvalidArgument, Unavailable
from services.runtime.nats_client import connect, cut, read_identity
from services.runtime.nats_config import MAX_PAYLOAD_BYTES
from services.runtime.nats_options import NatsOptions, parse_addresses
from services.runtime.nats_replies import Replies
from services.runtime.nats_storage import Storage
from services.runtime.nats_troubles import Troubles, absent, leaderless, not_permitted
from services.runtime.tasks import stop

log = logging.getLogger(__name__)

T = TypeVar("T")

CLUSTER_REQUEST_SECONDS = 20.0
"""The same in a cluster: the servers elect a leader within 9 s of the death of one, or after a split vote within twice
that, and the request is sent again. Whoever has less time says so by a deadline of its own."""
REQUEST_SECONDS = 5.0
"""How long one request may take: an append waits for the disk, and a busy disk has been seen to need a second."""
EMBEDDED = NatsOptions()
RECONNECT_SECONDS = 2.0
"""How long a request waits for a lost connection: a server that was killed is back in well under a second."""
RESEND_SECONDS = 1.0
"""In a cluster, what is not answered for so long is sent again: whom it was for may have been the leader that died, and
nobody answers in its place. Everything we send may come twice: an append carries its expectation, a message its id."""
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


class Receiver(Protocol):
    """What takes a reply: a future, or a place among the replies of many requests."""

    def done(self) -> bool:
        """Whether nobody waits for the reply any more."""

    def set_result(self, result: Msg, /) -> None:
        """Takes the reply."""

    def set_exception(self, exception: BaseException, /) -> None:
        """Takes why there is none."""


class Pending(NamedTuple):
    """A request that waits for its reply."""

    request: Request
    receiver: Receiver


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
        self._inbox = ""  # below the user's name, known once we are connected
        self._numbers = itertools.count()
        self._waiting: dict[str, Pending] = {}
        self._resends: asyncio.Task[None] | None = None
        self._resend_at_once = asyncio.Event()
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
        self._inbox = self.new_inbox()
        await self._client.subscribe(
            f"{self._inbox}.*",
            cb=self._on_reply,
            pending_msgs_limit=INBOX_MESSAGES_MAX,
            pending_bytes_limit=INBOX_BYTES_MAX,
        )
        if self.clustered:
            self._resends = asyncio.create_task(self._resend(), name="nats-resend")

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        *,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float | None = None,
    ) -> Msg:
        """Sends one request and returns its reply.

        Raises:
            Unavailable: No connection, nobody there to answer, no answer in time, or the connection broke meanwhile:
                then the request may have been carried out. `STORAGE_FULL` when the server has no room for it.
        """
        timeout_seconds = self._timeout(timeout_seconds)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Msg] = loop.create_future()
        timer = loop.call_later(timeout_seconds, expire, future, subject)
        number = ""
        try:
            number = await self._send(Request(subject, payload, headers), future, timeout_seconds)
            return await future
        finally:
            timer.cancel()
            self._waiting.pop(number, None)
            forget(future)

    async def request_all(
        self, requests: Sequence[Request], read: Callable[[Msg], T], *, timeout_seconds: float | None = None
    ) -> list[T]:
        """Sends many requests, IN_FLIGHT_MAX at a time, and returns what `read` made of each reply, in their order.

        `read` runs as its reply is next in order, so that a large reply need not be kept.
        The first failure is raised and the other replies are ignored.
        """
        timeout_seconds = self._timeout(timeout_seconds)
        replies = Replies(requests, read, timeout_seconds, late)
        numbers: list[str] = []
        try:
            for index, request in enumerate(requests):
                if replies.over:
                    break  # one has failed
                if index >= len(replies.results) + IN_FLIGHT_MAX:
                    # Half of them at a time: to be woken for each reply costs as much as all else that is done for it.
                    await replies.reach(index - IN_FLIGHT_MAX // 2)
                numbers.append(await self._send(request, replies.place(), timeout_seconds))
            await replies.reach(len(requests))
        finally:
            replies.close()
            for number in numbers:
                self._waiting.pop(number, None)
        return replies.results

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
        if self._resends is not None:
            return  # another server answers in a moment, and what waits is sent again
        self._fail(lambda _: True, unavailable("the connection to NATS broke"))

    async def on_reconnect(self) -> None:
        """Lets waiting requests go on, and tells those whose standing requests the server has forgotten."""
        self._connected.set()
        self._resend_at_once.set()
        for listener in list(self._listeners):
            listener()

    def listen_reconnects(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Calls `listener` after each new connection until the function returned here is called."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    def _timeout(self, seconds: float | None) -> float:
        if seconds is not None:
            return seconds
        return REQUEST_SECONDS if self._resends is None else CLUSTER_REQUEST_SECONDS

    async def _send(self, request: Request, receiver: Receiver, timeout_seconds: float) -> str:
        """Sends a request and returns the number under which its reply is awaited; the caller takes it away."""
        if self._storage is not None and stores(request):
            self._storage.check(housekeeping=request.subject.startswith("$KV."))
        if not self._client.is_connected:
            # In a cluster another server is there, and the next one tried may stand still for a while too.
            alone = self._resends is None
            await self._await_connected(min(timeout_seconds, RECONNECT_SECONDS) if alone else timeout_seconds)
        number = str(next(self._numbers))
        self._waiting[number] = Pending(request, receiver)
        try:
            await self._publish(number, request)
        except BaseException as error:
            self._waiting.pop(number, None)
            if isinstance(error, nats.errors.Error):
                raise translated(error, request.subject) from error
            raise
        return number

    def _on_storage_failure(self, error: Unavailable) -> None:
        """Fails the writes under way: the server answers none of them."""
        self._fail(stores, error)

    def refuse(self, subject: str) -> None:
        """Fails what waits for an answer on a subject that the server does not let us use."""
        self._fail(lambda request: request.subject.lower() == subject.lower(), not_permitted(subject))

    async def close(self) -> None:
        """Ends what runs beside the requests."""
        self._stop_storage()
        await stop(self._resends)

    def _fail(self, concerned: Callable[[Request], bool], error: BrainError) -> None:
        for pending in list(self._waiting.values()):
            if not pending.receiver.done() and concerned(pending.request):
                pending.receiver.set_exception(error)

    async def _resend(self) -> None:
        """Sends again what nobody has answered for RESEND_SECONDS, and all of it over a new connection."""
        seen: set[str] = set()
        used: object = None
        while True:
            # The client says goodbye over TLS and waits 30 s for the answer of a server that stands still.
            used, left = self._client._transport, used  # noqa: SLF001 - it offers no way to let go of it
            if used is left and self._client.is_reconnecting and isinstance(used, TcpTransport):
                cut(used)
            try:
                async with asyncio.timeout(RESEND_SECONDS):
                    await self._resend_at_once.wait()
                seen = set(self._waiting)
            except TimeoutError:
                pass
            self._resend_at_once.clear()
            for number in seen:
                pending = self._waiting.get(number)
                # Of a batch, the other messages are gone with the leader that had them.
                if pending is not None and "Nats-Batch-Id" not in (pending.request.headers or {}):
                    with suppress(nats.errors.Error):
                        await self._publish(number, pending.request)
            seen = set(self._waiting)

    async def _publish(self, number: str, request: Request) -> None:
        headers = dict(request.headers) if request.headers else None
        await self._client.publish(request.subject, request.payload, f"{self._inbox}.{number}", headers)

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
        number = message.subject[len(self._inbox) + 1 :]
        pending = self._waiting.get(number)
        if pending is None or pending.receiver.done():
            return
        if not message.data and message.headers and message.headers.get("Status") == "503":
            if self._resends is not None:
                return  # no leader now; one is elected, and asked again
            pending.receiver.set_exception(unavailable("nobody answers at NATS: is JetStream on?"))
        elif self._resends is not None and leaderless(message.data):
            return
        else:
            del self._waiting[number]
            pending.receiver.set_result(message)


@asynccontextmanager
async def open_connection(
    url: str, *, name: str, storage: Storage | None = None, options: NatsOptions = EMBEDDED
) -> AsyncIterator[NatsConnection]:
    """A connection that is made again by itself whenever it breaks, to any server of the cluster.

    Args:
        url: Where the servers answer; several addresses are separated by commas.
        name: What the server calls this connection.
        storage: What is known of the room of a server on this machine; None for one elsewhere.
        options: Who we are and whom we believe.

    Raises:
        Unavailable: No server answers.
        InvalidArgument: The servers refuse who we are or messages of MAX_PAYLOAD_BYTES, or we do not believe theirs.
    """
    identity = read_identity(parse_addresses(url), options)
    client = Client()
    connection = NatsConnection(client, storage)
    owner, lost = asyncio.current_task(), asyncio.Event()

    def on_lost() -> None:
        lost.set()
        if owner is not None:
            owner.cancel()

    troubles = Troubles(name, on_refused_subject=connection.refuse, on_lost=on_lost)
    try:
        await connect(
            client,
            identity,
            name,
            troubles,
            on_disconnect=connection.on_disconnect,
            on_reconnect=connection.on_reconnect,
        )
        await connection.start()
        yield connection
    except asyncio.CancelledError:
        if owner is None or not lost.is_set():
            raise
        owner.uncancel()
        raise absent(troubles.last or ConnectionError("it ended the connection"), identity.addresses.shown) from None
    finally:
        troubles.closing = True
        await connection.close()
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


def stores(request: Request) -> bool:
    """Whether the server would have to store what is sent."""
    return not request.subject.startswith("$JS.")


def ignore() -> None:
    """Has nothing to end."""


def forget(future: asyncio.Future[Msg]) -> None:
    """Ends a request whose reply nobody wants any more."""
    if not future.cancel() and not future.cancelled():
        future.exception()  # marks it as seen


def expire(future: asyncio.Future[Msg], subject: str) -> None:
    """Fails a request that was not answered in time."""
    if not future.done():
        future.set_exception(late(subject))


def late(subject: str) -> Unavailable:
    """A request that was not answered in time."""
    shown = ".".join(subject.split(".")[:5])  # no page names in logs
    return unavailable(f"NATS did not answer in time at {shown}")


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
