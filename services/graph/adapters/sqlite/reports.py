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
    json_list,
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

HELD_ROWS_MAX = 2_000
"""Rows read at a time for a sweep: some milliseconds on a reading thread, and a few hundred kB."""


def shown(alias: str, viewer: Viewer, makers: frozenset[str] | None) -> str:
    """The condition that a viewer sees a page and the page is in one of the sources asked for; empty when all are."""
    conditions = [] if makers is None else [f"{alias}.source IN (SELECT value FROM json_each(:makers))"]
    if viewer.sources is not None or not viewer.private:
        conditions.append(visible(alias, viewer))
    return " AND ".join(conditions)


def parameters_of(viewer: Viewer, makers: frozenset[str] | None) -> Parameters:
    """What `shown` asks for."""
    return viewer_parameters(viewer) | ({} if makers is None else {"makers": json_list(sorted(makers))})


def unresolved(viewer: Viewer, makers: frozenset[str] | None) -> str:
    """The links `l` of shown pages `m` that lead to no page for the viewer, as a FROM clause with its conditions.

    A page in a source it may not read is no page for it, so a link there is unresolved whether or not it leads on.
    """
    nowhere = [f"SELECT l.maker, l.ordinal FROM links l WHERE l.target <= 0 AND {target(viewer)} <= 0"]
    if not viewer.private:
        nowhere.append("SELECT l.maker, l.ordinal FROM links l WHERE l.world_target <= 0")
    if viewer.sources is not None:
        nowhere.append(f"SELECT l.maker, l.ordinal FROM links l WHERE NOT {readable('l', viewer)}")
    return f"""
        FROM ({" UNION ".join(nowhere)}) u JOIN links l ON l.maker = u.maker AND l.ordinal = u.ordinal
        {TYPE_OF_LINK} JOIN pages m ON m.id = l.maker WHERE {shown("m", viewer, makers) or "1"}
    """


def list_unresolved(
    connection: sqlite3.Connection,
    viewer: Viewer,
    *,
    makers: frozenset[str] | None,
    after: UnresolvedPosition | None,
    limit: int,
) -> list[tuple[UnresolvedPosition, Link]]:
    """See `GraphStore.list_unresolved`; candidates of ambiguous links are left to the caller."""
    statement = f"""
        SELECT {ambiguous(viewer)}, l.inward, l.ordinal, {LINK_COLUMNS}, {page_columns("m")}
        {unresolved(viewer, makers)} AND (m.source, m.slug, m.page_id, l.ordinal) > (:source, :slug, :made_by, :ordinal)
        ORDER BY m.source, m.slug, m.page_id, l.ordinal LIMIT :limit
    """
    start = after or UnresolvedPosition("", "", "", -1)
    parameters: Parameters = {**parameters_of(viewer, makers), **start._asdict(), "limit": limit}
    found = []
    for row in connection.execute(statement, parameters):
        fits_several, inward, ordinal = row[:3]
        link_row = row[3 : 3 + LINK_WIDTH]
        maker = page_of(row[3 + LINK_WIDTH :])
        assert maker is not None
        ghost = ghost_of(link_row[2], link_row[3])
        ends = (ghost, maker) if inward else (maker, ghost)
        link = link_of(link_row, *ends, made_by=maker.page_id, ambiguous=bool(fits_several))
        found.append((UnresolvedPosition(maker.source, maker.slug, maker.page_id, ordinal), link))
    return found


def stats(connection: sqlite3.Connection, viewer: Viewer, *, makers: frozenset[str] | None) -> GraphStats:
    """See `GraphStore.stats`."""
    parameters = parameters_of(viewer, makers)
    pages, entries = connection.execute(
        f"SELECT COUNT(*), COALESCE(SUM(timeline_entries), 0) FROM pages p WHERE {shown('p', viewer, makers) or '1'}",
        parameters,
    ).fetchone()
    (ghosts,) = connection.execute(f"SELECT COUNT(*) {unresolved(viewer, makers)}", parameters).fetchone()
    condition = shown("m", viewer, makers)
    of_shown = f"JOIN pages m ON m.id = l.maker AND {condition}" if condition else ""
    counts = [f"SELECT l.type, COUNT(*) AS n FROM links l {of_shown} WHERE l.target <> l.maker GROUP BY l.type"]
    if not viewer.private:
        # Among fewer candidates a link may lead to its own page; counted above, it is no link to this viewer.
        counts.append(
            f"SELECT l.type, -COUNT(*) FROM links l {of_shown} WHERE l.world_target = l.maker GROUP BY l.type"
        )
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


def held(connection: sqlite3.Connection, after: PageKey) -> tuple[list[HeldRevision], PageKey | None]:
    """Some of what is held by slug, from the slug after `after`; and the last slug of these, None at the end.

    A slug shows what it leads to and what pages are held under it, so that a comparison with the log finds either
    document missing or old: of a live page both say the same, and the slug of a page not held there shows revision 0.
    """
    rows = connection.execute(
        """
        SELECT s.source, s.slug, s.page_id, s.revision FROM slugs s WHERE (s.source, s.slug) > (:source, :slug)
        UNION
        SELECT p.source, p.slug, p.page_id, p.revision FROM pages p WHERE (p.source, p.slug) > (:source, :slug)
        UNION
        SELECT s.source, s.slug, s.page_id, 0 FROM slugs s LEFT JOIN pages p
          ON p.page_id = s.page_id AND p.source = s.source AND p.slug = s.slug
        WHERE (s.source, s.slug) > (:source, :slug) AND NOT s.redirect AND p.id IS NULL
        ORDER BY 1, 2 LIMIT :limit
        """,
        {**after._asdict(), "limit": HELD_ROWS_MAX},
    ).fetchall()
    found = [HeldRevision(PageKey(source, slug), PageId(page_id), revision) for source, slug, page_id, revision in rows]
    if len(found) < HELD_ROWS_MAX:
        return found, None
    # The last slug may have more rows: it is left for the next time, unless it is all there is.
    whole = [row for row in found if row.key != found[-1].key] or found
    return whole, whole[-1].key
