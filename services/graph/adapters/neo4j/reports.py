"""Reading the whole store: references that lead nowhere, counts, and what is held by slug."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from services.domain.records import PageId, PageKey
from services.graph.adapters.neo4j.connection import Row, Statements
from services.graph.adapters.neo4j.cypher import (
    LINK_MAP,
    OF_LINKS,
    ends_of,
    link_of,
    page_map,
    page_of,
    viewer_parameters,
    visible,
    written_here,
)
from services.graph.adapters.neo4j.schema import PAGE, SLUG
from services.graph.ports import GraphPage, GraphStats, HeldRevision, Link, UnresolvedPosition, Viewer

LINK_TYPES_MAX = 200
"""Counted apart; a brain with more has types by accident."""

HELD_SLUGS_MAX = 2_000
"""Slugs read at a time for a sweep: some hundred kilobytes."""

MAKERS_MAX = 500
"""Pages whose links are resolved at a time while references that lead nowhere are looked for."""


def visible_sources(viewer: Viewer, makers: frozenset[str] | None, sources: Sequence[str]) -> list[str]:
    """The sources whose pages take part, in order."""
    wanted = [source for source in sources if makers is None or source in makers]
    return sorted(source for source in wanted if viewer.sources is None or source in viewer.sources)


LOST = f"""
    MATCH (m:{PAGE}) USING INDEX m:{PAGE}(store, source, slug)
    WHERE m.store = $store AND m.source = $source AND m.slug >= $slug
      AND (m.slug > $slug OR m.page_id >= $made_by) AND {visible("m")}
    WITH m ORDER BY m.slug, m.page_id LIMIT $pages
    WITH collect(m) AS ms, last(collect(m)) AS last_page, count(m) AS looked_at
    CALL (ms) {{
      UNWIND ms AS m {written_here("true")} WHERE size(ends) <> 1
      RETURN collect({{ordinal: l.ordinal, inward: l.inward, link: {LINK_MAP}, maker: {page_map("m")},
        ghost: k.source, fits: [e IN ends | {page_map("e")}]}}) AS lost
    }}
    RETURN lost, last_page.slug AS slug, last_page.page_id AS made_by, looked_at
"""
"""The next pages of a source in order, with their links that lead to no single page."""


async def list_unresolved(
    statements: Statements,
    store: str,
    viewer: Viewer,
    *,
    sources: Sequence[str],
    after: UnresolvedPosition | None,
    limit: int,
) -> list[tuple[UnresolvedPosition, Link]]:
    """See `GraphStore.list_unresolved`; `sources` are those whose pages take part, in order."""
    start = after or UnresolvedPosition("", "", "", -1)
    found: list[tuple[UnresolvedPosition, Link]] = []
    for source in sources:
        if source < start.source:
            continue
        slug, made_by = (start.slug, start.made_by) if source == start.source else ("", "")
        while len(found) < limit:
            parameters = {
                **viewer_parameters(viewer),
                **OF_LINKS,
                "store": store,
                "source": source,
                "slug": slug,
                "made_by": made_by,
                "pages": MAKERS_MAX,
            }
            (row,) = await statements.run(LOST, parameters)
            rows = [lost_link(one) for one in cast("list[Row]", row["lost"])]
            rows.sort(key=lambda one: one[0])
            found += [one for one in rows if one[0] > start]
            if cast("int", row["looked_at"]) < MAKERS_MAX:
                break
            # The last page comes once more; what it said already is no longer after the start.
            slug, made_by = str(row["slug"]), str(row["made_by"])
            start = found[-1][0] if found else start
    return found[:limit]


def lost_link(row: Row) -> tuple[UnresolvedPosition, Link]:
    """A reference that leads to no single page."""
    maker = page_of(row["maker"])
    columns = cast("dict[str, str]", row["link"])
    ghost = GraphPage(source=str(row["ghost"]), slug=columns["name"])
    ends = (ghost, maker) if row["inward"] else (maker, ghost)
    link = link_of(row["link"], *ends, made_by=maker.page_id, fits=ends_of(row))
    return UnresolvedPosition(maker.source, maker.slug, maker.page_id, cast("int", row["ordinal"])), link


_MAKERS = f"""
    UNWIND $makers AS source MATCH (m:{PAGE}) USING INDEX m:{PAGE}(store, source, slug)
    WHERE m.store = $store AND m.source = source AND m.slug >= '' AND {visible("m")}
