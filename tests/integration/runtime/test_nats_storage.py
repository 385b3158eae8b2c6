"""A disk that is full, or a write that fails: said at once, and healed without a hand once there is room."""

from __future__ import annotations

import asyncio
import os
import resource
from pathlib import Path

import pytest

from services.domain.errors import Unavailable
from services.runtime.bus import Bus, open_bus
from services.runtime.nats_child import nats_child
from services.runtime.nats_storage import HOUSEKEEPING_FLOOR_BYTES
from tests.contract.runtime.projections import SECONDS, until
from tests.records import key, put

NOISE_BYTES = 256 * 1024 * 1024
"""What others on this machine may write or free meanwhile."""


def free_bytes(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def fill(path: Path, size: int) -> None:
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)


async def append(bus: Bus, slug: str, body: str = "A page.") -> int:
    newest = await bus.page_log.newest(key(slug))
    return (await bus.page_log.append([put(slug, body, expected=newest.revision if newest else 0)]))[0].revision


async def append_until_accepted(bus: Bus, slug: str) -> int:
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                return await append(bus, slug)
            except Unavailable:
                await asyncio.sleep(0.02)


def storing(bus: Bus) -> bool:
    """Whether NATS takes writes now; a call, for the type checker believes that a property stays as it was."""
    return bus.storing


async def test_writes_stop_while_there_is_room_left_and_go_on_when_there_is_more(tmp_path: Path) -> None:
    floor = free_bytes(tmp_path) - NOISE_BYTES
    async with (
        nats_child(tmp_path / "nats", floor_bytes=floor) as address,
        open_bus(address.url, name="t", storage=address.storage) as bus,
    ):
        kept = await append(bus, "a")
        assert storing(bus)
        fill(tmp_path / "filler", 2 * NOISE_BYTES)

        with pytest.raises(Unavailable) as raised:
            await append(bus, "b")

        assert raised.value.reason == "STORAGE_FULL"
        assert str(tmp_path / "nats") in raised.value.next_step
        assert not storing(bus)
        assert await bus.page_log.last_revision() == kept
        # What keeps running work alive goes on for a while longer.
        assert free_bytes(tmp_path) > HOUSEKEEPING_FLOOR_BYTES
        assert await bus.leases.acquire("x", holder="t") is not None

        (tmp_path / "filler").unlink()
        assert await append(bus, "b") > kept
        assert storing(bus)
        os.kill(address.pid, 0)  # it was never started again


async def test_a_write_that_failed_is_told_at_once_and_the_server_heals(tmp_path: Path) -> None:
    pids: list[int] = []
    async with (
        nats_child(tmp_path, on_pid=pids.append) as address,
        open_bus(address.url, name="t", storage=address.storage) as bus,
    ):
        kept = await append(bus, "a")
        # The kernel refuses the server's write of a large record, as it does on a full disk; its log is far smaller.
        resource.prlimit(address.pid, resource.RLIMIT_FSIZE, (64 * 1024, resource.RLIM_INFINITY))

        with pytest.raises(Unavailable, match="could not store"):
            await append(bus, "b", "x" * 100_000)

        await until(lambda: len(pids) == 2)
        assert await append_until_accepted(bus, "c") > kept
        assert storing(bus)
        assert await bus.page_log.newest(key("a")) is not None
