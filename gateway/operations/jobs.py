"""The family of operations on jobs: work that takes longer than a call should."""

from __future__ import annotations

import json

from google.protobuf.duration_pb2 import Duration

from brain.v1 import job_service_pb2 as jobs
from brain.v1.error_reason_pb2 import ErrorReason
from gateway.operations import parameters as p
from gateway.operations.definition import Call, Effect, Operation
from gateway.operations.json_value import JsonObject
from gateway.operations.parameters import Kind, Parameter
from gateway.operations.replies import from_json, moment
from services.domain.context import Scope

STATES = {
    name.removeprefix("JOB_STATE_").lower().replace("_", "-"): number
    for name, number in jobs.JobState.items()
    if number != jobs.JOB_STATE_UNSPECIFIED
}
"""The nine states by the names everybody uses: waiting, active, delayed, waiting-children and so on."""

DELAY_MS_MAX = 30 * 24 * 3600 * 1000
TIMEOUT_MS_MAX = 24 * 3600 * 1000
"""The bounds of the job service, in the milliseconds that callers send."""


async def submit_job(call: Call) -> JsonObject:
    """Puts a job into the queue."""
    args = call.arguments
    request = jobs.SubmitJobRequest(
        name=args.text("name"),
        data_json=json.dumps(args.object("data"), ensure_ascii=False),
        queue=args.text("queue"),
        priority=args.number("priority"),
        max_attempts=args.number("max_attempts"),
        request_id=call.request_id(),
    )
    if delay := args.number("delay"):
        request.delay.CopyFrom(_milliseconds(delay))
    if timeout := args.number("timeout_ms"):
        request.timeout.CopyFrom(_milliseconds(timeout))
    response = await call.peers.jobs.SubmitJob(request)
    return job_reply(response.job) | {"coalesced": response.coalesced}


async def get_job(call: Call) -> JsonObject:
    """Returns a job."""
    response = await call.peers.jobs.GetJob(jobs.GetJobRequest(job_id=call.arguments.number("id")))
    return job_reply(response.job)


async def list_jobs(call: Call) -> JsonObject:
    """Lists jobs, newest first."""
    args = call.arguments
    request = jobs.ListJobsRequest(
        queue=args.text("queue"),
        name=args.text("name"),
        page_size=args.number("limit"),
        page_token=args.text("page_token"),
    )
    if status := args.text("status"):
        request.state = jobs.JobState.ValueType(STATES[status])
    response = await call.peers.jobs.ListJobs(request)
    reply: JsonObject = {"jobs": [job_reply(job) for job in response.jobs]}
    if response.next_page_token:
        reply["next_page_token"] = response.next_page_token
    return reply


async def cancel_job(call: Call) -> JsonObject:
    """Ends a job."""
    request = jobs.CancelJobRequest(job_id=call.arguments.number("id"), request_id=call.request_id())
    response = await call.peers.jobs.CancelJob(request)
    return job_reply(response.job)


def job_reply(job: jobs.Job) -> JsonObject:
    """A job as JSON."""
    reply: JsonObject = {
        "id": job.job_id,
        "name": job.name,
        "status": jobs.JobState.Name(job.state).removeprefix("JOB_STATE_").lower().replace("_", "-"),
        "data": from_json(job.data_json),
        "queue": job.queue,
        "priority": job.priority,
        "attempts": job.attempts,
        "max_attempts": job.max_attempts,
        "progress": {"finished": job.finished, "total": job.total, "unit": job.unit},
        "submitted_by": job.submitted_by,
    }
    if job.result_json:
        reply["result"] = from_json(job.result_json)
    if job.error_message:
        reason = ErrorReason.Name(job.error_reason).removeprefix("ERROR_REASON_")
        reply["error"] = {"reason": reason, "message": job.error_message}
    if job.cancel_requested:
        reply["cancel_requested"] = True
    for name, time, present in (
        ("created_at", job.create_time, job.HasField("create_time")),
        ("delay_until", job.delay_until_time, job.HasField("delay_until_time")),
        ("started_at", job.start_time, job.HasField("start_time")),
        ("finished_at", job.finish_time, job.HasField("finish_time")),
        ("updated_at", job.update_time, job.HasField("update_time")),
    ):
        if present:
            reply[name] = moment(time)
    if job.HasField("timeout"):
        reply["timeout_ms"] = job.timeout.ToMilliseconds()
    return reply


def _milliseconds(count: int) -> Duration:
    span = Duration()
    span.FromMilliseconds(count)
    return span


JOB_ID = Parameter(
    name="id",
    kind=Kind.WHOLE_NUMBER,
    description="The job's number, as submit_job or list_jobs gives it.",
    required=True,
    minimum=1,
    aliases=("job_id",),
)

QUEUE = Parameter(
    name="queue", kind=Kind.TEXT, description="Name of the queue. Leave out for `default`.", characters_max=64
)

OPERATIONS = (
    Operation(
        name="submit_job",
        title="Submit a job",
        description=(
            'Put long work into the durable queue. Kinds: rebuild (data: {"projection": "search-lexical" | '
            '"search-vectors" | "graph"}) builds an index anew from the page log; embed gives every passage its '
            "vector. Follow it with get_job."
        ),
        parameters=(
            Parameter(
                name="name", kind=Kind.TEXT, description="The kind: rebuild or embed.", required=True, characters_max=64
            ),
            Parameter(name="data", kind=Kind.OBJECT, description="What to do, as the kind wants it."),
            QUEUE,
            Parameter(
                name="priority",
                kind=Kind.WHOLE_NUMBER,
                description="Smaller runs first; 0 is normal.",
                default=0,
                minimum=-100,
                maximum=100,
            ),
            Parameter(
                name="max_attempts",
                kind=Kind.WHOLE_NUMBER,
                description="How often it may be begun. Default 3.",
                default=3,
                minimum=0,
                maximum=100,
                zero_is_default=True,
            ),
            Parameter(
                name="delay",
                kind=Kind.WHOLE_NUMBER,
                description="Begin not before this many milliseconds are over, at most 30 days.",
                default=0,
                minimum=0,
                maximum=DELAY_MS_MAX,
            ),
            Parameter(
                name="timeout_ms",
                kind=Kind.WHOLE_NUMBER,
                description="How long one run may take, at most 24 hours. Default 1 hour.",
                minimum=1,
                maximum=TIMEOUT_MS_MAX,
            ),
            p.REQUEST_ID,
        ),
        scope=Scope.ADMIN,
        effect=Effect.ADD,
        handler=submit_job,
    ),
    Operation(
        name="get_job",
        title="Look at a job",
        description="Look at a job: its status, progress, result or error.",
        parameters=(JOB_ID,),
        scope=Scope.ADMIN,
        handler=get_job,
    ),
    Operation(
        name="list_jobs",
        title="List jobs",
        description="List jobs, newest first, by status, queue or kind.",
        parameters=(
            Parameter(name="status", kind=Kind.TEXT, description="Only jobs in this state.", choices=tuple(STATES)),
            QUEUE,
            Parameter(name="name", kind=Kind.TEXT, description="Only jobs of this kind.", characters_max=64),
            p.limit(50, 500, what="jobs"),
            p.PAGE_TOKEN,
        ),
        scope=Scope.ADMIN,
        handler=list_jobs,
    ),
    Operation(
        name="cancel_job",
        title="Cancel a job",
        description=(
            "End a job: at once when it waits, as soon as its worker stops when it runs. A finished job stays as it is."
        ),
        parameters=(JOB_ID, p.REQUEST_ID),
        scope=Scope.ADMIN,
        effect=Effect.DESTROY,
        handler=cancel_job,
    ),
)
