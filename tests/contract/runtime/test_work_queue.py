"""The queue's promises, kept by a real NATS server: at least once, nothing lost, nothing done twice at a time."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import pytest

from services.domain.errors import Unavailable
from services.runtime.bus import Bus, open_bus
from services.runtime.nats_child import NatsAddress
from services.runtime.work_queue import WorkQueue
from tests.contract.runtime.projections import SECONDS


@pytest.fixture
async def queue(bus: Bus) -> WorkQueue:
    return await bus.work_queue("JOBS", subjects="brain.jobs.>")


@pytest.fixture(autouse=True)
async def bounded() -> AsyncIterator[None]:
    """No test here waits for more than SECONDS for a message."""
    async with asyncio.timeout(4 * SECONDS):
        yield


async def test_each_message_goes_to_one_worker_and_is_gone_when_acknowledged(queue: WorkQueue) -> None:
    for number in range(20):
        await queue.publish("brain.jobs.default", b"%d" % number, message_id=f"m{number}")
    done: list[bytes] = []

    async def work() -> None:
        async with queue.worker() as worker:
            while len(done) < 20:
                for item in await worker.next():
                    await item.ack()
                    done.append(item.payload)

    workers = [asyncio.create_task(work()) for _ in range(3)]
    await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
    for task in workers:
        task.cancel()
    await asyncio.wait(workers)

    assert sorted(map(int, done)) == list(range(20))
    assert await queue.depth() == 0


async def test_the_same_id_is_one_message(queue: WorkQueue) -> None:
    first = await queue.publish("brain.jobs.default", b"a", message_id="one")
    again = await queue.publish("brain.jobs.default", b"a", message_id="one")

    assert first == again
    assert await queue.depth() == 1


async def test_a_message_given_back_comes_again_and_says_how_often(queue: WorkQueue) -> None:
    await queue.publish("brain.jobs.default", b"a", message_id="one")

    async with queue.worker() as worker:
        (first,) = await worker.next()
        await first.nak(delay_seconds=0.05)
        (second,) = await worker.next()
        await second.ack()

    assert (first.tries, second.tries) == (1, 2)


async def test_a_delayed_message_lets_others_pass(queue: WorkQueue) -> None:
    await queue.publish("brain.jobs.default", b"later", message_id="1")
    await queue.publish("brain.jobs.default", b"now", message_id="2")

    order: list[bytes] = []
    async with queue.worker() as worker:
        while len(order) < 2:
            (item,) = await worker.next()
            if item.payload == b"later" and item.tries == 1:
                await item.nak(delay_seconds=0.2)
                continue
            order.append(item.payload)
            await item.ack()

    assert order == [b"now", b"later"]


async def test_a_message_given_up_never_comes_again(queue: WorkQueue) -> None:
    await queue.publish("brain.jobs.default", b"bad", message_id="1")
    await queue.publish("brain.jobs.default", b"good", message_id="2")

    async with queue.worker() as worker:
        (bad,) = await worker.next()
        await bad.term()
        (good,) = await worker.next()
        await good.ack()

    assert good.payload == b"good"
    assert await queue.depth() == 0


async def test_a_worker_that_leaves_gives_back_what_it_did_not_end(queue: WorkQueue) -> None:
    for number in range(4):
        await queue.publish("brain.jobs.default", b"%d" % number, message_id=f"m{number}")

    async with queue.worker(batch_max=4) as worker:
        (held,) = await worker.next()
    async with queue.worker() as worker:
        got = [(await worker.next())[0] for _ in range(4)]
        for item in got:
            await item.ack()

    assert sorted(item.payload for item in got) == [b"0", b"1", b"2", b"3"]
    assert held.payload in {item.payload for item in got}


async def test_what_was_accepted_survives_a_killed_server(queue: WorkQueue, nats_server: NatsAddress) -> None:
    await queue.publish("brain.jobs.default", b"a", message_id="1")
    os.kill(nats_server.pid, signal.SIGKILL)

    async with queue.worker() as worker:
        while True:
            try:
                (item,) = await worker.next()
                await item.ack()
                break
            except Unavailable:
                continue

    assert item.payload == b"a"


async def test_another_process_takes_over_what_is_in_the_queue(queue: WorkQueue, nats_server: NatsAddress) -> None:
    await queue.publish("brain.jobs.default", b"a", message_id="1")

    async with open_bus(nats_server.url, name="other") as other:
        same = await other.work_queue("JOBS", subjects="brain.jobs.>")
        async with same.worker() as worker:
            (item,) = await worker.next()
            await item.ack()

    assert await queue.depth() == 0
