"""The words that every reading statement shares: what a viewer sees, where a link leads for it, and rows as values."""

# ruff: noqa: S608  (statements are put together from our own words; every value is a parameter)

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from services.domain.page import LinkProvenance
from services.domain.records import PageId
from services.graph.adapters.sqlite.schema import AMBIGUOUS
from services.graph.adapters.sqlite.writes import PROVENANCES
from services.graph.ports import GraphPage, Link, Viewer

Value: TypeAlias = str | int | None
Row: TypeAlias = Sequence[Value]
Parameters: TypeAlias = dict[str, Value]

LINK_COLUMNS = "l.provenance, t.name, l.source, l.name, l.line, l.fragment, l.embed, l.context"
LINK_WIDTH = 8
TYPE_OF_LINK = "JOIN link_types t ON t.id = l.type"
PAGE_WIDTH = 6


def page_columns(alias: str) -> str:
    """The columns of a page, in the order that `page_of` reads."""
    return f"{alias}.source, {alias}.slug, {alias}.page_id, {alias}.title, {alias}.type, {alias}.revision"


def page_of(row: Row) -> GraphPage | None:
    """A page from its columns; None when an outer join found none."""
    source, slug, page_id, title, kind, revision = row
    if page_id is None:
        return None
    return GraphPage(
        source=str(source),
        slug=str(slug),
        page_id=PageId(str(page_id)),
        title=str(title),
        type=str(kind),
        revision=int(revision or 0),
    )


def ghost_of(source: Value, name: Value) -> GraphPage:
    """What stands at the end of a link whose name leads nowhere."""
    return GraphPage(source=str(source), slug=str(name))


def link_of(row: Row, from_page: GraphPage, to_page: GraphPage, *, made_by: PageId, ambiguous: bool = False) -> Link:
    """A link from its columns and its ends."""
    provenance, link_type, _, name, line, fragment, embed, context = row
    return Link(
        from_page=from_page,
        to_page=to_page,
        link_type=str(link_type),
        provenance=provenance_of(provenance),
        name=str(name),
        made_by=made_by,
        context=str(context),
        line=int(line or 0),
        fragment=str(fragment),
        embed=bool(embed),
        ambiguous=ambiguous,
    )


def provenance_of(code: Value) -> LinkProvenance:
    """The provenance behind its code."""
    return PROVENANCES[int(code or 0)]


def visible(alias: str, viewer: Viewer) -> str:
    """The condition that a viewer sees a page: the one predicate, in every statement, never a filter afterwards."""
    conditions = [] if viewer.sources is None else [readable(alias, viewer)]
    if not viewer.private:
        conditions.append(f"{alias}.private = 0")
    return " AND ".join(conditions) or "1"


def readable(alias: str, viewer: Viewer) -> str:
    """The condition that a viewer may read a row's source."""
    if viewer.sources is None:
        return "1"
    return f"{alias}.source IN (SELECT value FROM json_each(:sources))"


def viewer_parameters(viewer: Viewer) -> Parameters:
    """What `visible` and `readable` ask for."""
    return {} if viewer.sources is None else {"sources": json_list(sorted(viewer.sources))}


def target(viewer: Viewer) -> str:
    """Where link `l` leads for a viewer: the id of a page, which may be out of sight still, or GHOST or AMBIGUOUS."""
    return "l.target" if viewer.private else "COALESCE(l.world_target, l.target)"


def ambiguous(viewer: Viewer) -> str:
    """Whether link `l` is ambiguous to a viewer; in a source it may not read, nothing is known of its names."""
    return f"({target(viewer)} = {AMBIGUOUS} AND {readable('l', viewer)})"


def targets(viewer: Viewer) -> tuple[str, ...]:
    """The columns of which one holds a visible page's id when link `l` leads to it for the viewer.

    Whoever sees no private page sees fewer candidates for a name. A page that all of them chose, they still choose, so
    its `world_target` is NULL; a page that only the fewer chose is in `world_target`. No link is found by both.
    """
    return ("l.target",) if viewer.private else ("l.target", "l.world_target")


def json_list(values: Iterable[str | int]) -> str:
    """A list as a parameter for `json_each`."""
    return json.dumps(list(values), ensure_ascii=False)
