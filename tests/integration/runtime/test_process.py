"""One process's life: start in order, finish what runs, stop in the reverse order, and say when something failed."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from brain.v1 import ingest_service_pb2, ingest_service_pb2_grpc
from services.domain.errors import InvalidArgument
from services.runtime.calls import operation
from services.runtime.channels import open_channel
from services.runtime.process import Module, OpenModule, serve
from tests.integration.runtime.echo import INGEST, Seen, echo_module, make_echo
from tests.integration.runtime.test_grpc import CALLER, SECONDS, serving


def noted(events: list[str], name: str) -> OpenModule:
    @asynccontextmanager
    async def open_module() -> AsyncIterator[Module]:
        async def work() -> None:
            events.append(f"{name} works")
            try:
                await asyncio.Event().wait()
            finally:
                events.append(f"{name} worker stops")

        events.append(f"{name} opens")
        try:
            yield Module(name=name, workers=(work,), addresses={name: f"at {name}"})
        finally:
            events.append(f"{name} closes")

    return open_module


async def test_modules_open_in_order_and_close_in_reverse_after_their_workers(tmp_path: Path) -> None:
    events: list[str] = []

    async with serving([noted(events, "a"), noted(events, "b")], [f"unix:{tmp_path}/b.sock"]) as bound:
        await asyncio.sleep(0)
        assert bound == {"grpc": f"unix:{tmp_path}/b.sock", "a": "at a", "b": "at b"}

    assert events[:2] == ["a opens", "b opens"]
    assert set(events[2:4]) == {"a works", "b works"}
    assert set(events[4:6]) == {"a worker stops", "b worker stops"}
    assert events[6:] == ["b closes", "a closes"]


async def test_a_call_in_flight_at_sigterm_is_finished(tmp_path: Path) -> None:
    seen, go_on = Seen(), asyncio.Event()
    echo = make_echo(seen)

    async def wait() -> None:
        await go_on.wait()

    echo.actions["slow"] = wait
    address = f"unix:{tmp_path}/b.sock"
    async with open_channel(address, service=INGEST) as channel:
        stub = ingest_service_pb2_grpc.IngestServiceStub(channel)
        async with serving([echo_module(echo)], [address]):
            with operation(CALLER, timeout_seconds=SECONDS):
                call = asyncio.ensure_future(stub.GetPage(ingest_service_pb2.GetPageRequest(slug="slow")))
            await asyncio.wait_for(seen.entered.wait(), SECONDS)
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0)
            assert not call.done()
            go_on.set()

            assert (await call).page.slug == "slow"


async def test_a_worker_that_fails_stops_the_process_in_order(tmp_path: Path) -> None:
    events: list[str] = []

    @asynccontextmanager
    async def failing() -> AsyncIterator[Module]:
        async def work() -> None:
            raise RuntimeError("the disk is gone")

        yield Module(name="failing", workers=(work,))

    with pytest.raises(ExceptionGroup) as raised:
        await serve([noted(events, "a"), failing], [f"unix:{tmp_path}/b.sock"], grace_seconds=1)

    assert raised.group_contains(RuntimeError, match="the disk is gone")
    assert events == ["a opens", "a works", "a worker stops", "a closes"]


async def test_health_says_whether_a_service_is_ready(tmp_path: Path) -> None:
    ready = False
    address = f"unix:{tmp_path}/b.sock"
    async with (
        serving([echo_module(make_echo(Seen()), ready=lambda: ready)], [address]),
        aio.insecure_channel(address) as channel,
        asyncio.timeout(SECONDS),
    ):
        health: Any = health_pb2_grpc.HealthStub(channel)
        states = []
        async for answer in health.Watch(health_pb2.HealthCheckRequest(service=INGEST)):
            states.append(answer.status)
            if answer.status == health_pb2.HealthCheckResponse.NOT_SERVING:
                ready = True
            if answer.status == health_pb2.HealthCheckResponse.SERVING:
                break

    assert states[-2:] == [health_pb2.HealthCheckResponse.NOT_SERVING, health_pb2.HealthCheckResponse.SERVING]


async def test_a_socket_left_by_a_killed_process_is_no_obstacle_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "b.sock"
    path.write_text("")

    async with serving([noted([], "a")], [f"unix:{path}"]):
        assert path.is_socket()
        assert path.stat().st_mode & 0o777 == 0o600


async def test_a_port_that_is_taken_stops_the_start_by_name() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(InvalidArgument) as raised:
            await serve([noted([], "b")], [address], grace_seconds=1)

    assert raised.value.value == address
