"""Pages, links and callers, as short as a test wants to say them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from services.domain.page import LinkProvenance, LinkReference
from services.domain.records import PageId, PageKey
from services.graph.ports import Direction, GraphStore, Hop, Link, PageEntry, SlugChange, Viewer

EVERYTHING = Viewer(sources=None, private=True)
WORLD = Viewer(sources=None, private=False)

_revisions = itertools.count(1)


def only(*sources: str, private: bool = True) -> Viewer:
    return Viewer(sources=frozenset(sources), private=private)


def link(
    name: str,
    link_type: str = "mentions",
    *,
    source: str = "default",
    provenance: LinkProvenance = LinkProvenance.TEXT,
    inward: bool = False,
    titled: bool | None = None,
    line: int = 0,
    context: str = "",
    fragment: str = "",
    embed: bool = False,
) -> LinkReference:
    """A link as a page writes it; a name without a folder may be a title."""
    return LinkReference(
        name=name,
        source=source,
        link_type=link_type,
        provenance=provenance,
        inward=inward,
        titled="/" not in name if titled is None else titled,
        line=line,
        context=context,
        fragment=fragment,
        embed=embed,
    )


def page(
    slug: str,
    *links: LinkReference,
    source: str = "default",
    page_id: str = "",
    revision: int = 0,
    title: str = "",
    type: str = "note",  # noqa: A002
    aliases: Iterable[str] = (),
    private: bool = False,
    timeline_entries: int = 0,
) -> SlugChange:
    """A live page; each call is newer than the one before unless it says otherwise."""
    return SlugChange(
        key=PageKey(source, slug),
        revision=revision or next(_revisions),
        page_id=PageId(page_id or f"id:{source}:{slug}"),
        page=PageEntry(
            title=title or f"Title of {slug}",
            type=type,
            private=private,
            aliases=tuple(aliases),
            links=links,
            timeline_entries=timeline_entries,
        ),
    )


def gone(slug: str, *, source: str = "default", page_id: str = "", revision: int = 0) -> SlugChange:
    """A slug whose page was deleted."""
    number = revision or next(_revisions)
    return SlugChange(
        key=PageKey(source, slug), revision=number, page_id=PageId(page_id or f"id:{source}:{slug}"), leads=False
    )


def redirect(slug: str, page_id: str, *, source: str = "default", revision: int = 0) -> SlugChange:
    """A slug whose page moved on."""
    return SlugChange(key=PageKey(source, slug), revision=revision or next(_revisions), page_id=PageId(page_id))


def pid(slug: str, source: str = "default") -> PageId:
    return PageId(f"id:{source}:{slug}")


async def links_of(
    store: GraphStore, page_id: str, viewer: Viewer = EVERYTHING, *, arriving: bool = False
) -> list[Link]:
    rows = await store.list_links(PageId(page_id), viewer, arriving=arriving, link_types=(), after=None, limit=1000)
    return [found for _, found in rows]


async def targets_of(store: GraphStore, page_id: str, viewer: Viewer = EVERYTHING) -> list[str]:
    """Where the links of a page lead: slugs, ghosts in brackets."""
    found = await links_of(store, page_id, viewer)
    return [f"[{one.to_page.slug}]" if one.to_page.ghost else one.to_page.slug for one in found]


async def hops_of(
    store: GraphStore,
    *frontier: str,
    viewer: Viewer = EVERYTHING,
    direction: Direction = Direction.OUT,
    link_types: Iterable[str] = (),
    page_types: Iterable[str] = (),
    limit: int = 1000,
) -> list[Hop]:
    return await store.hops(
        [PageId(one) for one in frontier],
        viewer,
        direction=direction,
        link_types=tuple(link_types),
        page_types=tuple(page_types),
        limit=limit,
    )
