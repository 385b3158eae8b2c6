"""A server that a killed process left behind: taken over when it is exactly ours, else replaced; nothing is lost."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import orjson
import pytest

from services.domain.errors import Unavailable
from services.runtime.bus import open_bus
from services.runtime.nats_adoption import RECORD_FILE
from services.runtime.nats_child import nats_child
from services.runtime.nats_process import find_binary, runs_on, signal_quietly
from tests.contract.runtime.projections import SECONDS, until
from tests.records import key, put

PARENT = """
import asyncio, os, pathlib, sys
from services.runtime.bus import open_bus
from services.runtime.nats_child import nats_child
from tests.records import put

async def main():
    async with nats_child(pathlib.Path(sys.argv[1])) as address, open_bus(address.url, name="t") as bus:
        await bus.page_log.append([put("a")])
        print(address.pid, flush=True)
        os.kill(os.getpid(), 9)

asyncio.run(main())
"""


@pytest.fixture
async def orphan(tmp_path: Path) -> AsyncIterator[int]:
    """The pid of a server on tmp_path that holds the page `a` and whose parent was killed."""
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", PARENT, tmp_path, stdout=subprocess.PIPE)
    output, _ = await parent.communicate()
    pid = int(output)
    assert parent.returncode == -signal.SIGKILL
    assert runs_on(pid, tmp_path)
    try:
        yield pid
    finally:
        if runs_on(pid, tmp_path):
            signal_quietly(pid, signal.SIGKILL)


def rewrite(**changes: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        record = orjson.loads((folder / RECORD_FILE).read_bytes())
        assert record.keys() >= changes.keys()
        (folder / RECORD_FILE).write_bytes(orjson.dumps({**record, **changes}))

    return change


def restore_from_backup(folder: Path) -> None:
    away = folder.with_name("away")
    folder.rename(away)
    subprocess.run(["cp", "-a", away, folder], check=True)


async def test_a_server_left_by_a_killed_parent_is_taken_over_as_it_runs_and_ends_with_the_next(
    tmp_path: Path, orphan: int
) -> None:
    pids: list[int] = []
    async with nats_child(tmp_path, on_pid=pids.append) as address, open_bus(address.url, name="t") as bus:
        assert address.pid == orphan
        assert pids == [orphan]
        assert await bus.page_log.newest(key("a")) is not None
        await bus.page_log.append([put("b")])

    assert not runs_on(orphan, tmp_path)


async def test_a_server_that_was_taken_over_is_started_again_when_it_dies(tmp_path: Path, orphan: int) -> None:
    pids: list[int] = []
    async with nats_child(tmp_path, on_pid=pids.append) as address, open_bus(address.url, name="t") as bus:
        os.kill(orphan, signal.SIGKILL)
        await until(lambda: len(pids) == 2)
        async with asyncio.timeout(SECONDS):
            while True:
                try:
                    assert await bus.page_log.newest(key("a")) is not None
                    break
                except Unavailable:
                    continue
        assert pids[1] != orphan
        assert runs_on(pids[1], tmp_path)

    assert not runs_on(pids[1], tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda folder: (folder / RECORD_FILE).unlink(), id="no record"),
        pytest.param(lambda folder: (folder / RECORD_FILE).write_text("{"), id="half a record"),
        pytest.param(lambda folder: (folder / RECORD_FILE).chmod(0o644), id="a record that others could read"),
        pytest.param(rewrite(config="other"), id="another configuration"),
        pytest.param(rewrite(binary="other"), id="another binary"),
        pytest.param(rewrite(server_id="other"), id="another run"),
        pytest.param(rewrite(started="1"), id="another process of that pid"),
        pytest.param(rewrite(password="other"), id="another password"),
        pytest.param(rewrite(port=1), id="nobody at the address"),
        pytest.param(restore_from_backup, id="another folder at this path"),
        pytest.param(lambda folder: (folder / "server.pid").unlink(), id="no pid file and no record yet"),
    ],
)
async def test_a_server_that_differs_in_anything_is_replaced_and_nothing_is_lost(
    tmp_path: Path, orphan: int, change: Callable[[Path], None]
) -> None:
    folder_kept = change is not restore_from_backup
    change(tmp_path)
    if not (tmp_path / "server.pid").exists():
        (tmp_path / RECORD_FILE).unlink()  # killed in the moment before the server wrote it

    async with nats_child(tmp_path) as address, open_bus(address.url, name="t") as bus:
        assert address.pid != orphan
        assert not runs_on(orphan, tmp_path)
        if folder_kept:
            assert await bus.page_log.newest(key("a")) is not None


async def test_two_servers_on_one_folder_are_both_replaced(tmp_path: Path, orphan: int) -> None:
    second = await asyncio.create_subprocess_exec(
        find_binary(), "--config", str(tmp_path / "server.conf"), "-p", "-1", stderr=subprocess.DEVNULL
    )
    try:
        async with nats_child(tmp_path) as address:
            assert address.pid not in {orphan, second.pid}
            assert not runs_on(orphan, tmp_path)
            await asyncio.wait_for(second.wait(), SECONDS)
    finally:
        if second.returncode is None:
            second.kill()
            await second.wait()


async def test_the_record_is_private_and_names_the_server_of_now_after_a_restart(tmp_path: Path) -> None:
    pids: list[int] = []
    async with nats_child(tmp_path, on_pid=pids.append) as address:
        assert stat.S_IMODE((tmp_path / RECORD_FILE).stat().st_mode) == 0o600
        os.kill(address.pid, signal.SIGKILL)
        await until(lambda: len(pids) == 2)
        assert orjson.loads((tmp_path / RECORD_FILE).read_bytes())["pid"] == pids[1]
