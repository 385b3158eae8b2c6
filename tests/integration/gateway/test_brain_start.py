"""Finding, starting and stopping the brain of a folder, with what dead ones left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.brain import find, join_or_start, stop
from services.domain.errors import BrainError, Unavailable


def environ(data: Path, **settings: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("FLEETBRAIN_")}
    return inherited | {"FLEETBRAIN_DATA": str(data), "FLEETBRAIN_EMBEDDER_URL": "none"} | settings


def dead_pid() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait(timeout=10)
    return process.pid


def test_what_a_dead_brain_left_behind_is_no_brain(tmp_path: Path) -> None:
    addresses = {"http_socket": str(tmp_path / "http.sock"), "grpc": "unix:x"}
    body = {"pid": dead_pid(), "started": "1", "version": "0", "addresses": addresses}
    (tmp_path / "brain.json").write_text(json.dumps(body))

    assert find(tmp_path) is None
    assert stop(tmp_path) is None


def test_a_pid_that_was_given_to_somebody_else_is_neither_joined_nor_killed(tmp_path: Path) -> None:
    body = {"pid": os.getpid(), "started": "of another boot", "version": "0", "addresses": {"http_socket": "x"}}
    (tmp_path / "brain.json").write_text(json.dumps(body))

    assert find(tmp_path) is None
    assert stop(tmp_path) is None


@pytest.mark.parametrize("garbage", ["", "{", "[]", '{"pid": "x"}'])
def test_a_brain_file_that_cannot_be_read_is_no_brain(tmp_path: Path, garbage: str) -> None:
    (tmp_path / "brain.json").write_text(garbage)

    assert find(tmp_path) is None


def test_a_brain_that_cannot_start_says_why_with_the_end_of_its_own_log(tmp_path: Path) -> None:
    log = tmp_path / "log" / "brain.log"
    log.parent.mkdir()
    log.write_text("said by an earlier brain\n")

    with pytest.raises(Unavailable) as caught:
        join_or_start(tmp_path, environ(tmp_path, FLEETBRAIN_LEXICAL_URL="carrier-pigeon://loft"))

    assert "FLEETBRAIN_LEXICAL_URL" in caught.value.message
    assert "earlier brain" not in caught.value.message
    assert str(log) in caught.value.next_step


def test_a_brain_is_started_over_stale_files_joined_and_stopped(tmp_path: Path) -> None:
    (tmp_path / "http.sock").touch()
    (tmp_path / "brain.sock").touch()
    (tmp_path / "brain.json").write_text("{}")
    try:
        started = join_or_start(tmp_path, environ(tmp_path))
        joined = join_or_start(tmp_path, environ(tmp_path))

        assert (started.started, joined.started) == (True, False)
        assert started.pid == joined.pid
        assert started.http.startswith("http://127.0.0.1:")
        assert (tmp_path / "http.sock").stat().st_mode & 0o077 == 0
        with pytest.raises(BrainError):
            started.client().call("get_page", {"slug": "nothing/here"})
    finally:
        assert stop(tmp_path) is not None
    assert find(tmp_path) is None
