"""The stores of one projection in one OpenSearch, told apart by a prefix, and which of them serves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from services.domain.errors import NotReady
from services.runtime.projection_store import ProjectionStore
from services.runtime.store_catalog import Pointer, StoreCatalog, decode_pointer, encode_pointer
from services.search.adapters.opensearch.connection import Body, Connection
from services.search.adapters.opensearch.index import OpenSearchIndex, refuse_newer
from services.search.adapters.opensearch.schema import SCHEMA_VERSION
from services.search.ports import LexicalIndex

S = TypeVar("S", bound=ProjectionStore)

NAME = "search-lexical"
"""The document of the catalog's index that is this projection's."""

CATALOG: Body = {
    "settings": {"number_of_shards": 1, "auto_expand_replicas": "0-1"},
    "mappings": {
        "dynamic": "strict",
        "_meta": {"fleetbrain": SCHEMA_VERSION},
        "properties": {
            "log_id": {"type": "keyword"},
            "schema": {"type": "long"},
            "pointer": {"type": "keyword", "index": False, "doc_values": False},
        },
    },
}


class OpenSearchCatalog(StoreCatalog[S]):
    """The stores of one brain; other processes of it work on the same ones."""

    shared = True

    def __init__(
        self,
        connection: Connection,
        *,
        prefix: str,
        log_id: Callable[[], Awaitable[str]],
        hold: Callable[[LexicalIndex], S],
    ) -> None:
        """Describes it; nothing happens yet.

        Args:
            connection: To the cluster; whoever made it closes it.
            prefix: Of everything that this brain keeps there; its aliases are `<prefix>-pages` and `<prefix>-passages`.
            log_id: Which log the stores are filled from.
            hold: Makes of an index what a projection fills.
        """
        self._connection = connection
        self._prefix = prefix
        self._catalog = f"{prefix}-catalog"
        self._log_id = log_id
        self._hold = hold
        self._checked = False

    async def read(self) -> Pointer | None:
        """See `StoreCatalog.read`."""
        held = await self._document()
        return self._pointer(held["_source"])

    async def write(self, pointer: Pointer, *, expected: Pointer | None) -> bool:
        """See `StoreCatalog.write`."""
        held = await self._document()
        now = self._pointer(held["_source"])
        # The same pointer is there already when the cluster took it and its answer was lost.
        if now != pointer:
            if _store_of(now) != _store_of(expected):
                return False
            body = {**held["_source"], "pointer": encode_pointer(pointer).decode(), "schema": SCHEMA_VERSION}
            guard = (held["_seq_no"], held["_primary_term"])
            if not await self._connection.put(self._catalog, NAME, body, guard=guard):
                return False
        await self._follow(pointer.store_id)
        return True

    async def stores(self) -> Sequence[str]:
        """See `StoreCatalog.stores`."""
        found: set[str] = set()
        for start in (f"{self._prefix}-pages-", f"{self._prefix}-passages-"):
            found |= {name.removeprefix(start) for name in await self._connection.mappings(f"{start}*")}
        return sorted(found)

    async def open(self, store_id: str) -> S:
        """See `StoreCatalog.open`."""
        index = self._index(store_id)
        await index.begin()
        return self._hold(index)

    async def remove(self, store_id: str) -> None:
        """See `StoreCatalog.remove`."""
        await self._index(store_id).remove()

    def _index(self, store_id: str) -> OpenSearchIndex:
        return OpenSearchIndex(self._connection, self._prefix, store_id)

    async def _document(self) -> dict[str, Any]:
        """The catalog's document, made when it is not there: the first brain that comes owns the prefix."""
        log_id = await self._log_id()
        if not self._checked:
            await self._connection.check()
            await self._connection.create_index(self._catalog, CATALOG)
            for found in (await self._connection.mappings(self._catalog)).values():
                refuse_newer(self._catalog, found["mappings"])
            self._checked = True
        held = await self._connection.get(self._catalog, NAME)
        if held is None:
            first = {"log_id": log_id, "schema": SCHEMA_VERSION, "pointer": ""}
            await self._connection.put(self._catalog, NAME, first, guard=None)
            held = await self._connection.get(self._catalog, NAME)
        if held is None:
            self._checked = False
            raise NotReady("INDEX_BEHIND", f"somebody removes the index {self._catalog}", next_step="Try again.")
        if held["_source"]["log_id"] != log_id:
            raise NotReady(
                "INDEX_BEHIND",
                f"the indices with prefix {self._prefix!r} belong to another brain, whose log is another",
                field="FLEETBRAIN_LEXICAL_URL",
                value=self._prefix,
                next_step="Give this brain another prefix: the last part of the URL, as in opensearch://host:9200/second.",
            )
        return held

    def _pointer(self, source: Body) -> Pointer | None:
        if int(source["schema"]) > SCHEMA_VERSION:
            refuse_newer(self._catalog, {"_meta": {"fleetbrain": source["schema"]}})
        text = str(source["pointer"])
        return decode_pointer(text) if text and int(source["schema"]) == SCHEMA_VERSION else None

    async def _follow(self, store_id: str) -> None:
        """Lets the aliases name the store's indices, all in one step; they exist, or there is nothing to name yet."""
        index = self._index(store_id)
        actions: list[Body] = []
        for name, alias in (
            (index.pages_name, f"{self._prefix}-pages"),
            (index.passages_name, f"{self._prefix}-passages"),
        ):
            if not await self._connection.mappings(name):
                return
            actions.append({"remove": {"index": f"{alias}-*", "alias": alias, "must_exist": False}})
            actions.append({"add": {"index": name, "alias": alias}})
        await self._connection.move_aliases(actions)


def _store_of(pointer: Pointer | None) -> str:
    """The id of the store a pointer names; empty for none."""
    return pointer.store_id if pointer is not None else ""
