"""No statement reads every node or every edge of the database: each begins at an index."""

from __future__ import annotations

import pytest

from services.graph.adapters.neo4j import catalog, links, names, reports, store, writes
from tests.contract.graph.engines import connect

PARAMETERS = {
    "store": "x",
    "prefix": "x",
    "log_id": "x",
    "schema": 1,
    "pointer": "x",
    "limit": 10,
    "rows": [],
    "own": [],
    "frontier": [],
    "page_ids": [],
    "page_id": "x",
    "link_types": [],
    "page_types": [],
    "sources": [],
    "marks": [],
    "arriving": True,
    "against": True,
    "private": True,
    "kind_max": 7,
    "keys": [],
    "makers": [],
    "pages": 10,
    "type": "",
    "far": "",
    "made_by": "",
    "ordinal": 0,
    "source": "x",
    "slug": "x",
    "after": "",
    "query": "x",
    "shortest": True,
}
STATEMENTS = {
    "list_links": links.LIST_LINKS,
    "count_backlinks": links.COUNT_BACKLINKS,
    "hops": links.HOPS,
    "resolve": names.RESOLVE,
    "find": names.FIND,
    "search": names.SEARCH,
    "lost": reports.LOST,
    "count_pages": reports.COUNT_PAGES,
    "count_links": reports.COUNT_LINKS,
    "held": reports.HELD,
    "version": store.VERSION,
    "locked": store.LOCKED,
    "begin": store.BEGIN,
    "close": store.CLOSE,
    **{f"remove_{number}": statement for number, statement in enumerate(store.REMOVE)},
    **{
        name.lower(): text
        for name, text in vars(writes).items()
        if name.isupper() and isinstance(text, str) and " " in text
    },
    **{f"catalog_{name}": getattr(catalog, name) for name in ("READ", "LOCK", "WRITE", "STORES")},
}
SCANS = {"AllNodesScan", "NodeByLabelScan", "DirectedAllRelationshipsScan", "UndirectedAllRelationshipsScan"}


@pytest.mark.parametrize("name", sorted(STATEMENTS))
async def test_every_statement_begins_at_an_index(neo4j_url: str, name: str) -> None:
    connection = connect(neo4j_url)
    try:
        operators = await connection.plan(STATEMENTS[name], PARAMETERS)
    finally:
        await connection.close()

    assert operators
    assert [one for one in operators if one in SCANS or one.endswith("RelationshipTypeScan")] == []
