"""`LexicalIndex` by tantivy: a table of pages and a table of passages in one folder, in this process.

Two tables, because BM25 counts documents and their length over all a table holds. Each page's documents are replaced in
one commit of each table; a death between the two commits is repaired by the same call again, which the log repeats.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

from tantivy import DocAddress, Document, FieldType, Occur, Order, Query, SchemaBuilder, Searcher

from services.domain.errors import Unavailable
from services.domain.records import PageId
from services.search.adapters.tantivy_lists import listed, position_of
from services.search.adapters.tantivy_queries import (
    BITS_MAX,
    confined,
    filter_clauses,
    must,
    range_query,
    ranking,
    terms_query,
    which_terms,
)
from services.search.adapters.tantivy_reads import Reads
from services.search.adapters.tantivy_rows import (
    address,
    held_page,
    page_entry,
    page_hit,
    passage_entry,
    passage_hit,
    passage_id,
)
from services.search.adapters.tantivy_table import ROWS_MAX, Table, stored, total
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

READ_THREADS = 2
"""The engine reads without holding the interpreter, but what it returns is decoded with it: more gain nothing."""

TIES_MAX = 32
"""Hits read beyond a limit, so that equal scores at its edge are cut in order of their ids."""

ROUNDS_MAX = 6
"""How often a list is filled up when passages of few pages fill it; each time the pages that are full are left out."""

FACETS_MAX = 20_000
"""Distinct tags or types counted."""

P = ParamSpec("P")
T = TypeVar("T")

_Found = tuple[LexicalHit, DocAddress]


class TantivyIndex:
    """Pages and passages by their words, in one folder that no other process may open for writing."""

    def __init__(self, folder: Path) -> None:
        """Open or create it. Blocks for some milliseconds; for errors see `Table`."""
        self._pages = Table(folder / "pages", _page_fields)
        try:
            self._passages = Table(folder / "passages", _passage_fields)
        except BaseException:
            self._pages.close()
            raise
        self._page_writes = ThreadPoolExecutor(1, thread_name_prefix="lexical-write-pages")
        self._passage_writes = ThreadPoolExecutor(1, thread_name_prefix="lexical-write-passages")
        self._reads = Reads(READ_THREADS)

    async def apply(self, states: Sequence[SlugState]) -> None:
        """See `LexicalIndex.apply`."""
        ordered = sorted(states, key=lambda state: state.revision)
        # Both at once: most of a commit is waiting for the disk. Neither needs the other's.
        await asyncio.gather(
            _on(self._page_writes, partial(_replace, self._pages, ordered, _page_entries)),
            _on(self._passage_writes, partial(_replace, self._passages, ordered, _passage_entries)),
        )

    async def search(
        self, retriever: Retriever, terms: Sequence[str], within: PageFilter, limit: int
    ) -> list[LexicalHit]:
        """See `LexicalIndex.search`."""
        if not terms or limit < 1:
            return []
        return await self._read(self._search, retriever, tuple(dict.fromkeys(terms)), within, limit)

    async def passages(self, keys: Sequence[PassageKey], within: PageFilter) -> Mapping[PassageKey, LexicalHit]:
        """See `LexicalIndex.passages`."""
        return await self._read(self._find_passages, keys, within) if keys else {}

    async def best_passages(
        self, page_ids: Sequence[PageId], terms: Sequence[str], within: PageFilter
    ) -> Mapping[PageId, LexicalHit]:
        """See `LexicalIndex.best_passages`."""
        return await self._read(self._best_passages, page_ids, terms, within) if page_ids else {}

    async def pages(self, page_ids: Sequence[PageId], within: PageFilter) -> Mapping[PageId, LexicalHit]:
        """See `LexicalIndex.pages`."""
        return await self._read(self._find_pages, page_ids, within) if page_ids else {}

    async def list_pages(
        self, within: PageFilter, order: PageOrder, *, after: PagePosition | None, offset: int, limit: int
    ) -> PageList:
        """See `LexicalIndex.list_pages`."""
        return await self._read(self._list_pages, within, order, after, offset, limit)

    async def counts(self, within: PageFilter) -> LexicalCounts:
        """See `LexicalIndex.counts`."""
        return await self._read(self._counts, within)

    async def held(self) -> AsyncIterator[HeldPage]:
        """See `LexicalIndex.held`."""
        searcher = self._pages.searcher()
        reached = 0
        while found := await self._read(self._held_after, searcher, reached):
            for page in found:
                yield page
            reached = found[-1].revision

    async def close(self) -> None:
        """See `LexicalIndex.close`."""
        for threads, table in ((self._page_writes, self._pages), (self._passage_writes, self._passages)):
            await asyncio.get_running_loop().run_in_executor(threads, table.close)
            threads.shutdown(wait=True)
        self._reads.close()

    async def _read(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        with _as_ours():
            return await self._reads.run(partial(function, *args, **kwargs))

    # What follows runs on the threads of the two pools.

    def _search(self, retriever: Retriever, terms: Sequence[str], within: PageFilter, limit: int) -> list[LexicalHit]:
        table = self._passages if retriever is Retriever.LEXICAL_CHUNKS else self._pages
        searcher = table.searcher()
        clauses = filter_clauses(table.schema, searcher, within)
        if clauses is None:
            return []
        query = confined(ranking(table.schema, retriever, terms), clauses)
        if retriever is Retriever.LEXICAL_CHUNKS:
            found = _diverse(table, searcher, query, limit, PASSAGES_PER_PAGE_MAX)
        else:
            found = searcher.search(query, limit + TIES_MAX, count=False).hits
        read = passage_hit if retriever is Retriever.LEXICAL_CHUNKS else page_hit
        worst = found[limit - 1][0] if len(found) > limit else 0.0
        read_hits = [(read(stored(searcher, at), score), at) for score, at in found if score >= worst]
        hits = sorted(read_hits, key=_rank)[:limit]
        return _with_matches(table, searcher, retriever, terms, hits)

    def _find_passages(self, keys: Sequence[PassageKey], within: PageFilter) -> Mapping[PassageKey, LexicalHit]:
        names = [passage_id(key.page_id, key.ordinal) for key in keys]
        hits = self._by_name(self._passages, "passage_id", names, within, passage_hit)
        return {_key(hit): hit for hit in hits}

    def _find_pages(self, page_ids: Sequence[PageId], within: PageFilter) -> Mapping[PageId, LexicalHit]:
        hits = self._by_name(self._pages, "page_id", page_ids, within, page_hit)
        return {hit.row.page_id: hit for hit in hits}

    def _by_name(
        self, table: Table, field: str, names: Sequence[str], within: PageFilter, read: Callable[[bytes], LexicalHit]
    ) -> list[LexicalHit]:
        searcher = table.searcher()
        clauses = filter_clauses(table.schema, searcher, within)
        if clauses is None:
            return []
        query = confined(terms_query(table.schema, field, names), clauses)
        return [read(stored(searcher, at)) for _, at in searcher.search(query, len(names), count=False).hits]

    def _best_passages(
        self, page_ids: Sequence[PageId], terms: Sequence[str], within: PageFilter
    ) -> Mapping[PageId, LexicalHit]:
        table = self._passages
        searcher = table.searcher()
        clauses = filter_clauses(table.schema, searcher, within)
        best: dict[PageId, LexicalHit] = {}
        if clauses is None:
            return best
        wanted = must(terms_query(table.schema, "page_id", page_ids))
        if terms:
            query = confined(ranking(table.schema, Retriever.LEXICAL_CHUNKS, terms), [wanted, *clauses])
            for score, at in _diverse(table, searcher, query, len(page_ids), 1):
                hit = passage_hit(stored(searcher, at), score)
                best.setdefault(hit.row.page_id, hit)
        without = [page_id for page_id in page_ids if page_id not in best]
        if without:
            firsts = [passage_id(page_id, 0) for page_id in without]
            for hit in self._by_name(table, "passage_id", firsts, within, passage_hit):
                best[hit.row.page_id] = hit
        return best

    def _list_pages(
        self, within: PageFilter, order: PageOrder, after: PagePosition | None, offset: int, limit: int
    ) -> PageList:
        searcher = self._pages.searcher()
        clauses = filter_clauses(self._pages.schema, searcher, within)
        if clauses is None:
            return PageList(rows=(), next=None)
        rows = listed(self._pages, searcher, clauses, order, after, offset + limit + 1)[offset:]
        more = len(rows) > limit
        rows = rows[:limit]
        return PageList(rows=tuple(rows), next=position_of(rows[-1], order) if more and rows else None)

    def _counts(self, within: PageFilter) -> LexicalCounts:
        searcher = self._pages.searcher()
        clauses = filter_clauses(self._pages.schema, searcher, within)
        if clauses is None:
            return LexicalCounts(pages=0, chunks=0, tags=0, types=())
        query = Query.boolean_query([must(Query.all_query()), *clauses])
        facets = searcher.aggregate(
            query,
            {
                name: {"terms": {"field": name, "size": FACETS_MAX, "segment_size": FACETS_MAX}}
                for name in ("type", "tag")
            },
        )
        types = sorted(
            ((str(bucket["key"]), int(bucket["doc_count"])) for bucket in facets["type"]["buckets"]),
            key=lambda pair: (-pair[1], pair[0]),
        )
        passages = self._passages.searcher()
        below = filter_clauses(self._passages.schema, passages, within) or []
        return LexicalCounts(
            pages=total(searcher, query),
            chunks=total(passages, Query.boolean_query([must(Query.all_query()), *below])),
            tags=len(facets["tag"]["buckets"]),
            types=tuple(types),
        )

    def _held_after(self, searcher: Searcher, reached: int) -> list[HeldPage]:
        behind = range_query(self._pages.schema, "revision", FieldType.Unsigned, low=reached + 1)
        hits = searcher.search(behind, ROWS_MAX, count=False, order_by_field="revision", order=Order.Asc).hits
        return [held_page(stored(searcher, at)) for _, at in hits]


def _replace(table: Table, states: Sequence[SlugState], entries: Callable[[SlugState], list[Document]]) -> None:
    removed, written = plan(states, _held_of(table, states))
    documents = [document for state in written for document in entries(state)]
    if removed or documents:
        table.replace(removed, documents)


def plan(states: Sequence[SlugState], held: Iterable[HeldPage]) -> tuple[list[PageId], list[SlugState]]:
    """What to remove (by page id) and which pages to write, for states in order of their revisions. Pure.

    The rule of every projection: a page is written unless a newer revision of it is held; whatever else is held under
    the slug with a lower revision goes, whatever its page.
    """
    now = {page.page_id: (page.key, page.revision) for page in held}
    by_slug: dict[tuple[str, str], set[PageId]] = {}
    for page_id, (key, _) in now.items():
        by_slug.setdefault(key, set()).add(page_id)
    before = dict(now)
    writes: dict[PageId, SlugState] = {}
    for state in states:
        for page_id in list(by_slug.get(state.key, ())):
            if page_id in now and now[page_id][0] == state.key and now[page_id][1] < state.revision:
                del now[page_id]
                writes.pop(page_id, None)
        if state.page is None:
            continue
        page_id = state.page.row.page_id
        if page_id not in now or now[page_id][1] <= state.revision:
            now[page_id] = (state.key, state.revision)
            by_slug.setdefault(state.key, set()).add(page_id)
            writes[page_id] = state
    removed = [page_id for page_id in before if page_id in writes or page_id not in now]
    return removed, list(writes.values())


async def _on(threads: ThreadPoolExecutor, call: Callable[[], T]) -> T:
    """The call, on a thread, with the engine's errors as ours."""
    with _as_ours():
        return await asyncio.get_running_loop().run_in_executor(threads, call)


