"""The data folder: who holds it, and the file that says where the brain that lives in it answers."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from services.domain.errors import InvalidArgument, NotReady

BRAIN_FILE = "brain.json"
SOCKET_PATH_BYTES_MAX = 100
"""The kernel's limit is 108 with the closing zero; some count differently."""
FORMAT_FILE = "format.json"
FORMAT = 1
"""Of the folder's contents. A brain refuses a folder of a newer format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrainFile:
    """What brain.json says: which process serves, and where (`grpc`, `http`, `http_socket`; also `nats_pid`)."""

    pid: int
    started: str
    """When the process began, in the system's own measure: a pid alone may have been given to another."""
    version: str
    addresses: Mapping[str, str]


@contextmanager
def claim(folder: Path, target: str) -> Iterator[None]:
    """Holds the folder for one target (`all`, `search`, …) until the block ends; the kernel frees it at any death.

    `all` holds the whole folder: it goes together with nothing else.

    Raises:
        NotReady: Another process holds it, or the folder was made by a newer version; it says which and what to do.
    """
    make_private(folder)
    check_format(folder)
    with contextlib.ExitStack() as locks:
        locks.enter_context(held(folder / "brain.lock", folder, target, shared=target != "all"))
        if target != "all":
            locks.enter_context(held(folder / f"{target}.lock", folder, target, shared=False))
        yield


@contextmanager
def held(path: Path, folder: Path, target: str, *, shared: bool) -> Iterator[None]:
    """Holds one lock file and writes into it who does. The file stays: removing it would let two hold "it" at once."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip()
            raise NotReady(
                "DATA_FOLDER_HELD",
                f"the data folder {folder} is held by {holder or 'another process'}",
                field="FLEETBRAIN_DATA",
                value=str(folder),
                next_step="Use that brain, stop it with `fleetbrain down`, or name another folder.",
                metadata={"holder": holder},
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"pid {os.getpid()} (--target {target})\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def make_private(folder: Path) -> None:
    """Makes the folder for this user alone; one that is there keeps its mode."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def check_format(folder: Path) -> None:
    """Refuses a folder of a newer format or of something else, and marks a new one."""
    path = folder / FORMAT_FILE
    try:
        found = int(orjson.loads(path.read_bytes())["format"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise NotReady(
            "DATA_FOLDER_HELD",
            f"{path} does not say a format",
            field="FLEETBRAIN_DATA",
            value=str(folder),
            next_step=f'If this is a brain of this version, write {{"format": {FORMAT}}} into it; else name another.',
        ) from error
    except FileNotFoundError:
        check_own(folder)
        write_atomic(path, orjson.dumps({"format": FORMAT}))
        return
    if found > FORMAT:
        raise NotReady(
            "DATA_FOLDER_HELD",
            f"the data folder {folder} has format {found}, made by a newer fleetbrain; this one knows {FORMAT}",
            field="FLEETBRAIN_DATA",
            value=str(folder),
            next_step="Upgrade fleetbrain, or name another folder.",
        )


def check_own(folder: Path) -> None:
    """Refuses a folder that is no brain and not empty: somebody's notes, taken for the place of the brain itself.

    Raises:
        InvalidArgument: Names what lies there.
    """
    if (folder / FORMAT_FILE).exists() or not folder.is_dir():
        return
    foreign = [entry.name for entry in os.scandir(folder) if not ours(entry.name)]
    if foreign:
        raise InvalidArgument(
            "FIELD_INVALID",
            f"{folder} is no brain and holds other files, such as {min(foreign)!r}",
            field="FLEETBRAIN_DATA",
            value=str(folder),
            next_step="Name a new or empty folder for the brain; `fleetbrain import FOLDER` takes a folder's pages in.",
        )


def ours(name: str) -> bool:
    """Whether a file may lie in the folder before it is marked: what starters leave there, and what a disk brings."""
    return name.startswith(".") or name.endswith((".lock", ".sock")) or name in {"log", BRAIN_FILE, "lost+found"}


def write_brain_file(folder: Path, version: str, addresses: Mapping[str, str]) -> None:
    """Says that this process serves the folder. Readable by this user alone: an address may hold a password."""
    pid = os.getpid()
    body = {"pid": pid, "started": process_started(pid), "version": version, "addresses": dict(addresses)}
    write_atomic(folder / BRAIN_FILE, orjson.dumps(body, option=orjson.OPT_INDENT_2))


def remove_brain_file(folder: Path) -> None:
    """Says that nobody serves the folder any more; for the end of the process that said it did."""
    with contextlib.suppress(FileNotFoundError):
        (folder / BRAIN_FILE).unlink()


def read_brain_file(folder: Path) -> BrainFile | None:
    """Who serves the folder; None when nobody does, also when the file is of a process that is gone."""
    try:
        body = orjson.loads((folder / BRAIN_FILE).read_bytes())
        found = BrainFile(
            pid=int(body["pid"]),
            started=str(body["started"]),
            version=str(body["version"]),
            addresses={str(k): str(v) for k, v in body["addresses"].items()},
        )
    except (FileNotFoundError, orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
        return None
    started = process_started(found.pid)
    return found if started and started == found.started else None


def process_started(pid: int) -> str:
    """When a process began, empty when there is none: ticks since boot where /proc tells, else what `ps` says."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
        return "" if fields[0] in {"Z", "X"} else fields[19]
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return ""
    except (OSError, IndexError):
        return ""
    with os.popen(f"ps -o lstart= -p {int(pid)}") as output:  # noqa: S605 - a number of our own
        return output.read().strip()


def socket_path(folder: Path, name: str) -> Path:
    """Where a socket of this folder lives: in it or, when that path is too long, in a short private folder."""
    path = folder / name
    if len(os.fsencode(path)) <= SOCKET_PATH_BYTES_MAX:
        return path
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    short = Path(tempfile.gettempdir()) / f"fleetbrain-{os.getuid()}-{digest}"
    short.mkdir(mode=0o700, exist_ok=True)
    status = short.lstat()
    # In a folder that all can write to, somebody else may have been there first.
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise NotReady(
            "DATA_FOLDER_HELD",
            f"{short}, the place for the sockets of {folder}, belongs to somebody else or is open to others",
            field="FLEETBRAIN_DATA",
            value=str(folder),
            next_step="Use a data folder with a path under 90 bytes.",
        )
    return short / name


def remove_socket_folder(folder: Path) -> None:
    """Removes the short folder that `socket_path` made, once nothing is in it any more."""
    place = socket_path(folder, "x").parent
    if place != folder:
        with contextlib.suppress(OSError):
            place.rmdir()


def write_atomic(path: Path, content: bytes) -> None:
    """Replaces a file as a whole, readable by this user alone; after a crash it has the old content or the new."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
