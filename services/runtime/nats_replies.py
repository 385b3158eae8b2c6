"""Replies to many requests under way at once, read in the order of the requests, with one waiter for all of them.

A future and a timer for each request cost more than the request: an import of n pages makes several times n of them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from nats.aio.msg import Msg

T = TypeVar("T")


class Asked(Protocol):
    """A request, as far as its waiting is concerned."""

    @property
    def subject(self) -> str:
        """Where it was sent."""


class Place:
    """Where one of the replies goes."""

    __slots__ = ("_index", "_replies")

    def __init__(self, replies: Replies[object], index: int) -> None:
        self._replies = replies
        self._index = index

    def done(self) -> bool:
        """Whether nobody waits for the reply any more."""
        return self._replies.over

    def set_result(self, result: Msg, /) -> None:
        """Takes the reply."""
        self._replies.take(self._index, result)

    def set_exception(self, exception: BaseException, /) -> None:
        """Takes why there is none, which ends the waiting for all of them."""
        self._replies.fail(exception)


class Replies(Generic[T]):
    """What `read` made of each reply. `read` runs as its reply is next in order, so that a large one need not be kept.

    The first failure is raised and the other replies are ignored.
    """

    def __init__(
        self,
        requests: Sequence[Asked],
        read: Callable[[Msg], T],
        timeout_seconds: float,
        late: Callable[[str], BaseException],
    ) -> None:
        self.results: list[T] = []
        self.over = False
        self._requests = requests
        self._read = read
        self._late = late
        self._timeout_seconds = timeout_seconds
        self._loop = asyncio.get_running_loop()
        self._sent: deque[float] = deque()
        """When those were sent that are not read yet."""
        self._early: dict[int, Msg] = {}
        self._error: BaseException | None = None
        self._wanted = 0
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def place(self) -> Place:
        """The place of the next request, whose time runs from now."""
        index = len(self.results) + len(self._sent)
        now = self._loop.time()
        self._sent.append(now)
        if self._timer is None:
            self._timer = self._loop.call_at(now + self._timeout_seconds, self._expire)
        return Place(self, index)  # type: ignore[arg-type]  # a place never looks at what is read

    async def reach(self, count: int) -> None:
        """Waits until so many replies are read; raises the first failure."""
        while self._error is None and len(self.results) < count:
            self._wanted = count
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self._error is not None:
            raise self._error

    def take(self, index: int, reply: Msg) -> None:
        """Reads a reply, and those that came before it was their turn."""
        if self.over or index < len(self.results):
            return
        self._early[index] = reply
        try:
            while (following := self._early.pop(len(self.results), None)) is not None:
                self.results.append(self._read(following))
                self._sent.popleft()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is for whoever waits
            self.fail(error)
            return
        if len(self.results) >= self._wanted:
            self._wake()

    def fail(self, error: BaseException) -> None:
        """Ends the waiting with an error."""
        if not self.over:
            self._error = error
            self.close()
            self._wake()

    def close(self) -> None:
        """Takes no more replies."""
        self.over = True
        self._early.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        """Fails when the oldest request has waited too long; else looks again when it would have."""
        self._timer = None
        if not self._sent:
            return
        due = self._sent[0] + self._timeout_seconds
        if due <= self._loop.time():
            self.fail(self._late(self._requests[len(self.results)].subject))
        else:
            self._timer = self._loop.call_at(due, self._expire)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
