"""Builds search from what a process gives it: which engines, which model, which folders."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path

from brain.v1 import search_service_pb2_grpc
from services.domain.errors import InvalidArgument, Unavailable
from services.domain.parser import PageParser
from services.runtime.bus import Bus
from services.runtime.process import Module
from services.runtime.projection import HostedProjection
from services.runtime.settings import Settings
from services.runtime.store_catalog import FolderCatalog
from services.search.adapters.child import Child
from services.search.adapters.edge import EdgeIndex
from services.search.adapters.local_embedder import LocalEmbedder
from services.search.adapters.tantivy import TantivyIndex
from services.search.app.pages import KnownPages
from services.search.app.ranking import RankPassages
from services.search.app.work import LongWork
from services.search.collections import ChangingCollections, Collection, OneCollection
from services.search.consumer import LexicalStore, VectorStore
from services.search.ports import Collections, Purpose
from services.search.servicer import SearchServicer

LEXICAL_BATCH_MAX = 256
"""Pages a commit: 60 ms of work at most, and a commit's fixed cost of 20 ms over enough of them."""

VECTOR_BATCH_MAX = 32
"""Pages a batch of vectors: some seconds of embedding with USE, so that progress is seen and a stop loses little."""

E5_BATCH_MAX = 8
"""The same for E5, which takes about ten times as long."""

IDLE_NICE = 19
"""Embedding passages stands back for everything else on the machine."""

IDLE_SECONDS = 60.0
"""After so long without a passage the process that embeds them ends, and its 100 MB with it."""


@asynccontextmanager
async def open_module(settings: Settings, bus: Bus, parser: PageParser) -> AsyncIterator[Module]:
    """The service as a process hosts it."""
    check_engines(settings)
    async with AsyncExitStack() as opened:
        lexical = lexical_projection(settings, bus, parser)
        await lexical.start()
        opened.push_async_callback(lexical.close)
        collections = await _open_collections(opened, settings, bus, parser)
        pages = KnownPages(lexical, collections)
        work = LongWork(collections, pages)
        servicer = SearchServicer(
            lexical,
            collections,
            ranking=RankPassages(lexical, collections),
            pages=pages,
            work=work,
            lexical_engine="tantivy",
        )
        yield Module(
            name="search",
            grpc_services=("brain.v1.SearchService",),
            register=lambda server: search_service_pb2_grpc.add_SearchServiceServicer_to_server(servicer, server),
            workers=(lexical.run, collections.run, work.run, partial(warm_up, collections)),
            ready=lambda: lexical.ready,
        )


async def warm_up(collections: Collections) -> None:
    """Loads the model that embeds queries, so that the first query does not wait for it."""
    current = collections.current
    if current is not None:
        with suppress(Unavailable), current.use() as vectors:
            await vectors.embedder.embed(["warm"], Purpose.QUERY)


def check_engines(settings: Settings) -> None:
    """Refuses engines that this version does not have.

    Raises:
        InvalidArgument: Names the setting, its value and what to do.
    """
    for name, value in (
        ("FLEETBRAIN_LEXICAL_URL", settings.lexical_url),
        ("FLEETBRAIN_VECTORS_URL", settings.vectors_url),
    ):
        if value:
            raise InvalidArgument(
                "FIELD_INVALID",
                f"{name}={value}: this version has only the embedded engine",
                field=name,
                value=value,
                next_step=f"Remove {name}.",
            )
    if settings.embedder_url not in ("", "none", "local:use", "local:e5"):
        raise InvalidArgument(
            "FEATURE_OFF",
            f"FLEETBRAIN_EMBEDDER_URL={settings.embedder_url}: this version embeds only with its local models",
            field="FLEETBRAIN_EMBEDDER_URL",
            value=settings.embedder_url,
            next_step="Use local:use, local:e5 or none, or leave it out for the default.",
        )


def lexical_projection(settings: Settings, bus: Bus, parser: PageParser) -> HostedProjection[LexicalStore]:
    """The projection of words."""

    async def open_store(store_id: str, folder: Path) -> LexicalStore:
        return LexicalStore(TantivyIndex(folder), parser)

    return HostedProjection(
        name="search-lexical",
        bus=bus,
        catalog=FolderCatalog(settings.data / "lexical", open_store),
        batch_max=LEXICAL_BATCH_MAX,
    )


async def _open_collections(
    opened: AsyncExitStack, settings: Settings, bus: Bus, parser: PageParser
) -> OneCollection | ChangingCollections:
    folder = settings.data / "vectors"
    if settings.embedder_url == "none":
        return OneCollection(None)
    options = {"models": str(settings.data / "models")}
    owner = Child("vectors", options)
    opened.push_async_callback(owner.close)

    def collection(model: str, batch_max: int) -> Collection:
        passages = Child("passages", options, nice=IDLE_NICE, idle_seconds=IDLE_SECONDS)
        opened.push_async_callback(passages.close)
        embedder = LocalEmbedder(model, queries=owner, passages=passages)

        async def open_store(store_id: str, store_folder: Path) -> VectorStore:
            index = EdgeIndex(owner, store_folder, embedder.dimension)
            await index.open()
            return VectorStore(index, embedder, parser)

        place = folder / embedder.signature.replace("/", "-").replace(":", "-")
        projection = HostedProjection(
            name="search-vectors",
            bus=bus,
            catalog=FolderCatalog(place, open_store),
            batch_max=batch_max,
        )
        return Collection(projection=projection, signature=embedder.signature, folder=place)

    collections: OneCollection | ChangingCollections
    if settings.embedder_url:
        model = settings.embedder_url.removeprefix("local:")
        collections = OneCollection(collection(model, E5_BATCH_MAX if model == "e5" else VECTOR_BATCH_MAX))
    else:
        quick, better = collection("use", VECTOR_BATCH_MAX), collection("e5", E5_BATCH_MAX)
        collections = ChangingCollections(folder, quick=quick, better=better)
    await collections.start()
    opened.push_async_callback(collections.close)
    return collections
