"""A server that dies, comes back, refuses or is another: what was acknowledged stays, and nobody has to help."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from services.domain.errors import BrainError, DeadlineExceeded, InvalidArgument, Unavailable
from services.graph.adapters.neo4j.connection import Connection, refuse_unsupported
from services.graph.adapters.neo4j.store import Neo4jGraphStore
from services.graph.ports import SlugChange
from tests.contract.graph.engines import connect
from tests.contract.graph.pages import EVERYTHING, link, page, pid, targets_of
from tests.engines.neo4j import Neo4jServer, running
from tests.engines.neo4j.server import address_of

T = TypeVar("T")

WRITERS = 4
AWAY_SECONDS_MAX = 10.0
BACK_SECONDS_MAX = 60.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neo4jServer]:
    """A server of this file's own: it is killed."""
    with running(tmp_path_factory.mktemp("killed")) as started:
        yield started


async def test_what_was_acknowledged_outlives_a_kill_and_reads_and_writes_go_on_by_themselves(
    server: Neo4jServer,
) -> None:
    store = Neo4jGraphStore(connect(server.url), "contract/killed")
    acknowledged: list[str] = []
    refused: list[BrainError] = []

    async def write(writer: int) -> None:
        for number in range(10_000):
            slug = f"w{writer}/{number}"
            try:
                await store.apply([page(slug, link(f"w{writer}/{number - 1}")), page(f"{slug}-b", link(slug))])
            except BrainError as error:
                refused.append(error)
                return
            acknowledged.append(slug)

    writers: list[asyncio.Task[None]] = []
    try:
        await store.begin()
        writers += [asyncio.create_task(write(writer)) for writer in range(WRITERS)]
        async with asyncio.timeout(60):
            while len(acknowledged) < 3 * WRITERS:
                await asyncio.wait(writers, timeout=0.05)
        server.kill()
        async with asyncio.timeout(AWAY_SECONDS_MAX + 60):
            await asyncio.gather(*writers)
        assert {type(error) for error in refused} == {Unavailable}

        with pytest.raises(Unavailable):
            async with asyncio.timeout(AWAY_SECONDS_MAX):
                await store.count_backlinks([pid("w0/0")], EVERYTHING)

        await asyncio.to_thread(server.start)
        held = await when_back(lambda: slugs_of(store))
        assert {name for slug in acknowledged for name in (slug, f"{slug}-b")} <= held
        assert len([slug for slug in held if slug.endswith("-b")]) * 2 == len(held), "half of a batch is held"
        assert await when_back(lambda: targets_of(store, pid("w0/1"))) == ["w0/0"]
        await store.apply([page("after")])
    finally:
        for task in writers:
            task.cancel()
        await asyncio.gather(*writers, return_exceptions=True)
        await store.close()


async def slugs_of(store: Neo4jGraphStore) -> set[str]:
    return {row.key.slug async for row in store.held()}


async def when_back(read: Callable[[], Awaitable[T]]) -> T:
    """What is read as soon as the server answers in time: right after its start each plan takes it seconds."""
    async with asyncio.timeout(BACK_SECONDS_MAX):
        while True:
            try:
                return await read()
            except (Unavailable, DeadlineExceeded):
                continue


async def test_a_wrong_password_is_said_without_it(neo4j_url: str) -> None:
    address, user, _ = address_of(neo4j_url)
    connection = Connection.open(address, user=user, password="wrong-password")
    try:
        with pytest.raises(Unavailable, match="user or the password") as caught:
            await connection.prepare()
    finally:
        await connection.close()
    assert "FLEETBRAIN_GRAPH_PASSWORD" in caught.value.next_step
    assert "wrong-password" not in f"{caught.value} {caught.value.next_step} {caught.value.metadata}"


async def test_where_nothing_listens_it_is_said_soon() -> None:
    connection = Connection.open("bolt://127.0.0.1:9", user="neo4j", password="x")
    try:
        with pytest.raises(Unavailable, match="does not answer"):
            async with asyncio.timeout(AWAY_SECONDS_MAX):
                await connection.prepare()
    finally:
        await connection.close()


@pytest.mark.parametrize("agent", ["Neo4j/4.4.30", "Neo4j/5.25.1", "Memgraph/3.0"])
def test_a_server_that_does_not_know_our_statements_is_refused(agent: str) -> None:
    with pytest.raises(InvalidArgument, match=r"5\.26"):
        refuse_unsupported(agent)


@pytest.mark.parametrize("agent", ["Neo4j/5.26.30", "Neo4j/2026.08.1", "Neo4j/5.27-aura"])
def test_newer_servers_are_welcome(agent: str) -> None:
    refuse_unsupported(agent)


async def test_a_batch_that_is_cancelled_leaves_nothing_of_it(neo4j_url: str, tmp_path: Path) -> None:
    store = Neo4jGraphStore(connect(neo4j_url), f"contract/{tmp_path.name}")
    try:
        await store.begin()
        changes: list[SlugChange] = [page(f"p/{number}", link(f"p/{number + 1}")) for number in range(300)]
        applying = asyncio.create_task(store.apply(changes))
        await asyncio.wait({applying}, timeout=0.05)
        applying.cancel()
        await asyncio.gather(applying, return_exceptions=True)

        assert len([row async for row in store.held()]) in (0, 300)
        await store.apply(changes)
        assert len([row async for row in store.held()]) == 300
    finally:
        await store.remove()
        await store.close()
