"""The commands that tell how the brain is: stats and doctor."""

from __future__ import annotations

import os
import shutil
import time
from argparse import Namespace
from dataclasses import dataclass

from gateway.cli import output
from gateway.cli.options import Commands, add_source, command
from gateway.cli.session import Session
from gateway.operations.json_value import JsonObject, JsonValue
from services.domain.errors import BrainError

LOOK_AGAIN_SECONDS = 6.0
"""Between two looks at a projection that is behind: longer than the longest pause between two tries of its engine, and
than a batch of passages takes to embed."""
FREE_BYTES_MIN = 500_000_000
"""Below this a log, two indexes and their rebuilds soon run out of disk."""


def add(commands: Commands) -> None:
    """Declares the commands."""
    parser = command(commands, "stats", "count what the brain holds", stats, json=True)
    add_source(parser)
    command(commands, "doctor", "check the brain and say what is wrong", doctor, json=True)


def stats(session: Session, options: Namespace) -> None:
    """Counts what the brain holds."""
    reply = session.call("get_stats", source=options.source)
    if session.as_json:
        output.document(reply)
        return
    for name, label in (
        ("pages", "Pages"),
        ("chunks", "Chunks"),
        ("embedded", "Embedded"),
        ("links", "Links"),
        ("unresolved_links", "Unresolved"),
        ("tags", "Tags"),
        ("timeline_entries", "Timeline"),
    ):
        output.line(f"{label + ':':<12}{reply[name]}")
    output.line(f"{'Embedder:':<12}{reply['embedder'] or 'none'}")
    if reply.get("next_embedder"):
        output.line(f"{'Building:':<12}{reply['next_embedder']}")
    for name, label in (("by_type", "By type"), ("by_link_type", "By link type")):
        counts = reply[name]
        if isinstance(counts, dict) and counts:
            output.line(f"{label}:")
            for word, count in counts.items():
                output.line(f"  {word}: {count}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    message: str
    next_step: str = ""


def doctor(session: Session, options: Namespace) -> int:
    """Checks the brain; exit status 1 when something is wrong."""
    checks = [_folder(session), *_brain(session)]
    if session.as_json:
        shown: list[JsonValue] = [
            {"name": c.name, "ok": c.ok, "message": c.message, "next_step": c.next_step} for c in checks
        ]
        output.document({"ok": all(c.ok for c in checks), "checks": shown})
    else:
        for check in checks:
            output.line(f"{'ok  ' if check.ok else 'BAD '} {check.name}: {check.message}")
            if not check.ok and check.next_step:
                output.line(f"     {check.next_step}")
    return 0 if all(check.ok for check in checks) else 1


def _folder(session: Session) -> Check:
    data = session.settings.data
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        free = shutil.disk_usage(data).free
    except OSError as error:
        return Check(
            name="data folder",
            ok=False,
            message=f"{data}: {error.strerror}",
            next_step="Set FLEETBRAIN_DATA to a folder that this user can write.",
        )
    if not os.access(data, os.W_OK):
        return Check(name="data folder", ok=False, message=f"{data} is not writable", next_step="Change its mode.")
    if free < FREE_BYTES_MIN:
        return Check(
            name="data folder",
            ok=False,
            message=f"{data} has {free // 1_000_000} MB left",
            next_step="Make room: when the disk is full no write is accepted.",
        )
    return Check(name="data folder", ok=True, message=f"{data}, {free // 1_000_000_000} GB free")


def _brain(session: Session) -> list[Check]:
    try:
        running = session.running
        status = session.call("get_status", wait="all", timeout_seconds=5)
        counts = session.call("get_stats")
    except BrainError as error:
        return [Check(name="brain", ok=False, message=error.message, next_step=error.next_step)]
    found = [Check(name="brain", ok=True, message=f"answers (pid {running.pid}, {running.http or 'no TCP'})")]
    # A wait for everything that ends early is no fault as long as work is being done: told apart below.
    states = output.objects(status["projections"])
    if any(state["pending"] for state in states):
        time.sleep(LOOK_AGAIN_SECONDS)
        later = output.objects(session.call("get_status")["projections"])
        states = [{**state, "stands_still": _stands_still(state, later)} for state in states]
    found += [_projection(state) for state in states]
    found.append(_embedder(session, counts, status))
    failed = _failed_jobs(session)
    found.append(failed)
    return found


def _stands_still(state: JsonObject, later: list[JsonObject]) -> bool:
    """Whether a projection that had work to do did none of it between two looks."""
    return bool(state["pending"]) and any(
        now["projection"] == state["projection"]
        and now["indexed_revision"] == state["indexed_revision"]
        and now["pending"] == state["pending"]
        for now in later
    )


def _projection(state: JsonObject) -> Check:
    name = f"projection {state['projection']}"
    dead, pending = state["dead_letters"], state["pending"]
    if dead:
        return Check(
            name=name,
            ok=False,
            message=f"{dead} records were given up",
            next_step="Look for 'dead letter' in the log; after an upgrade that fixes it, run: "
            f'fleetbrain jobs submit rebuild --job-data \'{{"projection": "{state["projection"]}"}}\'',
        )
    if state.get("waiting_for"):
        return Check(
            name=name,
            ok=False,
            message=f"waits: {state['waiting_for']}",
            next_step="Make that answer; the projection goes on by itself as soon as it does.",
        )
    if state.get("stands_still"):
        return Check(
            name=name,
            ok=False,
            message=f"has {pending} records to go and took none of them for {LOOK_AGAIN_SECONDS:g} s",
            next_step="Look again; if it stays so, look at the log, then `fleetbrain down` and `up`.",
        )
    if not state["ready"]:
        return Check(
            name=name,
            ok=False,
            message="is not ready: it is being built from the page log",
            next_step="Wait with `fleetbrain status --wait all`.",
        )
    indexed, last = state["indexed_revision"], state["last_revision"]
    if isinstance(indexed, int) and isinstance(last, int) and indexed < last and not pending:
        return Check(
            name=name,
            ok=False,
            message=f"stands at revision {indexed} of {last} and has nothing to do",
            next_step="Look at the log; `fleetbrain down` and `up` starts it anew.",
        )
    behind = f", {pending} to go" if pending else ""
    return Check(name=name, ok=True, message=f"{state['engine']}, revision {indexed} of {last}{behind}")


def _embedder(session: Session, counts: JsonObject, status: JsonObject) -> Check:
    if session.settings.embedder_url == "none":
        return Check(name="embedder", ok=True, message="switched off: search is by words and links only")
    if not counts["embedder"]:
        return Check(
            name="embedder",
            ok=False,
            message="no model is in use: meaning is not searched",
            next_step="Look for 'embedder' in the log, or set FLEETBRAIN_EMBEDDER_URL.",
        )
    waiting = f", {status['unembedded']} passages wait" if status["unembedded"] else ""
    return Check(name="embedder", ok=True, message=f"{counts['embedder']}, {counts['embedded']} vectors{waiting}")


def _failed_jobs(session: Session) -> Check:
    reply = session.call("list_jobs", status="dead", limit=5)
    dead = output.objects(reply["jobs"])
    if dead:
        return Check(
            name="jobs",
            ok=False,
            message=f"{len(dead)} or more were given up, the last one is {dead[0]['id']} ({dead[0]['name']})",
            next_step=f"fleetbrain jobs get {dead[0]['id']}",
        )
    return Check(name="jobs", ok=True, message="none was given up")
