"""A whole brain and its NATS server: killed apart and together, the other goes on, and brain.json says which."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.brain import Running, find, join_or_start, stop
from services.runtime.nats_process import runs_on
from tests.e2e.deployments import clean_environ, until


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "brain"
    try:
        yield folder
    finally:
        stop(folder)


def start(data: Path) -> Running:
    return join_or_start(data, clean_environ(FLEETBRAIN_DATA=str(data), FLEETBRAIN_EMBEDDER_URL="none"))


def nats_pid(data: Path) -> int:
    running = find(data)
    assert running is not None
    return int(running.addresses["nats_pid"])


def test_after_kill_9_of_the_brain_the_next_takes_its_nats_over_and_down_ends_both(data: Path) -> None:
    first = start(data)
    kept = first.client().call("put_page", {"slug": "笔记/甲", "content": "# 甲\n\nKept."})
    pid = nats_pid(data)
    os.kill(first.pid, signal.SIGKILL)
    until(lambda: find(data) is None, "end of the killed brain")

    second = start(data)

    assert nats_pid(data) == pid
    assert second.pid != first.pid
    assert second.client().call("get_page", {"slug": "笔记/甲"})["revision"] == kept["revision"]
    stop(data)
    assert not runs_on(pid, data / "nats")


def test_brain_json_names_the_nats_that_was_started_again(data: Path) -> None:
    running = start(data)
    before = nats_pid(data)
    os.kill(before, signal.SIGKILL)

    until(lambda: nats_pid(data) != before, "a new pid in brain.json")

    assert runs_on(nats_pid(data), data / "nats")
    assert find(data) is not None
    assert running.client().call("put_page", {"slug": "a", "content": "# A"})["revision"] == 1
