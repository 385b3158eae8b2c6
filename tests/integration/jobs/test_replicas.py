"""Work on stores of which each replica has its own: every replica does it, and the job is done when all have."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from services.domain.errors import Unavailable
from services.jobs.states import State
from services.runtime.bus import Bus
from services.runtime.replicas import open_replicas
from tests.integration.jobs.owner import TOTAL, Owner, open_owner
from tests.integration.jobs.parts import Parts, open_parts

NAME = "owners.test"
"""Leads to both owners, as a headless Service of Kubernetes leads to its pods."""


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
async def owners(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Owner, Owner]]:
    real = socket.getaddrinfo

    def look_up(host: Any, *arguments: Any, **options: Any) -> Any:
        if host == NAME:  # this machine has no name that leads to two addresses
            return [e for address in ("127.0.0.2", "127.0.0.1") for e in real(address, *arguments, **options)]
        return real(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    async with (
        open_owner(tmp_path, f"127.0.0.1:{port}") as (first, _),
        open_owner(tmp_path, f"127.0.0.2:{port}") as (second, _),
    ):
        yield first, second


@pytest.fixture
async def parts(bus: Bus, owners: tuple[Owner, Owner], port: int) -> AsyncIterator[Parts]:
    async with open_parts(bus, f"dns:///{NAME}:{port}") as opened:
        yield opened


async def test_each_replica_rebuilds_its_own_store_and_progress_is_of_all(
    parts: Parts, owners: tuple[Owner, Owner]
) -> None:
    first, second = owners
    job = await parts.submit("rebuild", '{"projection":"graph"}')

    async with parts.working():
        done = await parts.until(job.job_id, State.COMPLETED)
        await parts.emptied()

    assert first.completed == second.completed == [f"job-{job.job_id}"]
    assert json.loads(done.result)["projections"]["graph"]["finished"] == 2 * TOTAL
    assert (done.finished, done.total) == (2 * TOTAL, 2 * TOTAL)


async def test_a_stream_that_breaks_is_joined_again_without_doing_anything_twice(
    parts: Parts, owners: tuple[Owner, Owner]
) -> None:
    first, second = owners
    second.at_once = False
    job = await parts.submit("rebuild", '{"projection":"graph"}')

    async with parts.working():
        await second.until(joined=1)
        second.break_streams()
        await second.until(joined=2)
        second.advance(f"job-{job.job_id}")
        await parts.until(job.job_id, State.COMPLETED)

    assert first.began == second.began == [f"job-{job.job_id}"]


async def test_a_cancelled_job_ends_at_every_replica(parts: Parts, owners: tuple[Owner, Owner]) -> None:
    first, second = owners
    first.at_once = second.at_once = False
    job = await parts.submit("rebuild", '{"projection":"graph"}')

    async with parts.working():
        await first.until(began=1)
        await parts.asking.cancel(job.job_id)
        await parts.until(job.job_id, State.CANCELLED)

    assert first.works[f"job-{job.job_id}"].cancelled


async def test_a_name_that_leads_nowhere_is_somebody_who_is_away() -> None:
    async with open_replicas("dns:///nobody.invalid:1", service="brain.v1.GraphService", make_stub=repr) as replicas:
        with pytest.raises(Unavailable, match=r"nobody\.invalid"):
            await replicas.stubs()
