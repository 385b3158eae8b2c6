"""Job records as protobuf, and back: the job as callers see it, and the record as it is stored."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from brain.v1 import error_reason_pb2, events_pb2, job_service_pb2
from services.jobs.ports import Answer
from services.jobs.states import JobRecord, State

STATES: Final = {
    state: job_service_pb2.JobState.Value(f"JOB_STATE_{state.value.upper().replace('-', '_')}") for state in State
}
STATES_BY_NUMBER: Final = {number: state for state, number in STATES.items()}
REASON_PREFIX: Final = "ERROR_REASON_"


def encode_job(record: JobRecord) -> job_service_pb2.Job:
    """The job as callers see it."""
    job = job_service_pb2.Job(
        job_id=record.job_id,
        name=record.name,
        data_json=record.data,
        queue=record.queue,
        state=STATES[record.state],
        priority=record.priority,
        attempts=record.attempts,
        max_attempts=record.max_attempts,
        finished=record.finished,
        total=record.total,
        unit=record.unit,
        result_json=record.result,
        error_message=record.error_message,
        error_reason=encode_reason(record.error_reason),
        submitted_by=record.submitted_by,
        create_time=encode_time(record.create_time),
        delay_until_time=encode_time(record.delay_until),
        start_time=encode_time(record.start_time),
        finish_time=encode_time(record.finish_time),
        update_time=encode_time(record.update_time),
        cancel_requested=record.cancel_requested,
    )
    job.timeout.FromTimedelta(record.timeout)
    return job


def encode_record(record: JobRecord) -> events_pb2.JobRecord:
    """The record as it is stored."""
    return events_pb2.JobRecord(
        job=encode_job(record),
        run=record.run,
        sequence=record.sequence,
        stalls=record.stalls,
        deferrals=record.deferrals,
        begun=record.begun,
        request_id=record.request_id,
    )


def decode_record(message: events_pb2.JobRecord) -> JobRecord:
    """The record from its stored form."""
    job = message.job
    return JobRecord(
        job_id=job.job_id,
        name=job.name,
        data=job.data_json,
        queue=job.queue,
        state=STATES_BY_NUMBER[job.state],
        priority=job.priority,
        attempts=job.attempts,
        max_attempts=job.max_attempts,
        finished=job.finished,
        total=job.total,
        unit=job.unit,
        result=job.result_json,
        error_message=job.error_message,
        error_reason=decode_reason(job.error_reason),
        submitted_by=job.submitted_by,
        create_time=decode_time(job.create_time),
        update_time=decode_time(job.update_time),
        delay_until=decode_time(job.delay_until_time) if job.HasField("delay_until_time") else None,
        start_time=decode_time(job.start_time) if job.HasField("start_time") else None,
        finish_time=decode_time(job.finish_time) if job.HasField("finish_time") else None,
        timeout=job.timeout.ToTimedelta(),
        cancel_requested=job.cancel_requested,
        request_id=message.request_id,
        run=message.run,
        sequence=message.sequence,
        stalls=message.stalls,
        deferrals=message.deferrals,
        begun=message.begun,
    )


def encode_answer(answer: Answer) -> events_pb2.JobRequest:
    """What a request led to, as it is stored."""
    record = encode_record(answer.record)
    return events_pb2.JobRequest(digest=answer.digest, record=record, coalesced=answer.coalesced)


def decode_answer(message: events_pb2.JobRequest) -> Answer:
    """What a request led to, from its stored form."""
    return Answer(digest=message.digest, record=decode_record(message.record), coalesced=message.coalesced)


def encode_time(time: datetime | None) -> Timestamp | None:
    """A time, or its absence."""
    if time is None:
        return None
    message = Timestamp()
    message.FromDatetime(time)
    return message


def decode_time(message: Timestamp) -> datetime:
    """A time, aware and in UTC."""
    return message.ToDatetime(tzinfo=UTC)


def encode_reason(reason: str) -> error_reason_pb2.ErrorReason.ValueType:
    """The enum of a reason; one that a newer peer gave and this version does not know is left unspecified."""
    name = REASON_PREFIX + (reason or "UNSPECIFIED")
    known = error_reason_pb2.ErrorReason.keys()
    return error_reason_pb2.ErrorReason.Value(name if name in known else "ERROR_REASON_UNSPECIFIED")


def decode_reason(reason: error_reason_pb2.ErrorReason.ValueType) -> str:
    """The reason of an enum; empty when unspecified."""
    if reason == error_reason_pb2.ERROR_REASON_UNSPECIFIED:
        return ""
    return error_reason_pb2.ErrorReason.Name(reason).removeprefix(REASON_PREFIX)
