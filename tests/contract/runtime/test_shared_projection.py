"""Stores that several processes share: who begins one, who follows whom, and what a death or a pause leaves."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from services.domain.errors import Conflict, InvalidArgument, NotReady, Unavailable
from services.runtime.bus import Bus, open_bus
from services.runtime.consumers import consumer_state, delete_consumer
from services.runtime.nats_child import NatsAddress, nats_child
from services.runtime.projection_stores import Stores
from services.runtime.store_catalog import Pointer
from tests.contract.runtime.projections import QUICK, SECONDS, Projection, describe, running, settled, until, write
from tests.model_store import Disk, ModelStore, SharedCatalog, rebuilt


@pytest.fixture
def catalog() -> SharedCatalog:
    return SharedCatalog(Disk())


@contextlib.asynccontextmanager
async def replicas(
    bus: Bus, catalog: SharedCatalog, count: int, *, target: SharedCatalog | None = None
) -> AsyncIterator[list[Projection]]:
    """So many processes on the same stores, all of them with a store to serve from; `target` is model://there."""
    async with contextlib.AsyncExitStack() as stack:
        made = [await stack.enter_async_context(running(bus, catalog, target=target)) for _ in range(count)]
        for projection in made:
            await until(partial(is_ready, projection))
        yield made


async def test_processes_that_start_at_once_begin_one_store(bus: Bus, catalog: SharedCatalog) -> None:
    async with contextlib.AsyncExitStack() as stack:
        made = await asyncio.gather(*(stack.enter_async_context(running(bus, catalog)) for _ in range(4)))
        await write(bus, "a")
        for projection in made:
            await until(partial(is_ready, projection))
            await settled(bus, projection)

        assert catalog.pointer is not None
        assert list(catalog.disk.stores) == [catalog.pointer.store_id]
        assert {(await projection.progress()).store_id for projection in made} == {catalog.pointer.store_id}


async def test_who_loses_the_race_for_the_first_store_removes_what_it_made_and_joins(
    bus: Bus, catalog: SharedCatalog
) -> None:
    winner = await stores(bus, catalog).make()
    await winner.runner.store.close()
    loser = describe(bus, catalog)
    catalog.before_opening = lambda: Pointer(store_id=winner.store_id, ready_from=0)
    await loser.start()
    run = asyncio.create_task(loser.run())
    await until(lambda: loser.ready)

    assert (await loser.progress()).store_id == winner.store_id
    assert list(catalog.disk.stores) == [winner.store_id]
    run.cancel()
    await asyncio.wait({run})
    await loser.close()


async def test_all_replicas_share_the_work_of_one_durable(bus: Bus, catalog: SharedCatalog) -> None:
    async with replicas(bus, catalog, 3) as made:
        async with asyncio.TaskGroup() as tasks:
            for number in range(60):
                tasks.create_task(write(bus, f"p{number % 20}", f"v{number}"))
        for projection in made:
            await settled(bus, projection)

        assert made[0].store.model is made[2].store.model
        assert made[0].store.model.held == (await rebuilt(bus)).held


async def test_a_replica_that_joins_late_is_ready_at_once(bus: Bus, catalog: SharedCatalog) -> None:
    async with replicas(bus, catalog, 1) as made:
        await write(bus, "a")
        await settled(bus, made[0])
        late = describe(bus, catalog)
        await late.start()

        assert late.ready
        assert late.indexed_revision == await bus.page_log.last_revision()
        await late.close()


async def test_no_replica_ever_resets_the_durable_that_all_pull_from(bus: Bus, catalog: SharedCatalog) -> None:
    """Two that reset one durable, each under the other, found no answer to their acknowledgements and did it again."""
    gate, resets = asyncio.Event(), asyncio.Event()
    watched = "$JS.API.CONSUMER.RESET.>"
    await bus.connection.subscribe(watched, lambda _: resets.set(), messages_max=64, bytes_max=1_000_000)

    async def closed() -> None:
        await gate.wait()

    async with replicas(bus, catalog, 1) as made:
        catalog.disk.pause = closed
        for slug in "abc":
            await write(bus, slug)
        await until(lambda: bool(catalog.disk.batches))
        async with running(bus, catalog) as late:
            gate.set()
            await settled(bus, late)
        await settled(bus, made[0])

    assert not resets.is_set()


