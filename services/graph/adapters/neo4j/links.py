"""Reading links: of one page in order, counted for many, and as the steps of a walk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from services.domain.records import PageId
from services.graph.adapters.neo4j.connection import Parameters, Statements, Value
from services.graph.adapters.neo4j.cypher import (
    LINK_MAP,
    MENTION,
    OF_LINKS,
    ends_of,
    link_of,
    page,
    page_map,
    page_of,
    viewer_parameters,
    visible,
    written_here,
    written_there,
)
from services.graph.ports import Direction, GraphPage, Hop, Link, LinkPosition, Viewer

OF_TYPES = "($link_types = [] OR l.type IN $link_types)"
"""The condition that link `l` has one of the types; no types means all."""

_IN_ORDER = """
    WHERE link_type > $type OR (link_type = $type AND (far > $far OR (far = $far AND (
      made_by > $made_by OR (made_by = $made_by AND ordinal > $ordinal)))))
    RETURN link_type, far, made_by, ordinal, link, here, other, fits
    ORDER BY link_type, far, made_by, ordinal LIMIT $limit
"""
"""Rows after a position, the first of them."""


LIST_LINKS = f"""
    MATCH {page("m", "$page_id")} WHERE {visible("m")}
    {written_here(f"l.inward = $arriving AND {OF_TYPES}")} WHERE ends <> [m]
    WITH l, k, m, ends, CASE WHEN size(ends) = 1 THEN ends[0] END AS f
    WITH l.type AS link_type, coalesce(f.slug, l.name) AS far, m.page_id AS made_by, l.ordinal AS ordinal,
      {LINK_MAP} AS link, {page_map("m")} AS here,
      CASE WHEN f IS NULL THEN {{source: k.source, slug: l.name}} ELSE {page_map("f")} END AS other,
      CASE WHEN size(ends) > 1 THEN [e IN ends | {page_map("e")}] ELSE [] END AS fits
    {_IN_ORDER}
    UNION ALL
    MATCH {page("h", "$page_id")} WHERE {visible("h")}
    {written_there(f"l.inward <> $arriving AND {OF_TYPES}")}
    WITH l.type AS link_type, m.slug AS far, m.page_id AS made_by, l.ordinal AS ordinal,
      {LINK_MAP} AS link, {page_map("h")} AS here, {page_map("m")} AS other, [] AS fits
    {_IN_ORDER}
"""
"""The links of a page that it wrote itself, then those that others wrote, each the first in order."""


async def list_links(
    statements: Statements,
    store: str,
    page_id: PageId,
    viewer: Viewer,
    *,
    arriving: bool,
    link_types: Sequence[str],
    after: LinkPosition | None,
    limit: int,
) -> list[tuple[LinkPosition, Link]]:
    """See `GraphStore.list_links`."""
    start = after or LinkPosition("", "", "", -1)
    parameters: Parameters = {
        **viewer_parameters(viewer),
        **OF_LINKS,
        "store": store,
        "page_id": page_id,
        "arriving": arriving,
        "link_types": list(link_types),
        "type": start.link_type,
        "far": start.far,
        "made_by": start.made_by,
        "ordinal": start.ordinal,
        "limit": limit,
    }
    rows = await statements.run(LIST_LINKS, parameters)
    found = []
    for row in rows:
        made_by, ordinal = PageId(str(row["made_by"])), cast("int", row["ordinal"])
        position = LinkPosition(str(row["link_type"]), str(row["far"]), made_by, ordinal)
        here, other = page_of(row["here"]), end_of(row["other"])
        ends = (other, here) if arriving else (here, other)
        link = link_of(row["link"], *ends, made_by=made_by, fits=ends_of(row))
        found.append((position, link))
    found.sort(key=lambda one: one[0])
    return found[:limit]


def end_of(value: Value) -> GraphPage:
    """The page at the far end of a link, or the ghost there."""
    row = cast("dict[str, str]", value)
    return page_of(value) if "page_id" in row else GraphPage(source=row["source"], slug=row["slug"])


COUNT_BACKLINKS = f"""
    UNWIND $page_ids AS page_id MATCH {page("h", "page_id")} WHERE {visible("h")}
    CALL (h) {{
      {written_there("NOT l.inward")} RETURN m AS begin
      UNION
      WITH h AS m {written_here("l.inward")} WHERE size(ends) = 1 AND ends <> [m] RETURN ends[0] AS begin
    }}
    RETURN h.page_id AS page_id, count(DISTINCT begin) AS makers
