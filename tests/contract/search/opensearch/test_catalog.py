"""The catalog of a real OpenSearch: one pointer that many write, aliases that follow it, and who owns a prefix."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest

from services.domain.errors import NotReady
from services.runtime.store_catalog import Pointer
from services.search.adapters.opensearch.catalog import OpenSearchCatalog
from services.search.adapters.opensearch.connection import Body, Connection
from services.search.consumer import LexicalStore
from services.search.values import Retriever
from tests.contract.search.engines import connect
from tests.contract.search.pages import EVERYTHING, PARSER, record


@pytest.fixture
async def connection(opensearch_url: str) -> AsyncIterator[Connection]:
    opened = connect(opensearch_url)
    yield opened
    await opened.close()


def catalog_of(connection: Connection, prefix: str, log: str = "log-1") -> OpenSearchCatalog[LexicalStore]:
    async def log_id() -> str:
        return log

    return OpenSearchCatalog(connection, prefix=prefix, log_id=log_id, hold=lambda index: LexicalStore(index, PARSER))


@pytest.fixture
def prefix() -> str:
    return f"t{uuid.uuid4().hex[:12]}"


async def test_of_two_that_begin_a_first_store_one_wins(connection: Connection, prefix: str) -> None:
    one, other = catalog_of(connection, prefix), catalog_of(connection, prefix)
    assert await one.read() is None
    assert await other.read() is None
    assert await one.write(Pointer(store_id="a", ready_from=3), expected=None)
    assert not await other.write(Pointer(store_id="b", ready_from=3), expected=None)
    assert await other.read() == Pointer(store_id="a", ready_from=3)


async def test_a_rebuild_fills_a_second_store_and_the_alias_switches_to_it(connection: Connection, prefix: str) -> None:
    catalog = catalog_of(connection, prefix)
    first = Pointer(store_id="a", ready_from=0)
    old, new = await catalog.open("a"), await catalog.open("b")
    await old.apply([record("x", "alpha", 1)])
    await new.apply([record("x", "beta", 2)])
    assert await catalog.write(first, expected=None)
    assert await catalog.stores() == ["a", "b"]
    alias = f"{prefix}-pages"
    all_of_it: Body = {"query": {"match_all": {}}}
    assert [hit["_source"]["revision"] for hit in (await connection.search(alias, all_of_it))["hits"]["hits"]] == [1]
    assert await catalog.write(Pointer(store_id="b", ready_from=0), expected=first)
    assert [hit["_source"]["revision"] for hit in (await connection.search(alias, all_of_it))["hits"]["hits"]] == [2]
    await catalog.remove("a")
    await catalog.remove("a")
    assert await catalog.stores() == ["b"]
    assert len(await new.index.search(Retriever.LEXICAL_PAGES, ["beta"], EVERYTHING, 5)) == 1


async def test_a_second_brain_on_one_prefix_is_refused(connection: Connection, prefix: str) -> None:
    assert await catalog_of(connection, prefix).read() is None
    with pytest.raises(NotReady, match="another brain"):
        await catalog_of(connection, prefix, "log-2").read()


async def test_a_store_of_a_newer_fleetbrain_is_refused(connection: Connection, prefix: str) -> None:
    await connection.create_index(f"{prefix}-pages-a", {"mappings": {"_meta": {"fleetbrain": 99}}})
    with pytest.raises(NotReady, match="newer fleetbrain"):
        await catalog_of(connection, prefix).open("a")
