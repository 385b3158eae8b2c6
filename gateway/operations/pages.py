"""The family of operations on pages: write, read, list, move, delete, and their history."""

from __future__ import annotations

from brain.v1 import ingest_service_pb2 as ingest
from brain.v1.graph_service_pb2 import BatchResolveNamesRequest, SearchNamesRequest
from brain.v1.page_pb2 import Provenance
from gateway.operations import parameters as p
from gateway.operations.definition import Call, Effect, Operation
from gateway.operations.json_value import JsonObject
from gateway.operations.parameters import Kind, Parameter
from gateway.operations.replies import page_reply, write_reply
from gateway.operations.waiting import add_visibility
from services.domain.context import Scope
from services.domain.errors import InvalidArgument, NotFound

WRITE_TIMEOUT_SECONDS = 15.0
"""A write takes milliseconds; the rest is room for tries against other writers and 2 s of waiting for the indexes."""

SUGGESTIONS_MAX = 5
"""Names offered when a page is not found: enough to spot the right one, few enough to read."""


async def put_page(call: Call) -> JsonObject:
    """Writes a page."""
    args = call.arguments
    content = args.text("content")
    body = content.encode("utf-8")
    _check_whole(body, args.text("content_hash"))
    request = ingest.PutPageRequest(
        source=args.text("source"),
        slug=args.text("slug"),
        body=body,
        request_id=call.request_id(),
        if_revision=args.optional_number("if_revision"),
        overwrite=args.flag("overwrite"),
        allow_empty=args.flag("allow_empty"),
        provenance=Provenance(
            source_kind=args.text("source_kind"),
            source_uri=args.text("source_uri"),
            ingested_via=args.text("ingested_via"),
        ),
    )
    try:
        response = await call.peers.ingest.PutPage(request)
    except InvalidArgument as error:
        if error.field == "body":
            error.field = "content"  # the service's word for it is not the argument's
        raise
    return await add_visibility(call, write_reply(response.result))


def _check_whole(body: bytes, wanted: str) -> None:
    """Refuses a text that was cut on its way, when the caller says what it should be."""
    if not wanted:
        return
    # Here and not above: the parser brings a dictionary of Chinese along, which an agent's stdio process does not need.
    from services.domain.parser import content_hash

    if content_hash(body).hex() != wanted.lower():
        raise InvalidArgument(
            "FIELD_INVALID",
            f"the content has {len(body)} bytes and not the hash you gave: it was cut or changed on its way",
            field="content_hash",
            value=wanted,
            next_step="Read the page again, apply your change to the whole text and send all of it.",
        )


async def get_page(call: Call) -> JsonObject:
    """Reads a page, at any kept revision."""
    args = call.arguments
    request = ingest.GetPageRequest(
        source=args.text("source"),
        slug=args.text("slug"),
        revision=args.number("revision"),
        include_body=args.flag("include_content"),
        include_deleted=args.flag("include_deleted"),
        min_revision=args.number("min_revision"),
    )
    resolved = ""
    try:
        response = await call.peers.ingest.GetPage(request)
    except NotFound as error:
        if error.reason != "PAGE_NOT_FOUND" or not args.flag("fuzzy"):
            raise
        request.slug, request.source = await _resolve(call, error)
        resolved = request.slug
        response = await call.peers.ingest.GetPage(request)
    reply = page_reply(response.page)
    if response.moved_to:
        reply["moved_to"] = response.moved_to
    if resolved:
        reply["resolved_slug"] = resolved
    if request.include_body and not response.page.HasField("delete_time"):
        # Stored pages are UTF-8: ingest refuses anything else.
        reply["content"] = response.page.body.decode("utf-8")
    return reply


async def _resolve(call: Call, error: NotFound) -> tuple[str, str]:
    """The one page that has what was asked for as a name; else the first error again, with names that come close."""
    name, source = call.arguments.text("slug"), call.arguments.text("source")
    request = BatchResolveNamesRequest(source=source, names=[name[:512]])
    response = await call.peers.graph.BatchResolveNames(request)
    matches = [match.page for match in response.names[0].matches] if response.names else []
    if len(matches) == 1:
        return matches[0].slug, matches[0].source
    if not matches:
        near = await call.peers.graph.SearchNames(
            SearchNamesRequest(source=source, partial=name[:512], limit=SUGGESTIONS_MAX)
        )
        matches = [match.page for match in near.matches]
        found = f"nothing has the name {name[:80]!r}"
    else:
        found = f"{len(matches)} pages have the name {name[:80]!r}"
    close = ", ".join(page.slug for page in matches[:SUGGESTIONS_MAX])
    raise NotFound(
        "PAGE_NOT_FOUND",
        found,
        field="slug",
        value=name,
        next_step=f"Read one of: {close}." if close else "Search for it with query, or list pages with list_pages.",
        metadata={"candidates": close} if close else None,
    ) from error


