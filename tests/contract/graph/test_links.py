"""What every graph promises about the links of pages: replaced exactly, ghosts until there is a page, following it."""

from __future__ import annotations

import asyncio

from services.domain.page import LinkProvenance
from services.domain.records import PageId
from services.graph.ports import GraphStore, LinkPosition
from tests.contract.graph.pages import EVERYTHING, gone, link, links_of, page, pid, redirect, targets_of

FRONTMATTER = LinkProvenance.FRONTMATTER


async def test_a_link_shows_what_the_page_wrote(graph: GraphStore) -> None:
    written = link("companies/acme", "founded", line=7, context="Ana founded Acme.", fragment="History", embed=True)
    await graph.apply([page("people/ana", written, title="Ana", type="person"), page("companies/acme", title="Acme")])

    (shown,) = await links_of(graph, pid("people/ana"))

    assert (shown.from_page.slug, shown.from_page.title, shown.from_page.type) == ("people/ana", "Ana", "person")
    assert (shown.to_page.slug, shown.to_page.title, shown.to_page.ghost) == ("companies/acme", "Acme", False)
    assert (shown.link_type, shown.provenance, shown.name) == ("founded", LinkProvenance.TEXT, "companies/acme")
    assert (shown.line, shown.context) == (7, "Ana founded Acme.")
    assert (shown.fragment, shown.embed, shown.made_by) == ("History", True, pid("people/ana"))


async def test_a_page_written_again_has_exactly_its_new_links(graph: GraphStore) -> None:
    await graph.apply([page("a", link("b"), link("c", "knows", provenance=FRONTMATTER)), page("other", link("c"))])

    await graph.apply([page("a", link("d"))])

    assert await targets_of(graph, pid("a")) == ["[d]"]
    assert await targets_of(graph, pid("other")) == ["[c]"]


async def test_a_link_to_a_name_without_page_becomes_real_when_the_page_comes_and_a_ghost_when_it_goes(
    graph: GraphStore,
) -> None:
    await graph.apply([page("a", link("people/ana"))])
    assert await targets_of(graph, pid("a")) == ["[people/ana]"]

    await graph.apply([page("people/ana")])
    assert await targets_of(graph, pid("a")) == ["people/ana"]
    assert await graph.count_backlinks([pid("people/ana")], EVERYTHING) == [1]

    await graph.apply([gone("people/ana")])
    assert await targets_of(graph, pid("a")) == ["[people/ana]"]
    assert await graph.count_backlinks([pid("people/ana")], EVERYTHING) == [0]


async def test_a_deleted_page_makes_no_links(graph: GraphStore) -> None:
    await graph.apply([page("a", link("b")), page("b")])

    await graph.apply([gone("a")])

    assert await links_of(graph, pid("b"), arriving=True) == []
    assert await links_of(graph, pid("a")) == []


async def test_links_follow_a_page_that_moves(graph: GraphStore) -> None:
    """BC-056."""
    await graph.apply([page("notes/b", link("people/dora-example")), page("people/dora-example", page_id="dora")])

    await graph.apply([redirect("people/dora-example", "dora"), page("people/dora-sample", page_id="dora")])

    assert await targets_of(graph, pid("notes/b")) == ["people/dora-sample"]
    assert [shown.from_page.slug for shown in await links_of(graph, "dora", arriving=True)] == ["notes/b"]


async def test_a_link_by_file_name_follows_a_page_into_another_name(graph: GraphStore) -> None:
    """BC-056."""
    await graph.apply([page("notes/b", link("dora-example")), page("people/dora-example", page_id="dora")])

    await graph.apply([page("people/dora-sample", page_id="dora"), redirect("people/dora-example", "dora")])

    assert await targets_of(graph, pid("notes/b")) == ["people/dora-sample"]


async def test_a_new_page_on_a_former_slug_takes_its_links(graph: GraphStore) -> None:
    await graph.apply([page("notes/b", link("people/dora")), page("people/dora", page_id="old")])
    await graph.apply([redirect("people/dora", "old"), page("people/dora-sample", page_id="old")])

    await graph.apply([page("people/dora", page_id="new")])

    (shown,) = await links_of(graph, pid("notes/b"))
    assert shown.to_page.page_id == "new"
    moved = await graph.find_page(page("people/dora-sample").key, EVERYTHING)
    assert moved is not None
    assert moved.page_id == "old"


