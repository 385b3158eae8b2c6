"""Kill -9 of a worker's process in the middle of a job: nothing is lost and nothing is done twice."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from services.domain.errors import Unavailable
from services.jobs.states import State
from services.runtime.bus import Bus
from services.runtime.consumers import redeliver_at_once
from services.runtime.nats_child import NatsAddress
from tests.integration.jobs.owner import Owner
from tests.integration.jobs.parts import Parts
from tests.integration.jobs.service import service_process


async def test_jobs_survive_workers_that_are_killed_over_them(
    parts: Parts, bus: Bus, nats_server: NatsAddress, owner_and_address: tuple[Owner, str], tmp_path: Path
) -> None:
    owner, owner_address = owner_and_address
    owner.at_once = False

    for number, name in enumerate(("graph", "lexical", "vectors"), start=1):
        job = await parts.submit("rebuild", f'{{"projection":"{name}"}}')
        async with service_process(nats_server.url, owner_address, tmp_path) as process:
            async with asyncio.timeout(30):
                await owner.until_began(number)
            owner.advance(f"job-{number}", 3)
            await process.kill()
        assert (await parts.asking.get(job.job_id)).state is State.ACTIVE
        # The server would find out by itself after 30 s.
        await redeliver_at_once(bus.connection, "JOBS", "workers")
        async with parts.working():
            await parts.until(job.job_id, lambda seen: seen.run == 2)
            owner.advance(f"job-{number}")
            done = await parts.until(job.job_id, State.COMPLETED)
            await parts.emptied()
        assert (done.attempts, done.stalls) == (1, 1)

    assert owner.began == owner.completed == ["job-1", "job-2", "job-3"]


async def test_a_process_that_is_told_to_stop_hands_its_job_on_at_once(
    parts: Parts, nats_server: NatsAddress, owner_and_address: tuple[Owner, str], tmp_path: Path
) -> None:
    owner, owner_address = owner_and_address
    owner.at_once = False
    job = await parts.submit("embed")
    async with service_process(nats_server.url, owner_address, tmp_path) as process:
        async with asyncio.timeout(30):
            await owner.until_began(1)
        assert await process.stop() == 0

    owner.advance("job-1")
    async with parts.working():
        done = await parts.until(job.job_id, State.COMPLETED)

    assert (done.attempts, done.stalls) == (1, 0)
    assert owner.began == owner.completed == ["job-1"]


async def test_a_job_survives_the_queue_server_that_is_killed_under_it(
    parts: Parts, nats_server: NatsAddress, owner_and_address: tuple[Owner, str]
) -> None:
    owner, _ = owner_and_address
    owner.at_once = False
    job = await parts.submit("embed")
    async with parts.working():
        await owner.until(began=1)
        os.kill(nats_server.pid, signal.SIGKILL)
        owner.advance("job-1")
        async with asyncio.timeout(30):
            while await state_of(parts, job.job_id) is not State.COMPLETED:
                pass
        second = await parts.submit("embed")
        await owner.until(began=2)
        await parts.asking.cancel(second.job_id)
        await parts.until(second.job_id, State.CANCELLED)

    done = await parts.asking.get(job.job_id)
    assert (owner.began, owner.completed) == (["job-1", "job-2"], ["job-1"])
    assert done.attempts == 1
    assert done.stalls == 0


async def state_of(parts: Parts, job_id: int) -> State | None:
    """The job's state; None while the store is away."""
    try:
        return (await parts.asking.get(job_id)).state
    except Unavailable:
        return None
