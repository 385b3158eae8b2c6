"""JobService over gRPC: reads requests, asks the use cases, writes responses. Everything here needs the scope admin."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from google.protobuf.duration_pb2 import Duration

from brain.v1 import job_service_pb2 as pb
from brain.v1.job_service_pb2_grpc import JobServiceServicer
from services.domain.context import OperationContext, Scope
from services.domain.errors import InvalidArgument
from services.jobs.app.asking import Asking
from services.jobs.app.submitting import Submitting
from services.jobs.codec import STATES_BY_NUMBER, encode_job
from services.jobs.kinds import Kind
from services.jobs.requests import check_allowed, check_request_id, field_invalid, read_submission
from services.jobs.states import State
from services.runtime.calls import current_context
from services.runtime.pages import decode_page_token, encode_page_token

if TYPE_CHECKING:
    from grpc.aio import ServicerContext

PAGE_SIZE_DEFAULT: Final = 50
PAGE_SIZE_MAX: Final = 500
DURATION_SECONDS_MAX: Final = 10_000 * 24 * 3600
"""More than any limit of ours and less than what a Python time span cannot hold."""


class JobServicer(JobServiceServicer):
    """The service. Errors are BrainError; the server turns them into statuses."""

    def __init__(self, submitting: Submitting, asking: Asking, kinds: Mapping[str, Kind]) -> None:
        self._submitting = submitting
        self._asking = asking
        self._kinds = kinds

    async def SubmitJob(  # noqa: N802
        self, request: pb.SubmitJobRequest, context: ServicerContext[pb.SubmitJobRequest, pb.SubmitJobResponse]
    ) -> pb.SubmitJobResponse:
        """Puts a job into the queue."""
        caller = admin()
        submission = read_submission(
            self._kinds,
            name=request.name,
            data_json=request.data_json,
            queue=request.queue,
            priority=request.priority,
            max_attempts=request.max_attempts,
            delay=read_duration(request.delay),
            timeout=read_duration(request.timeout) if request.HasField("timeout") else None,
            request_id=request.request_id,
        )
        check_allowed(caller, self._kinds[submission.name], submission.name)
        record, coalesced = await self._submitting.submit(submission, principal=caller.principal)
        return pb.SubmitJobResponse(job=encode_job(record), coalesced=coalesced)

    async def GetJob(  # noqa: N802
        self, request: pb.GetJobRequest, context: ServicerContext[pb.GetJobRequest, pb.GetJobResponse]
    ) -> pb.GetJobResponse:
        """Returns a job."""
        admin()
        return pb.GetJobResponse(job=encode_job(await self._asking.get(read_job_id(request.job_id))))

    async def ListJobs(  # noqa: N802
        self, request: pb.ListJobsRequest, context: ServicerContext[pb.ListJobsRequest, pb.ListJobsResponse]
    ) -> pb.ListJobsResponse:
        """Lists jobs, newest first."""
        admin()
        state = read_state(request.state)
        if request.page_size < 0:
            step = "Leave it out for 50."
            raise field_invalid("a page has at least one job", "page_size", request.page_size, step)
        arguments = {"call": "ListJobs", "state": state or "", "queue": request.queue, "name": request.name}
        before = read_position(request.page_token, arguments)
        jobs, following = await self._asking.page(
            state=state,
            queue=request.queue,
            name=request.name,
            before=before,
            limit=min(request.page_size or PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX),
        )
        token = encode_page_token(str(following), arguments) if following is not None else ""
        return pb.ListJobsResponse(jobs=[encode_job(job) for job in jobs], next_page_token=token)

    async def CancelJob(  # noqa: N802
        self, request: pb.CancelJobRequest, context: ServicerContext[pb.CancelJobRequest, pb.CancelJobResponse]
    ) -> pb.CancelJobResponse:
        """Ends a job. Ending it twice is ending it once, so the request_id need not be remembered."""
        admin()
        check_request_id(request.request_id)
        return pb.CancelJobResponse(job=encode_job(await self._asking.cancel(read_job_id(request.job_id))))


def admin() -> OperationContext:
    """The caller, who must be an administrator."""
    caller = current_context()
    caller.require(Scope.ADMIN)
    return caller


def read_job_id(job_id: int) -> int:
    """The number, if one was given; whether there is such a job is another question."""
    if job_id == 0:
        raise InvalidArgument(
            "FIELD_REQUIRED", "the number of a job is needed", field="job_id", next_step="List jobs to see them."
        )
    return job_id


def read_position(token: str, arguments: Mapping[str, str]) -> int | None:
    """Where the page begins; None at the beginning."""
    position = decode_page_token(token, arguments)
    if position and not position.isdecimal():
        raise InvalidArgument(
            "PAGE_TOKEN_INVALID",
            "the page token is not one of this list",
            field="page_token",
            value=token,
            next_step="Begin again without a token.",
        )
    return int(position) if position else None


def read_state(number: int) -> State | None:
    """The state of a filter; None when it is not set."""
    if number == pb.JOB_STATE_UNSPECIFIED:
        return None
    state = STATES_BY_NUMBER.get(pb.JobState.ValueType(number))
    if state is None:
        raise field_invalid("jobs have no such state", "state", number, f"Use one of: {', '.join(State)}.")
    return state


def read_duration(span: Duration) -> timedelta:
    """The time span; one that is out of every bound stays so."""
    seconds = max(-DURATION_SECONDS_MAX, min(span.seconds, DURATION_SECONDS_MAX))
    return timedelta(seconds=seconds, microseconds=span.nanos // 1000)
