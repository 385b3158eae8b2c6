"""Several processes on one store: whoever is slow, late or double, the store ends as one built from the log alone."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from services.domain.errors import Unavailable
from services.domain.page import LinkProvenance
from services.graph.adapters.neo4j.connection import Connection
from services.graph.adapters.neo4j.store import Neo4jGraphStore
from services.graph.consumer import GraphProjection
from services.graph.naming import NameKind
from services.graph.ports import Direction, NameQuestion, Viewer
from tests.contract.graph.engines import connect
from tests.contract.graph.pages import EVERYTHING, WORLD, hops_of, link, only, page, pid, targets_of
from tests.contract.graph.test_histories import BODIES, PARSER, SLUGS, newest, submit, told
from tests.page_log_model import PageLog

WORKERS = 4
OPERATIONS = ("put", "put", "put", "delete", "restore", "move", "move")
STEPS = 30


@pytest.fixture
async def connection(neo4j_url: str) -> AsyncIterator[Connection]:
    opened = connect(neo4j_url)
    yield opened
    await opened.close()


@asynccontextmanager
async def begun(connection: Connection) -> AsyncIterator[Neo4jGraphStore]:
    """A store of the test's own."""
    store = Neo4jGraphStore(connection, f"contract/{secrets.token_hex(8)}", owns_connection=False)
    await store.begin()
    try:
        yield store
    finally:
        await store.remove()


@pytest.mark.parametrize("seed", range(3))
async def test_workers_in_parallel_leave_what_the_log_says(neo4j_url: str, connection: Connection, seed: int) -> None:
    choose = random.Random(seed)
    log = PageLog()
    queue: asyncio.Queue[str] = asyncio.Queue()

    async def work(store: Neo4jGraphStore) -> None:
        """The consumer rule: apply the newest, look again, start over if it changed."""
        graph = GraphProjection(store, PARSER)
        while True:
            slugs = [await queue.get()]
            while not queue.empty() and len(slugs) < choose.randint(1, 3):
                slugs.append(queue.get_nowait())
            records = {slug: newest(log, slug) for slug in slugs}
            while records:
                await graph.apply(list(records.values()))
                seen, records = records, {}
                for slug, record in seen.items():
                    if newest(log, slug).revision != record.revision:
                        records[slug] = newest(log, slug)
            for _ in slugs:
                queue.task_done()

    async with begun(connection) as store, begun(connection) as built:
        connections = [connect(neo4j_url) for _ in range(WORKERS)]
        workers = [
            asyncio.create_task(work(Neo4jGraphStore(each, store._store, owns_connection=False)))
            for each in connections
        ]
        for number in range(STEPS):
            before = log.last_revision
            request = (choose.choice(OPERATIONS), choose.choice(SLUGS), choose.choice(BODIES), choose.choice(SLUGS))
            submit(log, number, *request, fresh=choose.random() < 0.5)
            changed = [slug for slug in log.kept if newest(log, slug).revision > before]
            for slug in changed * choose.randint(1, 2):
                queue.put_nowait(slug)
            if choose.random() < 0.3:
                await queue.join()
        drained = asyncio.ensure_future(queue.join())
        await asyncio.wait({drained, *workers}, return_when=asyncio.FIRST_COMPLETED, timeout=60)
        assert drained.done(), [worker for worker in workers if worker.done()]
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        for each in connections:
            await each.close()

        await GraphProjection(built, PARSER).apply([newest(log, slug) for slug in sorted(log.kept)])
        assert await told(store) == await told(built)


async def test_reads_beside_a_writer_never_show_half_a_batch(neo4j_url: str, connection: Connection) -> None:
    async with begun(connection) as store:
        both = [page("a", link("b"), revision=1), page("b", link("a"), revision=1)]
        await store.apply(both)
        writing = connect(neo4j_url)
        writer = Neo4jGraphStore(writing, store._store, owns_connection=False)

        async def write() -> None:
            for revision in range(2, 22):
                named = f"n{revision}"
                await writer.apply(
                    [
                        page("a", link("b", named), revision=revision),
                        page("b", link("a", named), revision=revision),
                    ]
                )

        task = asyncio.create_task(write())
        try:
            while not task.done():
                steps = await hops_of(store, pid("a"), pid("b"))
                assert len({hop.link.link_type for hop in steps}) == 1, "one page of a batch is new, the other is old"
                assert len(steps) == 2
            await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await writing.close()


