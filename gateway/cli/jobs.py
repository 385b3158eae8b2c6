"""The commands on jobs."""

from __future__ import annotations

import json
from argparse import Namespace

from gateway.cli import output
from gateway.cli.options import Commands, command
from gateway.cli.session import Session
from gateway.operations.json_value import JsonObject
from services.domain.errors import InvalidArgument


def add(commands: Commands) -> None:
    """Declares the commands."""
    parser = command(commands, "jobs", "list jobs, or look at, submit or cancel one", jobs, json=True)
    parser.add_argument("action", nargs="?", choices=("list", "get", "submit", "cancel"), default="list")
    parser.add_argument("what", nargs="?", help="the job's number; for submit its kind: rebuild or embed")
    parser.add_argument("--status", help="list only jobs in this state")
    parser.add_argument("--limit", type=int, metavar="N")
    parser.add_argument("--job-data", metavar="JSON", help='for submit, such as {"projection": "graph"}')
    parser.add_argument("--request-id", metavar="ID", help="idempotency key")


def jobs(session: Session, options: Namespace) -> None:
    """Lists jobs, or does something with one."""
    if options.action == "list":
        reply = session.call("list_jobs", status=options.status, limit=options.limit)
        if session.as_json:
            output.document(reply)
        else:
            rows = [_row(job) for job in output.objects(reply["jobs"])]
            output.table(rows, header=("ID", "KIND", "STATUS", "PROGRESS", "SUBMITTED", "ERROR"))
        return
    if options.what is None:
        raise InvalidArgument(
            "FIELD_REQUIRED",
            f"jobs {options.action} needs to know which",
            field="what",
            next_step="Give the job's number, or for submit its kind: rebuild or embed.",
        )
    match options.action:
        case "submit":
            data = json_object(options.job_data, "job-data")
            reply = session.call("submit_job", name=options.what, data=data, request_id=options.request_id)
        case "cancel":
            reply = session.call("cancel_job", id=options.what, request_id=options.request_id)
        case _:
            reply = session.call("get_job", id=options.what)
    if session.as_json:
        output.document(reply)
    else:
        output.table([_row(reply)], header=("ID", "KIND", "STATUS", "PROGRESS", "SUBMITTED", "ERROR"))


def json_object(text: str | None, field: str) -> JsonObject:
    """The JSON object in an option."""
    try:
        value = json.loads(text) if text else {}
    except ValueError as error:
        raise _not_an_object(field, text or "") from error
    if not isinstance(value, dict):
        raise _not_an_object(field, text or "")
    return value


def _not_an_object(field: str, text: str) -> InvalidArgument:
    return InvalidArgument(
        "FIELD_INVALID",
        f"{field} is not a JSON object",
        field=field,
        value=text,
        next_step='Write it as one, such as \'{"projection": "graph"}\'.',
    )


def _row(job: JsonObject) -> tuple[str, ...]:
    progress, error = job["progress"], job.get("error")
    assert isinstance(progress, dict)
    done = f"{progress['finished']}/{progress['total']} {progress['unit']}" if progress["total"] else ""
    message = str(error["message"]) if isinstance(error, dict) else ""
    return (
        str(job["id"]),
        str(job["name"]),
        str(job["status"]),
        done,
        str(job.get("created_at", ""))[:19],
        message[:80],
    )