"""
"""How many distinct pages have a link to each page, whichever of the two wrote it."""


async def count_backlinks(statements: Statements, store: str, page_ids: Sequence[PageId], viewer: Viewer) -> list[int]:
    """See `GraphStore.count_backlinks`."""
    parameters = {**viewer_parameters(viewer), **OF_LINKS, "store": store, "page_ids": list(dict.fromkeys(page_ids))}
    rows = await statements.run(COUNT_BACKLINKS, parameters)
    counts = {str(row["page_id"]): cast("int", row["makers"]) for row in rows}
    return [counts.get(page_id, 0) for page_id in page_ids]


def _steps(edges: str) -> str:
    """The steps from a frontier over some edges from `h` to `f`, each with its best evidence, the first in order."""
    return f"""
        UNWIND $frontier AS page_id MATCH {page("h", "page_id")} WHERE {visible("h")}
        {edges} WHERE $page_types = [] OR f.type IN $page_types
        WITH h, f, l, m ORDER BY l.provenance, l.ordinal, m.page_id
        WITH h, f, l.type AS link_type, collect({{link: {LINK_MAP}, made_by: m.page_id}})[0] AS best
        RETURN best.link AS link, best.made_by AS made_by, link_type, {page_map("h")} AS near, {page_map("f")} AS far
        ORDER BY link_type, f.slug, f.source, h.slug, h.source, f.page_id, h.page_id LIMIT $limit
    """


_FOLLOWED = f"l.provenance <> {MENTION} AND {OF_TYPES}"
_BY_NEAR = f"""
    WITH h, h AS m {written_here(f"l.inward = $against AND {_FOLLOWED}")}
    WHERE size(ends) = 1 AND ends <> [h] WITH h, l, ends[0] AS f, m
"""
_BY_FAR = f"WITH h {written_there(f'l.inward <> $against AND {_FOLLOWED}')} WITH h, l, m AS f, m"

HOPS = f"{_steps(_BY_NEAR)} UNION ALL {_steps(_BY_FAR)}"
"""The edges of a frontier in one way: those that the near page wrote, then those that the far page wrote."""


async def hops(
    statements: Statements,
    store: str,
    frontier: Sequence[PageId],
    viewer: Viewer,
    *,
    direction: Direction,
    link_types: Sequence[str],
    page_types: Sequence[str],
    limit: int,
) -> list[Hop]:
    """See `GraphStore.hops`."""
    parameters: Parameters = {
        **viewer_parameters(viewer),
        **OF_LINKS,
        "store": store,
        "frontier": list(dict.fromkeys(frontier)),
        "link_types": list(link_types),
        "page_types": list(page_types),
        "limit": limit,
    }
    ways = (Direction.OUT, Direction.IN) if direction is Direction.BOTH else (direction,)
    best: dict[tuple[object, ...], tuple[tuple[int, int, str], Hop]] = {}
    # Every branch is in the order of the whole, so that the first of each are enough for the first of all.
    for against, row in [
        (way is Direction.IN, row)
        for way in ways
        for row in await statements.run(HOPS, {**parameters, "against": way is Direction.IN})
    ]:
        near, far = page_of(row["near"]), page_of(row["far"])
        columns = cast("dict[str, int]", row["link"])
        made_by = PageId(str(row["made_by"]))
        weight = (columns["provenance"], columns["ordinal"], made_by)
        step = (row["link_type"], far.slug, far.source, near.slug, near.source, against, far.page_id, near.page_id)
        if step not in best or weight < best[step][0]:
            ends = (far, near) if against else (near, far)
            best[step] = (weight, Hop(link_of(row["link"], *ends, made_by=made_by, fits=[]), near, far, against))
    # Two ends with one address, one of them a name without a page: a page may come while the links are read.
    ordered = sorted(best, key=lambda step: tuple("" if part is None else part for part in step))
    return [best[step][1] for step in ordered[:limit]]
