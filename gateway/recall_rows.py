"""What search and graph answer, as the rows that the pipeline of `gateway.retrieval` reads."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from brain.v1 import graph_service_pb2 as graph
from brain.v1 import search_service_pb2 as search
from gateway.retrieval.model import (
    Arm,
    ArmRow,
    MissingArm,
    NameKind,
    NameMatch,
    PageRef,
    PathStep,
    RelationalAnswer,
)
from gateway.retrieval.plan import Hop
from services.domain.page import ChunkKind

RETRIEVERS: Mapping[Arm, search.Retriever.ValueType] = {
    Arm.DENSE: search.RETRIEVER_DENSE,
    Arm.LEXICAL_PAGES: search.RETRIEVER_LEXICAL_PAGES,
    Arm.LEXICAL_CHUNKS: search.RETRIEVER_LEXICAL_CHUNKS,
    Arm.TITLE: search.RETRIEVER_TITLE,
}
ARMS: Mapping[int, Arm] = {retriever: arm for arm, retriever in RETRIEVERS.items()}

_CHUNK_KINDS: Mapping[str, ChunkKind | None] = {"": None} | {kind.value: kind for kind in ChunkKind}
_DIRECTIONS = {"out": graph.DIRECTION_OUT, "in": graph.DIRECTION_IN}
_KINDS: Mapping[int, NameKind] = {
    graph.NAME_KIND_SLUG: NameKind.SLUG,
    graph.NAME_KIND_REDIRECT: NameKind.REDIRECT,
    graph.NAME_KIND_TITLE: NameKind.TITLE,
    graph.NAME_KIND_ALIAS: NameKind.ALIAS,
    graph.NAME_KIND_SLUG_TAIL: NameKind.SLUG_TAIL,
}


def rows_of(response: search.SearchPassagesResponse) -> dict[Arm, tuple[ArmRow, ...]]:
    """The lists by arm. A page that stands in several lists is converted once: most do."""
    pages: dict[str, PageRef] = {}
    return {ARMS[found.retriever]: tuple(row_of(hit, pages) for hit in found.hits) for found in response.lists}


def row_of(hit: search.PassageHit, pages: dict[str, PageRef] | None = None) -> ArmRow:
    """A hit as a row; `pages` holds the pages converted before, by id, and learns this one's."""
    shown = hit.page
    page = pages.get(shown.page_id) if pages is not None else None
    if page is None:
        page = page_of(shown)
        if pages is not None:
            pages[page.page_id] = page
    ordinal = hit.ordinal
    return ArmRow(
        page=page,
        score=hit.score,
        ordinal=ordinal if ordinal >= 0 else None,
        chunk_kind=_CHUNK_KINDS[hit.chunk_kind],
        heading=hit.heading,
        text=hit.snippet,
        matched_tokens=tuple(hit.matched_tokens),
    )


def passes(page: search.PageSummary, wanted: search.PageFilter) -> bool:
    """Whether a page that graph brought is one that the filter lets through, as search applies it to its own lists."""
    return (
        (not wanted.source or page.source == wanted.source)
        and (not wanted.types or page.type in wanted.types)
        and all(tag in page.tags for tag in wanted.tags)
        and page.slug.startswith(wanted.slug_prefix)
        and (
            not wanted.HasField("updated_after_time")
            or page.update_time.ToNanoseconds() >= wanted.updated_after_time.ToNanoseconds()
        )
        and (not wanted.since or page.date >= wanted.since)
        # The whole period that `until` names is included: 2026-03 lets 2026-03-31 through.
        and (not wanted.until or (bool(page.date) and page.date[: len(wanted.until)] <= wanted.until))
    )


def missing_of(response: search.SearchPassagesResponse) -> tuple[MissingArm, ...]:
    """The arms that search left out, with its reason."""
    return tuple(MissingArm(arm=ARMS[missing.retriever], reason=missing.reason) for missing in response.missing)


def page_of(page: search.PageSummary) -> PageRef:
    """A page as search knows it."""
    return PageRef(
        page_id=page.page_id,
        source=page.source,
        slug=page.slug,
        title=page.title,
        type=page.type,
        revision=page.revision,
        aliases=tuple(page.aliases),
        date=page.date,
        update_time=datetime.fromtimestamp(page.update_time.seconds, UTC) if page.HasField("update_time") else None,
    )


def graph_page_of(page: graph.GraphPage) -> PageRef:
    """A page as graph knows it: without aliases and date, which search adds where it can."""
    return PageRef(
        page_id=page.page_id,
        source=page.source,
        slug=page.slug,
        title=page.title,
        type=page.type,
        revision=page.revision,
    )


def names_of(response: graph.BatchResolveNamesResponse) -> tuple[NameMatch, ...]:
    """Every page that has one of the names asked for."""
    return tuple(
        NameMatch(name=resolved.name, kind=_KINDS[match.kind], page=graph_page_of(match.page))
        for resolved in response.names
        for match in resolved.matches
    )


def answers_of(response: graph.AnswerRelationResponse) -> tuple[RelationalAnswer, ...]:
    """The pages that graph answers with, with the links that lead to each."""
    return tuple(
        RelationalAnswer(page=graph_page_of(answer.page), path=tuple(_step(link) for link in answer.path))
        for answer in response.answers
    )


def hop_of(hop: Hop) -> graph.RelationHop:
    """A hop of a plan, as graph takes it."""
    return graph.RelationHop(link_types=hop.link_types, direction=_DIRECTIONS[hop.direction.value])


def _step(link: graph.Link) -> PathStep:
    return PathStep(
        from_slug=link.from_page.slug, link_type=link.link_type, to_slug=link.to_page.slug, context=link.context
    )
