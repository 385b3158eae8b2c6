"""Kill -9 of the whole brain during an import, again and again: nothing acknowledged is ever missing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gateway.brain import Running, find, join_or_start, stop
from gateway.local_client import LocalClient
from tests.e2e.deployments import clean_environ, until

KILLS = 10
"""The number that was promised."""
FILES = 400
"""Large enough that a kill falls into it, small enough for ten rounds."""


def test_nothing_acknowledged_is_lost_and_projections_equal_a_rebuild(tmp_path: Path) -> None:
    data, environ = tmp_path / "brain", clean_environ(FLEETBRAIN_DATA=str(tmp_path / "brain"))
    acknowledged: dict[str, int] = {}
    try:
        for round_number in range(KILLS):
            running = join_or_start(data, environ)
            vault = write_vault(tmp_path / f"vault-{round_number}", round_number)
            killed_import(running, vault, environ, acknowledged, after=round_number * 40)
        client = join_or_start(data, environ).client()
        last = wait_for_all(client)
        assert missing(client, acknowledged) == []
        before = everything(client, last)
        for projection in ("search-lexical", "graph"):
            rebuild(client, projection)
        assert everything(client, last) == before
        assert len(before["pages"]) >= len(acknowledged)
    finally:
        stop(data)


def write_vault(folder: Path, round_number: int) -> Path:
    """Files that link to each other; half of them exist in every round, with another text."""
    for number in range(FILES):
        name = f"shared/{number}" if number % 2 else f"round-{round_number}/{number}"
        path = folder / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Page {number} of {round_number}\n\nKnows [[shared/{(number * 7 + 1) % FILES}]].\n")
    return folder


def killed_import(
    running: Running, vault: Path, environ: dict[str, str], acknowledged: dict[str, int], *, after: int
) -> None:
    """Imports the folder and kills the brain, and everything it started, once so many results have come."""
    command = [sys.executable, "-m", "tests.e2e.acknowledging_import", running.addresses["grpc"], str(vault)]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as importing:
        assert importing.stdout is not None
        for count, line in enumerate(importing.stdout):
            result = json.loads(line)
            acknowledged[result["slug"]] = max(acknowledged.get(result["slug"], 0), result["revision"])
            if count == after:
                kill(running)
    until(lambda: find(Path(environ["FLEETBRAIN_DATA"])) is None, "end of the killed brain")


def kill(running: Running) -> None:
    """SIGKILL to the brain and to every process below it, the NATS server among them."""
    for pid in descendants(running.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def descendants(pid: int) -> list[int]:
    """A process and everything below it, the process first."""
    found = [pid]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            found += [int(child) for child in children.read_text().split()]
    return found


def wait_for_all(client: LocalClient) -> int:
    """The end of the log, once both projections hold it."""
    deadline = time.monotonic() + 60
    for what in ("text", "links"):
        while True:
            status = client.call("get_status", {"wait": what, "timeout_seconds": 15})
            if status["reached"]:
                break
            assert time.monotonic() < deadline, status
    revision = status["last_revision"]
    assert isinstance(revision, int)
    return revision


def missing(client: LocalClient, acknowledged: dict[str, int]) -> Sequence[tuple[str, int]]:
    """Acknowledged revisions that are neither there nor replaced by a newer one."""
    return [
        (slug, revision)
        for slug, revision in acknowledged.items()
        if not isinstance(now := client.call("get_page", {"slug": slug, "include_content": False})["revision"], int)
        or now < revision
    ]


def everything(client: LocalClient, revision: int) -> dict[str, Any]:
    """What the projections say: all pages, their links, and the counts."""
    pages: list[Any] = []
    token = None
    for _ in range(100):
        reply = client.call("list_pages", {"limit": 500, "sort": "slug", "page_token": token, "min_revision": revision})
        found = reply["pages"]
        assert isinstance(found, list)
        pages += found
        token = reply.get("next_page_token")
        if token is None:
            break
    stats = client.call("get_stats", {"min_revision": revision})
    stats.pop("projections")
    links = {
        page["slug"]: client.call("get_backlinks", {"slug": page["slug"], "limit": 1000})["links"]
        for page in pages[::20]
    }
    return {"pages": pages, "links": links, "stats": stats}


def rebuild(client: LocalClient, projection: str) -> None:
    """Builds a projection anew by a job."""
    job = client.call("submit_job", {"name": "rebuild", "data": {"projection": projection}})

    def completed() -> bool:
        now = client.call("get_job", {"id": job["id"]})
        assert now["status"] not in {"dead", "cancelled"}, now
        return now["status"] == "completed"

    until(completed, f"rebuild of {projection}")