async def test_a_redirect_to_a_page_that_is_gone_leads_nowhere(graph: GraphStore) -> None:
    await graph.apply([redirect("people/dora", "dora"), page("a", link("people/dora"))])

    assert await targets_of(graph, pid("a")) == ["[people/dora]"]
    assert await graph.find_page(redirect("people/dora", "dora").key, EVERYTHING) is None


async def test_an_inward_link_points_at_the_page_that_states_it(graph: GraphStore) -> None:
    await graph.apply(
        [
            page("companies/acme", link("people/ana", "invested_in", inward=True, provenance=FRONTMATTER)),
            page("people/ana"),
        ]
    )

    (leaving,) = await links_of(graph, pid("people/ana"))
    (arriving,) = await links_of(graph, pid("companies/acme"), arriving=True)

    assert leaving == arriving
    assert (leaving.from_page.slug, leaving.to_page.slug) == ("people/ana", "companies/acme")
    assert leaving.made_by == pid("companies/acme")
    assert await graph.count_backlinks([pid("companies/acme"), pid("people/ana")], EVERYTHING) == [1, 0]


async def test_a_page_that_is_linked_twice_by_one_page_has_one_page_linking_to_it(graph: GraphStore) -> None:
    stated = link("people/ana", "works_at", inward=True, provenance=FRONTMATTER)
    said = [link("companies/acme"), link("companies/acme", "founded")]
    await graph.apply([page("companies/acme", stated), page("people/ana", *said)])

    assert len(await links_of(graph, pid("companies/acme"), arriving=True)) == 3
    assert await graph.count_backlinks([pid("companies/acme")], EVERYTHING) == [1]


async def test_what_a_page_says_twice_is_one_link_with_the_first_place_as_evidence(graph: GraphStore) -> None:
    await graph.apply([page("a", link("b", line=3, context="First."), link("b", line=9, context="Again."))])

    (shown,) = await links_of(graph, pid("a"))

    assert (shown.line, shown.context) == (3, "First.")


async def test_links_of_a_page_to_itself_are_no_links(graph: GraphStore) -> None:
    """BC-035."""
    await graph.apply([page("notes/a", link("notes/a"), link("a"), link("Me"), title="Me")])

    assert await links_of(graph, pid("notes/a")) == []
    assert await links_of(graph, pid("notes/a"), arriving=True) == []
    assert await graph.count_backlinks([pid("notes/a")], EVERYTHING) == [0]
    assert await graph.list_unresolved(EVERYTHING, makers=None, after=None, limit=10) == []
    assert (await graph.stats(EVERYTHING, makers=None)).links == 0


async def test_anchors_embeds_and_block_references_are_edges_to_the_page_they_are_in(graph: GraphStore) -> None:
    """BC-035."""
    written = [link("notes/b", fragment="Part 2"), link("notes/b", fragment="^abc123", embed=True)]
    await graph.apply([page("notes/a", *written), page("notes/b")])

    shown = await links_of(graph, pid("notes/a"))

    assert [(one.to_page.slug, one.fragment, one.embed) for one in shown] == [
        ("notes/b", "Part 2", False),
        ("notes/b", "^abc123", True),
    ]
    assert await graph.count_backlinks([pid("notes/b")], EVERYTHING) == [1]


async def test_a_page_in_a_folder_named_like_another_page_is_linked_alone(graph: GraphStore) -> None:
    """BC-040."""
    await graph.apply([page("a", link("projects/atlas/notes")), page("projects/atlas"), page("projects/atlas/notes")])

    assert await targets_of(graph, pid("a")) == ["projects/atlas/notes"]
    assert await graph.count_backlinks([pid("projects/atlas")], EVERYTHING) == [0]


