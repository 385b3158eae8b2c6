"""The family of operations on links and names."""

from __future__ import annotations

from brain.v1 import graph_service_pb2 as graph
from gateway.operations import parameters as p
from gateway.operations.definition import Call, Operation
from gateway.operations.json_value import JsonObject
from gateway.operations.parameters import Kind, Parameter
from gateway.operations.replies import graph_page_reply, link_reply, name_reply
from services.domain.context import Scope

DIRECTIONS = {"out": graph.DIRECTION_OUT, "in": graph.DIRECTION_IN, "both": graph.DIRECTION_BOTH}


async def get_links(call: Call) -> JsonObject:
    """Lists the links that leave a page."""
    args = call.arguments
    response = await call.peers.graph.ListLinks(
        graph.ListLinksRequest(
            source=args.text("source"),
            slug=args.text("slug"),
            link_types=args.texts("link_type"),
            page_size=args.number("limit"),
            page_token=args.text("page_token"),
            min_revision=args.number("min_revision"),
        )
    )
    return _links_reply(response)


async def get_backlinks(call: Call) -> JsonObject:
    """Lists the links that arrive at a page."""
    args = call.arguments
    response = await call.peers.graph.ListBacklinks(
        graph.ListBacklinksRequest(
            source=args.text("source"),
            slug=args.text("slug"),
            link_types=args.texts("link_type"),
            page_size=args.number("limit"),
            page_token=args.text("page_token"),
            min_revision=args.number("min_revision"),
        )
    )
    return _links_reply(response)


def _links_reply(response: graph.ListLinksResponse | graph.ListBacklinksResponse) -> JsonObject:
    reply: JsonObject = {
        "links": [link_reply(link) for link in response.links],
        "indexed_revision": response.indexed_revision,
    }
    if response.next_page_token:
        reply["next_page_token"] = response.next_page_token
    return reply


async def traverse_graph(call: Call) -> JsonObject:
    """Walks links from a page, breadth first."""
    args = call.arguments
    response = await call.peers.graph.TraverseLinks(
        graph.TraverseLinksRequest(
            source=args.text("source"),
            slug=args.text("slug"),
            direction=DIRECTIONS[args.text("direction")],
            link_types=args.texts("link_type"),
            depth=args.number("depth"),
            limit=args.number("limit"),
            min_revision=args.number("min_revision"),
        )
    )
    return {
        "root": graph_page_reply(response.root),
        "links": [
            link_reply(edge.link) | {"depth": edge.depth, "inward": edge.inward, "tree": edge.tree}
            for edge in response.edges
        ],
        "truncated": response.truncated,
        "indexed_revision": response.indexed_revision,
    }


async def resolve_slugs(call: Call) -> JsonObject:
    """Finds pages by a name that the caller half remembers."""
    args = call.arguments
    response = await call.peers.graph.SearchNames(
        graph.SearchNamesRequest(
            source=args.text("source"),
            partial=args.text("partial"),
            limit=args.number("limit"),
            min_revision=args.number("min_revision"),
        )
    )
    return {"pages": [name_reply(match) for match in response.matches]}


async def list_unresolved(call: Call) -> JsonObject:
    """Lists references that lead to no page, with the reason."""
    args = call.arguments
    response = await call.peers.graph.ListUnresolved(
        graph.ListUnresolvedRequest(
            source=args.text("source"),
            page_size=args.number("limit"),
            page_token=args.text("page_token"),
            min_revision=args.number("min_revision"),
        )
    )
    reply: JsonObject = {
        "links": [link_reply(reference.link) | {"reason": reference.reason} for reference in response.references]
    }
    if response.next_page_token:
        reply["next_page_token"] = response.next_page_token
    return reply


LINK_TYPE = Parameter(
    name="link_type",
    kind=Kind.TEXTS,
    description="Only links of these types, such as founded, invested_in, works_at, mentions.",
    items_max=32,
    aliases=("link_types",),
)

OPERATIONS = (
    Operation(
        name="get_links",
        title="List the links of a page",
        description=(
            "List the typed links that leave a page, with the sentence each was written in. exists is false "
            "where no page has the name yet."
        ),
        parameters=(p.SLUG, LINK_TYPE, p.limit(100, 1000, what="links"), p.PAGE_TOKEN, p.MIN_REVISION, p.SOURCE),
        scope=Scope.READ,
        handler=get_links,
    ),
    Operation(
        name="get_backlinks",
        title="List the links to a page",
        description="List the typed links that arrive at a page: who mentions it, works there, invested in it.",
        parameters=(p.SLUG, LINK_TYPE, p.limit(100, 1000, what="links"), p.PAGE_TOKEN, p.MIN_REVISION, p.SOURCE),
        scope=Scope.READ,
        handler=get_backlinks,
    ),
    Operation(
        name="traverse_graph",
        title="Walk the graph from a page",
        description=(
            "Walk typed links from a page, breadth first: every page and every link once. Each link tells its "
            "depth and "
            "whether it was followed against its direction (inward); the ones with tree make the tree of first visits."
        ),
        parameters=(
            p.SLUG,
            Parameter(
                name="depth",
                kind=Kind.WHOLE_NUMBER,
                description="How many links away to go. Default 5; more than 10 is lowered to 10.",
                default=5,
                minimum=0,
                maximum=10,
                lowered=True,
                zero_is_default=True,
            ),
            LINK_TYPE,
            Parameter(
                name="direction",
                kind=Kind.TEXT,
                description="Follow links from the page (out), to the page (in), or both ways.",
                choices=tuple(DIRECTIONS),
                default="out",
            ),
            p.limit(500, 5000, what="links"),
            p.MIN_REVISION,
            p.SOURCE,
        ),
        scope=Scope.READ,
        handler=traverse_graph,
    ),
    Operation(
        name="resolve_slugs",
        title="Find a page by part of its name",
        description="Find pages whose slug, title or alias contains or nearly equals a part you remember, best first.",
        parameters=(
            Parameter(
                name="partial",
                kind=Kind.TEXT,
                description="Part of a slug, title or alias.",
                required=True,
                characters_max=512,
            ),
            p.limit(20, 100, what="pages"),
            p.MIN_REVISION,
            p.SOURCE,
        ),
        scope=Scope.READ,
        handler=resolve_slugs,
    ),
    Operation(
        name="list_unresolved",
        title="List references that lead nowhere",
        description="List references in pages that lead to no page, or to several, with the reason.",
        parameters=(p.limit(100, 1000, what="references"), p.PAGE_TOKEN, p.MIN_REVISION, p.SOURCE),
        scope=Scope.READ,
        handler=list_unresolved,
        tool=False,
    ),
)
