"""Which store serves is kept in the server: one process switches, the others see it, and strangers are refused."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable

import pytest

from services.domain.errors import InvalidArgument, NotReady
from services.graph.adapters.neo4j.address import parse_address
from services.graph.adapters.neo4j.catalog import Neo4jCatalog
from services.graph.adapters.neo4j.connection import Connection
from services.graph.consumer import GraphProjection
from services.runtime.projection_store import RebuildResult
from services.runtime.store_catalog import Pointer
from tests.contract.graph.engines import connect
from tests.contract.graph.pages import EVERYTHING, page
from tests.contract.graph.test_histories import PARSER

MakeCatalog = Callable[[str], Neo4jCatalog]


@pytest.fixture
async def connection(neo4j_url: str) -> AsyncIterator[Connection]:
    opened = connect(neo4j_url)
    yield opened
    await opened.close()


@pytest.fixture
def catalog_of(connection: Connection) -> MakeCatalog:
    """A catalog of one brain, by the id of its log."""
    prefix = f"p{secrets.token_hex(6)}"

    def make(log: str) -> Neo4jCatalog:
        async def log_id() -> str:
            return log

        return Neo4jCatalog(connection, prefix=prefix, log_id=log_id, hold=lambda graph: GraphProjection(graph, PARSER))

    return make


async def test_of_two_who_begin_a_first_store_one_wins(catalog_of: MakeCatalog) -> None:
    one, other = catalog_of("log"), catalog_of("log")
    assert await one.read() is None

    won = await asyncio.gather(
        *(
            catalog.write(Pointer(store_id=store_id, ready_from=7), expected=None)
            for catalog, store_id in ((one, "aa"), (other, "bb"))
        )
    )

    assert sorted(won) == [False, True]
    pointer = await other.read()
    assert pointer is not None
    assert pointer.store_id == ("aa" if won[0] else "bb")


async def test_a_switch_keeps_the_results_and_needs_the_store_it_replaces(catalog_of: MakeCatalog) -> None:
    catalog = catalog_of("log")
    first = Pointer(store_id="aa", ready_from=1)
    result = RebuildResult(job_id="job", store_id="bb", pages=3)
    second = Pointer(store_id="bb", ready_from=9, results={"job": result})
    await catalog.read()

    assert await catalog.write(first, expected=None)
    assert not await catalog.write(second, expected=Pointer(store_id="cc", ready_from=1))
    assert await catalog.write(second, expected=first)
    assert await catalog.write(second, expected=first), "the same again, when the answer was lost"
    assert await catalog.read() == second


async def test_stores_are_listed_opened_twice_filled_apart_and_removed(catalog_of: MakeCatalog) -> None:
    catalog = catalog_of("log")
    one, again, other = await catalog.open("aa"), await catalog.open("aa"), await catalog.open("bb")
    assert await catalog.stores() == ["aa", "bb"]

    await one.graph.apply([page("a")])
    assert (await again.graph.stats(EVERYTHING, makers=None)).pages == 1
    assert (await other.graph.stats(EVERYTHING, makers=None)).pages == 0

    for store_id in ("aa", "bb", "aa"):
        await catalog.remove(store_id)
    assert await catalog.stores() == []


async def test_another_brain_on_the_same_prefix_is_refused(catalog_of: MakeCatalog) -> None:
    await catalog_of("log").read()

    with pytest.raises(NotReady, match="another brain"):
        await catalog_of("another-log").read()


async def test_stores_of_a_newer_program_are_refused_and_those_of_an_older_built_anew(
    catalog_of: MakeCatalog, connection: Connection
) -> None:
    catalog = catalog_of("log")
    await catalog.read()
    await catalog.write(Pointer(store_id="aa", ready_from=1), expected=None)

    async def made_by(schema: int) -> None:
        statement = "MATCH (c:FleetbrainCatalog {prefix: $prefix}) SET c.schema = $schema"
        await connection.write(lambda s: s.run(statement, {"prefix": catalog._prefix, "schema": schema}))

    await made_by(99)
    with pytest.raises(NotReady, match="newer"):
        await catalog.read()
    await made_by(0)
    assert await catalog.read() is None


@pytest.mark.parametrize(
    ("text", "url", "user", "prefix"),
    [
        ("bolt://host", "bolt://host:7687", "", "fleetbrain"),
        ("bolt+s://ann:p%40ss@host:9999/second", "bolt+s://host:9999", "ann", "second"),
        ("neo4j://:secret@[::1]/", "neo4j://[::1]:7687", "neo4j", "fleetbrain"),
    ],
)
def test_a_url_says_server_user_and_prefix(text: str, url: str, user: str, prefix: str) -> None:
    address = parse_address(text)

    assert (address.url, address.user, address.prefix) == (url, user, prefix)
    assert "secret" not in repr(address)


@pytest.mark.parametrize(
    "text", ["http://u:secret@host", "bolt://u:secret@", "bolt://u:secret@host:x", "bolt://u:secret@host/A_b", "bolt:"]
)
def test_a_url_that_cannot_be_used_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_address(text)

    assert "secret" not in f"{caught.value}{caught.value.value}{caught.value.next_step}"
    assert caught.value.field == "FLEETBRAIN_GRAPH_URL"