"""
COUNT_PAGES = f"{_MAKERS} RETURN count(m) AS pages, coalesce(sum(m.timeline_entries), 0) AS entries"
COUNT_LINKS = f"""
    {_MAKERS} WITH m {written_here("true")} WHERE ends <> [m]
    RETURN l.type AS link_type, count(*) AS links, sum(CASE WHEN size(ends) = 1 THEN 0 ELSE 1 END) AS ghosts
    ORDER BY links DESC, link_type
"""
"""How many links of each type there are, and how many of them lead nowhere."""


async def stats(statements: Statements, store: str, viewer: Viewer, *, sources: Sequence[str]) -> GraphStats:
    """See `GraphStore.stats`; `sources` are those whose pages take part."""
    parameters = {**viewer_parameters(viewer), **OF_LINKS, "store": store, "makers": list(sources)}
    (pages,) = await statements.run(COUNT_PAGES, parameters)
    types = await statements.run(COUNT_LINKS, parameters)
    counts = [(str(row["link_type"]), cast("int", row["links"])) for row in types]
    return GraphStats(
        pages=cast("int", pages["pages"]),
        links=sum(count for _, count in counts),
        ghosts=sum(cast("int", row["ghosts"]) for row in types),
        link_types=tuple(counts[:LINK_TYPES_MAX]),
        timeline_entries=cast("int", pages["entries"]),
    )


HELD = f"""
    CALL () {{
      MATCH (s:{SLUG}) WHERE s.store = $store AND s.source = $source AND s.slug > $after
      RETURN s.slug AS slug ORDER BY slug LIMIT $limit
      UNION
      MATCH (p:{PAGE}) WHERE p.store = $store AND p.source = $source AND p.slug > $after
      RETURN p.slug AS slug ORDER BY slug LIMIT $limit
    }}
    WITH slug ORDER BY slug LIMIT $limit
    OPTIONAL MATCH (s:{SLUG} {{store: $store, source: $source, slug: slug}})
    RETURN slug, s.page_id AS page_id, s.revision AS revision, s.redirect AS redirect,
      COLLECT {{
        MATCH (p:{PAGE}) WHERE p.store = $store AND p.source = $source AND p.slug = slug
        RETURN [p.page_id, p.revision]
      }} AS pages
    ORDER BY slug
"""


async def held(statements: Statements, store: str, source: str, after: str) -> tuple[list[HeldRevision], str | None]:
    """Some of what is held in a source, from the slug after `after`; and the last slug of these, None at the end."""
    parameters = {"store": store, "source": source, "after": after, "limit": HELD_SLUGS_MAX}
    rows = await statements.run(HELD, parameters)
    found = [one for row in rows for one in held_of(source, row)]
    return found, str(rows[-1]["slug"]) if len(rows) == HELD_SLUGS_MAX else None


def held_of(source: str, row: Row) -> list[HeldRevision]:
    """What a slug leads to and which pages are held under it; 0 for a live page that is not."""
    key = PageKey(source, str(row["slug"]))
    pages = {
        (PageId(str(page_id)), cast("int", revision)) for page_id, revision in cast("list[list[object]]", row["pages"])
    }
    shown = set(pages)
    if row["page_id"] is not None:
        page_id = PageId(str(row["page_id"]))
        shown.add((page_id, cast("int", row["revision"])))
        if not row["redirect"] and page_id not in {held for held, _ in pages}:
            shown.add((page_id, 0))
    return [HeldRevision(key, page_id, revision) for page_id, revision in sorted(shown)]
