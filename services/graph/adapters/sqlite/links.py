"""Reading links: of one page in order, counted for many, and as the steps of a walk."""

# ruff: noqa: S608  (statements are put together from our own words; every value is a parameter)

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from services.domain.page import LinkProvenance
from services.domain.records import PageId
from services.graph.adapters.sqlite.rows import (
    LINK_COLUMNS,
    LINK_WIDTH,
    PAGE_WIDTH,
    TYPE_OF_LINK,
    Parameters,
    ambiguous,
    ghost_of,
    json_list,
    link_of,
    page_columns,
    page_of,
    target,
    targets,
    viewer_parameters,
    visible,
)
from services.graph.adapters.sqlite.writes import PROVENANCE_CODES
from services.graph.ports import Direction, GraphPage, Hop, Link, LinkPosition, Viewer

MENTION = PROVENANCE_CODES[LinkProvenance.MENTION]


def of_types(link_types: Sequence[str]) -> str:
    """The condition that link `l` has one of the types; no types means all."""
    wanted = "SELECT id FROM link_types WHERE name IN (SELECT value FROM json_each(:link_types))"
    return f"l.type IN ({wanted})" if link_types else "1"


def list_links(
    connection: sqlite3.Connection,
    page_id: PageId,
    viewer: Viewer,
    *,
    arriving: bool,
    link_types: Sequence[str],
    after: LinkPosition | None,
    limit: int,
) -> list[tuple[LinkPosition, Link]]:
    """See `GraphStore.list_links`; candidates of ambiguous links are left to the caller."""
    made_here = f"""
        SELECT t.name AS link_type, COALESCE(f.slug, l.name) AS far, {ambiguous(viewer)} AS ambiguous,
               h.page_id AS made_by, l.ordinal,
               {LINK_COLUMNS}, {page_columns("h")}, {page_columns("f")}
        FROM pages h JOIN links l ON l.maker = h.id {TYPE_OF_LINK}
        LEFT JOIN pages f ON f.id = {target(viewer)} AND {visible("f", viewer)}
        WHERE h.page_id = :page_id AND {visible("h", viewer)} AND l.inward = :arriving AND {of_types(link_types)}
          AND {target(viewer)} <> h.id
    """
    made_there = [
        f"""
        SELECT t.name, f.slug, 0, f.page_id, l.ordinal, {LINK_COLUMNS}, {page_columns("h")}, {page_columns("f")}
        FROM pages h JOIN links l ON {column} = h.id {TYPE_OF_LINK}
        JOIN pages f ON f.id = l.maker AND {visible("f", viewer)}
        WHERE h.page_id = :page_id AND {visible("h", viewer)} AND l.inward = :leaving AND {of_types(link_types)}
          AND f.id <> h.id
        """
        for column in targets(viewer)
    ]
    statement = f"""
        SELECT * FROM ({" UNION ALL ".join([made_here, *made_there])})
        WHERE (link_type, far, made_by, ordinal) > (:type, :far, :made_by, :ordinal)
        ORDER BY link_type, far, made_by, ordinal LIMIT :limit
    """
    start = after or LinkPosition("", "", "", -1)
    parameters: Parameters = {
        **viewer_parameters(viewer),
        "page_id": page_id,
        "arriving": int(arriving),
        "leaving": int(not arriving),
        "link_types": json_list(link_types),
        "type": start.link_type,
        "far": start.far,
        "made_by": start.made_by,
        "ordinal": start.ordinal,
        "limit": limit,
    }
    found = []
    for row in connection.execute(statement, parameters):
        link_type, far_name, fits_several, made_by, ordinal = row[:5]
        link_row = row[5 : 5 + LINK_WIDTH]
        here = page_of(row[5 + LINK_WIDTH : 5 + LINK_WIDTH + PAGE_WIDTH])
        far = page_of(row[5 + LINK_WIDTH + PAGE_WIDTH :]) or ghost_of(link_row[2], link_row[3])
        assert here is not None
        ends = (far, here) if arriving else (here, far)
        link = link_of(link_row, *ends, made_by=PageId(made_by), ambiguous=bool(fits_several))
        found.append((LinkPosition(link_type, far_name, made_by, ordinal), link))
    return found


