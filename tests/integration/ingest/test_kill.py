"""The log's server is killed without a word: nothing acknowledged is lost, and no request is stored twice."""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from pathlib import Path

from services.domain.errors import Unavailable
from services.domain.records import PageKey
from services.runtime.bus import Bus
from services.runtime.nats_child import NatsAddress
from tests.integration.ingest.service import Client


def server_pid(tmp_path: Path) -> int:
    """The process id of the server that runs now; the address knows the first one only."""
    return int((tmp_path / "nats" / "server.pid").read_text())


async def kill_server(tmp_path: Path, client: Client) -> None:
    """Kills the server and returns when its successor answers."""
    os.kill(server_pid(tmp_path), signal.SIGKILL)
    async with asyncio.timeout(20):
        while True:
            try:
                await client.put("probe", str(uuid.uuid4()), overwrite=True)
                return
            except Unavailable:
                continue  # the service itself waits between its tries


async def test_a_request_sent_again_is_one_revision_before_and_after_a_kill(
    nats_server: NatsAddress, client: Client, tmp_path: Path
) -> None:
    first = await client.put("plan", "one", request_id="r1")
    assert await client.put("plan", "one", request_id="r1") == first
    second = await client.put("plan", "two", request_id="r2", if_revision=first.revision)
    await kill_server(tmp_path, client)
    assert await client.put("plan", "two", request_id="r2", if_revision=first.revision) == second
    assert await client.put("plan", "one", request_id="r1") == first
    assert await client.versions("plan") == [second.revision, first.revision]
    assert await client.body("plan") == b"two"


async def test_writers_go_through_kills_without_losing_or_doubling_a_write(
    nats_server: NatsAddress, bus: Bus, client: Client, tmp_path: Path
) -> None:
    acknowledged: dict[str, dict[str, int]] = {}
    done = asyncio.Event()
    progress = asyncio.Event()

    async def writer(slug: str) -> None:
        while not done.is_set():
            request_id = str(uuid.uuid4())
            for _ in range(5):
                try:
                    result = await client.put(slug, request_id, request_id=request_id, overwrite=True)
                except Unavailable:
                    continue  # the same request again, as a client does
                acknowledged[slug][request_id] = result.revision
                progress.set()
                break

    async with asyncio.TaskGroup() as tasks:
        for number in range(8):
            acknowledged[f"page-{number}"] = {}
            tasks.create_task(writer(f"page-{number}"))
        for _ in range(2):
            before = sum(map(len, acknowledged.values()))
            async with asyncio.timeout(20):
                while sum(map(len, acknowledged.values())) < before + 40:
                    progress.clear()
                    await progress.wait()
            await kill_server(tmp_path, client)
        done.set()
    for slug, revisions in acknowledged.items():
        assert len(set(revisions.values())) == len(revisions), "two requests got one revision"
        newest = dict(sorted(revisions.items(), key=lambda item: item[1])[-32:])
        kept = {r.request_id: r.revision for r in await bus.page_log.kept(PageKey("default", slug))}
        assert newest.items() <= kept.items(), "an acknowledged write is missing or stored as another revision"


async def test_an_import_goes_on_after_a_kill_where_it_stopped(
    nats_server: NatsAddress, client: Client, tmp_path: Path
) -> None:
    files = [(f"notes/{number}.md", f"# Note {number}\n".encode()) for number in range(300)]
    half = await client.import_files(files[:150], import_id="i1")
    await kill_server(tmp_path, client)
    whole = await client.import_files(files, import_id="i1", batch=50)
    assert [(r.slug, r.revision, r.status) for r in whole[:150]] == [(r.slug, r.revision, r.status) for r in half]
    assert len({result.revision for result in whole}) == 300
