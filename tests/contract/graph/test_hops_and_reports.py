"""What every graph promises about the steps of walks, and about reading it as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from services.domain.page import LinkProvenance
from services.domain.records import PageId, PageKey
from services.graph.ports import Direction, GraphStore, HeldRevision
from tests.contract.graph.engines import OpenGraph
from tests.contract.graph.pages import EVERYTHING, gone, hops_of, link, only, page, pid, redirect

FRONTMATTER = LinkProvenance.FRONTMATTER


def held_under(slug: str, page_id: str, revision: int) -> HeldRevision:
    return HeldRevision(PageKey("default", slug), PageId(page_id), revision)


async def test_steps_go_the_way_asked_whoever_wrote_the_link(graph: GraphStore) -> None:
    await graph.apply(
        [
            page("people/ana", link("companies/acme", "founded")),
            page("companies/acme", link("people/bo", "works_at", inward=True)),
            page("people/bo"),
        ]
    )

    arriving = await hops_of(graph, pid("companies/acme"), direction=Direction.IN)
    leaving = await hops_of(graph, pid("people/ana"), pid("people/bo"))

    assert [(hop.link.link_type, hop.near.slug, hop.far.slug, hop.inward) for hop in arriving] == [
        ("founded", "companies/acme", "people/ana", True),
        ("works_at", "companies/acme", "people/bo", True),
    ]
    assert [(hop.link.link_type, hop.near.slug, hop.far.slug, hop.inward) for hop in leaving] == [
        ("founded", "people/ana", "companies/acme", False),
        ("works_at", "people/bo", "companies/acme", False),
    ]
    assert await hops_of(graph, pid("companies/acme")) == []


async def test_steps_can_be_of_some_types_of_links_and_pages_and_never_lead_to_ghosts(graph: GraphStore) -> None:
    await graph.apply(
        [
            page("a", link("b", "knows"), link("c", "knows"), link("c", "owns"), link("nobody", "knows")),
            page("b", type="person"),
            page("c", type="company"),
        ]
    )

    async def far(link_types: Sequence[str] = (), page_types: Sequence[str] = ()) -> list[tuple[str, str]]:
        found = await hops_of(graph, pid("a"), link_types=link_types, page_types=page_types)
        return [(hop.link.link_type, hop.far.slug) for hop in found]

    assert await far() == [("knows", "b"), ("knows", "c"), ("owns", "c")]
    assert await far(link_types=["owns"]) == [("owns", "c")]
    assert await far(page_types=["person"]) == [("knows", "b")]
    assert await far(link_types=["unheard_of"]) == []


async def test_of_several_links_between_two_pages_frontmatter_is_the_evidence_then_the_first(graph: GraphStore) -> None:
    await graph.apply(
        [
            page("a", link("b", "knows", line=9, context="In words."), link("B", "knows", provenance=FRONTMATTER)),
            page("c", link("b", "knows", line=2), link("b", "knows", line=5, fragment="x")),
            page("b"),
        ]
    )

    found = await hops_of(graph, pid("a"), pid("c"))

    assert [(hop.near.slug, hop.link.provenance, hop.link.line) for hop in found] == [
        ("a", FRONTMATTER, 0),
        ("c", LinkProvenance.TEXT, 2),
    ]


async def test_steps_stop_at_the_limit_in_the_order_they_promise(graph: GraphStore) -> None:
    await graph.apply([page("hub"), *(page(f"p/{number:02d}", link("hub")) for number in range(30))])

    found = await hops_of(graph, pid("hub"), direction=Direction.IN, limit=5)

    assert [hop.far.slug for hop in found] == [f"p/{number:02d}" for number in range(5)]


async def test_steps_from_pages_nobody_knows_lead_nowhere(graph: GraphStore) -> None:
    await graph.apply([page("a", link("b")), page("b")])

    assert await hops_of(graph, "nobody") == []
    assert await hops_of(graph) == []


async def test_references_that_lead_nowhere_are_listed_by_page_and_place_with_the_reason(graph: GraphStore) -> None:
    await graph.apply(
        [
            page("b", link("zz"), link("atlas"), link("a")),
            page("a", link("nobody", inward=True)),
            page("p/atlas"),
            page("q/atlas"),
        ]
    )

    rows = await graph.list_unresolved(EVERYTHING, makers=None, after=None, limit=10)
    rest = await graph.list_unresolved(EVERYTHING, makers=None, after=rows[0][0], limit=1)

    shown = [(position.slug, one.name, one.ambiguous, len(one.candidates)) for position, one in rows]
    assert shown == [("a", "nobody", False, 0), ("b", "zz", False, 0), ("b", "atlas", True, 2)]
    assert (rows[0][1].from_page.slug, rows[0][1].to_page.slug) == ("nobody", "a")
    assert rest == rows[1:2]


async def test_reports_of_one_source_count_its_pages_and_follow_links_out_of_it(graph: GraphStore) -> None:
    await graph.apply(
        [
            page("a", link("b", source="team"), link("nobody"), timeline_entries=4),
            page("b", link("nobody"), source="team", timeline_entries=1),
        ]
    )

    stats = await graph.stats(EVERYTHING, makers=frozenset({"default"}))
    lost = await graph.list_unresolved(EVERYTHING, makers=frozenset({"default"}), after=None, limit=10)

    assert (stats.pages, stats.links, stats.ghosts, stats.timeline_entries) == (1, 2, 1, 4)
    assert [(position.source, one.name) for position, one in lost] == [("default", "nobody")]
    alone = await graph.list_unresolved(only("default"), makers=None, after=None, limit=10)
    assert [one.to_page.source for _, one in alone] == ["team", "default"]


async def test_link_types_are_counted_the_most_first(graph: GraphStore) -> None:
    await graph.apply([page("a", link("b", "knows"), link("c", "knows"), link("b", "owns"), link("b", "advises"))])

    stats = await graph.stats(EVERYTHING, makers=None)

    assert stats.link_types == (("knows", 2), ("advises", 1), ("owns", 1))


async def test_what_is_held_says_both_documents_of_every_slug(graph: GraphStore) -> None:
    await graph.apply([page("a", page_id="x", revision=1), page("b", page_id="y", revision=2)])
    await graph.apply([redirect("a", "x", revision=3), page("c", page_id="x", revision=4)])
    assert [row async for row in graph.held()] == [
        held_under("a", "x", 3),
        held_under("b", "y", 2),
        held_under("c", "x", 4),
    ]

    await graph.apply([gone("b", page_id="y", revision=5), page("d", page_id="x", revision=6)])

    held = [row async for row in graph.held()]
    assert held_under("c", "x", 0) in held
    assert not [row for row in held if row.key.slug == "b"]


async def test_more_slugs_than_are_read_at_once_are_all_held(graph: GraphStore) -> None:
    for start in range(0, 3000, 1000):
        await graph.apply([page(f"p/{number:04d}") for number in range(start, start + 1000)])

    slugs = [row.key.slug async for row in graph.held()]

    assert slugs == [f"p/{number:04d}" for number in range(3000)]


async def test_a_store_opened_again_holds_what_it_held(open_graph: OpenGraph, tmp_path: Path) -> None:
    async with open_graph(tmp_path) as graph:
        await graph.apply([page("a", link("b", "knows")), page("b")])
        before = await hops_of(graph, pid("a"))

    async with open_graph(tmp_path) as graph:
        assert await hops_of(graph, pid("a")) == before
        await graph.apply([page("a", link("b", "knows"), link("b", "owns"))])
        assert len(await hops_of(graph, pid("a"))) == 2
