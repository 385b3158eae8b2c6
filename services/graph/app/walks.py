"""Walking links, frontier by frontier: what is around a page, and which pages answer a relational question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.domain.context import OperationContext
from services.domain.page import LinkProvenance
from services.domain.records import PageId
from services.graph.app import bounds
from services.graph.app.reading import resolve
from services.graph.app.viewing import root_page, viewer_of
from services.graph.ports import Direction, GraphPage, GraphStore, Hop, Link, NameMatch, Viewer

FRONTIER_MAX = 2_000
"""Pages a relational question goes on from: the best reached; a question that reaches more asks for too much."""

STEPS_MAX = 10_000
"""Edges looked at in one hop of a relational question."""

Edge = tuple[PageId, PageId, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraversedEdge:
    """One step of a walk."""

    link: Link
    depth: int
    inward: bool
    tree: bool
    """Whether the far end was reached for the first time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """What is around a page."""

    root: GraphPage
    edges: tuple[TraversedEdge, ...]
    truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationHop:
    """One step of a relational question."""

    link_types: tuple[str, ...]
    direction: Direction
    page_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationAnswer:
    """A page with the links that lead to it."""

    page: GraphPage
    path: tuple[Link, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """What answers a relational question."""

    answers: tuple[RelationAnswer, ...]
    seeds: tuple[NameMatch, ...]
    unresolved: tuple[str, ...]


def edge_of(link: Link) -> Edge:
    """What makes two links one edge: their ends and their type."""
    return link.from_page.page_id, link.to_page.page_id, link.link_type


async def traverse(
    store: GraphStore,
    context: OperationContext,
    *,
    source: str,
    slug: str,
    direction: Direction,
    link_types: Sequence[str],
    depth: int,
    limit: int,
) -> Walk:
    """The pages around a page, breadth first; every page and every edge once, so cycles end."""
    deepest = bounds.within("depth", depth, default=bounds.DEPTH_DEFAULT, maximum=bounds.DEPTH_MAX)
    most = bounds.within("limit", limit, default=bounds.EDGES_DEFAULT, maximum=bounds.EDGES_MAX)
    wanted = bounds.types("link_types", link_types)
    root = await root_page(store, context, source=source, slug=slug)
    viewer = viewer_of(context)
    reached = {root.page_id}
    walked: dict[Edge, TraversedEdge] = {}
    frontier = [root.page_id]
    for level in range(1, deepest + 1):
        if not frontier:
            break
        # Both ways an edge shows from each of its ends, and those of the level before show again.
        room = most - len(walked)
        asked = 2 * room + len(walked) + 1 if direction is Direction.BOTH else room + 1
        hops = await store.hops(frontier, viewer, direction=direction, link_types=wanted, page_types=(), limit=asked)
        frontier = []
        for hop in hops:
            edge = edge_of(hop.link)
            if edge in walked:
                continue
            if len(walked) == most:
                return Walk(root=root, edges=tuple(walked.values()), truncated=True)
            first = hop.far.page_id not in reached
            walked[edge] = TraversedEdge(link=hop.link, depth=level, inward=hop.inward, tree=first)
            if first:
                reached.add(hop.far.page_id)
                frontier.append(hop.far.page_id)
    return Walk(root=root, edges=tuple(walked.values()), truncated=False)


async def answer_relation(
    store: GraphStore,
    context: OperationContext,
    *,
    source: str,
    names: Sequence[str],
    hops: Sequence[RelationHop],
    limit: int,
) -> Relation:
    """The pages reached from named pages over links of given types.

    Of several names, pages that all of them lead to answer alone, if there are any. A path takes no edge twice, so
    nobody is their own colleague. A name that leads nowhere is listed; when none leads anywhere, nothing answers.
    """
    most = bounds.within("limit", limit, default=bounds.ANSWERS_DEFAULT, maximum=bounds.ANSWERS_MAX)
    wanted = bounds.names("names", names, bounds.SEEDS_MAX)
    if not wanted:
        raise bounds.field_required("names", "Name a page to begin at.")
    if not hops:
        raise bounds.field_required("hops", "Say which links to follow.")
    bounds.at_most("hops", hops, bounds.HOPS_MAX)
    for hop in hops:
        bounds.types("hops.link_types", hop.link_types)
        bounds.types("hops.page_types", hop.page_types)
    if source:
        viewer_of(context, source)  # asked for a source it may not read, a caller is told so
    viewer = viewer_of(context)
    resolved = await resolve(store, viewer, names=wanted, source=source or None)
    reached = [await follow(store, viewer, [match.page for match in matches], hops) for matches in resolved if matches]
    unresolved = tuple(name for name, matches in zip(wanted, resolved, strict=True) if not matches)
    seeds = {match.page.page_id: match for matches in resolved for match in matches}
    answers = sorted(shared_by_all(reached), key=order_of)[:most]
    return Relation(answers=tuple(answers), seeds=tuple(seeds.values()), unresolved=unresolved)


async def follow(
    store: GraphStore, viewer: Viewer, seeds: Sequence[GraphPage], hops: Sequence[RelationHop]
) -> Mapping[PageId, RelationAnswer]:
    """The pages at the end of the hops, each with the best evidence for it."""
    paths: dict[PageId, list[RelationAnswer]] = {seed.page_id: [RelationAnswer(page=seed, path=())] for seed in seeds}
    for hop in hops:
        steps = await store.hops(
            list(paths),
            viewer,
            direction=hop.direction,
            link_types=hop.link_types,
            page_types=hop.page_types,
            limit=STEPS_MAX,
        )
        paths = further(paths, steps)
    return {page_id: answers[0] for page_id, answers in paths.items()}


def further(
    paths: Mapping[PageId, Sequence[RelationAnswer]], steps: Sequence[Hop]
) -> dict[PageId, list[RelationAnswer]]:
    """The paths one step longer: of each page reached the two best, by the order of answers.

    Two, because the best may end in the very edge that the next step would go back on, and the second then does not.
    """
    longer: dict[PageId, list[RelationAnswer]] = {}
    for step in steps:
        edge = edge_of(step.link)
        for answer in paths.get(step.near.page_id, ()):
            if edge not in map(edge_of, answer.path):
                grown = RelationAnswer(page=step.far, path=(*answer.path, step.link))
                longer.setdefault(step.far.page_id, []).append(grown)
    best = {page_id: sorted(answers, key=order_of)[:2] for page_id, answers in longer.items()}
    nearest = sorted(best.items(), key=lambda item: order_of(item[1][0]))[:FRONTIER_MAX]
    return dict(nearest)


def shared_by_all(reached: Sequence[Mapping[PageId, RelationAnswer]]) -> list[RelationAnswer]:
    """The answers that every name leads to; when there are none, those of each name."""
    shared = set.intersection(*(set(answers) for answers in reached)) if reached else set()
    merged: dict[PageId, RelationAnswer] = {}
    for answers in reached:
        for page_id, answer in answers.items():
            held = merged.get(page_id)
            if (not shared or page_id in shared) and (held is None or order_of(answer) < order_of(held)):
                merged[page_id] = answer
    return list(merged.values())


def order_of(answer: RelationAnswer) -> tuple[int, int, str, str, tuple[str, ...]]:
    """Fewest hops first, then what frontmatter states before what a text says, then by slug."""
    said = sum(link.provenance is not LinkProvenance.FRONTMATTER for link in answer.path)
    way = tuple(link.from_page.slug for link in answer.path)
    return len(answer.path), said, answer.page.slug, answer.page.source, way
