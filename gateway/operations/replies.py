"""What the services answer, as the JSON that agents read: small, without empty fields, times in ISO 8601."""

from __future__ import annotations

import json
from collections.abc import Iterable

from google.protobuf.timestamp_pb2 import Timestamp

from brain.v1.graph_service_pb2 import GraphPage, Link, NameKind, NameMatch
from brain.v1.ingest_service_pb2 import WriteResult, WriteStatus
from brain.v1.page_pb2 import Finding, Page, RecordKind, Visibility
from brain.v1.projection_pb2 import ProjectionState
from brain.v1.search_service_pb2 import PageSummary
from gateway.operations.json_value import JsonObject, JsonValue


def write_reply(result: WriteResult) -> JsonObject:
    """What a write did."""
    reply: JsonObject = {
        "slug": result.slug,
        "source": result.source,
        "page_id": result.page_id,
        "revision": result.revision,
        "status": _word(WriteStatus.Name(result.status), "WRITE_STATUS_"),
    }
    if result.replaced_revision:
        reply["replaced_revision"] = result.replaced_revision
    if result.content_hash:
        reply |= {"content_hash": result.content_hash.hex(), "content_bytes": result.body_bytes}
    if result.title:
        reply |= {"title": result.title, "type": result.type}
    if result.HasField("update_time"):
        reply["updated_at"] = moment(result.update_time)
    if result.HasField("recoverable_until_time"):
        reply["recoverable_until"] = moment(result.recoverable_until_time)
    if result.findings:
        reply["findings"] = findings(result.findings)
    return reply


def page_reply(page: Page) -> JsonObject:
    """A page without its content; always with its length and hash, so that a cut copy can be told from a whole one."""
    reply: JsonObject = {
        "slug": page.slug,
        "source": page.source,
        "page_id": page.page_id,
        "revision": page.revision,
        "title": page.title,
        "type": page.type,
        "kind": _word(RecordKind.Name(page.kind), "RECORD_KIND_"),
        "actor": page.actor,
        "content_hash": page.content_hash.hex(),
        "content_bytes": page.body_bytes,
    }
    for name, time in (
        ("created_at", page.create_time if page.HasField("create_time") else None),
        ("updated_at", page.update_time if page.HasField("update_time") else None),
        ("deleted_at", page.delete_time if page.HasField("delete_time") else None),
    ):
        if time is not None:
            reply[name] = moment(time)
    if page.tags:
        reply["tags"] = list(page.tags)
    if page.aliases:
        reply["aliases"] = list(page.aliases)
    if page.date:
        reply["date"] = page.date
    if page.visibility == Visibility.VISIBILITY_PRIVATE:
        reply["visibility"] = "private"
    if page.former_slugs:
        reply["former_slugs"] = list(page.former_slugs)
    if page.findings:
        reply["findings"] = findings(page.findings)
    frontmatter = from_json(page.frontmatter_json)
    if frontmatter:
        reply["frontmatter"] = frontmatter
    provenance = page.provenance
    origin: JsonObject = {
        name: value
        for name, value in (
            ("source_kind", provenance.source_kind),
            ("source_uri", provenance.source_uri),
            ("ingested_via", provenance.ingested_via),
            ("path", provenance.path),
        )
        if value
    }
    if origin:
        reply["provenance"] = origin
    return reply


def summary_reply(page: PageSummary) -> JsonObject:
    """A page as a list shows it."""
    reply: JsonObject = {
        "slug": page.slug,
        "source": page.source,
        "title": page.title,
        "type": page.type,
        "revision": page.revision,
        "updated_at": moment(page.update_time),
        "created_at": moment(page.create_time),
        "content_bytes": page.body_bytes,
    }
    if page.tags:
        reply["tags"] = list(page.tags)
    if page.aliases:
        reply["aliases"] = list(page.aliases)
    if page.date:
        reply["date"] = page.date
    if page.visibility == Visibility.VISIBILITY_PRIVATE:
        reply["visibility"] = "private"
    return reply


def link_reply(link: Link) -> JsonObject:
    """A link in its own direction; `exists` is false when no page has the name yet."""
    reply: JsonObject = {
        "from_slug": link.from_page.slug,
        "from_title": link.from_page.title,
        "from_source": link.from_page.source,
        "link_type": link.link_type,
        "to_slug": link.to_page.slug,
        "to_title": link.to_page.title,
        "to_source": link.to_page.source,
        "exists": bool(link.from_page.page_id and link.to_page.page_id),
        "provenance": link.provenance,
    }
    if link.name:
        reply["name"] = link.name
    if link.context:
        reply["context"] = link.context
    if link.line:
        reply["line"] = link.line
    if link.fragment:
        reply["fragment"] = link.fragment
    if link.embed:
        reply["embed"] = True
    if link.candidates:
        reply["candidates"] = [page.slug for page in link.candidates]
    return reply


def graph_page_reply(page: GraphPage) -> JsonObject:
    """A page as the graph knows it."""
    return {
        "slug": page.slug,
        "source": page.source,
        "title": page.title,
        "type": page.type,
        "revision": page.revision,
    }


def name_reply(match: NameMatch) -> JsonObject:
    """A page that has a name, with how it has it."""
    return graph_page_reply(match.page) | {
        "matched": _word(NameKind.Name(match.kind), "NAME_KIND_"),
        "name": match.name,
    }


def projection_reply(state: ProjectionState) -> JsonObject:
    """How far a projection is."""
    return {
        "projection": state.projection,
        "engine": state.engine,
        "store_id": state.store_id,
        "indexed_revision": state.indexed_revision,
        "last_revision": state.last_revision,
        "pending": state.pending,
        "dead_letters": state.dead_letters,
        "ready": state.ready,
        "rebuilding": state.rebuilding,
        "waiting_for": state.waiting_for,
    }


def findings(found: Iterable[Finding]) -> list[JsonValue]:
    """What the parser noticed, for the author of the page."""
    return [
        {"code": f.code, "line": f.line, "message": f.message, "next_step": f.next_step}
        if f.line
        else {"code": f.code, "message": f.message, "next_step": f.next_step}
        for f in found
    ]


def moment(time: Timestamp) -> str:
    """A time as ISO 8601 in UTC."""
    return time.ToJsonString()


def from_json(text: str) -> JsonValue:
    """The value in a JSON text of ours; None when the text is empty."""
    value: JsonValue = json.loads(text) if text else None
    return value


def _word(name: str, prefix: str) -> str:
    """An enum value as a lower-case word: WRITE_STATUS_CREATED is `created`."""
    return name.removeprefix(prefix).lower()
