"""Graph's values as protobuf messages and back."""

from __future__ import annotations

import json
from collections.abc import Sequence

from brain.v1 import graph_service_pb2 as pb
from brain.v1 import projection_pb2
from services.domain.errors import InvalidArgument
from services.graph.app.walks import RelationAnswer, RelationHop, TraversedEdge
from services.graph.naming import NameKind
from services.graph.ports import Direction, GraphPage, GraphStats, Link, LinkPosition, NameMatch, UnresolvedPosition
from services.runtime.projection import ProjectionProgress

DIRECTIONS = {
    pb.DIRECTION_UNSPECIFIED: Direction.OUT,
    pb.DIRECTION_OUT: Direction.OUT,
    pb.DIRECTION_IN: Direction.IN,
    pb.DIRECTION_BOTH: Direction.BOTH,
}

NAME_KINDS = {
    NameKind.SLUG: pb.NAME_KIND_SLUG,
    NameKind.REDIRECT: pb.NAME_KIND_REDIRECT,
    NameKind.TITLE: pb.NAME_KIND_TITLE,
    NameKind.ALIAS: pb.NAME_KIND_ALIAS,
    NameKind.SLUG_TAIL: pb.NAME_KIND_SLUG_TAIL,
    NameKind.FORMER_TAIL: pb.NAME_KIND_SLUG_TAIL,
    NameKind.UNDATED_TAIL: pb.NAME_KIND_SLUG_TAIL,
}

NO_SUCH_PAGE = "no such page"
AMBIGUOUS = "ambiguous"

ORDINALS_MAX = 2**31
"""Of a link in its page, far above what a page may hold; a token somebody made up may hold anything."""


def direction(value: pb.Direction.ValueType) -> Direction:
    """Which way links are followed.

    Raises:
        InvalidArgument: A number that is no direction.
    """
    if value not in DIRECTIONS:
        raise InvalidArgument(
            "FIELD_INVALID", "direction is none", field="direction", value=value, next_step="Use out, in or both."
        )
    return DIRECTIONS[value]


def relation_hop(message: pb.RelationHop) -> RelationHop:
    """One step of a relational question."""
    return RelationHop(
        link_types=tuple(message.link_types),
        direction=direction(message.direction),
        page_types=tuple(message.page_types),
    )


def page(value: GraphPage) -> pb.GraphPage:
    """A page, or a ghost."""
    return pb.GraphPage(
        source=value.source,
        slug=value.slug,
        page_id=value.page_id,
        title=value.title,
        type=value.type,
        revision=value.revision,
    )


def link(value: Link) -> pb.Link:
    """A link in its own direction."""
    return pb.Link(
        from_page=page(value.from_page),
        to_page=page(value.to_page),
        link_type=value.link_type,
        provenance=value.provenance,
        name=value.name,
        context=value.context,
        line=value.line,
        fragment=value.fragment,
        embed=value.embed,
        made_by_page_id=value.made_by,
        candidates=map(page, value.candidates),
    )


def traversed_edge(value: TraversedEdge) -> pb.TraversedEdge:
    """One step of a walk."""
    return pb.TraversedEdge(link=link(value.link), depth=value.depth, inward=value.inward, tree=value.tree)


def name_match(value: NameMatch) -> pb.NameMatch:
    """A page that has a name."""
    return pb.NameMatch(page=page(value.page), kind=NAME_KINDS[value.kind], name=value.name)


def resolved_name(name: str, matches: Sequence[NameMatch]) -> pb.ResolvedName:
    """What a name leads to."""
    return pb.ResolvedName(name=name, matches=map(name_match, matches))


def relation_answer(value: RelationAnswer) -> pb.RelationAnswer:
    """A page with the links that lead to it."""
    return pb.RelationAnswer(page=page(value.page), path=map(link, value.path))


def unresolved_reference(value: Link) -> pb.UnresolvedReference:
    """A reference that leads to no single page."""
    return pb.UnresolvedReference(link=link(value), reason=AMBIGUOUS if value.ambiguous else NO_SUCH_PAGE)


def graph_stats(value: GraphStats, state: projection_pb2.ProjectionState) -> pb.GetGraphStatsResponse:
    """Counts of what is held."""
    return pb.GetGraphStatsResponse(
        pages=value.pages,
        links=value.links,
        ghosts=value.ghosts,
        link_types=[pb.LinkTypeCount(link_type=name, links=count) for name, count in value.link_types],
        projection=state,
        timeline_entries=value.timeline_entries,
    )


def projection_state(progress: ProjectionProgress, *, engine: str) -> projection_pb2.ProjectionState:
    """How far the projection is."""
    return projection_pb2.ProjectionState(
        projection=progress.projection,
        store_id=progress.store_id,
        indexed_revision=progress.indexed_revision,
        last_revision=progress.last_revision,
        pending=progress.pending,
        dead_letters=progress.dead_letters,
        ready=progress.ready,
        rebuilding=progress.rebuilding,
        engine=engine,
        waiting_for=progress.waiting_for,
    )


def position_text(position: LinkPosition | UnresolvedPosition) -> str:
    """A position in a list, as a page token carries it."""
    return json.dumps(position, ensure_ascii=False, separators=(",", ":"))


def link_position(text: str) -> LinkPosition:
    """The position in a list of links that `position_text` wrote.

    Raises:
        InvalidArgument: `PAGE_TOKEN_INVALID` when it is none.
    """
    (link_type, far, made_by), ordinal = position_parts(text, 3)
    return LinkPosition(link_type, far, made_by, ordinal)


def unresolved_position(text: str) -> UnresolvedPosition:
    """The position in a list of unresolved references that `position_text` wrote.

    Raises:
        InvalidArgument: `PAGE_TOKEN_INVALID` when it is none.
    """
    (source, slug, made_by), ordinal = position_parts(text, 3)
    return UnresolvedPosition(source, slug, made_by, ordinal)


def position_parts(text: str, words: int) -> tuple[list[str], int]:
    """The words and the ordinal of a position."""
    try:
        *parts, ordinal = json.loads(text)
        named = [part for part in parts if isinstance(part, str) and part.encode() is not None]
        if len(named) == len(parts) == words and type(ordinal) is int and 0 <= ordinal < ORDINALS_MAX:
            return named, ordinal
    except (ValueError, TypeError):
        pass  # As wrong as a position of the wrong shape.
    raise InvalidArgument(
        "PAGE_TOKEN_INVALID",
        "the page token holds no position of this list",
        field="page_token",
        next_step="Leave it out to begin anew.",
    )
