"""Builds search from what a process gives it: which engines, which model, which folders."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlsplit

from brain.v1 import search_service_pb2_grpc
from services.domain.errors import InvalidArgument, Unavailable
from services.domain.parser import PageParser
from services.runtime.bus import Bus
from services.runtime.engine_url import without_credentials
from services.runtime.process import Module
from services.runtime.projection import HostedProjection
from services.runtime.settings import Settings, loopback
from services.runtime.store_catalog import FolderCatalog, StoreCatalog
from services.search.adapters.child import Child
from services.search.adapters.edge import EdgeIndex
from services.search.adapters.local_embedder import LocalEmbedder
from services.search.adapters.local_models import DIMENSIONS, signature
from services.search.adapters.openai_embedder import SCHEME, VENDOR_URL, Endpoint, OpenAiEmbedder, parse_url
from services.search.adapters.tantivy import TantivyIndex
from services.search.app.pages import KnownPages
from services.search.app.ranking import RankPassages
from services.search.app.work import LongWork
from services.search.collections import ChangingCollections, Collection, OneCollection, serving
from services.search.consumer import LexicalStore, VectorStore
from services.search.ports import Collections, Embedder, Purpose
from services.search.servicer import SearchServicer

log = logging.getLogger(__name__)

EMBEDDED_LEXICAL = ("", "tantivy:")
"""What names the engine in the data folder."""

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

CHECK_SECONDS = 5.0
"""How long a start may wait for a remote embedder's first answer."""


@asynccontextmanager
async def open_module(settings: Settings, bus: Bus, parser: PageParser) -> AsyncIterator[Module]:
    """The service as a process hosts it."""
    check_engines(settings)
    async with AsyncExitStack() as opened:
        lexical = lexical_projection(settings, bus, parser, opened)
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
            lexical_engine=lexical_engine(settings.lexical_url),
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
    lexical_engine(settings.lexical_url)
    if settings.vectors_url:
        raise InvalidArgument(
            "FIELD_INVALID",
            f"FLEETBRAIN_VECTORS_URL={without_credentials(settings.vectors_url)}: this version has only the embedded"
            " engine",
            field="FLEETBRAIN_VECTORS_URL",
            value=without_credentials(settings.vectors_url),
            next_step="Remove FLEETBRAIN_VECTORS_URL.",
        )
    if settings.embedder_url.startswith(SCHEME):
        endpoint_for(settings, settings.embedder_url)
    elif settings.embedder_url not in ("", "none", "local:use", "local:e5"):
        raise InvalidArgument(
            "FIELD_INVALID",
            f"FLEETBRAIN_EMBEDDER_URL={settings.embedder_url} names no embedder",
            field="FLEETBRAIN_EMBEDDER_URL",
            value=settings.embedder_url,
            next_step="Use local:use, local:e5, openai://MODEL?dim=N or none, or leave it out for the default.",
        )


def lexical_projection(
    settings: Settings, bus: Bus, parser: PageParser, opened: AsyncExitStack
) -> HostedProjection[LexicalStore]:
    """The projection of words, in the engine that the settings name; what it opens is closed with the stack."""

    def catalog_at(url: str) -> StoreCatalog[LexicalStore]:
        if lexical_engine(url) == "tantivy":
            return FolderCatalog(settings.data / "lexical", open_store)
        return opensearch_catalog(url, settings, bus, parser, opened)

    async def open_store(store_id: str, folder: Path) -> LexicalStore:
        return LexicalStore(TantivyIndex(folder), parser)

    return HostedProjection(
        name="search-lexical",
        bus=bus,
        catalog=catalog_at(settings.lexical_url),
        batch_max=LEXICAL_BATCH_MAX,
        catalog_at=catalog_at,
    )


def lexical_engine(url: str) -> str:
    """The engine that a URL names.

    Raises:
        InvalidArgument: It names none.
    """
    scheme = url.partition(":")[0]
    if url in EMBEDDED_LEXICAL:
        return "tantivy"
    if scheme in ("opensearch", "opensearch+tls"):
        return "opensearch"
    raise InvalidArgument(
        "FIELD_INVALID",
        f"FLEETBRAIN_LEXICAL_URL={scheme}: names no engine of words",
        field="FLEETBRAIN_LEXICAL_URL",
        value=scheme,
        next_step="Leave it empty for tantivy in the data folder, or use opensearch://host:9200/prefix.",
    )


