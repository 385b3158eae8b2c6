"""The two shapes in which every test here runs: one brain with everything in it, and five processes around a NATS."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from gateway.brain import join_or_start, stop
from services.runtime.data_folder import socket_path
from services.runtime.nats_child import nats_child

START_SECONDS = 60.0
"""For five interpreters that start at once on a machine that is busy with other tests."""
ENGINES_START_SECONDS = 180.0
"""A server that has just started takes seconds for each statement it sees for the first time, and for each index."""
LOOK_SECONDS = 0.05
SERVICES = ("ingest", "search", "graph", "jobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Where a brain answers."""

    http: str
    data: Path
    """Of the whole brain, or the folder that holds those of the five."""
    socket: Path
    """Where local callers come in."""


def clean_environ(**settings: str) -> dict[str, str]:
    """The environment of a process: none of this machine's own settings, no model unless a test asks for one."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("FLEETBRAIN_")}
    return inherited | {"FLEETBRAIN_EMBEDDER_URL": "none"} | settings


@contextmanager
def one_brain(folder: Path, **settings: str) -> Iterator[Deployment]:
    """Everything in one process, started as every command starts it."""
    data = folder / "brain"
    running = join_or_start(data, clean_environ(FLEETBRAIN_DATA=str(data), **settings))
    try:
        yield Deployment(http=running.http, data=data, socket=Path(running.addresses["http_socket"]))
    finally:
        stop(data)


@contextmanager
def five_processes(
    folder: Path, *, without: str = "", engines: Mapping[str, str] | None = None, **settings: str
) -> Iterator[Deployment]:
    """One process a service, with only addresses in common.

    Args:
        folder: For data and logs.
        without: A service that is not started; readiness is then that of the others.
        engines: Settings of every process: the URLs of engines that are servers.
        settings: Of the gateway.
    """
    ports = free_ports(len(SERVICES) + 1)
    addresses = {
        f"FLEETBRAIN_{name.upper()}_ADDRESS": f"127.0.0.1:{port}" for name, port in zip(SERVICES, ports, strict=False)
    }
    with nats(folder / "nats") as nats_url:
        common = addresses | {"FLEETBRAIN_NATS_URL": nats_url} | dict(engines or {})
        processes = []
        try:
            for name, port in zip((*SERVICES, "gateway"), ports, strict=True):
                own = {"FLEETBRAIN_DATA": str(folder / name)}
                own["FLEETBRAIN_HTTP" if name == "gateway" else "FLEETBRAIN_LISTEN"] = f"127.0.0.1:{port}"
                if name == without:
                    continue
                own |= settings if name == "gateway" else {}
                processes.append(start(name, folder, clean_environ(**common, **own)))
            http = f"http://127.0.0.1:{ports[-1]}"
            until(
                lambda: ready(http, without) or any_ended(processes, folder),
                "five processes that are ready",
                ENGINES_START_SECONDS if engines else START_SECONDS,
            )
            yield Deployment(http=http, data=folder, socket=socket_path(folder / "gateway", "http.sock"))
        finally:
            for process in reversed(processes):
                process.terminate()
            for process in processes:
                process.wait(timeout=30)


@contextmanager
def nats(folder: Path) -> Iterator[str]:
    """A real NATS server; its URL."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        address = runner.run(stack.enter_async_context(nats_child(folder)))
        try:
            yield address.url
        finally:
            runner.run(stack.aclose())


def start(name: str, folder: Path, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """One service as a process, with its log beside its data."""
    with (folder / f"{name}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "services", "--target", name], env=dict(environ), stdout=log, stderr=log
        )


def ready(http: str, without: str) -> bool:
    """Whether the gateway and everything behind it serves, but for the service that is left out."""
    try:
        services = httpx.get(f"{http}/readyz", timeout=5).json()["services"]
    except httpx.HTTPError:
        return False
    left_out = f"brain.v1.{without.capitalize()}Service"
    return all(serving for name, serving in services.items() if name != left_out)


def any_ended(processes: list[subprocess.Popen[bytes]], folder: Path) -> bool:
    """Fails at once, with the end of its log, when a process that should run has ended."""
    for process in processes:
        if process.poll() is not None:
            name = str(process.args[-1]) if isinstance(process.args, list) else ""
            raise AssertionError(f"{name} ended: {(folder / f'{name}.log').read_text()[-3000:]}")
    return False


def until(condition: Callable[[], bool], what: str, seconds: float = START_SECONDS) -> None:
    """Returns when the condition holds; fails after a bounded time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"there were no {what} within {seconds:g} s"
        time.sleep(LOOK_SECONDS)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(s.getsockname()[1]) for s in sockets]
    for s in sockets:
        s.close()
    return ports
