"""One query, one ranked list a retriever, all at the same time: what cannot answer in time is named and left out."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from services.domain.errors import BrainError
from services.domain.records import PageId
from services.domain.text import analyze_query
from services.search.app.excerpts import beginning, excerpt
from services.search.ports import Collections, Embedder, LexicalHolder, Projection, Purpose
from services.search.values import LexicalHit, PageFilter, Retriever

QUERY_CHARACTERS_KEPT = 2_048
"""Of an overlong query, from its end: a pasted conversation ends with what is asked."""

ARM_SECONDS_MAX = 10.0
"""How long a retriever may take when the caller set no deadline."""

ARM_SHARE = 0.8
"""Of the remaining time: the rest is for joining, sending and fusing."""

SNIPPETS_MAX = 12
"""Hits of a list whose snippet is cut around the match, and pages whose best passage is looked up. Further down nobody
shows a hit for this list's sake: those begin where their passage begins."""

REMEMBERED_QUERIES_MAX = 512
"""Vectors of recent queries: agents ask the same thing again, and another page of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is looked for."""

    text: str
    retrievers: tuple[Retriever, ...]
    within: PageFilter
    limit: int
    snippet_characters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedHit:
    """A hit as it is shown."""

    hit: LexicalHit
    snippet: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedHits:
    """One retriever's answer."""

    retriever: Retriever
    hits: tuple[RankedHit, ...]
    elapsed_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All that was found, and what is missing in it."""

    lists: tuple[RankedHits, ...]
    missing: tuple[tuple[Retriever, str], ...]
    """Retrievers left out, with `deadline`, `off`, `building` or `unavailable`."""
    terms: tuple[str, ...]
    stop_words_only: bool
    cut: bool


class LeftOut(Exception):
    """A retriever has no answer, and why."""


class RankPassages:
    """The use case."""

    def __init__(
        self,
        lexical: Projection[LexicalHolder],
        collections: Collections,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._lexical = lexical
        self._collections = collections
        self._clock = clock
        self._remembered: OrderedDict[tuple[str, str], NDArray[np.float32]] = OrderedDict()

    async def rank(self, question: Question, remaining_seconds: float | None) -> Answer:
        """The lists, in the order asked."""
        read = question.text[-QUERY_CHARACTERS_KEPT:]
        terms = analyze_query(read)
        seconds = ARM_SECONDS_MAX if remaining_seconds is None else remaining_seconds * ARM_SHARE
        arms = {
            retriever: asyncio.create_task(self._arm(retriever, question, read, terms.terms, terms.stop_words_only))
            for retriever in question.retrievers
        }
        try:
            await asyncio.wait(arms.values(), timeout=seconds)
        finally:
            late = [task for task in arms.values() if not task.done()]
            for task in late:
                task.cancel()
        lists: list[RankedHits] = []
        missing: list[tuple[Retriever, str]] = []
        shown: dict[tuple[str, int], str] = {}
        for retriever, task in arms.items():
            if task in late:
                missing.append((retriever, "deadline"))
                continue
            try:
                hits, elapsed_ms = task.result()
            except LeftOut as left_out:
                missing.append((retriever, str(left_out)))
                continue
            ranked = _with_snippets(hits, terms.terms, question.snippet_characters, shown)
            lists.append(RankedHits(retriever=retriever, hits=ranked, elapsed_ms=elapsed_ms))
        return Answer(
            lists=tuple(lists),
            missing=tuple(missing),
            terms=terms.terms,
            stop_words_only=terms.stop_words_only,
            cut=terms.cut or len(read) < len(question.text),
        )

    async def _arm(
        self, retriever: Retriever, question: Question, text: str, terms: Sequence[str], stop_words_only: bool
    ) -> tuple[list[LexicalHit], float]:
        started = self._clock()
        try:
            if retriever is Retriever.DENSE:
                hits = await self._dense(text, question)
            elif stop_words_only and retriever is not Retriever.TITLE:
                # They are in every page: only a title made of them can be meant.
                hits = []
            else:
                hits = await self._words(retriever, terms, question)
        except BrainError as error:
            raise LeftOut("unavailable") from error
        return hits, (self._clock() - started) * 1e3

    async def _words(self, retriever: Retriever, terms: Sequence[str], question: Question) -> list[LexicalHit]:
        with self._lexical.use() as store:
            hits = await store.index.search(retriever, terms, question.within, question.limit)
            if retriever is not Retriever.LEXICAL_PAGES or not hits:
                return hits
            # A page is shown by its best passage, but stays a hit as a whole.
            page_ids: list[PageId] = [hit.row.page_id for hit in hits[:SNIPPETS_MAX]]
            best = await store.index.best_passages(page_ids, terms, question.within)
        return [_led_by(hit, best.get(hit.row.page_id)) for hit in hits]

    async def _dense(self, text: str, question: Question) -> list[LexicalHit]:
        projection = self._collections.current
        if projection is None:
            raise LeftOut("off")
        if not projection.ready:
            raise LeftOut("building")
        with projection.use() as vectors, self._lexical.use() as words:
            vector = await self._query_vector(vectors.embedder, text)
            near = await vectors.index.search(vector, question.within, question.limit)
            known = await words.index.passages([hit.key for hit in near], question.within)
        # What only one of the two has is on its way in or out.
        return [
            _scored(known[hit.key], hit.score)
            for hit in near
            if hit.key in known and (passage := known[hit.key].passage) is not None and passage.hash == hit.hash
        ]

    async def _query_vector(self, embedder: Embedder, text: str) -> NDArray[np.float32]:
        key = embedder.signature, text
        found = self._remembered.get(key)
        if found is None:
            found = (await embedder.embed([text], Purpose.QUERY))[0]
            self._remembered[key] = found
            if len(self._remembered) > REMEMBERED_QUERIES_MAX:
                self._remembered.popitem(last=False)
        else:
            self._remembered.move_to_end(key)
        return found


def _with_snippets(
    hits: Sequence[LexicalHit], terms: Sequence[str], characters: int, shown: dict[tuple[str, int], str]
) -> tuple[RankedHit, ...]:
    """The hits with their snippets; `shown` keeps those made, because lists have passages in common."""
    ranked = []
    for place, hit in enumerate(hits):
        key = (hit.row.page_id, hit.passage.ordinal if hit.passage and not hit.lead else -1)
        text = hit.lead or (hit.passage.text if hit.passage else "")
        if place >= SNIPPETS_MAX:
            cut = beginning(text, characters)
        elif key in shown and key[1] >= 0:
            cut = shown[key]
        else:
            cut = shown[key] = excerpt(text, terms, characters)
        ranked.append(RankedHit(hit=hit, snippet=cut))
    return tuple(ranked)


def _led_by(hit: LexicalHit, best: LexicalHit | None) -> LexicalHit:
    if best is None or best.passage is None:
        return hit
    return LexicalHit(hit.row, None, best.passage.text, hit.score, hit.matched)


def _scored(hit: LexicalHit, score: float) -> LexicalHit:
    return LexicalHit(hit.row, hit.passage, "", score)
