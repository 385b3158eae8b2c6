"""The threads that read the index, asked together by what asks at the same moment.

A question asks three lists at once, and to hand a read to a thread and its result back costs more than most reads take.
So the reads that are asked for within one turn of the event loop share one way there and back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

TOGETHER_MAX = 4
"""Reads that share a thread: the lists of one question. More, of other questions, go to the next thread."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """One read and who waits for it."""

    work: Callable[[], Any]
    result: asyncio.Future[Any]


class Reads:
    """A few threads for reads of milliseconds. Belongs to one event loop."""

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="lexical-read")
        self._asked: list[_Read] = []

    async def run(self, work: Callable[[], T]) -> T:
        """The work's result, or what it raised. Not waiting any longer does not stop work that has begun."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()
        if not self._asked:
            loop.call_soon(self._hand_over, loop)
        self._asked.append(_Read(work=work, result=result))
        return await result

    def close(self) -> None:
        """Waits for what runs; reads asked for afterwards fail."""
        self._threads.shutdown(wait=True)

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        asked, self._asked = self._asked, []
        for start in range(0, len(asked), TOGETHER_MAX):
            part = asked[start : start + TOGETHER_MAX]
            try:
                self._threads.submit(_read, part, loop)
            except RuntimeError as error:  # closed
                _settle([(read.result, None, error) for read in part])


_Outcome = tuple[asyncio.Future[Any], Any, BaseException | None]


def _read(reads: Sequence[_Read], loop: asyncio.AbstractEventLoop) -> None:
    """On a thread: one read after the other; those that nobody waits for any more are left out."""
    outcomes: list[_Outcome] = []
    for read in reads:
        if read.result.cancelled():
            continue
        try:
            outcomes.append((read.result, read.work(), None))
        except BaseException as error:  # noqa: BLE001 - whoever asked gets it, panics of the engine included
            outcomes.append((read.result, None, error))
    if not loop.is_closed():
        loop.call_soon_threadsafe(_settle, outcomes)


def _settle(outcomes: Sequence[_Outcome]) -> None:
    """On the loop: each gets its own."""
    for result, value, error in outcomes:
        if result.done():
            continue
        if error is not None:
            result.set_exception(error)
        else:
            result.set_result(value)
