"""The embedded NATS server: restarted when it dies, gone when we go, never two on one folder."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from services.domain.errors import InvalidArgument, Unavailable
from services.runtime.bus import open_bus
from services.runtime.nats_child import nats_child, read_port
from services.runtime.nats_process import find_binary, runs_on
from tests.contract.runtime.projections import SECONDS, until
from tests.records import key, put


async def test_a_server_that_dies_is_started_again_at_the_same_address(tmp_path: Path) -> None:
    async with nats_child(tmp_path) as address, open_bus(address.url, name="t") as bus:
        await bus.page_log.append([put("a")])
        for _ in range(2):
            pid = int((tmp_path / "server.pid").read_text())
            os.kill(pid, signal.SIGKILL)
            async with asyncio.timeout(SECONDS):
                while True:
                    try:
                        assert await bus.page_log.newest(key("a")) is not None
                        break
                    except Unavailable:
                        continue
            assert int((tmp_path / "server.pid").read_text()) != pid


async def test_a_server_that_keeps_dying_ends_the_block(tmp_path: Path) -> None:
    async def hold() -> None:
        async with nats_child(tmp_path, restarts_max=0) as address, asyncio.timeout(SECONDS):
            os.kill(address.pid, signal.SIGKILL)
            await asyncio.Event().wait()

    with pytest.raises(Unavailable, match="times in a minute"):
        await hold()


async def test_a_block_that_ends_leaves_no_process(tmp_path: Path) -> None:
    async with nats_child(tmp_path) as address:
        assert runs_on(address.pid, tmp_path)

    assert not runs_on(address.pid, tmp_path)
    with pytest.raises(ProcessLookupError):
        os.kill(address.pid, 0)


async def test_another_process_with_the_same_pid_is_let_live(tmp_path: Path) -> None:
    tmp_path.joinpath("server.pid").write_text(str(os.getppid()))

    async with nats_child(tmp_path):
        os.kill(os.getppid(), 0)


async def test_the_server_wants_its_password_and_keeps_it_in_a_private_file(tmp_path: Path) -> None:
    async with nats_child(tmp_path) as address:
        assert stat.S_IMODE((tmp_path / "server.conf").stat().st_mode) == 0o600
        assert address.url not in repr(address)
        host, port = address.url.split("@")[1].split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        await reader.readline()
        writer.write(b"CONNECT {}\r\nPING\r\n")
        assert b"Authorization Violation" in await asyncio.wait_for(reader.readline(), SECONDS)
        writer.close()
        await writer.wait_closed()


async def test_a_server_that_takes_only_small_messages_is_refused_with_what_to_set(tmp_path: Path) -> None:
    ports = tmp_path / "ports"
    ports.mkdir()
    where = ["-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", str(ports)]
    options = [*where, "-js", "--store_dir", str(tmp_path / "js")]
    process = await asyncio.create_subprocess_exec(find_binary(), *options, stderr=subprocess.DEVNULL)
    try:
        await until(lambda: any(map(read_port, ports.iterdir())))
        (port,) = map(read_port, ports.iterdir())
        with pytest.raises(InvalidArgument, match="1048576") as raised:
            async with open_bus(f"nats://127.0.0.1:{port}", name="t"):
                raise AssertionError
    finally:
        process.terminate()
        await process.wait()

    assert "8388608" in raised.value.next_step


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        async with open_bus("nats://127.0.0.1:1", name="t"):
            raise AssertionError