def opensearch_catalog(
    url: str, settings: Settings, bus: Bus, parser: PageParser, opened: AsyncExitStack
) -> StoreCatalog[LexicalStore]:
    """The stores in an OpenSearch.

    Raises:
        InvalidArgument: The URL is not usable, or the client is not installed.
    """
    try:
        # Imported here, so that a process loads only the engine it uses.
        from services.search.adapters.opensearch.address import parse_address
        from services.search.adapters.opensearch.catalog import OpenSearchCatalog
        from services.search.adapters.opensearch.connection import Connection
    except ModuleNotFoundError as error:
        raise InvalidArgument(
            "FIELD_INVALID",
            f"the client of OpenSearch is not installed: {error.name}",
            field="FLEETBRAIN_LEXICAL_URL",
            value=url.partition(":")[0],
            next_step="Install fleetbrain[cluster].",
        ) from error
    address = parse_address(url, password=settings.lexical_password)
    connection = Connection.open(address)
    opened.push_async_callback(connection.close)
    return OpenSearchCatalog(
        connection,
        prefix=address.path,
        log_id=bus.page_log.log_id,
        hold=lambda index: LexicalStore(index, parser),
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

    def collection(embedder: Embedder, batch_max: int) -> Collection:
        async def open_store(store_id: str, store_folder: Path) -> VectorStore:
            index = EdgeIndex(owner, store_folder, embedder.dimension)
            await index.open()
            return VectorStore(index, embedder, parser)

        place = folder / folder_name(embedder.signature)
        projection = HostedProjection(
            name="search-vectors",
            bus=bus,
            catalog=FolderCatalog(place, open_store),
            batch_max=batch_max,
        )
        return Collection(projection=projection, signature=embedder.signature, folder=place)

    def made(url: str) -> Collection:
        embedder, batch_max = embedder_for(url, settings, opened, queries=owner, options=options)
        return collection(embedder, batch_max)

    collections: OneCollection | ChangingCollections
    if settings.embedder_url:
        embedder, batch_max = embedder_for(settings.embedder_url, settings, opened, queries=owner, options=options)
        await check_answers(embedder)
        wanted = collection(embedder, batch_max)
        before = _served_before(settings, folder, wanted.signature)
        collections = (
            ChangingCollections(folder, quick=made(before), better=wanted, quick_first=False)
            if before
            else OneCollection(wanted, folder)
        )
    else:
        collections = ChangingCollections(folder, quick=made("local:use"), better=made("local:e5"))
    await collections.start()
    opened.push_async_callback(collections.close)
    return collections


def embedder_for(
    url: str, settings: Settings, opened: AsyncExitStack, *, queries: Child, options: dict[str, str]
) -> tuple[Embedder, int]:
    """The embedder that a URL names, closed with the stack, and how many pages to give it at once.

    Args:
        url: `local:use`, `local:e5` or `openai://MODEL?dim=N`.
        settings: Of the process; for the key and the endpoint.
        opened: What closes it.
        queries: The child that embeds queries when the model is local.
        options: Of the child that embeds passages.

    Raises:
        InvalidArgument: The URL or what belongs to it is not usable.
    """
    if url.startswith(SCHEME):
        remote = OpenAiEmbedder(endpoint_for(settings, url))
        opened.push_async_callback(remote.close)
        return remote, VECTOR_BATCH_MAX
    model = url.removeprefix("local:")
    passages = Child("passages", options, nice=IDLE_NICE, idle_seconds=IDLE_SECONDS)
    opened.push_async_callback(passages.close)
    local = LocalEmbedder(model, queries=queries, passages=passages)
    return local, E5_BATCH_MAX if model == "e5" else VECTOR_BATCH_MAX


def endpoint_for(settings: Settings, url: str) -> Endpoint:
    """Where an `openai://` embedder is asked, and with which key.

    Raises:
        InvalidArgument: The URL is not of the form, or there is no key for an endpoint on another machine.
    """
    model, dimension = parse_url(url)
    base_url, key = settings.embedder_base_url or VENDOR_URL, settings.embedder_key
    host = urlsplit(base_url).hostname or ""
    if key is None and not loopback(f"[{host}]" if ":" in host else host):
        raise InvalidArgument(
            "FIELD_REQUIRED",
            f"FLEETBRAIN_EMBEDDER_URL={url} asks {base_url}, and there is no key for it",
            field="FLEETBRAIN_EMBEDDER_KEY",
            next_step="Set FLEETBRAIN_EMBEDDER_KEY, FLEETBRAIN_EMBEDDER_KEY_FILE or OPENAI_API_KEY,"
            " or let OPENAI_BASE_URL name a server on this machine.",
        )
    return Endpoint(
        model=model,
        dimension=dimension,
        base_url=base_url,
        key=key.value if key else "",
        key_origin=key.origin if key else "",
    )


async def check_answers(embedder: Embedder) -> None:
    """Asks a remote model once, so that a wrong size or name stops the start instead of every page.

    An endpoint that is away, or refuses the key, stops nothing: words are searched until it answers.

    Raises:
        InvalidArgument: The endpoint does not have this model in this size.
    """
    if not isinstance(embedder, OpenAiEmbedder):
        return
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            await embedder.embed(["warm"], Purpose.QUERY)
    except Unavailable as error:
        if error.reason == "FIELD_INVALID":
            raise InvalidArgument(
                error.reason,
                error.message,
                field=error.field,
                value=error.value,
                next_step=error.next_step,
                metadata=error.metadata,
            ) from error
        log.warning("the embedder is away", extra={"error": error.message, "next_step": error.next_step})
    except TimeoutError:
        log.warning("the embedder is away", extra={"error": f"no answer in {CHECK_SECONDS:g} s"})


def folder_name(model_signature: str) -> str:
    """The folder of a model's vectors."""
    return re.sub(r"[/:]", "-", model_signature)


def _served_before(settings: Settings, folder: Path, wanted: str) -> str:
    """The URL of another model whose vectors are there and served last, if it can still be asked; else empty."""
    served = serving(folder)
    known = {signature(model): f"local:{model}" for model in DIMENSIONS}
    if served.startswith("openai:") and (name := served.removeprefix("openai:").rpartition("/"))[0]:
        known[served] = f"{SCHEME}{quote(name[0])}?dim={name[2]}"
    for there in (served, *known) if not served else (served,):
        if there == wanted or there not in known or not (folder / folder_name(there)).is_dir():
            continue
        with suppress(InvalidArgument):  # its key is gone with its setting
            if known[there].startswith(SCHEME):
                endpoint_for(settings, known[there])
            return known[there]
    return ""
