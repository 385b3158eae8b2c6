"""Serves an ASGI application on sockets of ours in a process that has other work: no signals, no logs of its own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

BACKLOG = 512
"""Connections that may wait while the loop is busy: ten times as many agents as are expected at once."""
KEEP_ALIVE_SECONDS = 75
"""Longer than the usual 60 s of proxies, so that they and not we close an idle connection."""
GRACE_SECONDS = 5
"""Running calls may finish for so long after a stop: writes wait at most 2 s for the indexes."""


class _Server(uvicorn.Server):
    """uvicorn without signal handlers: the process's own host decides when to stop."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve_http(app: ASGIApp, listener: socket.socket) -> None:
    """Serves until cancelled, then finishes running calls within the grace period."""
    config = uvicorn.Config(
        app,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = _Server(config)
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        server.should_exit = True
        await serving
        raise


def listen_tcp(host: str, port: int) -> socket.socket:
    """A socket that already accepts connections, so that nobody who reads its address comes too early."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Said in full: asyncio switches Nagle's delay off, 40 ms a reply, for sockets whose protocol is TCP by name only.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def listen_unix(path: Path) -> socket.socket:
    """A socket that only its owner can open, at a path that a dead process may have left behind."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener
