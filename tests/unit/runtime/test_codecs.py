"""What goes over a wire comes back as it was: records, contexts, errors."""

from __future__ import annotations

from datetime import UTC, datetime

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from brain.v1 import error_reason_pb2, events_pb2, page_pb2
from services.domain.context import OperationContext, Scope
from services.domain.errors import BrainError, Internal, PermissionDenied, Unavailable
from services.domain.records import Operation, PageId, PageRecord, Predecessor, Provenance, RecordKind
from services.runtime.context_codec import decode_context, encode_context
from services.runtime.page_codec import decode_record, encode_record
from services.runtime.status import CODES, OWN_KEYS, code_of, decode_status, encode_status, number_of

REASONS = frozenset(error_reason_pb2.ErrorReason.keys())
UNFINISHED = events_pb2.PageRecord(kind=page_pb2.RECORD_KIND_PUT).SerializeToString()
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
times = st.datetimes(datetime(1970, 1, 1), datetime(9999, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds
records = st.builds(
    PageRecord,
    source=words,
    slug=words,
    kind=st.sampled_from(RecordKind),
    page_id=words.map(PageId),
    time=times,
    actor=words,
    remote=st.booleans(),
    request_id=words,
    request_digest=st.binary(max_size=8),
    operation=st.sampled_from(Operation),
    body=st.none() | st.binary(max_size=30),
    content_hash=st.binary(max_size=8),
    revision=st.integers(0, 2**62),
    expected=st.just(0),
    moved_to=words,
    former_slugs=st.frozensets(words, max_size=3),
    erased_request_ids=st.frozensets(words, max_size=3),
    predecessors=st.lists(
        st.builds(
            Predecessor,
            revision=st.integers(0, 2**62),
            request_id=words,
            digest=st.binary(max_size=8),
            moved_to=words,
            erased_request_ids=st.frozensets(words, max_size=2),
        ),
        max_size=3,
    ).map(tuple),
    provenance=st.builds(Provenance, source_kind=words, source_uri=words, ingested_via=words, path=words),
    create_time=st.none() | times,
)
sources = st.none() | st.frozensets(words, max_size=3)
contexts = st.builds(
    OperationContext,
    principal=words.filter(bool),
    remote=st.booleans(),
    scopes=st.frozensets(st.sampled_from(Scope)),
    read_sources=sources,
    write_sources=sources,
    write_prefixes=st.lists(words, max_size=3).map(tuple),
)


@given(records)
def test_a_record_survives_the_log(record: PageRecord) -> None:
    assert decode_record(encode_record(record), record.revision) == record


@pytest.mark.parametrize("payload", [b"\xff", b"", UNFINISHED])
def test_what_is_no_record_is_not_taken_for_one(payload: bytes) -> None:
    with pytest.raises(ValueError, match="message 7"):
        decode_record(payload, 7)


@given(contexts)
def test_a_context_survives_the_metadata(context: OperationContext) -> None:
    assert decode_context(encode_context(context)) == context


@pytest.mark.parametrize("value", [None, b"", b"\xff\xff"])
def test_a_call_without_a_caller_has_no_rights(value: bytes | None) -> None:
    with pytest.raises(PermissionDenied) as raised:
        decode_context(value)

    assert raised.value.reason == "CONTEXT_MISSING"


@given(
    st.sampled_from(sorted(CODES, key=lambda cls: cls.__name__)),
    st.dictionaries(words.filter(lambda key: key not in OWN_KEYS), words, max_size=3),
    words,
    words,
    st.none() | st.integers(0, 10**6).map(lambda milliseconds: milliseconds / 1000),
)
def test_every_error_survives_the_wire(
    cls: type[BrainError], metadata: dict[str, str], message: str, text: str, retry_after: float | None
) -> None:
    error = cls(
        "PAGE_MOVED",
        message,
        field=text,
        value=text,
        next_step=text,
        metadata=metadata,
        retry_after_seconds=retry_after,
    )

    status = encode_status(error)
    back = decode_status(code_of(error), status.message, status.SerializeToString(), peer="p")

    assert type(back) is cls
    assert number_of(code_of(error)) == status.code
    for name in ("reason", "message", "field", "value", "next_step", "metadata", "retry_after_seconds"):
        assert getattr(back, name) == getattr(error, name)


def test_an_error_says_its_cause_exactly_once_and_in_a_known_word() -> None:
    status = encode_status(Unavailable("PEER_UNAVAILABLE", "x", field="f"))

    infos = [detail for detail in status.details if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR)]
    assert len(infos) == 1
    info = error_details_pb2.ErrorInfo.FromString(infos[0].value)
    assert info.domain == "brain"
    assert f"ERROR_REASON_{info.reason}" in REASONS


@pytest.mark.parametrize("code", list(grpc.StatusCode))
def test_a_status_that_grpc_made_itself_becomes_an_error_of_ours(code: grpc.StatusCode) -> None:
    error = decode_status(code, "raw words", None, peer="brain.v1.SearchService")

    assert isinstance(error, BrainError)
    assert f"ERROR_REASON_{error.reason}" in REASONS


def test_the_details_of_another_domain_are_not_taken_for_ours() -> None:
    status = status_pb2.Status(code=13, message="m")
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason="X", domain="googleapis.com"))

    error = decode_status(grpc.StatusCode.INTERNAL, "m", status.SerializeToString(), peer="p")

    assert isinstance(error, Internal)
    assert error.reason == "INTERNAL"
