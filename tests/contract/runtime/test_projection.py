"""The consumer discipline over a real NATS server, with the model of it as the oracle. See DESIGN sections 3 and 4."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from brain.v1 import events_pb2
from services.domain.errors import Conflict, Unavailable
from services.domain.records import PageId, PageKey, PageRecord, RecordKind
from services.runtime.bus import Bus
from services.runtime.consumers import consumer_state, delete_consumer
from services.runtime.nats_child import NatsAddress
from services.runtime.page_log import read_message
from tests.contract.runtime.projections import SECONDS, hosted, settled, until, write
from tests.model_store import Disk, rebuilt
from tests.page_log_model import Document


async def test_a_write_is_applied_at_once_and_wakes_who_waits_for_it(bus: Bus, tmp_path: Path) -> None:
    async with hosted(bus, tmp_path / "p", Disk()) as projection:
        waiting = asyncio.create_task(projection.wait_for(1, SECONDS))
        await asyncio.sleep(0)
        stored = await write(bus, "a", "A\n[[b]]")

        assert await waiting
        assert projection.indexed_revision == stored.revision
        assert projection.store.model.held == (await rebuilt(bus)).held
        assert not await projection.wait_for(99, 0.01)


async def test_many_writes_come_in_batches_no_larger_than_allowed(bus: Bus, tmp_path: Path) -> None:
    disk = Disk()
    for number in range(50):
        await write(bus, f"p{number}")

    async with hosted(bus, tmp_path / "p", disk, batch_max=16) as projection:
        await settled(bus, projection)

    assert max(disk.batches) == 16


async def test_deletes_redirects_and_moves_leave_what_the_model_leaves(bus: Bus, tmp_path: Path) -> None:
    async with hosted(bus, tmp_path / "p", Disk()) as projection:
        for slug in "abc":
            await write(bus, slug, f"{slug.upper()}\n[[a]]")
        await write(bus, "a", make=lambda r: replace(r, kind=RecordKind.DELETE, body=None))
        redirect = replace(await write(bus, "b"), kind=RecordKind.REDIRECT, body=None, moved_to="d")
        move = replace(redirect, slug="d", kind=RecordKind.MOVE, body=b"B\nmoved", moved_to="", expected=0)
        await bus.page_log.append([replace(redirect, expected=redirect.revision), move])
        await settled(bus, projection)

        assert projection.store.model.held == (await rebuilt(bus)).held
        assert await projection.sweep() == 0


async def test_the_watermark_is_nothing_until_a_new_store_has_reached_the_end_of_the_log(
    bus: Bus, tmp_path: Path
) -> None:
    disk, gate = Disk(), asyncio.Event()
    for slug in "abc":
        await write(bus, slug)
    for _ in range(3):
        await write(bus, "a", "again")

    async def closed() -> None:
        await gate.wait()

    disk.pause = closed
    async with hosted(bus, tmp_path / "p", disk) as projection:
        await until(lambda: bool(disk.batches))
        before = await projection.progress()
        gate.set()
        await settled(bus, projection)
        after = await projection.progress()

    assert (before.indexed_revision, before.ready, before.last_revision) == (0, False, 6)
    assert (after.indexed_revision, after.ready, after.pending) == (6, True, 0)


async def test_progress_can_be_read_from_outside(bus: Bus, tmp_path: Path) -> None:
    bucket = await bus.key_value("projections", max_bytes=16 * 1024 * 1024)
    async with hosted(bus, tmp_path / "p", Disk()) as projection, asyncio.timeout(SECONDS):
        async for entry in bucket.watch():
            assert entry.value is not None
            read = events_pb2.ProjectionProgress.FromString(entry.value)
            break

        assert (read.projection, read.store_id) == ("model", (await projection.progress()).store_id)


async def test_an_empty_log_is_ready_at_once(bus: Bus, tmp_path: Path) -> None:
    async with hosted(bus, tmp_path / "p", Disk()) as projection:
        assert projection.ready
        assert await projection.wait_for(0, 0)


async def test_a_restart_goes_on_with_the_same_store(bus: Bus, tmp_path: Path) -> None:
    disk = Disk()
    async with hosted(bus, tmp_path / "p", disk) as projection:
        await write(bus, "a")
        await settled(bus, projection)
    applied = len(disk.batches)
    await write(bus, "b")

    async with hosted(bus, tmp_path / "p", disk) as projection:
        await settled(bus, projection)

        assert len(disk.stores) == 1
        assert sum(disk.batches[applied:]) == 1
        assert projection.store.model.held == (await rebuilt(bus)).held


async def test_a_record_that_cannot_be_applied_is_given_up_with_its_reason_and_the_rest_goes_on(
    bus: Bus, tmp_path: Path
) -> None:
    disk = Disk()

    def refuse(record: PageRecord) -> None:
        if record.body == b"poison":
            raise ValueError("cannot read this")

    disk.refuse = refuse
    for number in range(20):
        await write(bus, f"p{number}", "poison" if number == 7 else "fine")

    async with hosted(bus, tmp_path / "p", disk) as projection:
        await settled(bus, projection)
        progress = await projection.progress()

        assert progress.dead_letters == 1
        assert len(await held_slugs(projection.store.held())) == 19
        letter = await dead_letter(bus, f"model-{progress.store_id}")
        assert (letter.revision, letter.tries, letter.reason) == (8, 5, "ValueError: cannot read this")
        assert events_pb2.PageRecord.FromString(letter.record).slug == "p7"


async def test_a_message_that_is_no_record_is_given_up(bus: Bus, tmp_path: Path) -> None:
    await bus.connection.request("brain.pages.default.garbage", b"\xff\xff")
    await bus.connection.request("brain.pages.default.elsewhere", b"")
    await write(bus, "a")

    async with hosted(bus, tmp_path / "p", Disk()) as projection:
        await settled(bus, projection)

        assert (await projection.progress()).dead_letters == 2
        assert await held_slugs(projection.store.held()) == {"a"}


async def test_an_engine_that_is_away_costs_no_tries(bus: Bus, tmp_path: Path) -> None:
    disk, refusals = Disk(), iter(range(3))

    def away(_: PageRecord) -> None:
        if next(refusals, None) is not None:
            raise Unavailable("PEER_UNAVAILABLE", "the engine is away")

    disk.refuse = away
    async with hosted(bus, tmp_path / "p", disk) as projection:
        await write(bus, "a")
        await settled(bus, projection)

        assert (await projection.progress()).dead_letters == 0
        assert projection.store.model.held == (await rebuilt(bus)).held


async def test_a_rebuild_equals_what_was_built_step_by_step_and_serves_from_then_on(bus: Bus, tmp_path: Path) -> None:
    disk = Disk()
    async with hosted(bus, tmp_path / "p", disk) as projection:
        for number in range(30):
            await write(bus, f"p{number % 10}", f"v{number}\n[[p{number % 7}]]")
        await settled(bus, projection)
        old, seen = projection.store, []

        async def report(done: int, total: int) -> None:
            seen.append((done, total))

        result = await projection.rebuild("job-1", report)
        again = await projection.rebuild("job-1", report)

        assert again == result
        assert result.pages == 10
        assert seen[-1] == (10, 10)
        assert projection.store.model is disk.stores[result.store_id]
        assert projection.store.model.held == old.model.held
        await until(lambda: old.closed)
        await write(bus, "p0", "later")
        await settled(bus, projection)
        assert projection.store.model.held == (await rebuilt(bus)).held
        assert sorted(path.name for path in (tmp_path / "p").iterdir()) == sorted([result.store_id, "current.json"])

    async with hosted(bus, tmp_path / "p", disk) as projection:
        assert await projection.rebuild("job-1", report) == result
        assert projection.store.model is disk.stores[result.store_id]


async def test_an_old_store_stays_open_while_somebody_reads_from_it(bus: Bus, tmp_path: Path) -> None:
    async with hosted(bus, tmp_path / "p", Disk()) as projection:
        await write(bus, "a")
        with projection.use() as store:
            await projection.rebuild("job", ignore)
            assert not store.closed

            assert projection.store is not store
        await until(lambda: store.closed)


async def test_two_callers_of_one_job_share_one_rebuild_and_a_caller_that_leaves_does_not_end_it(
    bus: Bus, tmp_path: Path
) -> None:
    disk, gate = Disk(), asyncio.Event()
    async with hosted(bus, tmp_path / "p", disk) as projection:
        await write(bus, "a")
        await settled(bus, projection)
        disk.pause = gate_of(gate)
        first = asyncio.create_task(projection.rebuild("job", ignore))
        await until(lambda: len(disk.stores) == 2)
        second = asyncio.create_task(projection.rebuild("job", ignore))
        first.cancel()
        await asyncio.wait({first})
        assert (await projection.progress()).rebuilding
        gate.set()
        result = await asyncio.wait_for(second, SECONDS)

    assert set(disk.stores) >= {result.store_id}
    assert len(disk.stores) == 2


async def test_a_cancelled_rebuild_leaves_nothing_and_the_old_store_serving(bus: Bus, tmp_path: Path) -> None:
    disk, gate = Disk(), asyncio.Event()
    async with hosted(bus, tmp_path / "p", disk) as projection:
        await write(bus, "a")
        await settled(bus, projection)
        before = projection.store
        disk.pause = gate_of(gate)
        rebuilding = asyncio.create_task(projection.rebuild("job", ignore))
        await until(lambda: len(disk.stores) == 2)

        assert await projection.cancel_rebuild("job")
        assert not await projection.cancel_rebuild("job")
        with pytest.raises(Conflict):
            await rebuilding

        gate.set()
        await write(bus, "b")
        await settled(bus, projection)
        assert projection.store is before
        assert len([path for path in (tmp_path / "p").iterdir() if path.is_dir()]) == 1
        assert projection.store.model.held == (await rebuilt(bus)).held


async def test_a_rebuild_under_writes_loses_none_of_them(bus: Bus, tmp_path: Path) -> None:
    async with hosted(bus, tmp_path / "p", Disk()) as projection:
        await write(bus, "p0")

        async def writer(worker: int) -> None:
            for number in range(40):
                await write(bus, f"w{worker}/{number % 5}", f"v{number}")

        async with asyncio.TaskGroup() as tasks:
            for worker in range(4):
                tasks.create_task(writer(worker))
            tasks.create_task(projection.rebuild("job", ignore))
        await settled(bus, projection)

        assert projection.store.model.held == (await rebuilt(bus)).held


@pytest.mark.parametrize("running", [True, False])
async def test_a_projection_whose_durable_is_gone_is_built_anew(bus: Bus, tmp_path: Path, *, running: bool) -> None:
    disk = Disk()
    async with hosted(bus, tmp_path / "p", disk) as projection:
        await write(bus, "a")
        await settled(bus, projection)
        durable = f"model-{(await projection.progress()).store_id}"
        if running:
            await delete_consumer(bus.connection, "PAGES", durable)
            await until(lambda: len(disk.stores) == 2)
            await write(bus, "b")
            await settled(bus, projection)
            assert projection.store.model.held == (await rebuilt(bus)).held
    if not running:
        await delete_consumer(bus.connection, "PAGES", durable)
        async with hosted(bus, tmp_path / "p", disk) as projection:
            await settled(bus, projection)
            assert len(disk.stores) == 2
            assert projection.store.model.held == (await rebuilt(bus)).held
    assert await consumer_state(bus.connection, "PAGES", durable) is None


async def test_what_a_death_left_of_a_rebuild_is_removed_at_the_next_start(bus: Bus, tmp_path: Path) -> None:
    async with hosted(bus, tmp_path / "p", Disk()):
        pass
    (tmp_path / "p" / "abandoned").mkdir()

    async with hosted(bus, tmp_path / "p", Disk()):
        assert not (tmp_path / "p" / "abandoned").exists()


async def test_a_sweep_repairs_exactly_what_differs(bus: Bus, tmp_path: Path) -> None:
    async with hosted(bus, tmp_path / "p", Disk()) as projection:
        for slug in "abcd":
            await write(bus, slug, f"{slug}\nline")
        await write(bus, "d", make=lambda r: replace(r, kind=RecordKind.DELETE, body=None))
        await settled(bus, projection)
        model = projection.store.model
        model.remove_older("default:a", 99)
        stale = [
            Document(("name", "default:b"), "default:b", 0, "old"),
            Document(("name", "default:d"), "default:d", 1, "d"),
        ]
        for document in [*stale, Document(("name", "default:ghost"), "default:ghost", 3, "ghost")]:
            model.held[document.key] = document

        assert await projection.sweep() == 4
        assert model.held == (await rebuilt(bus)).held
        assert await projection.sweep() == 0


async def test_a_killed_nats_server_interrupts_nothing_for_good(
    nats_server: NatsAddress, bus: Bus, tmp_path: Path
) -> None:
    async with hosted(bus, tmp_path / "p", Disk()) as projection:
        await write(bus, "a")
        await settled(bus, projection)
        os.kill(nats_server.pid, signal.SIGKILL)
        for attempt in range(100):
            try:
                await write(bus, "b")
                break
            except Unavailable:
                assert attempt < 99
        await settled(bus, projection)

        assert projection.store.model.held == (await rebuilt(bus)).held


async def test_a_nats_server_that_is_killed_again_and_again_under_writes_stalls_nothing(
    nats_server: NatsAddress, bus: Bus, tmp_path: Path
) -> None:
    """Found by hand: the server forgot deliveries, and the runner waited for ever for their acknowledgement."""
    accepted = 0
    more = asyncio.Event()

    async def keep_writing() -> None:
        nonlocal accepted
        while True:
            with suppress(Unavailable):
                await write(bus, f"page-{accepted % 40}", f"text {accepted}")
                accepted += 1
                more.set()

    async with hosted(bus, tmp_path / "p", Disk(), batch_max=4) as projection:
        writer = asyncio.create_task(keep_writing())
        for _ in range(5):
            wanted = accepted + 30
            while accepted < wanted:
                await asyncio.wait_for(more.wait(), 10)
                more.clear()
            os.kill(running_server(), signal.SIGKILL)
        writer.cancel()
        with suppress(asyncio.CancelledError):
            await writer
        # An acknowledgement in flight when the server died is waited for as long as any request: 5 s.
        assert await projection.wait_for(await last_revision(bus), 20)

        assert projection.store.model.held == (await rebuilt(bus)).held


def running_server() -> int:
    """The pid of the NATS server that this process has running now."""
    children = [pid for task in Path("/proc/self/task").glob("*/children") for pid in task.read_text().split()]
    for pid in children:
        with suppress(FileNotFoundError, ProcessLookupError):
            if b"nats-server" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return int(pid)
    raise AssertionError("no NATS server runs")


async def last_revision(bus: Bus) -> int:
    """The log's last revision, as soon as the server answers again."""
    for _ in range(100):
        with suppress(Unavailable):
            return await bus.page_log.last_revision()
    raise AssertionError("the server did not come back")


async def ignore(_done: int, _total: int) -> None:
    """Reports to nobody."""


def gate_of(gate: asyncio.Event) -> Callable[[], Awaitable[None]]:
    async def pause() -> None:
        await gate.wait()

    return pause


async def held_slugs(rows: AsyncIterator[tuple[PageKey, PageId, int]]) -> set[str]:
    return {key.slug async for key, _, _ in rows}


async def dead_letter(bus: Bus, durable: str) -> events_pb2.DeadLetter:
    body = orjson.dumps({"last_by_subj": f"brain.dead.{durable}"})
    message = read_message(await bus.connection.request("$JS.API.STREAM.MSG.GET.DEAD_LETTERS", body))
    assert message is not None
    return events_pb2.DeadLetter.FromString(base64.b64decode(message["data"]))