async def test_a_store_that_was_removed_takes_no_more_writes_and_leaves_nothing(connection: Connection) -> None:
    async with begun(connection) as store, begun(connection) as other:
        await store.apply([page("a", link("b")), page("b", title="Remarkable")])
        await other.apply([page("a", link("b")), page("b")])

        await store.remove()

        with pytest.raises(Unavailable):
            await store.apply([page("c")])
        left = await connection.read(
            lambda s: s.run("MATCH (n) WHERE n.store = $store RETURN count(n) AS n", {"store": store._store})
        )
        assert left == [{"n": 0}]
        assert await targets_of(other, pid("a")) == ["b"]


async def test_a_store_can_begin_again_after_a_death_in_its_removal(connection: Connection) -> None:
    async with begun(connection) as store:
        await store.apply([page("old")])
        await connection.write(
            lambda s: s.run("MATCH (n:FleetbrainStore {store: $store}) SET n.removed = true", {"store": store._store})
        )

        await store.begin()

        await store.apply([page("new")])
        assert [row.key.slug async for row in store.held()] == ["new"]


async def test_words_of_a_page_that_is_gone_are_nowhere_in_the_store(connection: Connection) -> None:
    async with begun(connection) as store:
        changes = [page("notes/secret", link("hidden/place", context="a hidden context"), title="Hush", revision=1)]
        await store.apply(changes)
        gone = page("notes/secret", revision=2)
        await store.apply([type(gone)(key=gone.key, revision=2, page_id=gone.page_id, leads=False)])

        rows = await connection.read(
            lambda s: s.run(
                "MATCH (n) WHERE n.store = $store OPTIONAL MATCH (n)-[r]-() RETURN labels(n) AS kinds, n {.*} AS said,"
                " r {.*} AS tied",
                {"store": store._store},
            )
        )
        assert {str(row["kinds"]) for row in rows} <= {"['FleetbrainName']", "['FleetbrainStore']"}
        for words in ("secret", "hidden", "hush"):
            assert words not in str(rows).lower()


async def test_words_of_a_question_are_never_a_query(connection: Connection) -> None:
    async with begun(connection) as store:
        await store.apply([page("a", title="Plain"), page("b", title="Hidden", private=True)])

        for partial in (
            "*",
            "*:*",
            "a OR b",
            "p1",
            'grams:"x"',
            "') RETURN 1 //",
            "$store",
            "\\",
            "/.*/",
            "[a TO z]~2",
        ):
            assert "b" not in [match.page.slug for match in await store.search_names(partial, WORLD, 10)]
            await store.resolve_names([NameQuestion(partial, None)], WORLD)


async def test_every_kind_of_evidence_and_name_has_a_place_in_the_order() -> None:
    from services.graph.adapters.neo4j.cypher import PROVENANCE_CODES
    from services.graph.adapters.sqlite.writes import PROVENANCE_CODES as OF_SQLITE

    assert set(PROVENANCE_CODES) == set(LinkProvenance)
    assert PROVENANCE_CODES == OF_SQLITE
    assert max(NameKind) < 9  # what the rule in Cypher begins to look for the strongest with


async def test_viewers_of_no_source_are_asked_nothing(connection: Connection) -> None:
    async with begun(connection) as store:
        await store.apply([page("a", link("b")), page("b")])
        for viewer in (only(), Viewer(sources=frozenset({"elsewhere"}), private=True)):
            assert await hops_of(store, pid("a"), viewer=viewer, direction=Direction.BOTH) == []
            assert await store.count_backlinks([pid("b")], viewer) == [0]
        assert await store.count_backlinks([pid("b")], EVERYTHING) == [1]
