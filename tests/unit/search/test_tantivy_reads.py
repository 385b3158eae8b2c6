"""Reads asked for at the same moment share a thread and keep their own results."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from services.search.adapters.tantivy_reads import TOGETHER_MAX, Reads

SECONDS = 5.0


@pytest.fixture
async def reads() -> AsyncIterator[Reads]:
    opened = Reads(2)
    yield opened
    opened.close()


async def test_reads_of_one_moment_share_a_thread(reads: Reads) -> None:
    threads = await asyncio.gather(*(reads.run(threading.get_ident) for _ in range(TOGETHER_MAX)))

    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()


async def test_more_reads_than_share_one_thread_all_get_their_own_results(reads: Reads) -> None:
    numbers = list(range(5 * TOGETHER_MAX))

    assert await asyncio.gather(*(reads.run(lambda number=number: number) for number in numbers)) == numbers  # type: ignore[misc]


async def test_a_read_that_fails_fails_alone(reads: Reads) -> None:
    def fail() -> int:
        raise ValueError("no such field")

    first, second, third = await asyncio.gather(
        reads.run(lambda: 1), reads.run(fail), reads.run(lambda: 3), return_exceptions=True
    )

    assert (first, third) == (1, 3)
    assert isinstance(second, ValueError)


async def test_who_stops_waiting_does_not_keep_the_others_from_their_results(reads: Reads) -> None:
    go = threading.Event()
    entered = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow() -> None:
        loop.call_soon_threadsafe(entered.set)
        go.wait(SECONDS)

    leaving = asyncio.ensure_future(reads.run(slow))
    staying = asyncio.ensure_future(reads.run(lambda: "here"))
    await asyncio.wait_for(entered.wait(), SECONDS)
    leaving.cancel()
    go.set()

    assert await asyncio.wait_for(staying, SECONDS) == "here"
    assert leaving.cancelled()


async def test_a_read_after_the_end_fails_instead_of_waiting_for_ever() -> None:
    reads = Reads(1)
    reads.close()

    with pytest.raises(RuntimeError):
        await asyncio.wait_for(reads.run(lambda: 1), SECONDS)
