"""The embedded NATS server: a process of ours on loopback, in its own data folder, that ends when we end in order.

It outlives us when we are killed: then it has everything that was acknowledged, and the next process takes it over as
it runs, if it is exactly the server that it would start itself; else it is stopped and replaced. NATS itself does not
notice two servers on one folder, so there is never a second one before the first is gone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from services.runtime.nats_adoption import RECORD_FILE, find_adoptable, record_server
from services.runtime.nats_config import ENVIRONMENT, USER, server_config
from services.runtime.nats_process import POLL_SECONDS, ServerProcess, find_binary, stop_stale, unavailable
from services.runtime.nats_storage import FLOOR_BYTES, START_BYTES_MIN, Storage, no_room_to_start
from services.runtime.tasks import finish, stop

log = logging.getLogger(__name__)

START_SECONDS_MAX = 120.0
"""A log of 170,000 pages is up in 2 s; a far larger one still gets its time, a server that hangs does not."""
RESTARTS_MAX = 5
"""Restarts within RESTART_WINDOW_SECONDS: a server that keeps dying has a cause that a restart does not cure."""
RESTART_WINDOW_SECONDS = 60.0
LOOK_SECONDS = 0.2
"""How often the server's log is looked at for writes that failed: whoever waits for one is told so soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsAddress:
    """Where the embedded server answers. The URL holds its password and stays the same over restarts."""

    url: str = field(repr=False)
    pid: int
    """Of the server that ran first; `on_pid` tells of later ones."""
    storage: Storage
    """Whether it can store, for `open_bus`."""


def ignore_pid(_: int) -> None:
    """Tells nobody."""


@asynccontextmanager
async def nats_child(
    folder: Path,
    *,
    restarts_max: int = RESTARTS_MAX,
    floor_bytes: int = FLOOR_BYTES,
    on_pid: Callable[[int], None] = ignore_pid,
) -> AsyncIterator[NatsAddress]:
    """Runs a server on `folder` until the block ends, and starts it again, on the same port, when it dies.

    Args:
        folder: Its data folder, made when it is not there.
        restarts_max: How often in a minute it may die.
        floor_bytes: Room that writes leave on the folder's disk.
        on_pid: Called with the server's process id, now and after each new start.

    Raises:
        Unavailable: There is no server binary, no room, the server does not start, or it died more often than
            `restarts_max` in a minute: then the block is cancelled and this is raised at its end.
    """
    child = NatsChild(folder, restarts_max=restarts_max, floor_bytes=floor_bytes, on_pid=on_pid)
    await child.open()
    owner = asyncio.current_task()
    supervisor = asyncio.create_task(child.supervise(), name="nats-supervisor")

    def ended(task: asyncio.Task[None]) -> None:
        if owner is not None and failure(task) is not None:
            owner.cancel()

    supervisor.add_done_callback(ended)
    try:
        yield NatsAddress(url=child.url, pid=child.pid, storage=child.storage)
    except asyncio.CancelledError:
        # Not a TaskGroup: it would wrap every error of the block, of which most are not ours, into a group.
        cause = failure(supervisor)
        if owner is None or cause is None:
            raise
        owner.uncancel()
        raise cause from None
    finally:
        await finish(end(supervisor, child))


async def end(supervisor: asyncio.Task[None], child: NatsChild) -> None:
    """Ends the supervision and then the server."""
    await stop(supervisor)
    await child.stop()


def failure(task: asyncio.Task[None]) -> BaseException | None:
    """The error a task ended with; None when it runs, ended well or was cancelled."""
    return task.exception() if task.done() and not task.cancelled() else None


