"""What a supervisor asks a process, beside its calls: whether it lives and is ready, and its numbers.

Plain ports of their own, so that probes need no certificate and a metrics collector no token: they tell nothing of
the brain's contents.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from grpc import aio
from grpc_health.v1 import health, health_pb2_grpc
from prometheus_client import start_http_server

from services.domain.errors import InvalidArgument


@asynccontextmanager
async def health_port(address: str, checks: health.aio.HealthServicer) -> AsyncIterator[None]:
    """Serves grpc.health.v1 alone at HOST:PORT; nothing when the address is empty."""
    if not address:
        yield
        return
    server = aio.server(options=[("grpc.so_reuseport", 0)])
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    try:
        server.add_insecure_port(address)
    except RuntimeError as error:
        raise _refused("FLEETBRAIN_HEALTH_LISTEN", address, error) from error
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)


@asynccontextmanager
async def metrics_port(address: str) -> AsyncIterator[None]:
    """Serves the process's metrics as Prometheus text at HOST:PORT; nothing when the address is empty."""
    if not address:
        yield
        return
    host, _, port = address.rpartition(":")
    try:
        server, thread = start_http_server(int(port), host.strip("[]"))
    except OSError as error:
        raise _refused("FLEETBRAIN_METRICS_LISTEN", address, error) from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _refused(setting: str, address: str, error: Exception) -> InvalidArgument:
    return InvalidArgument(
        "FIELD_INVALID",
        f"{setting}={address}: cannot listen there: {error}",
        field=setting,
        value=address,
        next_step="Use an address of this machine and a free port.",
    )
