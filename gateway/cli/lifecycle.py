"""The commands that start, stop and watch the brain: up, down, status."""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentTypeError, Namespace

from gateway.brain import Running
from gateway.cli import output
from gateway.cli.options import Commands, command
from gateway.cli.session import Session
from gateway.operations.json_value import JsonObject
from services.domain.errors import Conflict

STEP_SECONDS = 15
"""How long one call of a long wait waits; the next one goes on, so that Ctrl-C and the time limit are heard."""
TIMEOUT_SECONDS = 600.0


def add(commands: Commands) -> None:
    """Declares the commands."""
    parser = command(commands, "up", "start the brain, or say where it runs", up, json=True)
    parser.add_argument("--http", metavar="HOST:PORT", help="where HTTP listens; a free loopback port otherwise")
    parser.add_argument("--foreground", action="store_true", help="stay, and log to this terminal")

    command(commands, "down", "stop the brain", down)

    parser = command(commands, "status", "see how far the indexes are, and wait for them", status, json=True)
    parser.add_argument("--wait", choices=("text", "links", "vectors", "all"), default="none", help="what to wait for")
    parser.add_argument("--timeout", type=seconds, default=TIMEOUT_SECONDS, metavar="S", help="at most this long")


def seconds(text: str) -> float:
    """A span of time in seconds."""
    try:
        value = float(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds") from error
    if not 0 <= value < 1e7:
        raise ArgumentTypeError(f"{text!r} is not a usable number of seconds")
    return value


def up(session: Session, options: Namespace) -> None:
    """Starts the brain, or says where it runs."""
    if options.foreground:
        # The brain takes this process's place: signals, exit status and terminal are its own.
        arguments = ["-m", "services", "--target", "all", "--data", str(session.settings.data)]
        sys.stdout.flush()
        os.execve(sys.executable, [sys.executable, *arguments], dict(session.environ))  # noqa: S606 - there is no shell
    running = session.running
    if options.http and not running.started:
        _check_address(running, options.http)
    if session.as_json:
        addresses: JsonObject = {**running.addresses}
        output.document({"pid": running.pid, "started": running.started, "addresses": addresses})
        return
    output.line(f"The brain of {session.settings.data} answers (pid {running.pid}).")
    if running.http:
        output.line(f"MCP: {running.http}/mcp   operations: {running.http}/api/<operation>")


def _check_address(running: Running, wanted: str) -> None:
    """Refuses an address that a brain which runs already does not listen at."""
    host, _, port = wanted.rpartition(":")
    held = running.http.removeprefix("http://")
    if wanted == held or (port == "0" and held.rpartition(":")[0] == host):
        return
    raise Conflict(
        "DATA_FOLDER_HELD",
        f"the brain runs already (pid {running.pid}) and listens at {held or 'no TCP address'}, not at {wanted}",
        field="http",
        value=wanted,
        next_step="Use that address, or stop it with `fleetbrain down` and start it again.",
    )


def down(session: Session, options: Namespace) -> None:
    """Stops the brain."""
    import asyncio

    from gateway.brain import stop
    from services.runtime.nats_process import running_on, stop_stale

    pid = stop(session.settings.data)
    nats = session.settings.data / "nats"
    if pid is None and nats.is_dir() and (left := running_on(nats)):
        # A brain that was killed leaves its NATS to the next one; nobody else would end it.
        asyncio.run(stop_stale(nats))
        output.line(f"No brain was running; stopped the NATS server that one left behind (pid {left[0]}).")
        return
    output.line("No brain was running." if pid is None else f"Stopped (pid {pid}).")


def status(session: Session, options: Namespace) -> int:
    """Shows how far the projections are; exit status 1 when they did not get there in time."""
    deadline = time.monotonic() + options.timeout
    reply = session.call("get_status", wait=options.wait, timeout_seconds=_step(deadline))
    while not reply["reached"] and time.monotonic() < deadline:
        # The revision of the first reply: what others write meanwhile is not waited for.
        reply = session.call(
            "get_status", wait=options.wait, timeout_seconds=_step(deadline), min_revision=reply["last_revision"]
        )
    if session.as_json:
        output.document(reply)
    else:
        show_projections(reply)
    if not reply["reached"]:
        output.message(f"Not reached within {options.timeout:g} s.")
    return 0 if reply["reached"] else 1


def _step(deadline: float) -> int:
    return max(0, min(STEP_SECONDS, int(deadline - time.monotonic())))


def show_projections(reply: JsonObject) -> None:
    """Prints the projections as a table."""
    rows = [
        (
            str(state["projection"]),
            str(state["engine"]),
            f"{state['indexed_revision']}/{state['last_revision']}",
            str(state["pending"]),
            str(state["dead_letters"]),
            "rebuilding" if state["rebuilding"] else "ready" if state["ready"] else "not ready",
        )
        for state in output.objects(reply["projections"])
    ]
    output.table(rows, header=("PROJECTION", "ENGINE", "REVISION", "PENDING", "DEAD", "STATE"))
    if reply.get("unembedded"):
        output.line(f"{reply['unembedded']} passages wait for their vector.")
