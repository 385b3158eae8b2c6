"""The command that builds an index anew, here or in another engine, and waits for it."""

from __future__ import annotations

import time
from argparse import Namespace

from gateway.cli import output
from gateway.cli.options import Commands, command
from gateway.cli.session import Session
from gateway.operations.json_value import JsonObject
from services.domain.errors import Unavailable

OVER = frozenset({"completed", "dead", "cancelled"})
LOOK_SECONDS = 0.5
UNANSWERED_MAX = 20
"""Looks in a row that nobody answers before this gives up looking; the job goes on."""


def add(commands: Commands) -> None:
    """Declares the command."""
    parser = command(commands, "rebuild", "build an index anew from the page log and wait for it", rebuild, json=True)
    parser.add_argument("projection", choices=("lexical", "vectors", "graph", "all"))
    parser.add_argument(
        "--to",
        metavar="URL",
        help="move it to the engine at this URL, which then serves; passwords go into the engine's own setting",
    )
    parser.add_argument("--request-id", metavar="ID", help="idempotency key")


def rebuild(session: Session, options: Namespace) -> int:
    """Submits the job and tells how far it is until it is over; an interrupted one goes on."""
    data: JsonObject = {"projection": options.projection}
    if options.to:
        data["to"] = options.to
    kind = "move" if options.to else "rebuild"
    job = session.call("submit_job", name=kind, data=data, request_id=options.request_id)
    output.message(f"Job {job['id']} is begun; it goes on when this command is interrupted.")
    shown = ""
    unanswered = 0
    while job["status"] not in OVER:
        time.sleep(LOOK_SECONDS)
        try:
            job = session.call("get_job", id=job["id"])
            unanswered = 0
        except Unavailable:
            unanswered += 1
            if unanswered >= UNANSWERED_MAX:
                raise
        if (now := _far(job)) != shown:
            shown = now
            output.message(now)
    if session.as_json:
        output.document(job)
        return 0 if job["status"] == "completed" else 1
    if job["status"] != "completed":
        error = job.get("error")
        output.message(f"The job is {job['status']}" + (f": {error['message']}" if isinstance(error, dict) else "."))
        return 1
    output.line(f"{options.projection} is built anew" + (f" at {options.to}" if options.to else "") + ".")
    if options.to:
        setting = f"FLEETBRAIN_{options.projection.upper()}_URL"
        output.message(f"Set {setting}={options.to} before the next start; the old place serves no more.")
    return 0


def _far(job: JsonObject) -> str:
    progress = job["progress"]
    if not isinstance(progress, dict) or not progress["total"]:
        return f"Job {job['id']}: {job['status']}"
    return f"Job {job['id']}: {progress['finished']} of {progress['total']} {progress['unit']}"
