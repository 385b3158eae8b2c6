"""Builds graph from what a process gives it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from brain.v1 import graph_service_pb2_grpc
from services.domain.errors import InvalidArgument
from services.domain.parser import PageParser
from services.graph.consumer import GraphProjection
from services.graph.ports import GraphHolder, GraphStore
from services.graph.servicer import GraphServicer
from services.runtime.bus import Bus
from services.runtime.process import Module
from services.runtime.projection import HostedProjection
from services.runtime.settings import Settings
from services.runtime.store_catalog import FolderCatalog, StoreCatalog

FOLDER = "graph"
EMBEDDED = ("", "sqlite:")
BOLT = ("bolt", "bolt+s", "neo4j", "neo4j+s")


@asynccontextmanager
async def open_module(settings: Settings, bus: Bus, parser: PageParser) -> AsyncIterator[Module]:
    """The service as a process hosts it: with its own store, or with those that a server keeps for all its replicas."""
    async with AsyncExitStack() as stack:
        catalogs = Catalogs(settings, bus, parser, stack)
        projection = HostedProjection(
            name="graph", bus=bus, catalog=catalogs.at(settings.graph_url), catalog_at=catalogs.at
        )
        servicer = GraphServicer(projection, engine=engine_of(settings.graph_url))
        await projection.start()
        stack.push_async_callback(projection.close)
        yield Module(
            name="graph",
            grpc_services=("brain.v1.GraphService",),
            register=lambda server: graph_service_pb2_grpc.add_GraphServiceServicer_to_server(servicer, server),
            workers=(projection.run,),
            ready=lambda: projection.ready,
        )


class Catalogs:
    """The engines there are, each by its URL."""

    def __init__(self, settings: Settings, bus: Bus, parser: PageParser, stack: AsyncExitStack) -> None:
        """Describes them; what is opened is closed with the stack."""
        self._settings = settings
        self._bus = bus
        self._stack = stack
        self._hold: Callable[[GraphStore], GraphHolder] = lambda graph: GraphProjection(graph, parser)

    def at(self, url: str) -> StoreCatalog[GraphHolder]:
        """The stores at a URL.

        Raises:
            InvalidArgument: It names no engine there is.
        """
        return self._files() if engine_of(url) == "sqlite" else self._server(url)

    def _files(self) -> StoreCatalog[GraphHolder]:
        async def open_store(store_id: str, folder: Path) -> GraphHolder:
            # Imported here, so that a process loads only the engine it uses.
            from services.graph.adapters.sqlite.store import SqliteGraphStore

            return self._hold(SqliteGraphStore(folder))

        return FolderCatalog(self._settings.data / FOLDER, open_store)

    def _server(self, url: str) -> StoreCatalog[GraphHolder]:
        try:
            from services.graph.adapters.neo4j.address import parse_address
            from services.graph.adapters.neo4j.catalog import Neo4jCatalog
            from services.graph.adapters.neo4j.connection import Connection
        except ModuleNotFoundError as error:
            raise InvalidArgument(
                "FIELD_INVALID",
                f"the client of the graph's server is not installed: {error.name}",
                field="FLEETBRAIN_GRAPH_URL",
                value=url.partition(":")[0],
                next_step="Install fleetbrain[cluster].",
            ) from error
        password = self._settings.graph_password
        address = parse_address(url, password=password.value if password is not None else "")
        connection = Connection.open(address.url, user=address.user, password=address.password)
        self._stack.push_async_callback(connection.close)
        return Neo4jCatalog(connection, prefix=address.prefix, log_id=self._bus.page_log.log_id, hold=self._hold)


def engine_of(url: str) -> str:
    """The engine that a URL names.

    Raises:
        InvalidArgument: It names none.
    """
    scheme = url.partition(":")[0]
    if url in EMBEDDED:
        return "sqlite"
    if scheme in BOLT:
        return "neo4j"
    raise InvalidArgument(
        "FIELD_INVALID",
        f"FLEETBRAIN_GRAPH_URL={scheme}: names no engine of the graph",
        field="FLEETBRAIN_GRAPH_URL",
        value=scheme,
        next_step="Leave it empty for SQLite in the data folder, or use bolt://host:7687/prefix.",
    )
