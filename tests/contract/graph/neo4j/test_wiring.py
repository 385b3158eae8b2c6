"""The service with its graph in a server: chosen by URL alone, and alive while the server is away."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from pathlib import Path

from services.domain.parser import PageParser
from services.graph.wiring import open_module
from services.runtime.bus import Bus
from services.runtime.settings import Settings
from tests.engines.child import free_port
from tests.engines.neo4j.server import PASSWORD, USER, address_of

READY_SECONDS_MAX = 90.0


class Relay:
    """A port that leads to the server, once it is opened."""

    def __init__(self, port: int, to_port: int) -> None:
        self._port, self._to_port = port, to_port

    async def open(self) -> asyncio.Server:
        return await asyncio.start_server(self._connected, "127.0.0.1", self._port)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._to_port)
        await asyncio.gather(copy(reader, there_writer), copy(there_reader, writer))


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def test_a_server_that_is_away_at_the_start_is_waited_for(neo4j_url: str, bus: Bus, tmp_path: Path) -> None:
    address, user, password = address_of(neo4j_url)
    port = free_port()
    url = f"bolt://{user or USER}:{password or PASSWORD}@127.0.0.1:{port}/w{secrets.token_hex(5)}"
    settings = Settings(data=tmp_path, graph_url=url)

    async with open_module(settings, bus, PageParser()) as module:
        running = asyncio.create_task(module.workers[0]())
        try:
            await asyncio.wait({running}, timeout=0.2)
            assert not module.ready()
            assert not running.done()

            relay = await Relay(port, int(address.rpartition(":")[2])).open()
            async with relay, asyncio.timeout(READY_SECONDS_MAX):
                while not module.ready():
                    await asyncio.wait({running}, timeout=0.05)
                    assert not running.done()
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    assert not (tmp_path / "graph").exists()
