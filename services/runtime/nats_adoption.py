"""Taking over the server that a killed process left behind, when it is exactly the one we would start.

Whoever starts a server writes down, for this user alone, which one it is. A later process believes nothing of that
unseen: the process, the binary, the configuration and the folder must be those written down, and whoever answers at
the address must take the password and be that same run of the server.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import orjson

from services.runtime.data_folder import process_started, write_atomic
from services.runtime.nats_config import USER, config_digest
from services.runtime.nats_process import running_on

log = logging.getLogger(__name__)

RECORD_FILE = "server.json"
ANSWER_SECONDS_MAX = 2.0
"""A server on this machine answers in a millisecond; one that needs so long is not worth keeping."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRecord:
    """One run of a server on a folder."""

    pid: int
    started: str
    server_id: str
    """The server's own name for this run."""
    port: int
    password: str = field(repr=False)
    config: str
    """Digest of everything it runs with."""
    binary: str
    """Path, inode, size and time of the file it was started from."""
    folder: str
    """Device and inode: a folder restored from a backup to the same path is another one."""


async def record_server(folder: Path, binary: Path, *, pid: int, port: int, password: str) -> None:
    """Writes down the server that was just started, so that a later process can take it over."""
    info = await greet(port, password)
    record = ServerRecord(
        pid=pid,
        started=process_started(pid),
        server_id=str(info["server_id"]),
        port=port,
        password=password,
        config=config_digest(folder),
        binary=fingerprint(binary),
        folder=place(folder),
    )
    write_atomic(folder / RECORD_FILE, orjson.dumps(asdict(record)))


async def find_adoptable(folder: Path, binary: Path) -> ServerRecord | None:
    """The server that an earlier process left running on the folder, if it is as good as one of ours; else None."""
    running = running_on(folder)
    if not running:
        return None
    record = read_record(folder / RECORD_FILE)
    why = "there is no readable record of it" if record is None else difference(record, running, folder, binary)
    if record is not None and not why:
        try:
            info = await greet(record.port, record.password)
            if info["server_id"] != record.server_id:
                why = "another server answers at its address"
        except (OSError, ValueError, EOFError, TimeoutError) as error:
            why = f"it does not answer: {error!r}"
    if why:
        log.warning("the nats-server of an earlier process is not taken over", extra={"pids": running, "why": why})
        return None
    return record


def difference(record: ServerRecord, running: list[int], folder: Path, binary: Path) -> str:
    """What keeps a running server from being the one that we would start; empty when nothing does."""
    if running != [record.pid] or process_started(record.pid) != record.started:
        return "it is not the process that was written down"
    if record.config != config_digest(folder):
        return "it runs with another configuration"
    if record.binary != fingerprint(binary):
        return "it runs from another binary"
    if record.folder != place(folder):
        return "it holds a folder that was at this path before"
    return ""


async def greet(port: int, password: str) -> Mapping[str, object]:
    """Logs in on a server of this machine and returns what it says about itself.

    Raises:
        OSError, EOFError, TimeoutError: Nobody answers.
        ValueError: Somebody else does, or the password is not its.
    """
    async with asyncio.timeout(ANSWER_SECONDS_MAX):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            greeting = await reader.readline()
            if not greeting.startswith(b"INFO "):
                raise ValueError("no NATS server")
            info = orjson.loads(greeting[5:])
            words = {"user": USER, "pass": password, "verbose": False, "pedantic": False, "lang": "python"}
            writer.write(b"CONNECT " + orjson.dumps(words) + b"\r\nPING\r\n")
            await writer.drain()
            answer = await reader.readline()
            if not answer.startswith(b"PONG"):
                raise ValueError(answer.decode("utf-8", "replace").strip() or "the server closed the connection")
            if not isinstance(info, dict) or not info.get("jetstream"):
                raise ValueError("its JetStream is off")
            return info
        finally:
            writer.close()


def read_record(path: Path) -> ServerRecord | None:
    """What was written down; None when it is not there, not readable, or anybody else could have written it."""
    try:
        status = path.stat()
        if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) != 0o600:
            return None
        return ServerRecord(**orjson.loads(path.read_bytes()))
    except (OSError, orjson.JSONDecodeError, TypeError):
        return None


def fingerprint(binary: Path) -> str:
    """Which file this is: another version has another."""
    status = binary.stat()
    return f"{binary.resolve()} {status.st_ino} {status.st_size} {status.st_mtime_ns}"


def place(folder: Path) -> str:
    """Which folder this is, whatever its path."""
    status = folder.stat()
    return f"{status.st_dev} {status.st_ino}"
