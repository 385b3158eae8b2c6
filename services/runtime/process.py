"""Run one or more modules in one process: one gRPC server, one lifecycle.

A module is one service as this process hosts it. The embedded default hosts all of them behind one Unix socket;
in Kubernetes each pod hosts one.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from grpc import aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from services.domain.errors import InvalidArgument
from services.runtime.local_calls import LocalCalls
from services.runtime.operations_ports import health_port, metrics_port
from services.runtime.server import make_server
from services.runtime.tls import TlsFiles, server_credentials

log = logging.getLogger(__name__)

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
LIVE = "live"
"""The health service's name for a process that runs, ready or not; "" stands for one whose services are all ready."""
READY_SECONDS = 0.5
"""How often a module is asked whether it is ready, for the health service of a pod."""


def always() -> bool:
    """Ready whenever it runs."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One hosted service, built by its wiring and started by `serve`."""

    name: str
    grpc_services: tuple[str, ...] = ()
    register: Callable[[aio.Server], None] = lambda _: None
    workers: Sequence[Callable[[], Coroutine[None, None, None]]] = ()
    ready: Callable[[], bool] = always
    """Whether it should get calls; the health service shows it. A module that is not ready still answers."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Addresses of its own, such as `http`, for brain.json; already bound when the module is open."""


OpenModule = Callable[[], AbstractAsyncContextManager[Module]]


async def serve(
    opens: Sequence[OpenModule],
    addresses: Sequence[str],
    *,
    grace_seconds: float,
    token: str = "",
    tls: TlsFiles | None = None,
    health_address: str = "",
    metrics_address: str = "",
    local: LocalCalls | None = None,
    on_serving: Callable[[Mapping[str, str]], None] | None = None,
) -> None:
    """Hosts modules until SIGTERM or SIGINT.

    Stop order is the reverse of start order: refuse new calls, finish running ones for at most `grace_seconds`,
    stop workers, close adapters.

    Args:
        opens: Enters one module each, in this order.
        addresses: Where gRPC answers: `unix:PATH` and `host:port`; empty for a process without gRPC.
        grace_seconds: How long running calls get at the end.
        token: Bearer token that callers over TCP must show.
        tls: Certificates for the TCP addresses; without them they speak plainly. Sockets always do.
        health_address: Where the health service also answers, plainly and without a token; "" for nowhere.
        metrics_address: Where the metrics are read over HTTP; "" for nowhere.
        local: Takes the calls that modules of this process make to each other while it serves.
        on_serving: Called once everything runs, with the modules' own addresses and the bound gRPC ones (`grpc`,
            and `grpc_tcp` for the first TCP address).

    Raises:
        ExceptionGroup: A worker failed. The process stops in the same order, so that its supervisor restarts it
            instead of leaving a server without a consumer.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    try:
        async with AsyncExitStack() as adapters:
            modules = [await adapters.enter_async_context(open_module()) for open_module in opens]
            server = make_server(token=token)
            checks = health.aio.HealthServicer()
            bound = bind(server, checks, modules, addresses, tls)
            await server.start()
            if local is not None:
                local.begin(addresses, [module.register for module in modules])
            await checks.set(LIVE, SERVING)
            await adapters.enter_async_context(health_port(health_address, checks))
            await adapters.enter_async_context(metrics_port(metrics_address))
            async with asyncio.TaskGroup() as workers:
                running = [workers.create_task(work()) for m in modules for work in m.workers]
                running.append(workers.create_task(show_health(checks, modules)))
                try:
                    log.info("serving", extra={"modules": [m.name for m in modules], "addresses": list(addresses)})
                    if on_serving is not None:
                        on_serving({**bound, **{k: v for m in modules for k, v in m.addresses.items()}})
                    await stop.wait()
                finally:
                    if local is not None:
                        local.end()
                    await checks.enter_graceful_shutdown()
                    await server.stop(grace_seconds)
                    for worker in running:
                        worker.cancel()
    finally:
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(signum)


def bind(
    server: aio.Server,
    checks: health.aio.HealthServicer,
    modules: Sequence[Module],
    addresses: Sequence[str],
    tls: TlsFiles | None = None,
) -> dict[str, str]:
    """Adds the modules' services, health and reflection to the server and binds its addresses."""
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    for module in modules:
        module.register(server)
    names = [name for m in modules for name in m.grpc_services]
    reflection.enable_server_reflection((*names, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
    bound: dict[str, str] = {}
    for address in addresses:
        path = address.removeprefix("unix:")
        if path != address:
            Path(path).unlink(missing_ok=True)  # of a process that was killed: whoever is here holds the folder's lock
        try:
            if tls is not None and path == address:
                port = server.add_secure_port(address, server_credentials(tls))
            else:
                port = server.add_insecure_port(address)
        except RuntimeError as error:
            raise InvalidArgument(
                "FIELD_INVALID",
                f"gRPC cannot listen on {address}: {error}",
                field="FLEETBRAIN_LISTEN",
                value=address,
                next_step="Use an address of this machine and a free port.",
            ) from error
        if path != address:
            Path(path).chmod(0o600)
            bound["grpc"] = address
        else:
            bound["grpc_tcp"] = f"{address.rsplit(':', 1)[0]}:{port}"
    return bound


async def show_health(checks: health.aio.HealthServicer, modules: Sequence[Module]) -> None:
    """Keeps the health service saying which services are ready, and of the whole process ("") whether all are."""
    shown: dict[str, bool] = {}
    while True:
        states = {name: m.ready() for m in modules for name in m.grpc_services}
        states[""] = all(m.ready() for m in modules)
        for name, ready in states.items():
            if shown.get(name) is not ready:
                await checks.set(name, SERVING if ready else NOT_SERVING)
                shown[name] = ready
        await asyncio.sleep(READY_SECONDS)
