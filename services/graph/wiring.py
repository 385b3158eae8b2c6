"""Builds graph from what a process gives it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from brain.v1 import graph_service_pb2_grpc
from services.domain.errors import InvalidArgument
from services.domain.parser import PageParser
from services.graph.consumer import GraphProjection
from services.graph.ports import GraphHolder
from services.graph.servicer import GraphServicer
from services.runtime.bus import Bus
from services.runtime.process import Module
from services.runtime.projection import HostedProjection
from services.runtime.settings import Settings
from services.runtime.store_catalog import FolderCatalog

FOLDER = "graph"


@asynccontextmanager
async def open_module(settings: Settings, bus: Bus, parser: PageParser) -> AsyncIterator[Module]:
    """The service as a process hosts it, with its own store and its own durable."""
    check_url(settings.graph_url)

    async def open_store(store_id: str, folder: Path) -> GraphHolder:
        # Imported here, so that a process loads only the engine it uses.
        from services.graph.adapters.sqlite.store import SqliteGraphStore

        return GraphProjection(SqliteGraphStore(folder), parser)

    projection = HostedProjection(name="graph", bus=bus, catalog=FolderCatalog(settings.data / FOLDER, open_store))
    servicer = GraphServicer(projection, engine="sqlite")
    await projection.start()
    try:
        yield Module(
            name="graph",
            grpc_services=("brain.v1.GraphService",),
            register=lambda server: graph_service_pb2_grpc.add_GraphServiceServicer_to_server(servicer, server),
            workers=(projection.run,),
            ready=lambda: projection.ready,
        )
    finally:
        await projection.close()


def check_url(url: str) -> None:
    """Raises InvalidArgument unless the URL names an engine there is."""
    if url not in ("", "sqlite:"):
        raise InvalidArgument(
            "FIELD_INVALID",
            f"FLEETBRAIN_GRAPH_URL={url.partition(':')[0]}: names no engine of the graph",
            field="FLEETBRAIN_GRAPH_URL",
            value=url.partition(":")[0],
            next_step="Leave it empty for SQLite in the data folder.",
        )
