"""Values with compare-and-set, over a real NATS server."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from services.domain.errors import Overloaded
from services.runtime.bus import Bus
from services.runtime.key_value import Entry, KeyValue, WrongRevision
from tests.contract.runtime.projections import SECONDS


@pytest.fixture
async def bucket(bus: Bus) -> KeyValue:
    return await bus.key_value("things", history=1, max_bytes=1024 * 1024)


async def test_a_value_is_read_as_it_was_written(bucket: KeyValue) -> None:
    revision = await bucket.put("a.b", "值".encode())

    assert await bucket.get("a.b") == Entry("a.b", "值".encode(), revision)
    assert await bucket.get("a") is None


async def test_a_write_on_a_stale_revision_is_refused_and_changes_nothing(bucket: KeyValue) -> None:
    first = await bucket.put("a", b"1")
    second = await bucket.put("a", b"2", revision=first)

    with pytest.raises(WrongRevision):
        await bucket.put("a", b"3", revision=first)
    with pytest.raises(WrongRevision):
        await bucket.delete("a", revision=first)

    assert await bucket.get("a") == Entry("a", b"2", second)


async def test_of_many_that_create_a_key_one_does(bucket: KeyValue) -> None:
    outcomes = await asyncio.gather(*(bucket.create("a", b"%d" % n) for n in range(10)), return_exceptions=True)

    assert sum(isinstance(outcome, int) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, WrongRevision) for outcome in outcomes) == 9


async def test_a_counter_loses_no_increment(bucket: KeyValue) -> None:
    await bucket.create("counter", b"0")

    async def increment() -> None:
        for _ in range(100):
            entry = await bucket.get("counter")
            assert entry is not None
            assert entry.value is not None
            with contextlib.suppress(WrongRevision):
                await bucket.put("counter", b"%d" % (int(entry.value) + 1), revision=entry.revision)
                return
        raise AssertionError("never came through")

    await asyncio.gather(*(increment() for _ in range(20)))

    entry = await bucket.get("counter")
    assert entry is not None
    assert entry.value == b"20"


async def test_a_deleted_key_is_gone_and_can_be_created_again(bucket: KeyValue) -> None:
    await bucket.put("a", b"1")
    await bucket.delete("a")

    assert await bucket.get("a") is None
    assert await bucket.keys() == []
    assert await bucket.create("a", b"2")


async def test_entries_are_listed_by_prefix_in_order(bucket: KeyValue) -> None:
    for name in ("jobs.2", "jobs.1", "jobs", "jobsother", "x"):
        await bucket.put(name, name.encode())

    assert await bucket.keys("jobs") == ["jobs", "jobs.1", "jobs.2"]
    assert [entry.value for entry in await bucket.entries()] == [b"jobs", b"jobs.1", b"jobs.2", b"jobsother", b"x"]


async def test_a_watch_shows_what_is_there_and_then_every_change(bucket: KeyValue) -> None:
    await bucket.put("a", b"1")
    seen: asyncio.Queue[Entry] = asyncio.Queue()

    async def watch() -> None:
        async for entry in bucket.watch():
            seen.put_nowait(entry)

    watching = asyncio.create_task(watch())
    async with asyncio.timeout(SECONDS):
        first = await seen.get()
        await bucket.put("b", b"2")
        second = await seen.get()
        await bucket.delete("b")
        third = await seen.get()
    watching.cancel()

    assert [(e.key, e.value) for e in (first, second, third)] == [("a", b"1"), ("b", b"2"), ("b", None)]


async def test_a_full_bucket_refuses_and_keeps_what_it_has(bus: Bus) -> None:
    bucket = await bus.key_value("small", max_bytes=4096)
    await bucket.put("a", b"x" * 1000)

    with pytest.raises(Overloaded) as raised:
        await bucket.put("b", b"x" * 8000)

    assert raised.value.reason == "LIMIT_REACHED"
    assert await bucket.keys() == ["a"]


async def test_a_bucket_opened_twice_is_one(bus: Bus, bucket: KeyValue) -> None:
    await bucket.put("a", b"1")

    again = await bus.key_value("things", history=1, max_bytes=1024 * 1024)

    assert await again.get("a") is not None
