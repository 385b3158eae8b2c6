"""Reading the whole store: references that lead nowhere, counts, and what is held by slug."""

# ruff: noqa: S608  (statements are put together from our own words; every value is a parameter)

from __future__ import annotations

import sqlite3

from services.domain.records import PageId, PageKey
from services.graph.adapters.sqlite.rows import (
    LINK_COLUMNS,
    LINK_WIDTH,
    TYPE_OF_LINK,
    Parameters,
    ambiguous,
    ghost_of,
    link_of,
    page_columns,
    page_of,
    readable,
    target,
    viewer_parameters,
    visible,
)
from services.graph.ports import GraphStats, HeldRevision, Link, UnresolvedPosition, Viewer

LINK_TYPES_MAX = 200
"""Counted apart; a brain with more has types by accident."""


def unresolved(viewer: Viewer) -> str:
    """The links `l` of visible pages `m` that lead to no page for the viewer, as a FROM clause with conditions.

    A page in a source it may not read is no page for it, so a link there is unresolved whether or not it leads on.
    """
    nowhere = [f"SELECT l.maker, l.ordinal FROM links l WHERE l.target <= 0 AND {target(viewer)} <= 0"]
    if not viewer.private:
        nowhere.append("SELECT l.maker, l.ordinal FROM links l WHERE l.world_target <= 0")
    if viewer.sources is not None:
        nowhere.append(f"SELECT l.maker, l.ordinal FROM links l WHERE NOT {readable('l', viewer)}")
    return f"""
        FROM ({" UNION ".join(nowhere)}) u JOIN links l ON l.maker = u.maker AND l.ordinal = u.ordinal
        {TYPE_OF_LINK} JOIN pages m ON m.id = l.maker WHERE {visible("m", viewer)}
    """


def list_unresolved(
    connection: sqlite3.Connection, viewer: Viewer, *, after: UnresolvedPosition | None, limit: int
) -> list[tuple[UnresolvedPosition, Link]]:
    """See `GraphStore.list_unresolved`; candidates of ambiguous links are left to the caller."""
    statement = f"""
        SELECT {ambiguous(viewer)}, l.inward, l.ordinal, {LINK_COLUMNS}, {page_columns("m")} {unresolved(viewer)}
        AND (m.source, m.slug, l.ordinal) > (:source, :slug, :ordinal)
        ORDER BY m.source, m.slug, l.ordinal LIMIT :limit
    """
    start = after or UnresolvedPosition("", "", -1)
    parameters: Parameters = {**viewer_parameters(viewer), **start._asdict(), "limit": limit}
    found = []
    for row in connection.execute(statement, parameters):
        fits_several, inward, ordinal = row[:3]
        link_row = row[3 : 3 + LINK_WIDTH]
        maker = page_of(row[3 + LINK_WIDTH :])
        assert maker is not None
        ghost = ghost_of(link_row[2], link_row[3])
        ends = (ghost, maker) if inward else (maker, ghost)
        link = link_of(link_row, *ends, made_by=maker.page_id, ambiguous=bool(fits_several))
        found.append((UnresolvedPosition(maker.source, maker.slug, ordinal), link))
    return found


def stats(connection: sqlite3.Connection, viewer: Viewer) -> GraphStats:
    """See `GraphStore.stats`."""
    parameters = viewer_parameters(viewer)
    pages, entries = connection.execute(
        f"SELECT COUNT(*), COALESCE(SUM(timeline_entries), 0) FROM pages p WHERE {visible('p', viewer)}", parameters
    ).fetchone()
    (ghosts,) = connection.execute(f"SELECT COUNT(*) {unresolved(viewer)}", parameters).fetchone()
    shown = "" if visible("m", viewer) == "1" else f"JOIN pages m ON m.id = l.maker AND {visible('m', viewer)}"
    counts = [f"SELECT l.type, COUNT(*) AS n FROM links l {shown} WHERE l.target <> l.maker GROUP BY l.type"]
    if not viewer.private:
        # Among fewer candidates a link may lead to its own page; counted above, it is no link to this viewer.
        counts.append(f"SELECT l.type, -COUNT(*) FROM links l {shown} WHERE l.world_target = l.maker GROUP BY l.type")
    types = connection.execute(
        f"SELECT t.name, SUM(c.n) AS links FROM ({' UNION ALL '.join(counts)}) c JOIN link_types t ON t.id = c.type"
        " GROUP BY t.name HAVING links > 0 ORDER BY links DESC, t.name",
        parameters,
    ).fetchall()
    return GraphStats(
        pages=pages,
        links=sum(count for _, count in types),
        ghosts=ghosts,
        link_types=tuple(types[:LINK_TYPES_MAX]),
        timeline_entries=entries,
    )


def held(connection: sqlite3.Connection, after: PageKey, limit: int) -> list[HeldRevision]:
    """What is held by slug, from the one after `after`.

    A slug of a live page shows the page's own revision, or 0 when the page is not held there, so that a comparison
    with the log finds either document missing or old. A page held under a slug that leads elsewhere shows as well.
    """
    rows = connection.execute(
        """
        SELECT source, slug, page_id, MIN(revision) FROM (
          SELECT s.source, s.slug, s.page_id,
                 CASE WHEN s.redirect THEN s.revision
                      WHEN p.source = s.source AND p.slug = s.slug THEN MIN(p.revision, s.revision)
                      ELSE 0 END AS revision
          FROM slugs s LEFT JOIN pages p ON p.page_id = s.page_id
          WHERE (s.source, s.slug) > (:source, :slug)
          UNION ALL
          SELECT p.source, p.slug, p.page_id, p.revision
          FROM pages p LEFT JOIN slugs s ON s.source = p.source AND s.slug = p.slug
          WHERE (p.source, p.slug) > (:source, :slug) AND (s.page_id IS NULL OR s.page_id <> p.page_id OR s.redirect)
        )
        GROUP BY source, slug ORDER BY source, slug LIMIT :limit
        """,
        {**after._asdict(), "limit": limit},
    )
    return [HeldRevision(PageKey(source, slug), PageId(page_id), revision) for source, slug, page_id, revision in rows]
