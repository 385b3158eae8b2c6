"""Messages of one JetStream consumer, as they come: one standing pull request, refilled while a batch is worked on.

A single message at rest is handed over at once; under load everything that came meanwhile is the next batch. What is
in hand is kept from being delivered again for as long as its reader lives.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import nats.errors
import orjson
from nats.aio.msg import Msg

from services.domain.errors import Unavailable
from services.runtime.nats_connection import IN_FLIGHT_MAX, NatsConnection, Request, unavailable
from services.runtime.tasks import finish, stop

PULL_SECONDS = 30.0
"""How long a pull request stands. The server ends it, and a new one is made."""
ACKNOWLEDGED_SECONDS_MAX = 2.0
"""The server notes an acknowledgement in about a millisecond; one that takes so long is not coming."""
SHARED_ACKNOWLEDGED_SECONDS_MAX = 0.25
"""The same where others read too: what another acknowledged first is never answered, and is no loss."""
HEARTBEAT_SECONDS = 2.0
"""The server says so often that it still knows of the pull; two missed ones and it is asked again."""
ACK_WAIT_SECONDS = 30.0
"""After so long without a word the server delivers again. The reader says a word every third of it."""
SHARED_ACK_WAIT_SECONDS = 10.0
"""The same where others read too, who can go on with what one had in hand that died."""
PULL_BYTES_MAX = 16 * 1024 * 1024
"""More than the largest message, and little enough that two batches of large pages do not matter."""
ACK: Final = b"+ACK"
TERM: Final = b"+TERM"
IN_PROGRESS: Final = b"+WPI"


class ConsumerGone(Exception):
    """The consumer does not exist any more."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message in hand. `sequence` is its place in the stream, `tries` counts its deliveries from 1."""

    subject: str
    payload: bytes
    reply: str
    sequence: int
    tries: int
    headers: Mapping[str, str] | None = None


