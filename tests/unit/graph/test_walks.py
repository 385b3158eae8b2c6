"""Walks around a page, and relational questions."""

from __future__ import annotations

import pytest

from services.domain.context import OperationContext, Scope, local_context
from services.domain.errors import InvalidArgument, NotFound, PermissionDenied
from services.domain.page import LinkProvenance
from services.graph.app.walks import Relation, RelationHop, Walk, answer_relation, traverse
from services.graph.ports import Direction, GraphStore
from tests.contract.graph.pages import link, page, redirect

LOCAL = local_context()
REMOTE = OperationContext(principal="agent", scopes=frozenset({Scope.READ}), read_sources=frozenset({"default"}))
FRONTMATTER = LinkProvenance.FRONTMATTER


async def walk(
    store: GraphStore, slug: str, direction: Direction = Direction.OUT, *, depth: int = 0, limit: int = 0
) -> Walk:
    return await traverse(
        store, LOCAL, source="", slug=slug, direction=direction, link_types=(), depth=depth, limit=limit
    )


def steps(walked: Walk) -> list[tuple[str, str, int, bool]]:
    return [(edge.link.from_page.slug, edge.link.to_page.slug, edge.depth, edge.tree) for edge in walked.edges]


async def ask(
    store: GraphStore, *names: str, hops: list[RelationHop], context: OperationContext = LOCAL, source: str = ""
) -> Relation:
    return await answer_relation(store, context, source=source, names=names, hops=hops, limit=0)


def slugs(relation: Relation) -> list[str]:
    return [answer.page.slug for answer in relation.answers]


def hop(*link_types: str, to: Direction = Direction.OUT, page_types: tuple[str, ...] = ()) -> RelationHop:
    return RelationHop(link_types=link_types, direction=to, page_types=page_types)


async def test_a_cycle_is_walked_once_around(store: GraphStore) -> None:
    await store.apply([page("a", link("b")), page("b", link("c")), page("c", link("a"))])

    walked = await walk(store, "a")

    assert steps(walked) == [("a", "b", 1, True), ("b", "c", 2, True), ("c", "a", 3, False)]
    assert not walked.truncated


async def test_both_ways_every_edge_is_walked_once(store: GraphStore) -> None:
    await store.apply([page("a", link("b"), link("c")), page("b", link("c")), page("c")])

    walked = await walk(store, "c", Direction.BOTH)

    assert [(*step, edge.inward) for step, edge in zip(steps(walked), walked.edges, strict=True)] == [
        ("a", "c", 1, True, True),
        ("b", "c", 1, True, True),
        ("a", "b", 2, False, True),
    ]


async def test_a_walk_ends_at_its_depth_and_says_when_the_limit_ended_it(store: GraphStore) -> None:
    await store.apply(
        [page("a", link("b"), link("c")), page("b", link("d")), page("c"), page("d", link("e")), page("e")]
    )

    assert steps(await walk(store, "a", depth=1)) == [("a", "b", 1, True), ("a", "c", 1, True)]
    cut = await walk(store, "a", limit=3)
    assert (len(cut.edges), cut.truncated) == (3, True)
    assert not (await walk(store, "a", limit=4)).truncated


async def test_the_tree_of_a_walk_reaches_every_page_once(store: GraphStore) -> None:
    await store.apply(
        [page("a", link("b"), link("c")), page("b", link("c"), link("d")), page("c", link("d")), page("d")]
    )

    tree = [edge.link.to_page.slug for edge in (await walk(store, "a")).edges if edge.tree]

    assert sorted(tree) == ["b", "c", "d"]


async def test_a_walk_begins_at_any_spelling_of_a_slug_the_page_has_or_had(store: GraphStore) -> None:
    await store.apply([page("people/ana", page_id="x"), redirect("persons/ana", "x")])

    assert (await walk(store, "Persons/Ana.md")).root.slug == "people/ana"


async def test_what_cannot_be_walked_is_refused_by_name(store: GraphStore) -> None:
    await store.apply([page("a"), page("secret", private=True), page("b", source="team")])

    with pytest.raises(NotFound, match="nobody"):
        await walk(store, "nobody")
    with pytest.raises(InvalidArgument) as deep:
        await walk(store, "a", depth=11)
    with pytest.raises(InvalidArgument) as negative:
        await walk(store, "a", limit=-1)
    assert (deep.value.field, negative.value.field) == ("depth", "limit")
    with pytest.raises(NotFound):
        await traverse(
            store, REMOTE, source="", slug="secret", direction=Direction.OUT, link_types=(), depth=0, limit=0
        )
    with pytest.raises(PermissionDenied):
        await traverse(store, REMOTE, source="team", slug="b", direction=Direction.OUT, link_types=(), depth=0, limit=0)