async def delete_page(call: Call) -> JsonObject:
    """Deletes a page; it can be restored for 72 hours."""
    args = call.arguments
    request = ingest.DeletePageRequest(
        source=args.text("source"),
        slug=args.text("slug"),
        request_id=call.request_id(),
        if_revision=args.optional_number("if_revision"),
    )
    response = await call.peers.ingest.DeletePage(request)
    return await add_visibility(call, write_reply(response.result))


async def restore_page(call: Call) -> JsonObject:
    """Brings a deleted page back."""
    args = call.arguments
    request = ingest.RestorePageRequest(
        source=args.text("source"),
        slug=args.text("slug"),
        request_id=call.request_id(),
        if_revision=args.optional_number("if_revision"),
    )
    response = await call.peers.ingest.RestorePage(request)
    return await add_visibility(call, write_reply(response.result))


async def move_page(call: Call) -> JsonObject:
    """Gives a page another slug."""
    args = call.arguments
    request = ingest.MovePageRequest(
        source=args.text("source"),
        slug=args.text("slug"),
        new_slug=args.text("new_slug"),
        request_id=call.request_id(),
        if_revision=args.optional_number("if_revision"),
    )
    response = await call.peers.ingest.MovePage(request)
    return await add_visibility(call, write_reply(response.result))


async def revert_version(call: Call) -> JsonObject:
    """Writes an earlier revision again, as a new one."""
    args = call.arguments
    request = ingest.RevertVersionRequest(
        source=args.text("source"),
        slug=args.text("slug"),
        revision=args.number("version_id"),
        request_id=call.request_id(),
        if_revision=args.optional_number("if_revision"),
    )
    response = await call.peers.ingest.RevertVersion(request)
    return await add_visibility(call, write_reply(response.result))


async def get_versions(call: Call) -> JsonObject:
    """Lists the kept revisions of a page, newest first."""
    args = call.arguments
    response = await call.peers.ingest.ListVersions(
        ingest.ListVersionsRequest(
            source=args.text("source"),
            slug=args.text("slug"),
            page_size=args.number("limit"),
            page_token=args.text("page_token"),
        )
    )
    reply: JsonObject = {"versions": [page_reply(page) for page in response.versions]}
    if response.next_page_token:
        reply["next_page_token"] = response.next_page_token
    return reply


CONTENT = Parameter(
    name="content",
    kind=Kind.TEXT,
    description=(
        "The whole page as Markdown, at most 5,000,000 bytes. Frontmatter is optional; link to other pages with"
        " [[slug]] or [[Title]]."
    ),
    required=True,
    blank_counts=True,
)

_PROVENANCE = (
    Parameter(
        name="source_kind",
        kind=Kind.TEXT,
        description="Where the text comes from, in a word: chat, web, email.",
        characters_max=64,
    ),
    Parameter(
        name="source_uri",
        kind=Kind.TEXT,
        description="Address of the original. Kept as text, never opened.",
        characters_max=2048,
    ),
    Parameter(
        name="ingested_via", kind=Kind.TEXT, description="Name of the client that brought it.", characters_max=64
    ),
)

_WRITE_TAIL = (p.REQUEST_ID, p.WAIT, p.SOURCE)