def count_backlinks(connection: sqlite3.Connection, page_ids: Sequence[PageId], viewer: Viewer) -> list[int]:
    """See `GraphStore.count_backlinks`."""
    everything = viewer.private and viewer.sources is None
    seen = "1" if everything else f"EXISTS (SELECT 1 FROM pages f WHERE f.id = near AND {visible('f', viewer)})"
    # Of a page that links here by two names, one may be in either column: it is counted in the first.
    once = "NOT EXISTS (SELECT 1 FROM links k WHERE k.target = h.id AND k.inward = 0 AND k.maker = l.maker)"
    arriving = [
        "SELECT DISTINCT l.maker AS near FROM links l"
        f" WHERE {column} = h.id AND l.inward = 0 AND near <> h.id AND {seen} AND {once if place else '1'}"
        for place, column in enumerate(targets(viewer))
    ]
    stated_here = f"""
        SELECT DISTINCT {target(viewer)} AS near FROM links l WHERE l.maker = h.id AND l.inward = 1
        AND near > 0 AND near <> h.id AND {seen} AND near NOT IN ({" UNION ALL ".join(arriving)})
    """
    counted = " + ".join(f"(SELECT COUNT(*) FROM ({makers}))" for makers in [*arriving, stated_here])
    statement = f"""
        SELECT h.page_id, {counted} FROM json_each(:page_ids) j JOIN pages h ON h.page_id = j.value
        WHERE {visible("h", viewer)}
    """
    parameters = {**viewer_parameters(viewer), "page_ids": json_list(dict.fromkeys(page_ids))}
    counts = dict(connection.execute(statement, parameters).fetchall())
    return [counts.get(page_id, 0) for page_id in page_ids]


def hops(
    connection: sqlite3.Connection,
    frontier: Sequence[PageId],
    viewer: Viewer,
    *,
    direction: Direction,
    link_types: Sequence[str],
    page_types: Sequence[str],
    limit: int,
) -> list[Hop]:
    """See `GraphStore.hops`."""
    directions = (Direction.OUT, Direction.IN) if direction is Direction.BOTH else (direction,)
    followed = f"l.provenance <> {MENTION} AND {of_types(link_types)}"
    steps = []
    for way in directions:
        against = int(way is Direction.IN)
        steps.append(
            f"SELECT n.id AS near, {target(viewer)} AS far, {against} AS against, l.maker, l.ordinal, l.type,"
            f" l.provenance FROM near n JOIN links l ON l.maker = n.id AND l.inward = {against} WHERE {followed}"
        )
        steps.extend(
            f"SELECT n.id, l.maker, {against}, l.maker, l.ordinal, l.type, l.provenance"
            f" FROM near n JOIN links l ON {column} = n.id AND l.inward = {1 - against} WHERE {followed}"
            for column in targets(viewer)
        )
    far_types = "f.type IN (SELECT value FROM json_each(:page_types))" if page_types else "1"
    statement = f"""
        WITH near (id) AS MATERIALIZED (
          SELECT n.id FROM json_each(:frontier) j JOIN pages n ON n.page_id = j.value WHERE {visible("n", viewer)}
        ), edges AS (
          SELECT near, far, against, maker, ordinal, MIN(provenance * 1000000000 + ordinal)
          FROM ({" UNION ALL ".join(steps)}) WHERE far > 0 AND far <> near GROUP BY near, far, against, type
        )
        SELECT e.against, e.maker = e.near, {LINK_COLUMNS}, {page_columns("n")}, {page_columns("f")}
        FROM edges e JOIN pages f ON f.id = e.far JOIN pages n ON n.id = e.near
        JOIN links l ON l.maker = e.maker AND l.ordinal = e.ordinal {TYPE_OF_LINK}
        WHERE {visible("f", viewer)} AND {far_types}
        ORDER BY t.name, f.slug, f.source, n.slug, n.source, e.against LIMIT :limit
    """
    parameters: Parameters = {
        **viewer_parameters(viewer),
        "frontier": json_list(frontier),
        "link_types": json_list(link_types),
        "page_types": json_list(page_types),
        "limit": limit,
    }
    found = []
    pages: dict[str, GraphPage] = {}
    for row in connection.execute(statement, parameters):
        near = shared_page(row[2 + LINK_WIDTH : 2 + LINK_WIDTH + PAGE_WIDTH], pages)
        far = shared_page(row[2 + LINK_WIDTH + PAGE_WIDTH :], pages)
        ends = (far, near) if row[0] else (near, far)
        made_by = near.page_id if row[1] else far.page_id
        link = link_of(row[2 : 2 + LINK_WIDTH], *ends, made_by=made_by)
        found.append(Hop(link, near, far, bool(row[0])))
    return found


def shared_page(row: Sequence[str | int | None], pages: dict[str, GraphPage]) -> GraphPage:
    """The page of these columns, made once for all the edges of an answer that touch it."""
    page_id = str(row[2])
    page = pages.get(page_id)
    if page is None:
        page = page_of(row)
        assert page is not None
        pages[page_id] = page
    return page


def with_candidates(link: Link, candidates: Sequence[GraphPage]) -> Link:
    """The link showing the pages its name fits."""
    return replace(link, candidates=tuple(candidates))