class NatsChild:
    """One server process after another on one folder, one port and one password."""

    def __init__(self, folder: Path, *, restarts_max: int, floor_bytes: int, on_pid: Callable[[int], None]) -> None:
        self.storage = Storage(folder, floor_bytes=floor_bytes)
        self._folder = folder
        self._restarts_max = restarts_max
        self._on_pid = on_pid
        self._binary = find_binary()
        self._password = secrets.token_hex(24)
        self._port = -1  # chosen by the server at its first start
        self._server: ServerProcess | None = None

    @property
    def url(self) -> str:
        """The address with its credentials."""
        return f"nats://{USER}:{self._password}@127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """The process id of the server that runs now."""
        return self._server.pid if self._server is not None else 0

    async def open(self) -> None:
        """Takes over the server that an earlier process left behind, or starts one."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        record = await find_adoptable(self._folder, self._binary)
        if record is not None:
            self.storage.look(record.pid)
            if not self.storage.failure:
                self._password, self._port = record.password, record.port
                self._server = ServerProcess(record.pid)
                log.info("took over the nats-server of an earlier process", extra={"pid": record.pid})
                self._on_pid(record.pid)
                return
        await self.start()

    async def start(self) -> None:
        """Starts a server, once nothing else runs on the folder, and returns when it accepts connections."""
        await stop_stale(self._folder)
        free = self.storage.free_bytes()
        if free < START_BYTES_MIN:
            raise no_room_to_start(self._folder, free)
        (self._folder / RECORD_FILE).unlink(missing_ok=True)
        config = self._folder / "server.conf"
        write_private(config, server_config(self._folder, port=self._port, password=self._password))
        for old in self._folder.glob("*.ports"):
            old.unlink()
        with (self._folder / "server.err").open("wb") as output:
            child = await asyncio.create_subprocess_exec(
                str(self._binary),
                "--config",
                str(config),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(ENVIRONMENT),
                start_new_session=True,  # Ctrl-C in a terminal reaches us, and we stop it when everything else is done
            )
        self._server = ServerProcess(child.pid, child)
        try:
            self._port = await self._await_port(self._server)
            with suppress(
                OSError, ValueError, EOFError, TimeoutError
            ):  # without a record it is replaced, not taken over
                await record_server(self._folder, self._binary, pid=child.pid, port=self._port, password=self._password)
        except BaseException:
            await self.stop()
            raise
        self._on_pid(child.pid)

    async def supervise(self) -> None:
        """Starts the server again whenever it ends, or cannot store any more; raises when it ends too often.

        Raises:
            Unavailable: It ended more than `restarts_max` times in a minute.
        """
        loop = asyncio.get_running_loop()
        deaths: list[float] = []
        while self._server is not None:
            status = await self._watch(self._server)
            if status is None:
                continue
            deaths = [d for d in deaths if d > loop.time() - RESTART_WINDOW_SECONDS] + [loop.time()]
            log.error("nats-server ended", extra={"status": status, "deaths": len(deaths)})
            if len(deaths) > self._restarts_max:
                raise unavailable(
                    f"nats-server ended {len(deaths)} times in a minute",
                    next_step=f"Look into {self._folder / 'server.log'}.",
                )
            await asyncio.sleep(0.05 * 2 ** len(deaths))
            await self._start_when_there_is_room()
            log.info("nats-server started again", extra={"pid": self.pid})

    async def _watch(self, server: ServerProcess) -> str | None:
        """How the server ended; None when it was started again because it could not store any more."""
        loop = asyncio.get_running_loop()
        ended = asyncio.ensure_future(server.wait())
        try:
            while not ended.done():
                await asyncio.wait({ended}, timeout=LOOK_SECONDS)
                self.storage.look(server.pid)
                if self.storage.curable(loop.time()) and not ended.done():
                    await self._start_when_there_is_room()
                    log.warning("nats-server started again after writes that failed", extra={"pid": self.pid})
                    return None
            return ended.result()
        finally:
            ended.cancel()

    async def _start_when_there_is_room(self) -> None:
        while self.storage.free_bytes() < START_BYTES_MIN:  # noqa: ASYNC110 - nothing tells of room on a disk
            await asyncio.sleep(LOOK_SECONDS)
        await self.start()
        self.storage.cured(asyncio.get_running_loop().time())

    async def stop(self) -> None:
        """Ends the server in order; kills it when it does not end in time."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop()

    async def _await_port(self, server: ServerProcess) -> int:
        ports = self._folder / f"{self._binary.name}_{server.pid}.ports"
        try:
            async with asyncio.timeout(START_SECONDS_MAX):
                while not (found := read_port(ports)):
                    if not server.running:
                        raise unavailable(
                            f"nats-server did not start: {tail(self._folder / 'server.err')}",
                            next_step=f"Look into {self._folder / 'server.log'}.",
                        )
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError as error:
            raise unavailable(
                f"nats-server is not up after {START_SECONDS_MAX:.0f} s",
                next_step=f"Look into {self._folder / 'server.log'}.",
            ) from error
        return found


def read_port(ports: Path) -> int:
    """The port in a ports file that the server wrote; 0 while there is none, or half of one."""
    try:
        urls = orjson.loads(ports.read_bytes())["nats"]
    except (FileNotFoundError, orjson.JSONDecodeError):
        return 0
    return int(str(urls[0]).rsplit(":", 1)[1])


def write_private(path: Path, text: str) -> None:
    """Replaces a file by one that only this user can read."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def tail(path: Path, length: int = 300) -> str:
    """The end of a log, for an error message."""
    try:
        return path.read_text("utf-8", "replace")[-length:].strip().replace("\n", " | ")
    except OSError:
        return ""
