"""Who holds a data folder, and how the brain in it is found."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from services.domain.errors import NotReady
from services.runtime.data_folder import (
    BRAIN_FILE,
    SOCKET_PATH_BYTES_MAX,
    claim,
    process_started,
    read_brain_file,
    remove_brain_file,
    socket_path,
    write_brain_file,
)


def test_a_folder_is_held_by_one_and_the_refusal_names_the_holder_and_what_to_do(tmp_path: Path) -> None:
    with claim(tmp_path, "all"):
        for target in ("all", "search"):
            with pytest.raises(NotReady) as raised, claim(tmp_path, target):
                raise AssertionError
            assert raised.value.reason == "DATA_FOLDER_HELD"
            assert str(os.getpid()) in raised.value.message
            assert "fleetbrain down" in raised.value.next_step

    with claim(tmp_path, "all"):
        pass


def test_different_services_share_a_folder_and_the_same_one_does_not(tmp_path: Path) -> None:
    with claim(tmp_path, "search"), claim(tmp_path, "graph"):
        for target in ("search", "all"):
            with pytest.raises(NotReady), claim(tmp_path, target):
                raise AssertionError


def test_a_death_frees_the_folder(tmp_path: Path) -> None:
    code = f"""
import os, pathlib
from services.runtime.data_folder import claim
with claim(pathlib.Path({str(tmp_path)!r}), "all"):
    os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9

    with claim(tmp_path, "all"):
        pass


def test_a_folder_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "format.json").write_bytes(orjson.dumps({"format": 99}))

    with pytest.raises(NotReady, match="newer"), claim(tmp_path, "all"):
        raise AssertionError


def test_the_brain_file_says_who_serves_until_it_is_removed(tmp_path: Path) -> None:
    write_brain_file(tmp_path, "1.2", {"grpc": "unix:/x"})

    found = read_brain_file(tmp_path)
    assert found is not None
    assert (found.pid, found.version, found.addresses) == (os.getpid(), "1.2", {"grpc": "unix:/x"})
    assert stat.S_IMODE((tmp_path / BRAIN_FILE).stat().st_mode) == 0o600

    remove_brain_file(tmp_path)
    remove_brain_file(tmp_path)
    assert read_brain_file(tmp_path) is None


@pytest.mark.parametrize("change", [{"pid": 2**22 - 1}, {"started": "1"}])
def test_the_file_of_a_process_that_is_gone_says_nothing(tmp_path: Path, change: dict[str, object]) -> None:
    """A pid may have been given to another process meanwhile."""
    write_brain_file(tmp_path, "1", {})
    path = tmp_path / BRAIN_FILE
    path.write_bytes(orjson.dumps({**orjson.loads(path.read_bytes()), **change}))

    assert read_brain_file(tmp_path) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": "x"}'])
def test_a_broken_file_says_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / BRAIN_FILE).write_bytes(content)

    assert read_brain_file(tmp_path) is None


def test_a_process_that_ended_has_no_start(tmp_path: Path) -> None:
    assert process_started(os.getpid()) == process_started(os.getpid()) != ""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    assert process_started(ended.pid) == ""
    ended.wait()
    assert tmp_path.exists()


def test_a_socket_lies_in_the_folder_or_when_that_is_too_deep_in_a_private_one(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)

    near, far = socket_path(Path("/data"), "brain.sock"), socket_path(deep, "brain.sock")

    assert near == Path("/data/brain.sock")
    assert len(os.fsencode(far)) <= SOCKET_PATH_BYTES_MAX
    assert stat.S_IMODE(far.parent.stat().st_mode) == 0o700
    assert socket_path(deep, "brain.sock") == far
    assert socket_path(tmp_path / ("e" * 100), "brain.sock") != far
    far.parent.chmod(0o755)
    with pytest.raises(NotReady):
        socket_path(deep, "brain.sock")
    far.parent.rmdir()