OPERATIONS = (
    Operation(
        name="put_page",
        title="Write a page",
        description=(
            "Write a Markdown page to long-term memory. Creating needs only slug and content. To change a page, "
            "read it "
            "first and send the whole new text with if_revision = the revision you read; somebody else's newer work is "
            "then never lost: you get a conflict that says what to do. Links in the text become the graph. The "
            "reply has "
            "the canonical slug, the revision, and findings about the text."
        ),
        parameters=(
            p.SLUG,
            CONTENT,
            p.IF_REVISION,
            Parameter(
                name="overwrite",
                kind=Kind.FLAG,
                description=(
                    "Replace whatever is there, without if_revision. The replaced revision stays in the history."
                ),
                default=False,
            ),
            Parameter(
                name="allow_empty", kind=Kind.FLAG, description="Accept an empty page on purpose.", default=False
            ),
            Parameter(
                name="content_hash",
                kind=Kind.TEXT,
                description=(
                    "SHA-256 (hex) the content should have, as get_page shows it. A text that was cut on its "
                    "way is then refused."
                ),
                characters_max=64,
            ),
            *_PROVENANCE,
            *_WRITE_TAIL,
        ),
        scope=Scope.WRITE,
        effect=Effect.DESTROY,
        handler=put_page,
        timeout_seconds=WRITE_TIMEOUT_SECONDS,
    ),
    Operation(
        name="get_page",
        title="Read a page",
        description=(
            "Read one page: its content, title, type, tags, revision, length and hash. A former slug leads to "
            "where the "
            "page is now (moved_to). With fuzzy, a title or alias will do instead of the slug."
        ),
        parameters=(
            p.SLUG,
            Parameter(
                name="revision",
                kind=Kind.WHOLE_NUMBER,
                description="An earlier revision, as get_versions lists them. Leave out for the current one.",
                minimum=0,
            ),
            Parameter(
                name="fuzzy",
                kind=Kind.FLAG,
                description="When no page has this slug, take the one page that has it as title or alias.",
                default=False,
            ),
            Parameter(name="include_content", kind=Kind.FLAG, description="Whether to return the text.", default=True),
            Parameter(
                name="include_deleted",
                kind=Kind.FLAG,
                description="Show a deleted page's tombstone instead of an error.",
                default=False,
            ),
            p.MIN_REVISION,
            p.SOURCE,
        ),
        scope=Scope.READ,
        handler=get_page,
    ),
    Operation(
        name="delete_page",
        title="Delete a page",
        description=(
            "Delete a page. It disappears from every search at once and can be brought back with restore_page "
            "for 72 hours."
        ),
        parameters=(p.SLUG, p.IF_REVISION, *_WRITE_TAIL),
        scope=Scope.WRITE,
        effect=Effect.DESTROY,
        handler=delete_page,
        timeout_seconds=WRITE_TIMEOUT_SECONDS,
    ),
    Operation(
        name="restore_page",
        title="Restore a deleted page",
        description="Bring back a page that was deleted less than 72 hours ago, as it was before.",
        parameters=(p.SLUG, p.IF_REVISION, *_WRITE_TAIL),
        scope=Scope.WRITE,
        effect=Effect.ADD,
        handler=restore_page,
        timeout_seconds=WRITE_TIMEOUT_SECONDS,
    ),
    Operation(
        name="move_page",
        title="Move a page to another slug",
        description=(
            "Give a page another slug. Its history and its links stay; reads and links of the old slug lead to "
            "the new one."
        ),
        parameters=(
            p.SLUG,
            Parameter(
                name="new_slug",
                kind=Kind.TEXT,
                description="The slug to have from now on. No page may be there.",
                required=True,
                characters_max=3072,
            ),
            p.IF_REVISION,
            *_WRITE_TAIL,
        ),
        scope=Scope.WRITE,
        effect=Effect.ADD,
        handler=move_page,
        timeout_seconds=WRITE_TIMEOUT_SECONDS,
    ),
    Operation(
        name="get_versions",
        title="List the versions of a page",
        description=(
            "List the kept revisions of a page, newest first: who wrote each, when, with length and hash. At "
            "most 64 are kept."
        ),
        parameters=(p.SLUG, p.limit(64, 64, what="versions"), p.PAGE_TOKEN, p.SOURCE),
        scope=Scope.READ,
        handler=get_versions,
    ),
    Operation(
        name="revert_version",
        title="Bring back an earlier version",
        description=(
            "Make an earlier revision of a page current again. It is written as a new revision, so nothing is lost."
        ),
        parameters=(
            p.SLUG,
            Parameter(
                name="version_id",
                kind=Kind.WHOLE_NUMBER,
                description="The revision to bring back, as get_versions lists them.",
                required=True,
                minimum=1,
                aliases=("revision",),
            ),
            p.IF_REVISION,
            *_WRITE_TAIL,
        ),
        scope=Scope.WRITE,
        effect=Effect.DESTROY,
        handler=revert_version,
        timeout_seconds=WRITE_TIMEOUT_SECONDS,
    ),
)