async def test_a_list_of_links_is_ordered_by_type_and_far_page_and_can_be_read_in_parts(graph: GraphStore) -> None:
    names = [f"p/{letter}" for letter in "edcba"]
    made = [link(name, kind) for kind in ("mentions", "founded") for name in names]
    await graph.apply([page("a", *made), *(page(name) for name in names[:3])])

    rows, after = [], None
    while part := await graph.list_links(pid("a"), EVERYTHING, arriving=False, link_types=(), after=after, limit=3):
        rows += part
        after = part[-1][0]

    shown = [(one.link_type, one.to_page.slug) for _, one in rows]
    assert shown == [(kind, name) for kind in ("founded", "mentions") for name in sorted(names)]


async def test_a_list_of_links_can_be_of_some_types(graph: GraphStore) -> None:
    await graph.apply([page("a", link("b"), link("b", "founded"), link("c", "advises")), page("b")])

    rows = await graph.list_links(
        pid("a"), EVERYTHING, arriving=False, link_types=("founded", "advises"), after=None, limit=10
    )
    none = await graph.list_links(pid("b"), EVERYTHING, arriving=True, link_types=("unheard_of",), after=None, limit=10)

    assert [one.link_type for _, one in rows] == ["advises", "founded"]
    assert none == []


async def test_a_position_between_links_that_are_gone_still_continues(graph: GraphStore) -> None:
    await graph.apply([page("a", link("b"), link("d"))])

    rows = await graph.list_links(
        pid("a"), EVERYTHING, arriving=False, link_types=(), after=LinkPosition("mentions", "c", "", 0), limit=10
    )

    assert [one.name for _, one in rows] == ["d"]


async def test_an_older_revision_that_comes_late_changes_nothing(graph: GraphStore) -> None:
    old = page("a", link("was"), page_id="x", title="Old")
    new = page("a", link("is"), page_id="x", title="New")
    await graph.apply([new])

    await graph.apply([old])

    assert await targets_of(graph, "x") == ["[is]"]
    found = await graph.find_page(new.key, EVERYTHING)
    assert found is not None
    assert (found.title, found.revision) == ("New", new.revision)


async def test_an_older_move_that_comes_late_leaves_the_page_where_it_is(graph: GraphStore) -> None:
    at_first = page("first", page_id="x")
    left = redirect("first", "x")
    moved = page("second", page_id="x")
    await graph.apply([moved])

    await graph.apply([left])
    await graph.apply([at_first])
    await graph.apply([left])

    found = await graph.find_page(at_first.key, EVERYTHING)
    assert found is not None
    assert found.slug == "second"


async def test_a_delete_older_than_the_page_leaves_it(graph: GraphStore) -> None:
    old = gone("a", page_id="before")
    await graph.apply([page("a", page_id="after")])

    await graph.apply([old])

    assert await graph.find_page(old.key, EVERYTHING) is not None


async def test_applying_a_batch_that_is_cancelled_is_all_or_nothing(graph: GraphStore) -> None:
    batch = [page(f"p/{number}", link("p/0")) for number in range(200)]
    work = asyncio.create_task(graph.apply(batch))
    await asyncio.sleep(0)
    work.cancel()
    await asyncio.wait({work}, timeout=5)

    assert (await graph.stats(EVERYTHING, makers=None)).pages in (0, 200)
    await graph.apply(batch)
    assert await graph.count_backlinks([pid("p/0")], EVERYTHING) == [199]


async def test_counting_keeps_the_order_asked_and_knows_no_strangers(graph: GraphStore) -> None:
    await graph.apply([page("a", link("b")), page("b"), page("c", link("b"), link("a"))])

    asked = [pid("b"), PageId("nobody"), pid("a"), pid("b")]

    assert await graph.count_backlinks(asked, EVERYTHING) == [2, 0, 1, 2]
    assert await graph.count_backlinks([], EVERYTHING) == []


async def test_an_empty_graph_answers_every_question(graph: GraphStore) -> None:
    await graph.apply([])

    assert await links_of(graph, "nobody") == []
    assert await graph.search_names("ana", EVERYTHING, 5) == []
    assert [row async for row in graph.held()] == []
    stats = await graph.stats(EVERYTHING, makers=None)
    assert (stats.pages, stats.links, stats.ghosts, stats.link_types) == (0, 0, 0, ())
