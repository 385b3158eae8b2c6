"""TLS between services, over real sockets with real certificates; and the plain ports beside it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from brain.v1 import ingest_service_pb2, ingest_service_pb2_grpc
from services.domain.context import OperationContext
from services.domain.errors import InvalidArgument, Unavailable
from services.runtime.calls import operation
from services.runtime.channels import open_channel
from services.runtime.process import Module, serve
from services.runtime.settings import load_settings
from services.runtime.tls import TlsFiles, check_files
from tests.certificates import DAY, make_authority
from tests.integration.runtime.echo import INGEST, Seen, echo_module, make_echo

SECONDS = 5.0
CALLER = OperationContext(principal="test")


@asynccontextmanager
async def served(files: TlsFiles | None = None) -> AsyncIterator[str]:
    """An echo at 127.0.0.1; yields its address."""
    up: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(
        serve(
            [echo_module(make_echo(Seen()))],
            ["127.0.0.1:0"],
            grace_seconds=1,
            tls=files,
            on_serving=lambda bound: up.set_result(bound["grpc_tcp"]),
        )
    )
    both: set[asyncio.Future[Any]] = {task, up}
    await asyncio.wait(both, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
    try:
        yield up.result()
    finally:
        if not task.done():
            os.kill(os.getpid(), signal.SIGTERM)
        await task


async def call(address: str, files: TlsFiles | None) -> None:
    async with open_channel(address, service=INGEST, tls=files) as channel:
        with operation(CALLER, timeout_seconds=3):
            stub = ingest_service_pb2_grpc.IngestServiceStub(channel)
            await stub.GetPage(ingest_service_pb2.GetPageRequest(slug="a"))


async def test_services_with_certificates_of_one_authority_speak_tls(tmp_path: Path) -> None:
    files = make_authority().valid(tmp_path)
    async with served(files) as address:
        await call(address, files)


async def test_a_plain_call_and_one_that_believes_another_authority_fail(tmp_path: Path) -> None:
    async with served(make_authority().valid(tmp_path / "a")) as address:
        with pytest.raises(Unavailable):
            await call(address, None)
        with pytest.raises(Unavailable):
            await call(address, make_authority().valid(tmp_path / "b"))


async def test_where_clients_must_show_a_certificate_one_of_another_authority_does_not_do(tmp_path: Path) -> None:
    ours = make_authority()
    files = ours.valid(tmp_path / "server", clients_required=True)
    stranger = make_authority().valid(tmp_path / "stranger")
    stranger.authority.write_bytes(files.authority.read_bytes())  # it believes us; we do not believe it
    async with served(files) as address:
        await call(address, ours.valid(tmp_path / "client"))
        with pytest.raises(Unavailable):
            await call(address, stranger)


async def test_a_renewed_certificate_is_used_without_a_restart(tmp_path: Path) -> None:
    old, new = make_authority(), make_authority()
    files = old.valid(tmp_path / "server")
    async with served(files) as address:
        await call(address, old.valid(tmp_path / "client"))
        new.valid(tmp_path / "server")
        await call(address, new.valid(tmp_path / "client"))
        with pytest.raises(Unavailable):
            await call(address, old.valid(tmp_path / "client"))


def test_an_expired_certificate_is_refused_before_anything_is_served(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    files = make_authority().issue(tmp_path, begins=now - 2 * DAY, ends=now - DAY)
    with pytest.raises(InvalidArgument, match=r"FLEETBRAIN_TLS_CERTIFICATE=.*expired at") as raised:
        check_files(files, now)
    assert raised.value.next_step


def cut(files: TlsFiles) -> None:
    files.certificate.write_bytes(files.certificate.read_bytes()[:60])


def swap(files: TlsFiles) -> None:
    other = make_authority().valid(files.key.parent / "other")
    files.key.write_bytes(other.key.read_bytes())


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (cut, r"FLEETBRAIN_TLS_CERTIFICATE=.* holds no certificate"),
        (swap, r"FLEETBRAIN_TLS_KEY=.* is not the key of"),
        (lambda files: files.key.unlink(), r"FLEETBRAIN_TLS_KEY=.* cannot be read"),
        (lambda files: files.key.write_bytes(b""), r"FLEETBRAIN_TLS_KEY=.* holds no private key"),
        (lambda files: files.authority.write_bytes(b"?"), r"FLEETBRAIN_TLS_CA=.* holds no certificate"),
    ],
)
def test_files_that_cannot_work_are_named(tmp_path: Path, spoil: Callable[[TlsFiles], None], named: str) -> None:
    files = make_authority().valid(tmp_path)
    spoil(files)
    with pytest.raises(InvalidArgument, match=named):
        check_files(files, datetime.now(UTC))


def test_one_file_of_three_is_no_setting() -> None:
    with pytest.raises(InvalidArgument, match="FLEETBRAIN_TLS_KEY is missing"):
        load_settings({"FLEETBRAIN_TLS_CERTIFICATE": "/tls/tls.crt"})


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


async def test_probes_need_no_certificate_and_tell_living_from_ready(tmp_path: Path) -> None:
    health, metrics = free_port(), free_port()
    ready = asyncio.Event()
    module = Module(name="slow", ready=ready.is_set)
    up = asyncio.Event()
    task = asyncio.create_task(
        serve(
            [lambda: opened(module)],
            ["127.0.0.1:0"],
            grace_seconds=1,
            tls=make_authority().valid(tmp_path),
            health_address=health,
            metrics_address=metrics,
            on_serving=lambda _: up.set(),
        )
    )
    try:
        await asyncio.wait_for(up.wait(), SECONDS)
        async with aio.insecure_channel(health) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)

            async def state(service: str) -> int:
                answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
                return int(answer.status)

            assert await state("live") == health_pb2.HealthCheckResponse.SERVING
            assert await state("") == health_pb2.HealthCheckResponse.NOT_SERVING
            ready.set()
            async with asyncio.timeout(SECONDS):
                async for answer in stub.Watch(health_pb2.HealthCheckRequest(service="")):
                    if answer.status == health_pb2.HealthCheckResponse.SERVING:
                        break
        text = await asyncio.to_thread(read, f"http://{metrics}/metrics")
        assert b"brain_projection_pending" in text
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        await task


@asynccontextmanager
async def opened(module: Module) -> AsyncIterator[Module]:
    yield module


def read(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=SECONDS) as reply:  # noqa: S310 - our own address
        return bytes(reply.read())


async def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(InvalidArgument, match="FLEETBRAIN_METRICS_LISTEN"):
            await serve([], ["127.0.0.1:0"], grace_seconds=1, metrics_address=address)
