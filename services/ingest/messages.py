"""Ingest's values as protobuf messages and back."""

from __future__ import annotations

from datetime import datetime

import orjson
from google.protobuf.timestamp_pb2 import Timestamp

from brain.v1 import error_reason_pb2, ingest_service_pb2, page_pb2
from services.domain.errors import BrainError
from services.domain.page import Finding, FrontmatterValue, Visibility
from services.domain.records import Provenance, RecordKind
from services.ingest.app.imports import ImportResult
from services.ingest.app.reads import ReadPage
from services.ingest.requests import WriteReply, WriteStatus

STATUSES = {s: ingest_service_pb2.WriteStatus.Value(f"WRITE_STATUS_{s.name}") for s in WriteStatus}
KINDS = {kind: page_pb2.RecordKind.Value(f"RECORD_KIND_{kind.name}") for kind in RecordKind}
VISIBILITIES = {v: page_pb2.Visibility.Value(f"VISIBILITY_{v.name}") for v in Visibility}


def write_result(reply: WriteReply) -> ingest_service_pb2.WriteResult:
    """What a write did."""
    return ingest_service_pb2.WriteResult(
        source=reply.source,
        slug=reply.slug,
        page_id=reply.page_id,
        revision=reply.revision,
        status=STATUSES[reply.status],
        replaced_revision=reply.replaced_revision,
        content_hash=reply.content_hash,
        body_bytes=reply.body_bytes,
        findings=[finding(f) for f in reply.findings],
        title=reply.title,
        type=reply.type,
        recoverable_until_time=timestamp(reply.recoverable_until),
        update_time=timestamp(reply.time),
    )


def page(read: ReadPage, *, include_body: bool) -> page_pb2.Page:
    """A page at one revision."""
    record, parsed = read.record, read.parsed
    message = page_pb2.Page(
        source=record.source,
        slug=record.slug,
        page_id=record.page_id,
        revision=record.revision,
        body=record.body if include_body and record.body is not None else b"",
        body_bytes=read.body_bytes,
        content_hash=record.content_hash,
        kind=KINDS[record.kind],
        actor=record.actor,
        create_time=timestamp(record.create_time),
        update_time=timestamp(record.time),
        delete_time=timestamp(record.time) if record.kind is RecordKind.DELETE else None,
        former_slugs=sorted(read.former_slugs),
        provenance=provenance(record.provenance),
    )
    if parsed is None:
        message.frontmatter_json = "{}"
        message.title = record.slug.rpartition("/")[2]  # never empty, also when nothing is left to read it from
        return message
    message.title = parsed.title
    message.type = parsed.type
    message.tags.extend(parsed.tags)
    message.aliases.extend(parsed.aliases)
    message.date = parsed.date
    message.visibility = VISIBILITIES[parsed.visibility]
    message.findings.extend(finding(f) for f in parsed.findings)
    message.frontmatter_json = orjson.dumps(plain(parsed.frontmatter)).decode()
    return message


def plain(value: FrontmatterValue) -> object:
    """A frontmatter value in the types that JSON has; an integer beyond 64 bits as its digits."""
    if value is None or isinstance(value, str | bool | float):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return {key: plain(item) for key, item in value.items()}


def import_result(result: ImportResult) -> ingest_service_pb2.ImportResult:
    """What became of one file."""
    message = ingest_service_pb2.ImportResult(
        path=result.path,
        slug=result.slug,
        revision=result.revision,
        findings=[finding(f) for f in result.findings],
    )
    if result.status is not None:
        message.status = STATUSES[result.status]
    if result.error is not None:
        message.error.CopyFrom(item_error(result.error))
    return message


def item_error(error: BrainError) -> page_pb2.ItemError:
    """An error of one item of many."""
    line = error.metadata.get("line", "")
    return page_pb2.ItemError(
        reason=error_reason_pb2.ErrorReason.Value(f"ERROR_REASON_{error.reason}"),
        message=error.message,
        field=error.field,
        value=error.value,
        next_step=error.next_step,
        line=int(line) if line.isdecimal() else 0,
    )


def finding(found: Finding) -> page_pb2.Finding:
    """Something the author should know."""
    return page_pb2.Finding(code=found.code, line=found.line, message=found.message, next_step=found.next_step)


def provenance(origin: Provenance) -> page_pb2.Provenance:
    """Where a text came from."""
    return page_pb2.Provenance(
        source_kind=origin.source_kind,
        source_uri=origin.source_uri,
        ingested_via=origin.ingested_via,
        path=origin.path,
    )


def provenance_from(message: page_pb2.Provenance) -> Provenance:
    """Where a text came from, as its caller says."""
    return Provenance(source_kind=message.source_kind, source_uri=message.source_uri, ingested_via=message.ingested_via)


def timestamp(time: datetime | None) -> Timestamp | None:
    """A moment as protobuf says it."""
    if time is None:
        return None
    stamp = Timestamp()
    stamp.FromDatetime(time)
    return stamp
