"""A process of our own that does what holds the interpreter: Qdrant Edge and the embedding models.

Measured: a query of Edge holds the interpreter's lock for all of its 10 ms at 50,000 passages, and the tokenizer of
USE is plain Python. In the brain's own process every caller would stand still for that long. The child answers calls
one by one, in order, over a socket that only the two of them have; when its parent dies it reads the end and exits.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import socket
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from services.domain.errors import BrainError, Unavailable

log = logging.getLogger(__name__)

HEADER = struct.Struct("!Q")
STOP_SECONDS = 2.0
"""How long a child may go on with the call in hand when it is told to stop; then it is killed. That loses nothing: what
is kept is durable before a call returns, and a call that was cut is made again."""

STARTS_SECONDS_MIN = 0.5
"""Least time between two starts: a child that dies at once must not eat a processor."""


class Child:
    """One child process, started at its first call and again after its death.

    Args:
        role: What it does, see `child_main`.
        options: What the role needs to know, as plain values.
        nice: How much it stands back for everything else on the machine, 0 to 19.
        idle_seconds: After so long without a call it is stopped, and its memory with it; None for never.
    """

    def __init__(
        self, role: str, options: Mapping[str, str | int], *, nice: int = 0, idle_seconds: float | None = None
    ) -> None:
        self._role = role
        self._options = dict(options)
        self._nice = nice
        self._idle_seconds = idle_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._replies: asyncio.Task[None] | None = None
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._starting = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._started_at = 0.0
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The running process's; None when there is none."""
        return self._process.pid if self._process and self._process.poll() is None else None

    async def call(self, method: str, *arguments: Any) -> Any:  # noqa: ANN401 - each method has its own values
        """The method's result. Calls are answered in the order they are made.

        Raises:
            BrainError: The method's own.
            Unavailable: The child died; the next call starts another.
        """
        writer = await self._ready()
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        body = pickle.dumps((method, arguments), protocol=5)
        writer.write(HEADER.pack(len(body)) + body)
        with suppress(ConnectionError):  # the reader sees the end and fails what waits
            await writer.drain()
        return await future

    async def close(self) -> None:
        """Stop the process; what waits for it fails."""
        self._closed = True
        await self._stop()

    async def _ready(self) -> asyncio.StreamWriter:
        async with self._starting:
            if self._closed:
                raise _died(self._role, "it was closed")
            if self._writer is None:
                await self._start()
            assert self._writer is not None
            if self._idle is not None:
                self._idle.cancel()
                self._idle = None
            return self._writer

    async def _start(self) -> None:
        await self._stop()
        loop = asyncio.get_running_loop()
        wait = self._started_at + STARTS_SECONDS_MIN - loop.time()
        if self._started_at and wait > 0:
            await asyncio.sleep(wait)
        self._started_at = loop.time()
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "services.search.adapters.child_main", self._role, str(theirs.fileno())]
        options = [f"{name}={value}" for name, value in {**self._options, "nice": self._nice}.items()]
        with theirs:
            self._process = subprocess.Popen(  # noqa: ASYNC220 - a fork of milliseconds; asyncio's own would need a watcher
                [*command, *options], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
            )
        self._reader, self._writer = await asyncio.open_connection(sock=ours)
        self._replies = loop.create_task(self._read(self._reader), name=f"child-{self._role}")

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                (size,) = HEADER.unpack(await reader.readexactly(HEADER.size))
                # Both ends are this program, and nobody else has the socket.
                error, value = pickle.loads(await reader.readexactly(size))  # noqa: S301
                future = self._waiting.popleft()
                if not future.done():
                    future.set_exception(error_from(error)) if error else future.set_result(value)
                if not self._waiting:
                    self._idle_from_now()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            # Before anything is awaited: a call made from now on must start another.
            writer, self._writer = self._writer, None
            if writer is not None:
                writer.close()
            self._fail_waiting()
            if self._process is not None:
                await asyncio.to_thread(_reap, self._process)

    def _idle_from_now(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        if self._idle_seconds is not None:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(self._idle_seconds, self._rest)

    def _rest(self) -> None:
        """Tells an idle child to go; the next call starts another."""
        if not self._waiting and self._writer is not None:
            self._writer.close()

    def _fail_waiting(self) -> None:
        if self._waiting and not self._closed:
            log.warning("child process died", extra={"role": self._role})
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_exception(_died(self._role, "it died"))

    async def _stop(self) -> None:
        writer, self._writer = self._writer, None
        replies, self._replies = self._replies, None
        process, self._process = self._process, None
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if writer is not None:
            writer.close()
        if process is not None:
            await asyncio.to_thread(_reap, process)
        if replies is not None:
            replies.cancel()
            await asyncio.wait({replies})
        if writer is not None:
            with suppress(ConnectionError):
                await writer.wait_closed()


def error_values(error: BrainError) -> tuple[Any, ...]:
    """An error as plain values: exceptions with keywords do not survive the way by themselves."""
    metadata = dict(error.metadata)
    return type(error), error.reason, error.message, error.field, error.value, error.next_step, metadata


def error_from(values: tuple[Any, ...]) -> BrainError:
    """The inverse of `error_values`."""
    kind, reason, message, field, value, next_step, metadata = values
    made: BrainError = kind(reason, message, field=field, value=value, next_step=next_step, metadata=metadata)
    return made


def _reap(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _died(role: str, why: str) -> BrainError:
    return Unavailable(
        "PEER_UNAVAILABLE",
        f"the child process for {role} does not answer: {why}",
        next_step="Try again; it is started anew.",
        metadata={"peer": role},
        retry_after_seconds=1.0,
    )
