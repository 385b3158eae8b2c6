"""The page log's record as bytes and back: the only place that knows both `PageRecord`s."""

from __future__ import annotations

from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from brain.v1 import events_pb2, page_pb2
from services.domain.records import Operation, PageId, PageRecord, Predecessor, Provenance, RecordKind

KINDS = {kind: page_pb2.RecordKind.Value(f"RECORD_KIND_{kind.name}") for kind in RecordKind}
KINDS_BACK = {number: kind for kind, number in KINDS.items()}
OPERATIONS = {operation: events_pb2.Operation.Value(f"OPERATION_{operation.name}") for operation in Operation}
OPERATIONS_BACK = {number: operation for operation, number in OPERATIONS.items()}
NO_PROVENANCE = Provenance()


def encode_record(record: PageRecord) -> bytes:
    """The message's payload. `revision` and `expected` are not in it: the one is the sequence, the other a header."""
    message = events_pb2.PageRecord(
        source=record.source,
        slug=record.slug,
        kind=KINDS[record.kind],
        page_id=record.page_id,
        body=record.body,
        content_hash=record.content_hash,
        request_id=record.request_id,
        request_digest=record.request_digest,
        operation=OPERATIONS[record.operation],
        actor=record.actor,
        remote=record.remote,
        time=timestamp(record.time),
        moved_to=record.moved_to,
        former_slugs=sorted(record.former_slugs),
        erased_request_ids=sorted(record.erased_request_ids),
        predecessors=[
            events_pb2.Predecessor(
                revision=p.revision,
                request_id=p.request_id,
                request_digest=p.digest,
                moved_to=p.moved_to,
                erased_request_ids=sorted(p.erased_request_ids),
            )
            for p in record.predecessors
        ],
    )
    if record.create_time is not None:
        message.create_time.CopyFrom(timestamp(record.create_time))
    if record.provenance != NO_PROVENANCE:
        message.provenance.CopyFrom(
            page_pb2.Provenance(
                source_kind=record.provenance.source_kind,
                source_uri=record.provenance.source_uri,
                ingested_via=record.provenance.ingested_via,
                path=record.provenance.path,
            )
        )
    return message.SerializeToString()


def decode_record(payload: bytes, revision: int) -> PageRecord:
    """The record of a message.

    Raises:
        ValueError: The payload is no record, or one of a kind that only a newer version knows.
    """
    try:
        message = events_pb2.PageRecord.FromString(payload)
    except Exception as error:  # protobuf's DecodeError has no public base beyond Exception
        raise ValueError(f"message {revision} is not a page record: {error}") from error
    if message.kind not in KINDS_BACK or message.operation not in OPERATIONS_BACK:
        raise ValueError(f"message {revision} is of kind {message.kind}, operation {message.operation}: not known here")
    return PageRecord(
        source=message.source,
        slug=message.slug,
        kind=KINDS_BACK[message.kind],
        page_id=PageId(message.page_id),
        time=moment(message.time),
        actor=message.actor,
        remote=message.remote,
        request_id=message.request_id,
        request_digest=message.request_digest,
        operation=OPERATIONS_BACK[message.operation],
        body=message.body if message.HasField("body") else None,
        content_hash=message.content_hash,
        revision=revision,
        moved_to=message.moved_to,
        former_slugs=frozenset(message.former_slugs),
        erased_request_ids=frozenset(message.erased_request_ids),
        predecessors=tuple(
            Predecessor(
                revision=p.revision,
                request_id=p.request_id,
                digest=p.request_digest,
                moved_to=p.moved_to,
                erased_request_ids=frozenset(p.erased_request_ids),
            )
            for p in message.predecessors
        ),
        provenance=Provenance(
            source_kind=message.provenance.source_kind,
            source_uri=message.provenance.source_uri,
            ingested_via=message.provenance.ingested_via,
            path=message.provenance.path,
        )
        if message.HasField("provenance")
        else NO_PROVENANCE,
        create_time=moment(message.create_time) if message.HasField("create_time") else None,
    )


def timestamp(time: datetime) -> Timestamp:
    """A moment as protobuf says it; it must know its zone."""
    assert time.tzinfo is not None, "a time without zone"
    seconds = int((time - EPOCH).total_seconds() // 1)
    return Timestamp(seconds=seconds, nanos=time.microsecond * 1000)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(stamp: Timestamp) -> datetime:
    """A protobuf moment in UTC, to the microsecond."""
    return datetime.fromtimestamp(stamp.seconds, UTC).replace(microsecond=stamp.nanos // 1000)