async def test_who_invested_leaves_out_who_is_only_mentioned(store: GraphStore) -> None:
    await store.apply(
        [
            page("companies/acme", link("bo", "invested_in", inward=True, provenance=FRONTMATTER), title="Acme"),
            page("people/bo"),
            page("people/cy", link("Acme", "invested_in", line=4, context="Cy put money into Acme.")),
            page("people/di", link("Acme", "mentions")),
        ]
    )

    found = await ask(store, "acme", hops=[hop("invested_in", to=Direction.IN)])

    assert slugs(found) == ["people/bo", "people/cy"], "frontmatter before text"
    assert found.answers[1].path[0].context == "Cy put money into Acme."
    assert [match.page.slug for match in found.seeds] == ["companies/acme"]


async def test_two_hops_give_the_whole_path_as_evidence(store: GraphStore) -> None:
    await store.apply(
        [
            page("funds/x", link("companies/acme", "invested_in")),
            page("companies/acme", type="company"),
            page("people/ana", link("companies/acme", "founded"), type="person"),
        ]
    )

    found = await ask(
        store, "funds/x", hops=[hop("invested_in"), hop("founded", to=Direction.IN, page_types=("person",))]
    )

    assert slugs(found) == ["people/ana"]
    path = found.answers[0].path
    assert [(step.from_page.slug, step.link_type, step.to_page.slug) for step in path] == [
        ("funds/x", "invested_in", "companies/acme"),
        ("people/ana", "founded", "companies/acme"),
    ]


async def test_nobody_is_their_own_colleague_however_often_they_say_where_they_work(store: GraphStore) -> None:
    stated = link("acme", "works_at", provenance=FRONTMATTER)
    await store.apply(
        [page("ana", stated, link("acme", "works_at", line=3)), page("bo", link("acme", "works_at")), page("acme")]
    )

    found = await ask(store, "ana", hops=[hop("works_at"), hop("works_at", to=Direction.IN)])

    assert slugs(found) == ["bo"]


async def test_pages_that_all_names_lead_to_answer_alone(store: GraphStore) -> None:
    await store.apply(
        [
            page("ana", link("acme", "founded"), link("zeta", "founded")),
            page("bo", link("acme", "founded")),
            page("cy", link("other", "founded")),
            *(page(name) for name in ("acme", "zeta", "other")),
        ]
    )

    assert slugs(await ask(store, "ana", "bo", hops=[hop("founded")])) == ["acme"]
    assert slugs(await ask(store, "bo", "cy", hops=[hop("founded")])) == ["acme", "other"]


async def test_names_that_lead_nowhere_are_listed_and_nothing_is_guessed(store: GraphStore) -> None:
    await store.apply([page("people/ana", link("acme", "founded"), title="Ana"), page("acme")])

    found = await ask(store, "Anna", hops=[hop("founded")])

    assert (found.answers, found.seeds, found.unresolved) == ((), (), ("Anna",))


async def test_without_a_source_names_are_looked_up_in_all_that_may_be_read(store: GraphStore) -> None:
    await store.apply(
        [
            page("ana", link("acme", "founded", source="team"), source="team"),
            page("acme", source="team"),
            page("plan", link("acme", "mentions")),
        ]
    )
    reader = OperationContext(principal="agent", scopes=frozenset({Scope.READ}), read_sources=frozenset({"team"}))

    assert slugs(await ask(store, "ana", hops=[hop("founded")], context=reader)) == ["acme"]
    assert slugs(await ask(store, "team:ana", hops=[hop("founded")], source="default")) == ["acme"]
    assert slugs(await ask(store, "ana", hops=[hop("founded")], context=REMOTE)) == []


async def test_questions_without_names_or_hops_or_with_too_many_are_refused(store: GraphStore) -> None:
    for names, hops, field in (
        ((), [hop("founded")], "names"),
        (("ana",), [], "hops"),
        (("ana",) * 9, [hop("founded")], "names"),
        (("ana",), [hop("founded")] * 5, "hops"),
        (("a" * 513,), [hop("founded")], "names"),
        (("ana",), [hop("")], "hops.link_types"),
    ):
        with pytest.raises(InvalidArgument) as refused:
            await ask(store, *names, hops=hops)
        assert refused.value.field == field
        assert refused.value.next_step
