"""The pages and passages of one store in OpenSearch, by their words."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from services.domain.errors import NotReady
from services.domain.records import PageId
from services.search.adapters.opensearch.connection import Body, Connection
from services.search.adapters.opensearch.queries import any_of, filters, ranked
from services.search.adapters.opensearch.schema import (
    SCHEMA_VERSION,
    document_name,
    page_source,
    pages_body,
    passage_source,
    passages_body,
)
from services.search.adapters.opensearch.writes import held_page, replace
from services.search.adapters.tantivy_lists import position_of
from services.search.adapters.tantivy_rows import order_key, page_hit, passage_hit, passage_id
from services.search.values import (
    PASSAGES_PER_PAGE_MAX,
    HeldPage,
    LexicalCounts,
    LexicalHit,
    PageFilter,
    PageList,
    PageOrder,
    PagePosition,
    PassageKey,
    Retriever,
    SlugState,
)

SPARE = 32
"""Passages read beyond a limit, so that a page with many rarely needs another round."""

ROUNDS_MAX = 6
"""How often a list is filled up when passages of few pages fill it; each time the pages that are full are left out."""

FACETS_MAX = 20_000
"""Distinct tags or types counted."""

NAMES_MAX = 1_000
"""Documents asked for by name in one go."""

ROWS_MAX = 2_000
"""Rows read in one go when an index is walked."""

VIEW_SECONDS = 300
"""How long a walk may rest between two looks."""

_FIELDS = {
    PageOrder.UPDATED_DESC: ("updated", "desc"),
    PageOrder.UPDATED_ASC: ("updated", "asc"),
    PageOrder.CREATED_DESC: ("created", "desc"),
}
_ROW = {"_source": ["row"], "track_total_hits": False}


class OpenSearchIndex:
    """A `LexicalIndex` that other processes may read and write at once."""

    def __init__(self, connection: Connection, prefix: str, store_id: str, *, owns_connection: bool = False) -> None:
        """Describes it; nothing happens yet.

        Args:
            connection: To the cluster.
            prefix: Of everything that this brain keeps there.
            store_id: Of the store.
            owns_connection: Whether closing the index closes the connection.
        """
        self._connection = connection
        self._owns_connection = owns_connection
        self.pages_name = f"{prefix}-pages-{store_id}"
        self.passages_name = f"{prefix}-passages-{store_id}"

    async def begin(self) -> None:
        """Makes what is missing of the store.

        Raises:
            Unavailable: The cluster does not answer.
            NotReady: A newer fleetbrain made it.
        """
        await self._connection.check()
        for name, body in ((self.pages_name, pages_body()), (self.passages_name, passages_body())):
            mappings = await self._connection.mappings(name)
            if not mappings:
                await self._connection.create_index(name, body)
                mappings = await self._connection.mappings(name)
            for found in mappings.values():
                refuse_newer(name, found["mappings"])

    async def remove(self) -> None:
        """Removes the store for good."""
        for name in (self.passages_name, self.pages_name):
            await self._connection.remove_index(name)

    async def apply(self, states: Sequence[SlugState]) -> None:
        """See `LexicalIndex.apply`."""
        if not states:
            return
        ordered = sorted(states, key=lambda state: state.revision)
        # Neither needs the other's; and both have ended on return, whatever becomes of one of them.
        outcomes = await asyncio.gather(
            replace(self._connection, self.pages_name, "page_id", ordered, _page_entries),
            replace(self._connection, self.passages_name, "passage_id", ordered, _passage_entries),
            return_exceptions=True,
        )
        for outcome in outcomes:
            if outcome is not None:
                raise outcome

    async def search(
        self, retriever: Retriever, terms: Sequence[str], within: PageFilter, limit: int
    ) -> list[LexicalHit]:
        """See `LexicalIndex.search`."""
        clauses = filters(within)
        if not terms or limit < 1 or clauses is None:
            return []
        terms = tuple(dict.fromkeys(terms))
        if retriever is Retriever.LEXICAL_CHUNKS:
            return await self._search_passages(terms, clauses, limit)
        query = ranked(retriever, terms, clauses)
        body = {"query": query, "size": limit, "sort": [{"_score": "desc"}, {"page_id": "asc"}], **_ROW}
        return [_matched(page_hit, hit, terms) for hit in await self._hits(self.pages_name, body)]

    async def passages(self, keys: Sequence[PassageKey], within: PageFilter) -> Mapping[PassageKey, LexicalHit]:
        """See `LexicalIndex.passages`."""
        names = [passage_id(key.page_id, key.ordinal) for key in keys]
        return {
            PassageKey(hit.row.page_id, hit.passage.ordinal): hit
            for hit in await self._by_name(self.passages_name, "passage_id", names, within, passage_hit)
            if hit.passage
        }

    async def best_passages(
        self, page_ids: Sequence[PageId], terms: Sequence[str], within: PageFilter
    ) -> Mapping[PageId, LexicalHit]:
        """See `LexicalIndex.best_passages`."""
        best: dict[PageId, LexicalHit] = {}
        clauses = filters(within)
        if clauses is None:
            return best
        terms = tuple(dict.fromkeys(terms))
        for begin in range(0, len(page_ids) if terms else 0, NAMES_MAX):
            part = page_ids[begin : begin + NAMES_MAX]
            body = {
                "query": ranked(Retriever.LEXICAL_CHUNKS, terms, [any_of("page_id", part), *clauses]),
                "collapse": {"field": "page_id"},
                "size": len(part),
                "sort": [{"_score": "desc"}, {"page_id": "asc"}, {"ordinal": "asc"}],
                **_ROW,
            }
            for found in await self._hits(self.passages_name, body):
                hit = passage_hit(_stored(found), found["_score"])
                best.setdefault(hit.row.page_id, hit)
        firsts = [passage_id(page_id, 0) for page_id in page_ids if page_id not in best]
        for hit in await self._by_name(self.passages_name, "passage_id", firsts, within, passage_hit):
            best[hit.row.page_id] = hit
        return best

    async def pages(self, page_ids: Sequence[PageId], within: PageFilter) -> Mapping[PageId, LexicalHit]:
        """See `LexicalIndex.pages`."""
        hits = await self._by_name(self.pages_name, "page_id", page_ids, within, page_hit)
        return {hit.row.page_id: hit for hit in hits}

    async def list_pages(
        self, within: PageFilter, order: PageOrder, *, after: PagePosition | None, offset: int, limit: int
    ) -> PageList:
        """See `LexicalIndex.list_pages`."""
        clauses = filters(within)
        if clauses is None:
            return PageList(rows=(), next=None)
        body: dict[str, Any] = {"query": {"bool": {"filter": clauses}}, "sort": [{"order": "asc"}], **_ROW}
        if order in _FIELDS:
            field, direction = _FIELDS[order]
            body["sort"] = [{field: direction}, {"order": "asc"}]
        if after is not None:
            behind = order_key(after.slug, after.source)
            body["search_after"] = [after.value, behind] if order in _FIELDS else [behind]
        hits: list[Body] = []
        while len(hits) < offset + limit + 1:
            body["size"] = min(offset + limit + 1 - len(hits), ROWS_MAX)
            found = await self._hits(self.pages_name, body)
            hits += found
            if len(found) < body["size"]:
                break
            body["search_after"] = found[-1]["sort"]
        rows = [page_hit(_stored(hit)).row for hit in hits[offset:]]
        more, rows = len(rows) > limit, rows[:limit]
        return PageList(rows=tuple(rows), next=position_of(rows[-1], order) if more and rows else None)

    async def counts(self, within: PageFilter) -> LexicalCounts:
        """See `LexicalIndex.counts`."""
        clauses = filters(within)
        if clauses is None:
            return LexicalCounts(pages=0, chunks=0, tags=0, types=())
        body = {"query": {"bool": {"filter": clauses}}, "size": 0, "track_total_hits": True}
        facets = {name: {"terms": {"field": name, "size": FACETS_MAX}} for name in ("type", "tag")}
        pages, passages = await asyncio.gather(
            self._connection.search(self.pages_name, {**body, "aggs": facets}),
            self._connection.search(self.passages_name, body),
        )
        buckets = {name: pages["aggregations"][name]["buckets"] for name in facets}
        types = [(str(bucket["key"]), int(bucket["doc_count"])) for bucket in buckets["type"]]
        return LexicalCounts(
            pages=pages["hits"]["total"]["value"],
            chunks=passages["hits"]["total"]["value"],
            tags=len(buckets["tag"]),
            types=tuple(sorted(types, key=lambda pair: (-pair[1], pair[0]))),
        )

    async def held(self) -> AsyncIterator[HeldPage]:
        """See `LexicalIndex.held`: a frozen view, so that what moves meanwhile is neither missed nor met twice."""
        view = await self._connection.begin_view(self.pages_name, VIEW_SECONDS)
        try:
            body: dict[str, Any] = {
                "pit": {"id": view, "keep_alive": f"{VIEW_SECONDS}s"},
                "size": ROWS_MAX,
                "sort": [{"page_id": "asc"}],
                "track_total_hits": False,
                "_source": ["source", "slug", "page_id", "revision"],
            }
            while hits := await self._hits("", body):
                for hit in hits:
                    yield held_page(hit["_source"])
                body["search_after"] = hits[-1]["sort"]
        finally:
            await self._connection.end_view(view)

    async def close(self) -> None:
        """See `LexicalIndex.close`."""
        if self._owns_connection:
            await self._connection.close()

    async def _search_passages(self, terms: Sequence[str], clauses: Sequence[Body], limit: int) -> list[LexicalHit]:
        """The best, at most some of each page; asks again without the pages that are full, a few times."""
        kept: dict[str, LexicalHit] = {}
        taken: Counter[str] = Counter()
        for _ in range(ROUNDS_MAX):
            full = [page_id for page_id, count in taken.items() if count >= PASSAGES_PER_PAGE_MAX]
            body = {
                "query": ranked(Retriever.LEXICAL_CHUNKS, terms, clauses, full),
                "size": limit + SPARE,
                "sort": [{"_score": "desc"}, {"page_id": "asc"}, {"ordinal": "asc"}],
                **_ROW,
            }
            found = await self._hits(self.passages_name, body)
            for one in found:
                hit = _matched(passage_hit, one, terms)
                if one["_id"] not in kept and taken[hit.row.page_id] < PASSAGES_PER_PAGE_MAX:
                    kept[one["_id"]] = hit
                    taken[hit.row.page_id] += 1
            if len(kept) >= limit or len(found) < limit + SPARE:
                break
        return sorted(kept.values(), key=_rank)[:limit]

    async def _by_name(
        self,
        index: str,
        field: str,
        names: Sequence[str],
        within: PageFilter,
        read: Callable[[bytes, float], LexicalHit],
    ) -> list[LexicalHit]:
        clauses = filters(within)
        if clauses is None:
            return []
        hits: list[LexicalHit] = []
        for begin in range(0, len(names), NAMES_MAX):
            part = names[begin : begin + NAMES_MAX]
            body = {"query": {"bool": {"filter": [any_of(field, part), *clauses]}}, "size": len(part), **_ROW}
            hits += [read(_stored(hit), 0.0) for hit in await self._hits(index, body)]
        return hits

    async def _hits(self, index: str, body: Body) -> list[Body]:
        hits: list[Body] = (await self._connection.search(index, body))["hits"]["hits"]
        return hits


def refuse_newer(name: str, mappings: Body) -> None:
    """Raises NotReady when a newer fleetbrain made the index."""
    version = int(mappings.get("_meta", {}).get("fleetbrain", 0))
    if version > SCHEMA_VERSION:
        raise NotReady(
            "INDEX_BEHIND",
            f"the index {name} was made by a newer fleetbrain (form {version}, this one knows {SCHEMA_VERSION})",
            field="FLEETBRAIN_LEXICAL_URL",
            value=name,
            next_step="Run the newer version again, or give this one another prefix.",
        )


def _stored(hit: Body) -> bytes:
    row: str = hit["_source"]["row"]
    return row.encode()


def _matched(read: Callable[[bytes, float], LexicalHit], hit: Body, terms: Sequence[str]) -> LexicalHit:
    numbers = sorted(int(name) for name in hit.get("matched_queries", ()))
    return read(_stored(hit), hit["_score"])._replace(matched=tuple(terms[number] for number in numbers))


def _rank(hit: LexicalHit) -> tuple[float, str, int]:
    return -hit.score, hit.row.page_id, hit.passage.ordinal if hit.passage else -1


def _page_entries(state: SlugState) -> list[tuple[str, dict[str, Any]]]:
    assert state.page is not None
    return [(document_name(state.page.row.page_id), page_source(state.page))]


def _passage_entries(state: SlugState) -> list[tuple[str, dict[str, Any]]]:
    assert state.page is not None
    row = state.page.row
    return [
        (document_name(passage_id(row.page_id, one.passage.ordinal)), passage_source(row, one))
        for one in state.page.passages
    ]
