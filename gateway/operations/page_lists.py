"""The operation that lists pages, and the filter it shares with `search` and `query`."""

from __future__ import annotations

from datetime import UTC, datetime

from brain.v1 import search_service_pb2 as search
from gateway.operations import parameters as p
from gateway.operations.definition import Call, Operation
from gateway.operations.json_value import JsonObject, JsonValue
from gateway.operations.parameters import Kind, Parameter
from gateway.operations.replies import summary_reply
from services.domain.context import Scope
from services.domain.errors import InvalidArgument

ORDERS = {
    "updated_desc": search.PAGE_ORDER_UPDATED_DESC,
    "updated_asc": search.PAGE_ORDER_UPDATED_ASC,
    "created_desc": search.PAGE_ORDER_CREATED_DESC,
    "slug": search.PAGE_ORDER_SLUG,
}


async def list_pages(call: Call) -> JsonObject:
    """Lists live pages by filters."""
    args = call.arguments
    request = search.ListPagesRequest(
        filter=page_filter(call),
        order=ORDERS[args.text("sort")],
        page_size=args.number("limit"),
        page_token=args.text("page_token"),
        offset=args.number("offset"),
        min_revision=args.number("min_revision"),
    )
    response = await call.peers.search.ListPages(request)
    pages: list[JsonValue] = [summary_reply(page) for page in response.pages]
    reply: JsonObject = {"pages": pages, "indexed_revision": response.indexed_revision}
    if response.next_page_token:
        reply["next_page_token"] = response.next_page_token
    return reply


def page_filter(call: Call) -> search.PageFilter:
    """The filter that `list_pages`, `search` and `query` share, as far as the operation declares its parts."""
    args = call.arguments
    declared = args.values.keys()
    wanted = search.PageFilter(
        source=args.text("source"),
        types=args.texts("types"),
        tags=args.texts("tags"),
        slug_prefix=args.text("slug_prefix"),
    )
    if "since" in declared:
        wanted.since, wanted.until = args.text("since"), args.text("until")
    if "updated_after" in declared and (after := args.text("updated_after")):
        wanted.updated_after_time.FromDatetime(_moment("updated_after", after))
    return wanted


def _moment(field: str, text: str) -> datetime:
    """A time as people write it, in UTC when it names no zone."""
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise InvalidArgument(
            "FIELD_INVALID",
            f"{field} is not a date or time",
            field=field,
            value=text,
            next_step="Write it as 2026-03-01 or 2026-03-01T12:00:00Z.",
        ) from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


TYPES = Parameter(
    name="types",
    kind=Kind.TEXTS,
    description="Only pages of these types, such as person, company, meeting, concept, note.",
    items_max=32,
    aliases=("type",),
)

TAGS = Parameter(
    name="tags", kind=Kind.TEXTS, description="Only pages that have all of these tags.", items_max=32, aliases=("tag",)
)

SLUG_PREFIX = Parameter(
    name="slug_prefix",
    kind=Kind.TEXT,
    description="Only pages whose slug begins with this, such as `people/`.",
    characters_max=1024,
)

OPERATIONS = (
    Operation(
        name="list_pages",
        title="List pages",
        description=(
            "List pages by type, tag, folder or date, newest first unless sorted otherwise. To find pages about"
            " something, use query."
        ),
        parameters=(
            TYPES,
            TAGS,
            SLUG_PREFIX,
            Parameter(
                name="updated_after",
                kind=Kind.TEXT,
                description="Only pages written at or after this time, ISO 8601.",
                characters_max=64,
            ),
            Parameter(
                name="sort",
                kind=Kind.TEXT,
                description="The order of the list.",
                choices=tuple(ORDERS),
                default="updated_desc",
            ),
            p.limit(50, 500, what="pages"),
            Parameter(
                name="offset",
                kind=Kind.WHOLE_NUMBER,
                description="Leave out this many pages first; better follow next_page_token.",
                default=0,
                minimum=0,
                maximum=10_000,
            ),
            p.PAGE_TOKEN,
            p.MIN_REVISION,
            p.SOURCE,
        ),
        scope=Scope.READ,
        handler=list_pages,
    ),
)
