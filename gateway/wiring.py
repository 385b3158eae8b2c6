"""Builds the gateway of one process from its settings."""

from __future__ import annotations

import asyncio
import importlib.metadata
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from gateway.admission import BODY_BYTES_MAX, LOOPBACK_HOSTS, Admission, Door, InFlight
from gateway.http import build_app, caller_of
from gateway.http_server import listen_tcp, listen_unix, serve_http
from gateway.late_endpoint import LateEndpoint, Opened
from gateway.operations.json_value import JsonObject, JsonValue
from gateway.operations.registry import all_operations
from gateway.operations.run import Runner
from gateway.peers import Peers, open_peers
from gateway.recall import Recall
from gateway.relation_guess import RelationGuess
from services.domain.context import OperationContext
from services.domain.errors import BrainError, InvalidArgument
from services.runtime.calls import operation
from services.runtime.data_folder import socket_path
from services.runtime.local_calls import LocalCalls
from services.runtime.process import Module
from services.runtime.settings import Settings

READY_SECONDS = 1.0
"""A service that does not say within this time that it serves does not serve."""

UNIX = "unix:"

Worker: TypeAlias = Callable[[], Coroutine[None, None, None]]


@asynccontextmanager
async def open_module(settings: Settings, calls_here: LocalCalls | None = None) -> AsyncIterator[Module]:
    """The gateway with its sockets bound: who reads their addresses finds them open.

    Raises:
        InvalidArgument: FLEETBRAIN_HTTP names an address that cannot be listened at.
    """
    operations = all_operations()
    async with open_peers(settings, calls_here) as peers:
        recall = Recall(peers=peers, clock=time.perf_counter, now=_now, relation_guess=RelationGuess(peers=peers))
        runner = Runner(operations=operations, peers=peers, recall=recall)
        mcp = LateEndpoint(partial(_load_mcp, runner))
        app = build_app(runner, mcp, partial(_check_ready, peers))
        in_flight = InFlight()
        path = _socket(settings)
        local = Admission(app, Door(local=True, in_flight=in_flight))
        workers: list[Worker] = [mcp.run, partial(serve_http, local, listen_unix(path))]
        addresses = {"http_socket": str(path)}
        if not settings.http.startswith(UNIX):
            remote = Door(
                local=False,
                token=settings.token,
                hosts=LOOPBACK_HOSTS | {host.lower() for host in settings.http_hosts},
                in_flight=in_flight,
            )
            listener, addresses["http"] = _listen(settings.http)
            workers.append(partial(serve_http, Admission(app, remote), listener))
        try:
            yield Module(name="gateway", workers=workers, addresses=addresses)
        finally:
            path.unlink(missing_ok=True)


def _load_mcp(runner: Runner) -> Opened:
    """Imports the MCP SDK and builds its application."""
    from gateway.mcp.http import open_endpoint
    from gateway.mcp.tools import build_server

    version = importlib.metadata.version("fleetbrain")
    server = build_server(runner.operations, partial(_call_tool, runner), version=version)
    # Admission has counted the body before; the SDK's own limit only has to be out of the way.
    return open_endpoint(server, body_bytes_max=BODY_BYTES_MAX + 1)


async def _call_tool(runner: Runner, name: str, arguments: JsonValue, request: Any) -> JsonObject:  # noqa: ANN401 - SDK
    trace = request.headers.get("traceparent")
    return await runner.run(name, arguments, caller=caller_of(request), trace=trace, tools_only=True)


async def _check_ready(peers: Peers) -> dict[str, bool]:
    """Whether each service says that it serves."""
    answers = await asyncio.gather(*(_serves(peers, service) for service in peers.channels))
    return dict(zip(peers.channels, answers, strict=True))


async def _serves(peers: Peers, service: str) -> bool:
    check = peers.channels[service].unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=HealthCheckRequest.SerializeToString,
        response_deserializer=HealthCheckResponse.FromString,
    )
    with operation(OperationContext(principal="service:gateway"), timeout_seconds=READY_SECONDS):
        try:
            response = await check(HealthCheckRequest(service=service))
        except BrainError:
            return False
    return bool(response.status == HealthCheckResponse.SERVING)


def _socket(settings: Settings) -> Path:
    if settings.http.startswith(UNIX):
        return Path(settings.http.removeprefix(UNIX))
    return socket_path(settings.data, "http.sock")


def _listen(address: str) -> tuple[socket.socket, str]:
    host, _, port = address.rpartition(":")
    try:
        listener = listen_tcp(host.strip("[]"), int(port))
    except OSError as error:
        raise InvalidArgument(
            "FIELD_INVALID",
            f"HTTP cannot listen on {address}: {error.strerror}",
            field="FLEETBRAIN_HTTP",
            value=address,
            next_step="Use an address of this machine and a free port; port 0 takes one.",
        ) from error
    return listener, f"http://{host}:{listener.getsockname()[1]}"


def _now() -> datetime:
    return datetime.now(UTC)
