"""The brain of this user: joined when it runs, started when it does not, stopped on request.

Any number of starters make one brain: they take turns at a lock, and whoever comes later finds the first one's.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.local_client import LocalClient
from services.domain.errors import NotReady, Unavailable
from services.runtime.data_folder import BrainFile, check_own, make_private, process_started, read_brain_file

START_SECONDS = 60.0
"""A start takes about two seconds; replaying a large log after a crash, or a machine that is busy, takes more."""
STOP_SECONDS = 30.0
"""Running calls get 10 s, then stores are closed and NATS ends."""
LOOK_SECONDS = 0.05
"""How often a starter looks whether the brain answers: short against the start, long against the look."""
LOG_TAIL_BYTES = 4000
PLAIN_LINES_MAX = 4
LOG_KEPT_BYTES = 20_000_000
"""A log larger than this is put aside at a start, so that it never fills a disk."""
LOG_FILE = "brain.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A brain that answers."""

    pid: int
    addresses: Mapping[str, str]
    started: bool = False
    """Whether this call started it."""

    def client(self, headers: Mapping[str, str] | None = None) -> LocalClient:
        """Calls it over its Unix socket."""
        return LocalClient(path=Path(self.addresses["http_socket"]), headers=headers or {})

    @property
    def http(self) -> str:
        """Its base address over TCP, empty when it has none."""
        return self.addresses.get("http", "")


def find(data: Path) -> Running | None:
    """The brain that serves this data folder; None when none does, or when what is there does not answer."""
    known = read_brain_file(data)
    if known is None or "http_socket" not in known.addresses:
        return None
    running = Running(pid=known.pid, addresses=known.addresses)
    return running if running.client().healthy() else None


def join_or_start(data: Path, environ: Mapping[str, str]) -> Running:
    """The brain of this data folder, started with these settings when none runs.

    Raises:
        Unavailable: It did not come up; the message ends with the end of its log.
    """
    try:
        make_private(data)
        running = find(data)
        if running is not None:
            return running
        check_own(data)
        with _turn(data):
            running = find(data)
            return running if running is not None else _start(data, environ)
    except OSError as error:
        raise NotReady(
            "DATA_FOLDER_HELD",
            f"the data folder {data} cannot be written: {error.strerror}",
            field="FLEETBRAIN_DATA",
            value=str(data),
            next_step="Set FLEETBRAIN_DATA to a folder that this user can write.",
        ) from error


def stop(data: Path) -> int | None:
    """Stops the brain of this data folder in order and waits until it is gone; its pid, or None when none ran.

    Raises:
        Unavailable: It did not end in time.
    """
    known = read_brain_file(data)
    if known is None:
        return None
    with contextlib.suppress(ProcessLookupError):
        os.kill(known.pid, signal.SIGTERM)
    _wait_for_end(known)
    return known.pid


def _start(data: Path, environ: Mapping[str, str]) -> Running:
    log = _log_file(data)
    with log.open("ab") as output:
        began_at = output.tell()
        # A session of its own: the brain outlives the terminal and does not get its Ctrl-C.
        process = subprocess.Popen(
            [sys.executable, "-m", "services", "--target", "all", "--data", str(data)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(environ),
            start_new_session=True,
        )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        running = find(data)
        if running is not None:
            # It outlives this process, which is not to wait for it.
            process.returncode = 0
            # Somebody may have started one by hand in the same moment: then ours has given way to it.
            return Running(pid=running.pid, addresses=running.addresses, started=running.pid == process.pid)
        if process.poll() is not None and find(data) is None:
            raise _not_up(f"the brain ended while it started (status {process.returncode})", log, began_at)
        time.sleep(LOOK_SECONDS)
    process.terminate()
    raise _not_up(f"the brain did not answer within {START_SECONDS:g} s and was stopped", log, began_at)


def _not_up(what: str, log: Path, began_at: int) -> Unavailable:
    """The error of a start, with what this brain, and no earlier one, said last."""
    with log.open("rb") as file:
        file.seek(max(began_at, log.stat().st_size - LOG_TAIL_BYTES))
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
    # A start that fails says why in plain words at its end; what comes before are records for machines.
    plain = [line for line in lines if line and not line.startswith(("{", " ", "Traceback"))]
    return Unavailable(
        "PEER_UNAVAILABLE",
        "\n".join([f"{what}:", *plain[-PLAIN_LINES_MAX:]]) if plain else f"{what}.",
        next_step=f"The whole log is {log}.",
        metadata={"peer": "brain"},
    )


def _log_file(data: Path) -> Path:
    folder = data / "log"
    folder.mkdir(mode=0o700, exist_ok=True)
    log = folder / LOG_FILE
    if log.exists() and log.stat().st_size > LOG_KEPT_BYTES:
        log.replace(log.with_suffix(".log.old"))
    return log


@contextmanager
def _turn(data: Path) -> Iterator[None]:
    """Holds the lock of starters. The kernel frees it when a starter dies."""
    descriptor = os.open(data / "start.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + START_SECONDS + STOP_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Unavailable(
                        "PEER_UNAVAILABLE",
                        "somebody else is starting this brain and does not get done",
                        next_step="Look at the log below the data folder.",
                    ) from None
                time.sleep(LOOK_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _wait_for_end(known: BrainFile) -> None:
    deadline = time.monotonic() + STOP_SECONDS
    while process_started(known.pid) == known.started:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(known.pid, os.WNOHANG)
        if time.monotonic() > deadline:
            raise Unavailable(
                "PEER_UNAVAILABLE",
                f"the brain (pid {known.pid}) did not end within {STOP_SECONDS:g} s",
                next_step=f"Look at its log, or end it with: kill -9 {known.pid}",
            )
        time.sleep(LOOK_SECONDS)
