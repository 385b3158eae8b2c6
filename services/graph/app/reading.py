"""Reading links and names: lists, counts, and what leads nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from services.domain.context import DEFAULT_SOURCE, OperationContext
from services.domain.errors import InvalidArgument
from services.domain.records import PageId
from services.domain.slugs import check_source
from services.graph.app import bounds
from services.graph.app.viewing import root_page, viewer_of
from services.graph.ports import (
    GraphStats,
    GraphStore,
    Link,
    LinkPosition,
    NameMatch,
    NameQuestion,
    UnresolvedPosition,
    Viewer,
)

Position = TypeVar("Position")
Item = TypeVar("Item")


class Listed(NamedTuple, Generic[Item, Position]):
    """One page of a list."""

    items: list[Item]
    next_after: Position | None
    """Where the next page begins; None at the end."""


def listed(rows: Sequence[tuple[Position, Item]], size: int) -> Listed[Item, Position]:
    """The first rows as a page; a row beyond its size says that there is another."""
    more = len(rows) > size
    return Listed([item for _, item in rows[:size]], rows[size - 1][0] if more else None)


async def list_links(
    store: GraphStore,
    context: OperationContext,
    *,
    source: str,
    slug: str,
    arriving: bool,
    link_types: Sequence[str],
    page_size: int,
    after: LinkPosition | None,
) -> Listed[Link, LinkPosition]:
    """The links that leave a page, or arrive at it."""
    size = bounds.page_size(page_size, default=bounds.LINKS_DEFAULT, maximum=bounds.LINKS_MAX)
    wanted = bounds.types("link_types", link_types)
    page = await root_page(store, context, source=source, slug=slug)
    rows = await store.list_links(
        page.page_id, viewer_of(context), arriving=arriving, link_types=wanted, after=after, limit=size + 1
    )
    return listed(rows, size)


async def count_backlinks(store: GraphStore, context: OperationContext, page_ids: Sequence[str]) -> list[int]:
    """How many pages link to each page."""
    bounds.at_most("page_ids", page_ids, bounds.COUNTED_MAX)
    return await store.count_backlinks([PageId(page_id) for page_id in page_ids], viewer_of(context))


async def resolve_names(
    store: GraphStore, context: OperationContext, *, source: str, names: Sequence[str], every_source: bool
) -> list[list[NameMatch]]:
    """The pages that names lead to."""
    wanted = bounds.names("names", names, bounds.NAMES_MAX)
    own = source or (None if every_source else DEFAULT_SOURCE)
    if own is not None:
        viewer_of(context, own)  # asked for a source it may not read, a caller is told so
    return await resolve(store, viewer_of(context), names=wanted, source=own)


async def resolve(
    store: GraphStore, viewer: Viewer, *, names: Sequence[str], source: str | None
) -> list[list[NameMatch]]:
    """The pages of each name in its source, or for `source:slug` in the source it names."""
    plain = [NameQuestion(name, source) for name in names]
    crossing = {name: question for name in names if (question := crossing_question(name))}
    found = await store.resolve_names([*plain, *crossing.values()], viewer)
    crossed = dict(zip(crossing, found[len(names) :], strict=True))
    # A title may have a colon too; what is written with a source in front means the source, if there is such a page.
    return [crossed.get(name) or matches for name, matches in zip(names, found[: len(names)], strict=True)]


def crossing_question(name: str) -> NameQuestion | None:
    """The name with its source taken from the front, when it has one: `team-notes:people/ana`."""
    source, colon, rest = name.partition(":")
    if not colon or not rest.strip() or rest != rest.strip():
        return None
    try:
        return NameQuestion(rest, check_source(source))
    except InvalidArgument:
        return None


async def search_names(
    store: GraphStore, context: OperationContext, *, source: str, partial: str, limit: int
) -> list[NameMatch]:
    """Pages whose names contain or nearly equal a text."""
    if not partial.strip():
        raise bounds.field_required("partial", "Give a part of a slug, a title or an alias.")
    bounds.names("partial", [partial], 1)
    size = bounds.within("limit", limit, default=bounds.FOUND_DEFAULT, maximum=bounds.FOUND_MAX)
    return await store.search_names(partial, viewer_of(context, source), size)


async def list_unresolved(
    store: GraphStore, context: OperationContext, *, source: str, page_size: int, after: UnresolvedPosition | None
) -> Listed[Link, UnresolvedPosition]:
    """References that lead to no single page, of the pages of one source or of all."""
    size = bounds.page_size(page_size, default=bounds.UNRESOLVED_DEFAULT, maximum=bounds.UNRESOLVED_MAX)
    makers = viewer_of(context, source)
    rows = await store.list_unresolved(viewer_of(context), makers=makers.sources, after=after, limit=size + 1)
    return listed(rows, size)


async def stats(store: GraphStore, context: OperationContext, *, source: str) -> GraphStats:
    """Counts of one source or of all that the caller may read."""
    makers = viewer_of(context, source)
    return await store.stats(viewer_of(context), makers=makers.sources)
