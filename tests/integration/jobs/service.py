"""The whole jobs service as its wiring makes it, and as a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from brain.v1.job_service_pb2_grpc import JobServiceStub
from services.jobs.wiring import open_module
from services.runtime.bus import Bus, open_bus
from services.runtime.channels import open_channel
from services.runtime.process import serve
from services.runtime.server import make_server
from services.runtime.settings import Settings
from tests.integration.jobs.parts import background

if TYPE_CHECKING:
    from brain.v1.job_service_pb2_grpc import JobServiceAsyncStub


@asynccontextmanager
async def open_service(bus: Bus, owner_address: str, folder: Path) -> AsyncIterator[JobServiceAsyncStub]:
    """A client of the service, which runs in this process with all its workers."""
    address = f"unix:{folder / 'jobs.sock'}"
    settings = Settings(data=folder, search_address=owner_address, graph_address=owner_address)
    async with AsyncExitStack() as stack:
        module = await stack.enter_async_context(open_module(settings, bus))
        server = make_server(token="")
        module.register(server)
        server.add_insecure_port(address)
        await server.start()
        stack.push_async_callback(server.stop, 0)
        for work in module.workers:
            await stack.enter_async_context(background(work()))
        channel = await stack.enter_async_context(open_channel(address, service="brain.v1.JobService"))
        yield JobServiceStub(channel)


class ServiceProcess:
    """The service in a process of its own, to be killed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def kill(self) -> None:
        """Ends it without a word, and returns when it is gone."""
        self._process.kill()
        await self._process.wait()

    async def stop(self) -> int:
        """Ends it in order and returns its status."""
        self._process.send_signal(signal.SIGTERM)
        return await self._process.wait()


@asynccontextmanager
async def service_process(nats_url: str, owner_address: str, folder: Path) -> AsyncIterator[ServiceProcess]:
    """A running process; it is gone when the block ends."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.integration.jobs.service", nats_url, owner_address, str(folder), env=environ
    )
    try:
        yield ServiceProcess(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def main(nats_url: str, owner_address: str, folder: Path) -> None:
    """Serves until SIGTERM."""
    settings = Settings(data=folder, search_address=owner_address, graph_address=owner_address, nats_url=nats_url)
    async with open_bus(nats_url, name="jobs") as bus:
        await serve([partial(open_module, settings, bus)], [f"unix:{folder / 'child.sock'}"], grace_seconds=1)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