@contextmanager
def _as_ours() -> Iterator[None]:
    """The engine's errors as ours."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise Unavailable(
            "PEER_UNAVAILABLE", f"the lexical index failed: {error}", metadata={"peer": "tantivy"}
        ) from error


def _held_of(table: Table, states: Sequence[SlugState]) -> list[HeldPage]:
    """What a table holds under the slugs and the pages of some states; a page is looked at by its newest document."""
    searcher = table.searcher()
    addresses = [address(state.key) for state in states]
    page_ids = [state.page.row.page_id for state in states if state.page is not None]
    either = [(Occur.Should, terms_query(table.schema, "address", addresses))]
    if page_ids:
        either.append((Occur.Should, terms_query(table.schema, "page_id", page_ids)))
    query = Query.const_score_query(Query.boolean_query(either), 0.0)
    found: dict[PageId, HeldPage] = {}
    seen: set[int] = set()
    documents = total(searcher, query)
    hits = searcher.search(query, documents, count=False).hits if documents else []
    numbers = searcher.fast_field_values("page_number", [at for _, at in hits])
    for (_, at), number in zip(hits, numbers, strict=True):
        if number not in seen:
            seen.add(int(number or 0))
            page = held_page(stored(searcher, at))
            found[page.page_id] = page
    return list(found.values())


def _diverse(
    table: Table, searcher: Searcher, query: Query, limit: int, per_page: int
) -> list[tuple[float, DocAddress]]:
    """The best hits, at most `per_page` of each page; asks again without the pages that are full, a few times."""
    kept: dict[tuple[int, int], tuple[float, DocAddress]] = {}
    taken: Counter[int] = Counter()
    full: list[str] = []
    confined_query = query
    for _ in range(ROUNDS_MAX):
        hits = searcher.search(confined_query, limit + TIES_MAX, count=False).hits
        numbers = searcher.fast_field_values("page_number", [at for _, at in hits])
        for (score, at), value in zip(hits, numbers, strict=True):
            number = int(value or 0)
            if taken[number] >= per_page or _place(at) in kept:
                continue
            kept[_place(at)] = score, at
            taken[number] += 1
            if taken[number] == per_page:
                full.append(held_page(stored(searcher, at)).page_id)
        if len(kept) >= limit or len(hits) < limit + TIES_MAX:
            break
        without = (Occur.MustNot, terms_query(table.schema, "page_id", full))
        confined_query = Query.boolean_query([(Occur.Must, query), without])
    return list(kept.values())


def _with_matches(
    table: Table, searcher: Searcher, retriever: Retriever, terms: Sequence[str], found: list[_Found]
) -> list[LexicalHit]:
    """The hits with the terms each of them holds: asked of the index, so that no text is analysed twice."""
    if not found:
        return []
    field = "passage_id" if retriever is Retriever.LEXICAL_CHUNKS else "page_id"
    names = [_name(hit) for hit, _ in found]
    matched: dict[tuple[int, int], tuple[str, ...]] = {}
    for begin in range(0, len(terms), BITS_MAX):
        part = terms[begin : begin + BITS_MAX]
        query = which_terms(table.schema, retriever, part, field, names)
        for score, at in searcher.search(query, len(names), count=False).hits:
            bits = int(score)
            held = tuple(term for number, term in enumerate(part) if bits >> number & 1)
            matched[_place(at)] = matched.get(_place(at), ()) + held
    return [LexicalHit(hit.row, hit.passage, hit.lead, hit.score, matched.get(_place(at), ())) for hit, at in found]


def _place(at: DocAddress) -> tuple[int, int]:
    """An address as a key; it holds within one searcher."""
    return at.segment_ord, at.doc


def _name(hit: LexicalHit) -> str:
    return passage_id(hit.row.page_id, hit.passage.ordinal) if hit.passage else hit.row.page_id


def _key(hit: LexicalHit) -> PassageKey:
    assert hit.passage is not None, hit
    return PassageKey(hit.row.page_id, hit.passage.ordinal)


def _rank(found: _Found) -> tuple[float, str, int]:
    hit = found[0]
    return -hit.score, hit.row.page_id, hit.passage.ordinal if hit.passage else -1


def _page_entries(state: SlugState) -> list[Document]:
    assert state.page is not None
    return [page_entry(state.page)]


def _passage_entries(state: SlugState) -> list[Document]:
    assert state.page is not None
    return [passage_entry(state.page.row, passage) for passage in state.page.passages]


def _page_fields(builder: SchemaBuilder) -> None:
    builder.add_text_field("title", tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("alias", tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("order", tokenizer_name="raw", index_option="basic")


def _passage_fields(builder: SchemaBuilder) -> None:
    builder.add_text_field("passage_id", tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("ordinal", fast=True)