async def test_a_rebuild_of_one_replica_is_followed_by_all_and_leaves_one_store(
    bus: Bus, catalog: SharedCatalog
) -> None:
    async with replicas(bus, catalog, 3) as made:
        for number in range(20):
            await write(bus, f"p{number}")
        first, second = await asyncio.gather(made[0].rebuild("job", ignore), made[1].rebuild("job", ignore))
        assert first == second
        for projection in made:
            await until(partial(serves, projection, catalog))
        await write(bus, "later")
        for projection in made:
            await settled(bus, projection)

        assert made[2].store.model.held == (await rebuilt(bus)).held
        await until(lambda: list(catalog.disk.stores) == [first.store_id])


async def test_a_rebuild_asked_of_another_replica_is_cancelled_by_it(bus: Bus, catalog: SharedCatalog) -> None:
    gate = asyncio.Event()

    async def closed() -> None:
        await gate.wait()

    async with replicas(bus, catalog, 2) as made:
        await write(bus, "a")
        await settled(bus, made[0])
        catalog.disk.pause = closed
        seen: list[tuple[int, int]] = []

        async def report(done: int, total: int) -> None:
            seen.append((done, total))

        at_work = asyncio.create_task(made[0].rebuild("job", ignore))
        await until(lambda: len(catalog.disk.stores) == 2)
        watching = asyncio.create_task(made[1].rebuild("job", report))
        await until(lambda: (0, 1) in seen)
        assert (await made[1].progress()).rebuilding
        watching.cancel()
        await asyncio.wait({watching})

        assert await made[1].cancel_rebuild("job")
        with pytest.raises(Conflict):
            await asyncio.wait_for(at_work, SECONDS)
        gate.set()
        await until(lambda: len(catalog.disk.stores) == 1)


async def test_a_rebuild_goes_on_in_another_replica_with_what_a_dead_one_had_filled(
    bus: Bus, catalog: SharedCatalog
) -> None:
    async with replicas(bus, catalog, 1) as made:
        for number in range(10):
            await write(bus, f"p{number}")
        await settled(bus, made[0])
        begun = await stores(bus, catalog).make(stores(bus, catalog).store_of("job"))
        await begun.runner.store.close()

        result = await made[0].rebuild("job", ignore)

        assert result.store_id == begun.store_id
        assert made[0].store.model.held == (await rebuilt(bus)).held


async def test_what_a_death_left_is_removed_by_the_next_that_starts(bus: Bus, catalog: SharedCatalog) -> None:
    serving, left = await stores(bus, catalog).make(), await stores(bus, catalog).make()
    await serving.runner.store.close()
    await left.runner.store.close()
    catalog.pointer = Pointer(store_id=serving.store_id, ready_from=serving.ready_from)
    async with replicas(bus, catalog, 1):
        await until(lambda: left.store_id not in catalog.disk.stores)

    assert await consumer_state(bus.connection, "PAGES", f"model-{left.store_id}") is None


async def test_replicas_whose_durable_is_gone_go_on_with_one_new_store(bus: Bus, catalog: SharedCatalog) -> None:
    async with replicas(bus, catalog, 3) as made:
        await write(bus, "a")
        await settled(bus, made[0])
        assert catalog.pointer is not None
        gone = catalog.pointer.store_id
        await delete_consumer(bus.connection, "PAGES", f"model-{gone}")
        await until(lambda: catalog.pointer is not None and catalog.pointer.store_id != gone)
        await write(bus, "b")
        for projection in made:
            await until(partial(serves, projection, catalog))
            await settled(bus, projection)

        assert made[1].store.model.held == (await rebuilt(bus)).held


async def test_an_engine_that_is_away_at_the_start_is_waited_for_and_named(bus: Bus, catalog: SharedCatalog) -> None:
    catalog.away = True
    async with running(bus, catalog) as projection:
        before = await projection.progress()
        catalog.away = False
        await until(lambda: projection.ready)
        after = await projection.progress()

    assert (before.ready, before.waiting_for) == (False, "the engine is away")
    assert (after.ready, after.waiting_for) == (True, "")


async def test_a_death_with_messages_in_hand_stalls_the_others_for_no_longer_than_the_durable_waits(
    bus: Bus, catalog: SharedCatalog
) -> None:
    async with replicas(bus, catalog, 1) as made:
        assert catalog.pointer is not None
        durable = f"model-{catalog.pointer.store_id}"
        info = await bus.connection.api(f"CONSUMER.INFO.PAGES.{durable}")
        assert isinstance(info["config"], dict)
        body = {"stream_name": "PAGES", "config": {**info["config"], "ack_wait": 1_000_000_000}, "action": "update"}
        await bus.connection.api(f"CONSUMER.CREATE.PAGES.{durable}.brain.pages.>", body)
        # Pulls of a process that takes messages and never says a word: they are in nobody's hand.
        inbox = bus.connection.new_inbox()
        taken = asyncio.Event()
        await bus.connection.subscribe(inbox, lambda _: taken.set(), messages_max=64, bytes_max=1_000_000)
        for _ in range(3):
            await bus.connection.publish(f"$JS.API.CONSUMER.MSG.NEXT.PAGES.{durable}", b'{"batch":4}', reply=inbox)
        for number in range(12):
            await write(bus, f"p{number}")

        assert await made[0].wait_for(await bus.page_log.last_revision(), 4 * SECONDS)
        assert taken.is_set()
        assert made[0].store.model.held == (await rebuilt(bus)).held


