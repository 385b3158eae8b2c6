"""Three servers, one of which fails in every way that servers do: writers and followers go on, and nothing is lost."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.runtime.bus import Bus
from tests.integration.nats_cluster.cluster import Cluster, three_servers
from tests.integration.nats_cluster.writers import writing


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with three_servers(tmp_path) as servers:
        yield servers


@pytest.fixture
async def bus(cluster: Cluster) -> AsyncIterator[Bus]:
    async with cluster.bus("ingest") as opened:
        yield opened


async def test_a_killed_leader_is_followed_by_another_and_catches_up_when_it_returns(
    cluster: Cluster, bus: Bus
) -> None:
    async with bus.leases.hold("vault.default", holder="t") as lease, writing(bus) as writers:
        leader = await cluster.leader(bus)
        await leader.kill()
        await writers.go_on()
        await lease.renew()
        await leader.start()
        await cluster.caught_up(bus)
        await writers.go_on()
        # Now the other two: what the one that returned says must be whole.
        second = await cluster.leader(bus)
        await second.kill()
        await writers.go_on()
        assert await writers.lost() == []


async def test_an_orderly_stop_hands_the_leadership_over(cluster: Cluster, bus: Bus) -> None:
    async with writing(bus) as writers:
        leader = await cluster.leader(bus)
        os.kill(leader.pid, signal.SIGUSR2)  # lame duck mode, as `nats-server --signal ldm`
        await writers.go_on()
        assert await cluster.leader(bus) is not leader
        await leader.kill(signal.SIGTERM)
        await writers.go_on()
        assert await writers.lost() == []


async def test_a_leader_that_stands_still_is_left_and_does_no_harm_when_it_wakes(cluster: Cluster, bus: Bus) -> None:
    async with writing(bus) as writers:
        leader = await cluster.leader(bus)
        os.kill(leader.pid, signal.SIGSTOP)
        await writers.go_on()
        os.kill(leader.pid, signal.SIGCONT)
        await cluster.caught_up(bus)
        await writers.go_on()
        assert await writers.lost() == []


async def test_a_leader_that_cannot_store_is_left_and_heals_by_a_restart(cluster: Cluster, bus: Bus) -> None:
    async with writing(bus) as writers:
        leader = await cluster.leader(bus)
        # The kernel refuses every write beyond 64 kB of any file, as a full disk would.
        resource.prlimit(leader.pid, resource.RLIMIT_FSIZE, (64 * 1024, resource.RLIM_INFINITY))
        async with asyncio.timeout(60):
            while await cluster.leader(bus) is leader:  # until it has written so much, and has been left
                await writers.go_on(more=100)
        await leader.kill(signal.SIGTERM)
        await leader.start()
        await cluster.caught_up(bus)
        await writers.go_on()
        assert await writers.lost() == []


async def test_queues_and_buckets_outlive_their_leader_and_double_nothing(cluster: Cluster) -> None:
    async with cluster.bus("ingest"), cluster.bus("jobs") as bus:
        queue = await bus.work_queue("JOBS", subjects="brain.jobs.>")
        bucket = await bus.key_value("jobs", max_bytes=1024 * 1024)
        revision = await bucket.put("counter", b"0", revision=0)

        async def count(rounds: range) -> None:
            nonlocal revision
            for number in rounds:
                await queue.publish("brain.jobs.x", str(number).encode(), message_id=str(number))
                # A write that was stored and not acknowledged would be refused the second time.
                revision = await bucket.put("counter", str(number).encode(), revision=revision)

        await count(range(20))
        going_on = asyncio.create_task(count(range(20, 200)))
        await (await cluster.leader(bus, "KV_jobs")).kill()
        await going_on

        assert await queue.depth() == 200
        entry = await bucket.get("counter")
        assert entry is not None
        assert entry.value == b"199"
