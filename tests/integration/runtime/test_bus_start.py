"""A service that starts before its NATS waits for it; who starts a whole brain is told at once."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services.domain.errors import Unavailable
from services.runtime.bus import open_bus

SERVER = Path(sys.executable).parent / "nats-server"
SECONDS = 15.0


@asynccontextmanager
async def nats_at(port: int, folder: Path) -> AsyncIterator[None]:
    config = folder / "nats.conf"
    config.write_text(f'listen: "127.0.0.1:{port}"\nmax_payload: 8388608\njetstream {{store_dir: "{folder / "js"}"}}\n')
    process = await asyncio.create_subprocess_exec(SERVER, "--config", config, stderr=asyncio.subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_a_service_waits_for_a_nats_that_comes_later(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    port = free_port()

    async def open_and_ask() -> int:
        async with open_bus(f"nats://127.0.0.1:{port}", name="t", patience_seconds=SECONDS) as bus:
            return await bus.page_log.last_revision()

    opening = asyncio.create_task(open_and_ask())
    async with asyncio.timeout(SECONDS):
        while "waiting for NATS" not in caplog.messages:  # noqa: ASYNC110 - a log has no event to wait for
            await asyncio.sleep(0.01)
    async with nats_at(port, tmp_path):
        assert await asyncio.wait_for(opening, SECONDS) == 0


async def test_without_patience_an_absent_nats_is_an_error_at_once() -> None:
    with pytest.raises(Unavailable, match="NATS does not answer"):
        async with open_bus(f"nats://127.0.0.1:{free_port()}", name="t"):
            pass
