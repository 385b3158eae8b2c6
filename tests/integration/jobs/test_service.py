"""JobService at its process boundary: what callers send over gRPC, and what they get back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from google.protobuf.duration_pb2 import Duration

from brain.v1 import error_reason_pb2
from brain.v1 import job_service_pb2 as pb
from services.domain.context import OperationContext, Scope, local_context
from services.domain.errors import BrainError, InvalidArgument, NotFound, PermissionDenied
from services.runtime.bus import Bus
from services.runtime.calls import operation
from tests.integration.jobs.owner import Owner
from tests.integration.jobs.service import open_service

if TYPE_CHECKING:
    from brain.v1.job_service_pb2_grpc import JobServiceAsyncStub

ADMIN = local_context()


@pytest.fixture
async def client(bus: Bus, owner_and_address: tuple[Owner, str], tmp_path: Path) -> AsyncIterator[JobServiceAsyncStub]:
    async with open_service(bus, owner_and_address[1], tmp_path) as opened:
        yield opened


async def finished(client: JobServiceAsyncStub, job_id: int) -> pb.Job:
    """The job once it is final, asked for again and again as a caller does."""
    async with asyncio.timeout(5):
        while True:
            job = (await client.GetJob(pb.GetJobRequest(job_id=job_id))).job
            if job.state in (pb.JOB_STATE_COMPLETED, pb.JOB_STATE_DEAD, pb.JOB_STATE_CANCELLED):
                return job


async def test_a_job_goes_through_the_whole_service(client: JobServiceAsyncStub, owner: Owner) -> None:
    with operation(ADMIN, timeout_seconds=5):
        request = pb.SubmitJobRequest(name="rebuild", data_json='{"projection":"all"}', request_id="r1")
        submitted = await client.SubmitJob(request)
        again = await client.SubmitJob(request)
        done = await finished(client, submitted.job.job_id)
        listed = await client.ListJobs(pb.ListJobsRequest(state=pb.JOB_STATE_COMPLETED, name="rebuild"))

    assert (submitted.job.job_id, submitted.job.submitted_by, submitted.coalesced) == (1, "local", False)
    assert again.job.job_id == 1
    assert (done.state, done.attempts, done.finished) == (pb.JOB_STATE_COMPLETED, 1, 30)
    assert list(listed.jobs) == [done]
    assert len(owner.completed) == 3


async def test_a_delayed_job_begins_by_itself_and_a_waiting_one_can_be_ended(
    client: JobServiceAsyncStub, owner: Owner
) -> None:
    with operation(ADMIN, timeout_seconds=5):
        soon = await client.SubmitJob(
            pb.SubmitJobRequest(name="embed", request_id="soon", delay=Duration(nanos=200_000_000))
        )
        later = await client.SubmitJob(
            pb.SubmitJobRequest(name="embed", request_id="later", delay=Duration(seconds=3_600))
        )
        ended = await client.CancelJob(pb.CancelJobRequest(job_id=later.job.job_id, request_id="end"))
        done = await finished(client, soon.job.job_id)

    assert soon.job.state == later.job.state == pb.JOB_STATE_DELAYED
    assert ended.job.state == pb.JOB_STATE_CANCELLED
    assert done.state == pb.JOB_STATE_COMPLETED
    assert owner.began == ["job-1"]


async def test_lists_come_in_pages_that_belong_to_their_filters(client: JobServiceAsyncStub) -> None:
    with operation(ADMIN, timeout_seconds=5):
        for number in range(5):
            await client.SubmitJob(
                pb.SubmitJobRequest(
                    name="embed", queue=f"q-{number}", request_id=str(number), delay=Duration(seconds=60)
                )
            )
        first = await client.ListJobs(pb.ListJobsRequest(page_size=3))
        second = await client.ListJobs(pb.ListJobsRequest(page_size=3, page_token=first.next_page_token))
        with pytest.raises(InvalidArgument) as refused:
            await client.ListJobs(pb.ListJobsRequest(queue="q-1", page_token=first.next_page_token))

    assert [job.job_id for job in first.jobs] == [5, 4, 3]
    assert [job.job_id for job in second.jobs] == [2, 1]
    assert second.next_page_token == ""
    assert refused.value.reason == "PAGE_TOKEN_INVALID"


@pytest.mark.parametrize(
    ("request_message", "reason", "field"),
    [
        (pb.SubmitJobRequest(name="dream", request_id="r"), "JOB_INVALID", "name"),
        (pb.SubmitJobRequest(name="embed"), "FIELD_REQUIRED", "request_id"),
        (pb.SubmitJobRequest(name="embed", request_id="r", delay=Duration(seconds=2**62)), "FIELD_INVALID", "delay"),
        (pb.SubmitJobRequest(name="embed", request_id="r", timeout=Duration()), "FIELD_INVALID", "timeout"),
        (pb.ListJobsRequest(page_size=-1), "FIELD_INVALID", "page_size"),
        (pb.ListJobsRequest(page_token="nonsense"), "PAGE_TOKEN_INVALID", "page_token"),
        (pb.CancelJobRequest(job_id=1), "FIELD_REQUIRED", "request_id"),
        (pb.GetJobRequest(), "FIELD_REQUIRED", "job_id"),
        (pb.GetJobRequest(job_id=99), "JOB_NOT_FOUND", "job_id"),
        (pb.GetJobRequest(job_id=-1), "JOB_NOT_FOUND", "job_id"),
        (pb.CancelJobRequest(job_id=99, request_id="r"), "JOB_NOT_FOUND", "job_id"),
    ],
)
async def test_what_is_wrong_is_named(
    client: JobServiceAsyncStub, request_message: object, reason: str, field: str
) -> None:
    with operation(ADMIN, timeout_seconds=5), pytest.raises((InvalidArgument, NotFound)) as refused:
        await call(client, request_message)

    assert (refused.value.reason, refused.value.field) == (reason, field)
    assert refused.value.next_step


@pytest.mark.parametrize(
    "request_message",
    [
        pb.SubmitJobRequest(name="embed", request_id="r"),
        pb.GetJobRequest(job_id=1),
        pb.ListJobsRequest(),
        pb.CancelJobRequest(job_id=1, request_id="r"),
    ],
)
async def test_jobs_are_for_administrators(client: JobServiceAsyncStub, request_message: object) -> None:
    agent = OperationContext(principal="agent", scopes=frozenset({Scope.READ, Scope.WRITE}))

    with operation(agent, timeout_seconds=5), pytest.raises(PermissionDenied) as refused:
        await call(client, request_message)

    assert refused.value.reason == "SCOPE_MISSING"


async def test_a_remote_administrator_may_submit_what_is_not_protected(client: JobServiceAsyncStub) -> None:
    operator = OperationContext(principal="operator", scopes=frozenset({Scope.ADMIN}))

    with operation(operator, timeout_seconds=5):
        submitted = await client.SubmitJob(pb.SubmitJobRequest(name="embed", request_id="r"))

    assert submitted.job.submitted_by == "operator"


async def test_a_dead_job_says_why(client: JobServiceAsyncStub, owner: Owner) -> None:
    owner.refusals.append(InvalidArgument("FIELD_INVALID", "no such projection"))

    with operation(ADMIN, timeout_seconds=5):
        submitted = await client.SubmitJob(pb.SubmitJobRequest(name="embed", request_id="r"))
        dead = await finished(client, submitted.job.job_id)

    assert (dead.state, dead.error_message) == (pb.JOB_STATE_DEAD, "no such projection")
    assert dead.error_reason == error_reason_pb2.ERROR_REASON_FIELD_INVALID


async def call(client: JobServiceAsyncStub, message: object) -> object:
    """Sends a request to the method it belongs to."""
    match message:
        case pb.SubmitJobRequest():
            return await client.SubmitJob(message)
        case pb.GetJobRequest():
            return await client.GetJob(message)
        case pb.ListJobsRequest():
            return await client.ListJobs(message)
        case pb.CancelJobRequest():
            return await client.CancelJob(message)
        case _:
            raise BrainError("INTERNAL", "no such request")
