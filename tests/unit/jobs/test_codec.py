"""Records go through their stored form unchanged."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from services.jobs.codec import decode_answer, decode_record, encode_answer, encode_record
from services.jobs.ports import Answer
from services.jobs.states import JobRecord, State

TEXT = st.text(max_size=20)
COUNT = st.integers(0, 2**31 - 1)
TIME = st.datetimes(datetime(1970, 1, 1), datetime(9999, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
RECORD = st.builds(
    JobRecord,
    job_id=st.integers(1, 2**63 - 1),
    name=TEXT,
    data=TEXT,
    queue=TEXT,
    state=st.sampled_from(State),
    priority=st.integers(-100, 100),
    attempts=COUNT,
    max_attempts=COUNT,
    finished=COUNT,
    total=COUNT,
    unit=TEXT,
    result=TEXT,
    error_message=TEXT,
    error_reason=st.sampled_from(["", "INTERNAL", "JOB_INVALID", "PEER_UNAVAILABLE"]),
    submitted_by=TEXT,
    create_time=TIME,
    update_time=TIME,
    delay_until=st.none() | TIME,
    start_time=st.none() | TIME,
    finish_time=st.none() | TIME,
    timeout=st.timedeltas(timedelta(0), timedelta(days=1)),
    cancel_requested=st.booleans(),
    request_id=TEXT,
    run=COUNT,
    sequence=COUNT,
    stalls=COUNT,
    deferrals=COUNT,
    begun=st.booleans(),
)


@given(record=RECORD)
def test_a_record_comes_back_as_it_was(record: JobRecord) -> None:
    assert decode_record(encode_record(record)) == record


@given(record=RECORD, digest=st.binary(max_size=32), coalesced=st.booleans())
def test_an_answer_comes_back_as_it_was(record: JobRecord, digest: bytes, coalesced: bool) -> None:
    answer = Answer(digest=digest, record=record, coalesced=coalesced)

    assert decode_answer(encode_answer(answer)) == answer
