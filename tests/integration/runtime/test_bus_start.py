"""A service that starts before its NATS waits for it; who starts a whole brain is told at once."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services.domain.errors import InvalidArgument, Unavailable
from services.runtime.bus import open_bus
from services.runtime.nats_options import NatsOptions, read_signer
from services.runtime.streams import DEAD_LETTERS
from tests.unit.runtime.test_nats_options import seed_of

SERVER = Path(sys.executable).parent / "nats-server"
SECONDS = 15.0


@asynccontextmanager
async def nats_at(port: int, folder: Path, *, more: str = "", limits: str = "") -> AsyncIterator[None]:
    config = folder / "nats.conf"
    config.write_text(
        f'listen: "127.0.0.1:{port}"\nmax_payload: 8388608\n{more}\n'
        f'jetstream {{store_dir: "{folder / "js"}", {limits}}}\n'
    )
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


async def test_a_user_with_a_key_is_let_in_by_it_and_another_is_not(tmp_path: Path) -> None:
    port = free_port()
    seeds = {name: tmp_path / name for name in ("known", "unknown")}
    for number, path in enumerate(seeds.values()):
        path.write_text(seed_of(bytes([number]) * 32) + "\n")
    users = f"authorization {{users: [{{nkey: {read_signer(seeds['known']).public_key}}}]}}"
    url = f"nats://127.0.0.1:{port}"
    async with nats_at(port, tmp_path, more=users):
        options = NatsOptions(credentials=seeds["known"])
        async with open_bus(url, name="t", patience_seconds=SECONDS, options=options) as bus:
            assert await bus.page_log.last_revision() == 0

        with pytest.raises(InvalidArgument, match="refuses this user"):
            async with open_bus(url, name="t", options=NatsOptions(credentials=seeds["unknown"])):
                pass


async def test_a_server_with_too_little_room_for_the_streams_is_told_apart_from_an_old_one(tmp_path: Path) -> None:
    port = free_port()
    async with nats_at(port, tmp_path, limits="max_file_store: 100MB"):
        with pytest.raises(Unavailable, match="insufficient storage") as raised:
            async with open_bus(f"nats://127.0.0.1:{port}", name="t", patience_seconds=1.0):
                pass

    assert "Make room for JetStream" in raised.value.next_step


async def test_limits_of_an_earlier_version_are_brought_up_to_date_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    url = f"nats://127.0.0.1:{port}"
    async with nats_at(port, tmp_path):
        async with open_bus(url, name="t", patience_seconds=SECONDS) as bus:
            info = await bus.connection.api("STREAM.INFO.DEAD_LETTERS")
            assert isinstance(info["config"], dict)
            await bus.connection.api("STREAM.UPDATE.DEAD_LETTERS", {**info["config"], "max_bytes": 1 << 30})
        async with open_bus(url, name="t") as bus:
            info = await bus.connection.api("STREAM.INFO.DEAD_LETTERS")
            assert isinstance(info["config"], dict)
            assert info["config"]["max_bytes"] == DEAD_LETTERS["max_bytes"]

    changes = [getattr(record, "changes", {}) for record in caplog.records]
    assert {"max_bytes": f"{1 << 30} -> {DEAD_LETTERS['max_bytes']}"} in changes
