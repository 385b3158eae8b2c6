"""Who looks: from the caller of an operation to what the store may show, and the page an operation begins at."""

from __future__ import annotations

from services.domain.context import DEFAULT_SOURCE, OperationContext, Scope
from services.domain.errors import NotFound
from services.domain.records import PageKey
from services.domain.slugs import canonical_slug, check_source
from services.graph.app.bounds import field_required
from services.graph.ports import GraphPage, GraphStore, Viewer


def viewer_of(context: OperationContext, source: str = "") -> Viewer:
    """What the caller may see, of one source or of all it may read.

    Raises:
        InvalidArgument: The source is no name of one.
        PermissionDenied: The caller may not read, or not this source.
    """
    context.require(Scope.READ)
    wanted = check_source(source) if source else None
    return Viewer(sources=context.readable(wanted), private=context.sees_private)


async def root_page(store: GraphStore, context: OperationContext, *, source: str, slug: str) -> GraphPage:
    """The page that a request names, by any spelling of a slug it has or had.

    Raises:
        InvalidArgument: It is no slug.
        PermissionDenied: The caller may not read the source.
        NotFound: No page has it that the caller may see.
    """
    if not slug:
        raise field_required("slug", "Name a page by its slug, such as `people/ana-ferro`.")
    source = source or DEFAULT_SOURCE
    viewer = viewer_of(context, source)
    page = await store.find_page(PageKey(source, canonical_slug(slug)), viewer)
    if page is None:
        raise NotFound(
            "PAGE_NOT_FOUND",
            f"no page has the slug {slug!r} in the source {source!r}",
            field="slug",
            value=slug,
            next_step="Look for its name with resolve_slugs, or search for its words.",
            metadata={"source": source},
        )
    return page
