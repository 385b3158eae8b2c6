"""What every graph promises to those who may not see: a page out of sight is a page that does not exist."""

from __future__ import annotations

from services.graph.ports import Direction, GraphStore, NameQuestion, Viewer
from tests.contract.graph.pages import EVERYTHING, WORLD, hops_of, link, links_of, only, page, pid, redirect


async def everything_read(graph: GraphStore, viewer: Viewer, slugs: list[str]) -> list[object]:
    """All that a viewer can read about some pages of the default source."""
    ids = [pid(slug) for slug in slugs]
    links = [await links_of(graph, one, viewer, arriving=arriving) for one in ids for arriving in (False, True)]
    walked = [await hops_of(graph, *ids, viewer=viewer, direction=direction) for direction in Direction]
    questions = [NameQuestion(name, None) for name in ("secret", "The Secret", "people/secret", "former/secret", "x")]
    return [
        links,
        walked,
        await graph.count_backlinks(ids, viewer),
        await graph.resolve_names(questions, viewer),
        await graph.search_names("secret", viewer, 10),
        await graph.list_unresolved(viewer, makers=None, after=None, limit=100),
        await graph.stats(viewer, makers=None),
        [await graph.find_page(page(slug).key, viewer) for slug in (*slugs, "people/secret", "former/secret")],
    ]


async def test_a_private_page_is_to_others_exactly_a_page_that_does_not_exist(graph: GraphStore) -> None:
    shown = [
        page("x", link("people/secret", "knows"), link("The Secret"), link("y"), link("former/secret", inward=True)),
        page("y", link("secret")),
    ]
    await graph.apply(shown)
    before = await everything_read(graph, WORLD, ["x", "y"])

    secret = [link("x", "owns"), link("y", "knows", inward=True)]
    await graph.apply([page("people/secret", *secret, title="The Secret", private=True, timeline_entries=3)])
    await graph.apply([redirect("former/secret", pid("people/secret"))])

    assert await everything_read(graph, WORLD, ["x", "y"]) == before
    assert await everything_read(graph, EVERYTHING, ["x", "y"]) != before


async def test_a_page_of_another_source_is_to_others_exactly_a_page_that_does_not_exist(graph: GraphStore) -> None:
    shown = [
        page("x", link("people/secret", source="team"), link("secret", source="team"), link("y")),
        page("y"),
    ]
    await graph.apply(shown)
    before = await everything_read(graph, only("default"), ["x", "y"])

    await graph.apply(
        [
            page("people/secret", link("x", source="default"), source="team", title="The Secret"),
            page("archive/secret", link("y", source="default"), source="team", title="The Secret"),
        ]
    )

    assert await everything_read(graph, only("default"), ["x", "y"]) == before
    assert await everything_read(graph, only("default", "team"), ["x", "y"]) != before


async def test_a_private_namesake_makes_a_name_ambiguous_only_for_who_sees_it(graph: GraphStore) -> None:
    await graph.apply([page("note", link("atlas")), page("projects/atlas"), page("archive/atlas", private=True)])

    (public,) = await links_of(graph, pid("note"), WORLD)
    (local,) = await links_of(graph, pid("note"), EVERYTHING)

    assert (public.to_page.slug, public.ambiguous) == ("projects/atlas", False)
    assert (local.to_page.ghost, local.ambiguous) == (True, True)
    assert await graph.count_backlinks([pid("projects/atlas")], WORLD) == [1]
    assert await graph.count_backlinks([pid("projects/atlas")], EVERYTHING) == [0]


async def test_a_page_that_links_by_a_clear_name_and_by_one_clear_only_to_some_is_counted_once(
    graph: GraphStore,
) -> None:
    await graph.apply(
        [
            page("note", link("projects/atlas"), link("atlas")),
            page("projects/atlas"),
            page("archive/atlas", private=True),
        ]
    )

    assert await graph.count_backlinks([pid("projects/atlas")], WORLD) == [1]
    assert await graph.count_backlinks([pid("projects/atlas")], EVERYTHING) == [1]


async def test_a_page_that_becomes_private_disappears_and_comes_back_when_it_is_public_again(graph: GraphStore) -> None:
    await graph.apply([page("note", link("p/x")), page("p/x", link("note"))])

    await graph.apply([page("p/x", link("note"), private=True)])
    assert (await links_of(graph, pid("note"), WORLD))[0].to_page.ghost
    assert await graph.count_backlinks([pid("note")], WORLD) == [0]

    await graph.apply([page("p/x", link("note"))])
    assert not (await links_of(graph, pid("note"), WORLD))[0].to_page.ghost
    assert await graph.count_backlinks([pid("note")], WORLD) == [1]


async def test_who_may_read_no_source_sees_nothing(graph: GraphStore) -> None:
    await graph.apply([page("a", link("b")), page("b")])

    nobody = only()

    assert await links_of(graph, pid("a"), nobody) == []
    assert (await graph.stats(nobody, makers=None)).pages == 0
    assert await graph.list_unresolved(nobody, makers=None, after=None, limit=10) == []
    assert await hops_of(graph, pid("a"), viewer=nobody) == []