class PullReader:
    """The consuming end of one consumer. One task reads; acknowledging is free to any."""

    def __init__(
        self,
        connection: NatsConnection,
        stream: str,
        consumer: str,
        *,
        batch_max: int,
        acknowledges: bool,
        shared: bool,
        recover: Callable[[], Awaitable[None]] | None,
    ) -> None:
        self._shared = shared
        self._connection = connection
        self._request = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._name = consumer
        self._batch_max = batch_max
        self._acknowledges = acknowledges
        self._inbox = connection.new_inbox()
        self._numbers = itertools.count(1)
        self._pull = 0
        self._outstanding = 0
        self._queue: deque[Delivery] = deque()
        self._in_hand: dict[int, Delivery] = {}
        self._wake = asyncio.Event()
        self._gone = False
        self._nobody = False
        self._recover = recover
        self._reconnected = False

    async def next_batch(self, limit: int, *, ahead: bool = True) -> list[Delivery]:
        """At least one message, at most `limit`, in the order of delivery; waits for the first as long as it takes.

        With `ahead` the next ones are on their way while the caller works on these; without, they stay with the
        server, for any other reader.

        Raises:
            ConsumerGone: The consumer was deleted.
            Unavailable: NATS does not answer; calling again goes on where it was.
        """
        await self._after_reconnect()
        while not self._queue:
            if self._gone:
                raise ConsumerGone(self._name)
            if self._nobody:
                self._nobody = False
                raise unavailable("no consumer answers at NATS", consumer=self._name)
            await self._refill()
            self._wake.clear()
            try:
                async with asyncio.timeout(2 * HEARTBEAT_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                self._outstanding = 0  # neither message nor heartbeat: the server forgot the pull
            await self._after_reconnect()
        batch = [self._queue.popleft() for _ in range(min(limit, len(self._queue)))]
        if ahead and not self._gone:
            with contextlib.suppress(Unavailable):  # the next call tries again and says so
                await self._refill()
        return batch

    async def acknowledge(self, deliveries: Sequence[Delivery], word: bytes = ACK) -> None:
        """Tells the server that messages are done, and returns when it has noted that.

        The server never answers for a delivery that it does not know: it was killed since, or the message was delivered
        again and another reader was faster. A reader that recovers then lets go of what it has, so that it comes again,
        which does no harm; over a new connection it does so at once. One that shares its consumer lets go of what is
        not answered, and of nothing else: another has it, or it comes again after the consumer's time.

        Raises:
            Unavailable: NATS does not answer, and this reader neither recovers nor shares; calling again goes on where
                it was.
        """
        if self._shared:
            # Of a message that came twice only the last delivery is known to the server.
            last = {d.sequence: d for d in deliveries}
            await self._acknowledge_shared([Request(d.reply, word) for d in last.values()])
        elif self._recover is None:
            await self._connection.request_all([Request(d.reply, word) for d in deliveries], ignore)
        elif not self._reconnected:
            try:
                await self._acknowledge_in_order(deliveries, word)
            except Unavailable:
                self._reconnected = True
        for delivery in deliveries:
            self._in_hand.pop(delivery.sequence, None)

    async def _acknowledge_in_order(self, deliveries: Sequence[Delivery], word: bytes) -> None:
        """Has only the last one answered: the server notes the words of a connection in the order they come.

        Over a new connection all comes again in any case, see `_after_reconnect`.
        """
        for delivery in deliveries[:-1]:
            await self._connection.publish(delivery.reply, word)
        for delivery in deliveries[-1:]:
            await self._connection.request(delivery.reply, word, timeout_seconds=ACKNOWLEDGED_SECONDS_MAX)

    async def _acknowledge_shared(self, requests: Sequence[Request]) -> None:
        """Sends every word before it waits for any answer, so that one that is not answered holds up no other."""
        for start in range(0, len(requests), IN_FLIGHT_MAX):
            with contextlib.suppress(Unavailable):
                await self._connection.request_all(
                    requests[start : start + IN_FLIGHT_MAX], ignore, timeout_seconds=SHARED_ACKNOWLEDGED_SECONDS_MAX
                )

    async def refuse(self, deliveries: Sequence[Delivery], delay_seconds: float) -> None:
        """Gives messages back; they are delivered again after the delay."""
        word = b"-NAK " + orjson.dumps({"delay": int(delay_seconds * 1e9)}) if delay_seconds > 0 else b"-NAK"
        for delivery in deliveries:
            self._in_hand.pop(delivery.sequence, None)
            await self._connection.publish(delivery.reply, word)

    def forget(self, deliveries: Sequence[Delivery]) -> None:
        """No longer says that they are worked on, and leaves them to whoever has them now."""
        for delivery in deliveries:
            self._in_hand.pop(delivery.sequence, None)

    async def keep_alive(self) -> None:
        """Says in time that what is in hand is still worked on; runs until cancelled."""
        while True:
            await asyncio.sleep((SHARED_ACK_WAIT_SECONDS if self._shared else ACK_WAIT_SECONDS) / 3)
            for delivery in list(self._in_hand.values()):
                with contextlib.suppress(Unavailable):
                    await self._connection.publish(delivery.reply, IN_PROGRESS)

    def on_message(self, message: Msg) -> None:
        """Takes a message or a word about the standing pull."""
        headers = message.headers
        status = headers.get("Status") if headers else None
        if status is None:
            delivery = read_delivery(message)
            if self._acknowledges:
                self._in_hand[delivery.sequence] = delivery
            self._queue.append(delivery)
            self._outstanding -= 1
        elif message.subject == f"{self._inbox}.{self._pull}" and status != "100":
            assert headers is not None
            self._outstanding = 0
            self._nobody = status == "503"
            self._gone = status == "409" and "Deleted" in headers.get("Description", "")
        self._wake.set()

    def on_reconnect(self) -> None:
        """Forgets the standing pull, as the server has."""
        self._outstanding = 0
        self._reconnected = True
        self._wake.set()

    async def give_back(self) -> None:
        """Returns what was not worked on, so that the next reader gets it at once."""
        with contextlib.suppress(Unavailable):
            await self.refuse(list(self._in_hand.values()), 0)

    async def _after_reconnect(self) -> None:
        while self._recover is not None and self._reconnected:
            for delivery in self._queue:
                self._in_hand.pop(delivery.sequence, None)
            self._queue.clear()
            self._reconnected = False  # before: what breaks while it recovers counts again
            try:
                await self._recover()
            except BaseException:
                self._reconnected = True
                raise

    async def _refill(self) -> None:
        if self._outstanding > 0 or len(self._queue) >= self._batch_max:
            return
        self._pull = next(self._numbers)
        self._outstanding = self._batch_max
        body = {
            "batch": self._batch_max,
            "max_bytes": PULL_BYTES_MAX,
            "expires": int(PULL_SECONDS * 1e9),
            "idle_heartbeat": int(HEARTBEAT_SECONDS * 1e9),
        }
        try:
            await self._connection.publish(self._request, orjson.dumps(body), reply=f"{self._inbox}.{self._pull}")
        except BaseException:
            self._outstanding = 0
            raise

    @property
    def inbox(self) -> str:
        """Where messages and words arrive."""
        return self._inbox


@asynccontextmanager
async def open_reader(
    connection: NatsConnection,
    stream: str,
    consumer: str,
    *,
    batch_max: int,
    acknowledges: bool = True,
    shared: bool = False,
    recover: Callable[[], Awaitable[None]] | None = None,
) -> AsyncIterator[PullReader]:
    """A reader of an existing consumer; gives back what is in hand when the block ends.

    `recover` is awaited after each new connection, between two batches, with nothing of the old one kept: a server
    that was killed may have forgotten acknowledgements, and would deliver those messages only after ACK_WAIT_SECONDS.
    With `shared` other processes read from the consumer too: then nothing is recovered, it would take it from them.
    """
    assert not (shared and recover), "a shared consumer is never recovered by one of its readers"
    reader = PullReader(
        connection,
        stream,
        consumer,
        batch_max=batch_max,
        acknowledges=acknowledges,
        shared=shared,
        recover=recover,
    )
    subscription = await connection.subscribe(
        f"{reader.inbox}.*", reader.on_message, messages_max=8 * batch_max + 64, bytes_max=8 * PULL_BYTES_MAX
    )
    stop_listening = connection.listen_reconnects(reader.on_reconnect)
    alive = asyncio.create_task(reader.keep_alive())

    async def close() -> None:
        await stop(alive)
        with contextlib.suppress(nats.errors.Error):  # a connection that is closed has no subscriptions
            await subscription.unsubscribe()
        await reader.give_back()

    try:
        yield reader
    finally:
        stop_listening()
        await finish(close())


def read_delivery(message: Msg) -> Delivery:
    """A message with what its reply subject says: `$JS.ACK.[domain.account.]stream.consumer.tries.sequence…`."""
    tokens = message.reply.split(".")
    at = 4 if len(tokens) == 9 else 6
    return Delivery(message.subject, message.data, message.reply, int(tokens[at + 1]), int(tokens[at]), message.headers)


def ignore(_: Msg) -> None:
    """Reads nothing of a reply that only says it came."""