async def test_a_process_that_stood_still_for_longer_than_the_durable_waits_changes_nothing_that_lasts(
    bus: Bus, catalog: SharedCatalog
) -> None:
    async with replicas(bus, catalog, 1) as made:
        old = await write(bus, "a", "A")
        await settled(bus, made[0])
        asleep = await stores(bus, catalog).open(catalog.pointer or Pointer(store_id="", ready_from=0))
        await write(bus, "a", make=lambda record: replace(record, body=b"B\n[[c]]"))
        await settled(bus, made[0])

        # It wakes with the first revision in its hand, which it believes to be the newest.
        assert not await asleep.runner.applier.bring_up({old.key: old})
        assert made[0].store.model.held == (await rebuilt(bus)).held
        await asleep.runner.store.close()


async def test_a_move_to_another_engine_holds_what_the_log_holds_and_the_old_place_says_where(
    bus: Bus, catalog: SharedCatalog
) -> None:
    target = SharedCatalog(Disk())
    async with replicas(bus, catalog, 1, target=target) as made:
        for number in range(10):
            await write(bus, f"p{number}")
        result = await made[0].rebuild("move", ignore, to="model://there")
        await write(bus, "later")
        await settled(bus, made[0])

        assert made[0].store.model is target.disk.stores[result.store_id]
        assert made[0].store.model.held == (await rebuilt(bus)).held
        assert await made[0].rebuild("move", ignore, to="model://there") == result
        with pytest.raises(InvalidArgument, match="password"):
            await made[0].rebuild("other", ignore, to="model://me:secret@there")
        with pytest.raises(NotReady, match="moved to model://there"):
            await describe(bus, catalog).start()
    async with replicas(bus, target, 1) as made:
        assert made[0].store.model.held == (await rebuilt(bus)).held


async def test_a_move_goes_on_after_a_death_with_what_it_had_filled(bus: Bus, catalog: SharedCatalog) -> None:
    target = SharedCatalog(Disk())
    for number in range(10):
        await write(bus, f"p{number}")
    gate = asyncio.Event()

    async def closed() -> None:
        await gate.wait()

    target.disk.pause = closed
    async with replicas(bus, catalog, 1, target=target) as made:
        moving = asyncio.create_task(made[0].rebuild("move", ignore, to="model://there"))
        await until(lambda: bool(target.disk.batches))
    with pytest.raises(Conflict):
        await moving
    (begun,) = target.disk.stores
    gate.set()
    async with replicas(bus, catalog, 1, target=target) as made:
        result = await made[0].rebuild("move", ignore, to="model://there")

        assert result.store_id == begun
        assert made[0].store.model.held == (await rebuilt(bus)).held


async def test_the_log_has_an_id_that_stays_through_a_death_of_its_server(nats_server: NatsAddress, bus: Bus) -> None:
    first = await bus.log_id()
    await write(bus, "a")
    os.kill(nats_server.pid, signal.SIGKILL)
    async with asyncio.timeout(SECONDS):
        while True:
            with contextlib.suppress(Unavailable):
                await write(bus, "b")
                break

    assert await bus.log_id() == first


async def test_another_log_has_another_id(bus: Bus, tmp_path: Path) -> None:
    async with nats_child(tmp_path / "other") as address, open_bus(address.url, name="other") as other:
        assert await other.log_id() != await bus.log_id()


def stores(bus: Bus, catalog: SharedCatalog) -> Stores[ModelStore]:
    """What another process would have of these stores."""
    return Stores("model", bus, catalog, batch_max=16, retry_seconds=QUICK)


def is_ready(projection: Projection) -> bool:
    return projection.ready


def serves(projection: Projection, catalog: SharedCatalog) -> bool:
    """Whether a replica serves from the store that the pointer names."""
    pointer = catalog.pointer
    return pointer is not None and projection.store.model is catalog.disk.stores.get(pointer.store_id)


async def ignore(_done: int, _total: int) -> None:
    """Reports to nobody."""
