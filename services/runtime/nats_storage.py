"""Whether the embedded server can still store: looked at before each write, so that a full disk is told at once.

Measured: once a write fails, nats-server answers nothing to that write or to any later one, and keeps the stream so
until it is started again, however much room there is. So writes stop while some room is left, and nothing is lost or
stuck; where the disk fills faster than that, the server's own log tells, and it is started again once there is room.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from services.domain.errors import Unavailable

log = logging.getLogger(__name__)

FLOOR_BYTES: Final = 64 * 1024 * 1024
"""Room that writes leave: for what is under way (eight of the largest messages), and for the indexes' own last work."""
HOUSEKEEPING_FLOOR_BYTES: Final = 16 * 1024 * 1024
"""Room that leases and progress leave: a few kilobytes each, and without them work that is going on would stop."""
START_BYTES_MIN: Final = 16 * 1024 * 1024
"""Below that a server is not started: it could not even make its streams."""
LOG_READ_BYTES_MAX: Final = 1024 * 1024
"""Read of the log in one look; it is rotated at 16 MB, and a server in trouble writes a line per refused write."""
TROUBLE: Final = (b"ritical write error", b"no space left on device", b"will be DISABLED")
HEAL_SECONDS_MIN, HEAL_SECONDS_MAX = 1.0, 60.0
"""Between two starts for storage's sake; twice as long each time it comes again within HEAL_SECONDS_MAX."""


class Storage:
    """The room on the disk under one server's folder, and what that server said of its own writes."""

    def __init__(self, folder: Path, *, floor_bytes: int = FLOOR_BYTES) -> None:
        self._folder = folder
        self._floor_bytes = floor_bytes
        self._log = folder / "server.log"
        self._offset = 0
        self._failure = ""
        self._heal_at = float("-inf")
        self._heal_seconds = HEAL_SECONDS_MIN
        self._listeners: set[Callable[[Unavailable], None]] = set()

    @property
    def failure(self) -> str:
        """What the server said when a write failed; empty while it stores."""
        return self._failure

    def check(self, *, housekeeping: bool = False) -> None:
        """Returns when a write may go to the server.

        Raises:
            Unavailable: `STORAGE_FULL`, naming the folder, or that the server is being started again.
        """
        error = self.problem(housekeeping=housekeeping)
        if error is not None:
            raise error

    def problem(self, *, housekeeping: bool = False) -> Unavailable | None:
        """What keeps writes from being stored now; None when nothing does."""
        free = self.free_bytes()
        floor = min(HOUSEKEEPING_FLOOR_BYTES, self._floor_bytes) if housekeeping else self._floor_bytes
        if free < floor:
            return storage_full(self._folder, free, floor)
        if self._failure:
            return Unavailable(
                "PEER_UNAVAILABLE",
                f"the embedded NATS could not store: {self._failure}; it is being started again",
                metadata={"peer": "nats", "folder": str(self._folder)},
                next_step="Send the request again, with the same request_id.",
                retry_after_seconds=1.0,
            )
        return None

    def free_bytes(self) -> int:
        """The room that is left on the folder's disk for this user."""
        status = os.statvfs(self._folder)
        return status.f_bavail * status.f_frsize

    def look(self, pid: int) -> None:
        """Reads what this run of the server has written into its log since the last look."""
        try:
            with self._log.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                if size < self._offset:  # it was rotated
                    self._offset = 0
                if size == self._offset:
                    return
                file.seek(max(self._offset, size - LOG_READ_BYTES_MAX))
                lines = file.read(LOG_READ_BYTES_MAX).splitlines(keepends=True)
                self._offset = file.tell()
        except FileNotFoundError:
            return
        if lines and not lines[-1].endswith(b"\n"):  # half a line: it is read whole the next time
            self._offset -= len(lines.pop())
        mine = b"[%d] " % pid
        said = [line for line in lines if line.startswith(mine) and any(word in line for word in TROUBLE)]
        if said and not self._failure:
            self._failure = said[0].decode("utf-8", "replace").rpartition("[ERR] ")[2].strip()[-200:]
            log.error("nats-server cannot store", extra={"pid": pid, "said": self._failure})
            error = self.problem()
            assert error is not None
            for listener in list(self._listeners):
                listener(error)

    def curable(self, now: float) -> bool:
        """Whether a write failed, there is room again, and it is time to start the server again."""
        if not self._failure or now < self._heal_at:
            return False
        return self.free_bytes() >= self._floor_bytes

    def cured(self, now: float) -> None:
        """Says that the server was started again; the next time is later, if it is soon."""
        again = now < self._heal_at + HEAL_SECONDS_MAX
        self._heal_seconds = min(2 * self._heal_seconds, HEAL_SECONDS_MAX) if again else HEAL_SECONDS_MIN
        self._heal_at = now + self._heal_seconds
        self._failure = ""

    def listen(self, listener: Callable[[Unavailable], None]) -> Callable[[], None]:
        """Calls `listener` when a write failed, until the function returned here is called."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)


def no_room_to_start(folder: Path, free: int) -> Unavailable:
    """There is not even room to start."""
    return Unavailable(
        "STORAGE_FULL",
        f"the disk of {folder} is full: {free // 1_000_000} MB are free, and {START_BYTES_MIN // 1_000_000} MB are "
        "needed to start",
        metadata={"peer": "nats", "folder": str(folder), "free_bytes": str(free), "floor_bytes": str(START_BYTES_MIN)},
        next_step=f"Make room on the disk of {folder}, then start again.",
    )


def storage_full(folder: Path, free: int, floor: int) -> Unavailable:
    """There is no room for another write."""
    return Unavailable(
        "STORAGE_FULL",
        f"the disk of {folder} is full: {free // 1_000_000} MB are free, and writes stop below {floor // 1_000_000} MB",
        metadata={"peer": "nats", "folder": str(folder), "free_bytes": str(free), "floor_bytes": str(floor)},
        next_step=f"Make room on the disk of {folder}; writes go on by themselves, without a restart.",
        retry_after_seconds=5.0,
    )
