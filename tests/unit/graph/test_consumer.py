"""From records of the log to changes of the graph."""

from __future__ import annotations

from dataclasses import replace

from services.domain.page import LinkProvenance
from services.domain.parser import PageParser, parse_page
from services.domain.records import RecordKind
from services.graph.consumer import GraphProjection, entry_of
from services.graph.ports import GraphStore
from tests.contract.graph.pages import EVERYTHING, links_of, targets_of
from tests.records import key, put

COMPANY = """---
title: Acme
type: company
aliases: [Acme Inc]
investors: [Bo Sample]
visibility: private
---
Acme was founded by [[people/ana-example|Ana]].

| Who | Note |
|---|---|
| [[people/cy-example\\|Cy]] | x |

<!-- timeline -->

- 2026-03-01: Began.
- **2026-04** Moved.
- 2025年 something
- no date
"""


def test_a_page_is_kept_with_its_names_links_and_dated_entries() -> None:
    """BC-032 among the links."""
    entry = entry_of(parse_page("default", "companies/acme", COMPANY.encode()))

    assert (entry.title, entry.type, entry.private, entry.aliases) == ("Acme", "company", True, ("Acme Inc",))
    assert {link.name for link in entry.links} == {"Bo Sample", "people/ana-example", "people/cy-example"}
    assert entry.timeline_entries == 3


async def test_every_kind_of_record_reaches_the_graph(store: GraphStore) -> None:
    projection = GraphProjection(store, PageParser())
    first = replace(put("a", "# A\n\nSee [[b]].", page_id="x"), revision=1)
    left = replace(
        put("a", page_id="x"), kind=RecordKind.REDIRECT, body=None, moved_to="b", content_hash=b"", revision=2
    )
    moved = replace(put("b", "# B\n\nSee [[c]].", page_id="x"), kind=RecordKind.MOVE, revision=3)

    await projection.apply([first])
    assert await targets_of(store, "x") == ["[b]"]

    await projection.apply([left, moved])
    assert await targets_of(store, "x") == ["[c]"]
    found = await store.find_page(key("a"), EVERYTHING)
    assert found is not None
    assert found.slug == "b"
    assert [row async for row in projection.held()] == [(key("a"), "x", 2), (key("b"), "x", 3)]

    deleted = replace(put("b", page_id="x"), kind=RecordKind.DELETE, body=None, content_hash=b"", revision=4)
    await projection.apply([deleted])
    assert await store.find_page(key("b"), EVERYTHING) is None
    assert await store.find_page(key("a"), EVERYTHING) is None


async def test_links_of_a_page_that_came_as_text_say_where_and_why(store: GraphStore) -> None:
    projection = GraphProjection(store, PageParser())

    await projection.apply([replace(put("people/ana", "# Ana\n\nAna founded [[companies/acme]] in 2020."), revision=1)])

    (shown,) = await links_of(store, "id-of-people/ana")
    assert (shown.link_type, shown.provenance, shown.line) == ("founded", LinkProvenance.TEXT, 3)
    assert shown.context == "Ana founded [[companies/acme]] in 2020." or "founded" in shown.context
