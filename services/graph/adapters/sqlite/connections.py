"""Who uses which connection: one thread writes, a few read, and the event loop does what takes microseconds."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from services.domain.errors import DeadlineExceeded, Unavailable
from services.graph.adapters.sqlite.schema import connect_reader, connect_writer, prepare
from services.graph.adapters.sqlite.writes import Writer

T = TypeVar("T")

READERS = 2
"""Reads hold the interpreter lock most of their time, so more threads would only stand in line inside it."""

QUICK_SECONDS_MAX = 0.25
"""A read on the event loop is stopped here: by then it is no quick read, and everything else has waited for it."""

READ_SECONDS_MAX = 10.0
"""Any read is stopped here, whoever asked; callers bring shorter deadlines and cancel."""

STEPS_BETWEEN_CHECKS = 20_000
"""Of SQLite's virtual machine, about a millisecond: how often a running read looks at the clock."""


class Reader:
    """A connection that cannot write, with a clock that stops what runs too long."""

    def __init__(self, path: Path) -> None:
        self.connection = connect_reader(path)
        self._stop_at = 0.0
        self.connection.set_progress_handler(self._over, STEPS_BETWEEN_CHECKS)

    def start(self, seconds: float) -> None:
        """Winds the clock for the next read."""
        self._stop_at = time.monotonic() + seconds

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The work's result, of one state of the store.

        Raises:
            DeadlineExceeded: It was stopped by the clock or by `stop`.
        """
        with translated():
            self.connection.execute("BEGIN")
            try:
                return work(self.connection)
            finally:
                self.connection.execute("COMMIT")

    def stop(self) -> None:
        """Ends the read that runs, or that is about to, from any thread."""
        self._stop_at = 0.0
        self.connection.interrupt()

    def _over(self) -> bool:
        return time.monotonic() > self._stop_at


class Connections:
    """All connections of one store."""

    def __init__(self, path: Path) -> None:
        prepare(path)
        self._writer = Writer(connect_writer(path))
        self._write_thread = ThreadPoolExecutor(1, "graph-write")
        self._quick = Reader(path)
        self._readers: asyncio.Queue[Reader] = asyncio.Queue()
        for _ in range(READERS):
            self._readers.put_nowait(Reader(path))
        self._read_threads = ThreadPoolExecutor(READERS, "graph-read")

    async def write(self, work: Callable[[Writer], T]) -> T:
        """Runs the work on the writing thread. When it is cancelled, it first ends what it began: all or nothing."""
        running = asyncio.get_running_loop().run_in_executor(self._write_thread, work, self._writer)
        with translated():
            return await ended(running)

    def read_quickly(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Reads on the spot, for what takes less time than to ask a thread."""
        self._quick.start(QUICK_SECONDS_MAX)
        return self._quick.read(work)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Reads on a thread, with the first free connection; stops when it is cancelled."""
        reader = await self._readers.get()
        try:
            reader.start(READ_SECONDS_MAX)
            running = asyncio.get_running_loop().run_in_executor(self._read_threads, reader.read, work)
            return await ended(running, stop=reader.stop)
        finally:
            self._readers.put_nowait(reader)

    async def close(self) -> None:
        """Waits for what runs, then closes every connection; the last one to close folds the log into the file."""
        for _ in range(READERS):
            reader = await self._readers.get()
            reader.connection.close()
        self._quick.connection.close()
        self._read_threads.shutdown()
        await asyncio.get_running_loop().run_in_executor(self._write_thread, self._writer.close)
        self._write_thread.shutdown()


async def ended(running: asyncio.Future[T], *, stop: Callable[[], None] | None = None) -> T:
    """The result of work on a thread; a cancellation stops the work and waits for its end before it goes on.

    A thread cannot be abandoned: it would go on with a connection that somebody else is given.
    """
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        if stop is not None:
            stop()
        while not running.done():
            try:
                await asyncio.wait({running})
            except asyncio.CancelledError:
                continue  # Already being cancelled; the thread ends in its own short time.
        if not running.cancelled():
            running.exception()  # Looked at, so that asyncio does not complain about it.
        raise


@contextmanager
def translated() -> Iterator[None]:
    """Turns SQLite's errors into ours."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            raise DeadlineExceeded(
                "DEADLINE_EXCEEDED",
                "reading the graph took longer than a call may",
                next_step="Ask for less: fewer pages, a smaller depth or limit, or one source.",
            ) from error
        raise Unavailable(
            "PEER_UNAVAILABLE",
            f"the graph store does not answer: {error}",
            metadata={"peer": "sqlite"},
            next_step="Try again; if it stays, look at the disk that holds the data folder.",
        ) from error
