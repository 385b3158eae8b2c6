"""The fan-out of a question: asks search and graph at once under one deadline, and the pipeline with what they bring.

An arm that misses its share of the deadline, or whose service is down, is left out and named in the answer. What the
caller got wrong, and a projection that is behind the revision the caller insists on, fail the call instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from brain.v1 import graph_service_pb2 as graph
from brain.v1 import search_service_pb2 as search
from gateway.peers import Peers
from gateway.recall_rows import RETRIEVERS, answers_of, hop_of, missing_of, names_of, passes, row_of, rows_of
from gateway.relation_guess import RelationGuess, candidate_names
from gateway.retrieval.dedupe import larger_pool
from gateway.retrieval.identity import asked_names
from gateway.retrieval.intent import Intent
from gateway.retrieval.model import (
    Answer,
    Arm,
    ArmResults,
    ArmRow,
    Degraded,
    MissingArm,
    NameMatch,
    PageRef,
    Query,
    RelationalAnswer,
    Stage,
)
from gateway.retrieval.pipeline import read_intent, run_pipeline
from gateway.retrieval.plan import RelationalPlan
from services.domain.errors import BrainError, DeadlineExceeded, NotReady, Unavailable

SEARCH_SECONDS = 6.0
GRAPH_SECONDS = 4.0
DETAIL_SECONDS = 2.0
"""Shares of a call's deadline. They are for trouble: an answer takes milliseconds, but a service that hangs must not
take the others' answer with it."""

ROWS_FEW = 24
"""Rows a list at first, for an answer of few places: every row costs on its whole way from index to answer, and on the
demo questions 50 put no other page into the top 5 or to the first place than 24 did."""
FEW_PLACES = 12
ROWS = 50
"""Rows a list at first otherwise: what the fusion's measurements were made with."""
NAME_CHARACTERS_MAX = 512
NAMES_MAX = 100
ANSWERS_MAX = 50
COUNTED_MAX = 1000
"""Graph's bounds."""
DETAILED_MAX = 100
"""Pages looked up for their passage: those of graph's answers and names that no list brought."""
EMBEDDER_SECONDS = 5.0
"""How long the embedder's name is believed: it changes once in a brain's life, when better vectors take over."""
POOL_TRIES_MAX = 3
"""24, 96 and 384 rows, or 50, 200 and 500: see `larger_pool`."""
NO_ANSWER = (DeadlineExceeded, Unavailable)
"""Failures of a service and not of the caller: what else answered is still worth having."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query with what the arms narrow it by."""

    query: Query
    filter: search.PageFilter
    min_revision: int = 0
    snippet_characters: int = 0
    uses_graph: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """An answer with the watermark it was made at."""

    answer: Answer
    indexed_revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _FromSearch:
    """The lists that search brought, and the arms it could not bring."""

    rows: Mapping[Arm, tuple[ArmRow, ...]] = field(default_factory=dict)
    missing: tuple[MissingArm, ...] = ()
    degraded: tuple[Degraded, ...] = ()
    indexed_revision: int = 0
    failure: BrainError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _FromGraph:
    """Pages that have the asked names, and the answers to a relational question."""

    names: tuple[NameMatch, ...] = ()
    answers: tuple[RelationalAnswer, ...] = ()
    failure: BrainError | None = None


@dataclass(slots=True, kw_only=True)
class Recall:
    """Asks the services of one gateway. Holds nothing but what it knows of the embedder."""

    peers: Peers
    clock: Callable[[], float]
    """Seconds that only grow."""
    now: Callable[[], datetime]
    relation_guess: RelationGuess
    _embedder: tuple[float, str] | None = field(default=None, init=False)

    async def answer(self, question: Question) -> Recalled:
        """The answer to a question.

        Raises:
            InvalidArgument: The query has no text, or a filter is wrong.
            NotReady: INDEX_BEHIND: search has not reached `min_revision` in time.
            Unavailable: Neither search nor graph answered.
        """
        query = replace(question.query, today=self.now().date())
        intent = read_intent(query)
        found, linked, embedder = await asyncio.gather(
            self._search(question, query), self._graph(question, query, intent), self._embedder_name(query)
        )
        if found.failure and (linked.failure or not question.uses_graph or not linked.names):
            raise found.failure
        arms = await self._arms(question, found, linked, embedder)
        answer = run_pipeline(query, arms, clock=self.clock, intent=intent)
        return Recalled(answer=answer, indexed_revision=found.indexed_revision)

    async def _search(self, question: Question, query: Query) -> _FromSearch:
        """The lists of search; longer ones are asked for while passages of few pages fill them."""
        rows = ROWS_FEW if query.limit <= FEW_PLACES else ROWS
        found = await self._passages(question, query, rows)
        for _ in range(POOL_TRIES_MAX - 1):
            more = larger_pool(ArmResults(rows=found.rows), rows=rows, limit=query.limit)
            if more is None:
                break
            rows = more
            found = await self._passages(question, query, rows)
        return found

    async def _passages(self, question: Question, query: Query, rows: int) -> _FromSearch:
        wanted = [retriever for arm, retriever in RETRIEVERS.items() if query.on(arm)]
        if not wanted:
            return _FromSearch()
        request = search.SearchPassagesRequest(
            query=query.text,
            retrievers=wanted,
            limit=rows,
            filter=question.filter,
            min_revision=question.min_revision,
            snippet_characters=question.snippet_characters,
        )
        try:
            response = await self.peers.search.SearchPassages(request, timeout=SEARCH_SECONDS)
        except NO_ANSWER as error:
            missing = tuple(MissingArm(arm=arm, reason=_reason(error)) for arm in RETRIEVERS if query.on(arm))
            return _FromSearch(missing=missing, failure=error)
        degraded = []
        if response.query_cut:
            degraded.append(Degraded(code="query_shortened", message="Only the end of the query was searched for."))
        if response.stopwords_only:
            degraded.append(Degraded(code="stopwords_only", message="The query has only common words."))
        return _FromSearch(
            rows=rows_of(response),
            missing=missing_of(response),
            degraded=tuple(degraded),
            indexed_revision=response.indexed_revision,
        )

    async def _graph(self, question: Question, query: Query, intent: Intent) -> _FromGraph:
        """Who bears the asked names, and what graph answers; empty when the call leaves graph out."""
        if not question.uses_graph:
            return _FromGraph()
        plan = intent.plan
        asked = [name for name in asked_names(query.text, intent) if len(name) <= NAME_CHARACTERS_MAX]
        try:
            if plan is not None and len(plan.readings) == 1:
                # One way to read the names: graph may resolve them itself, in the same moment.
                resolved, answers = await asyncio.gather(
                    self._resolve(question, [*asked, *plan.names]), self._relation(question, plan, plan.readings[0])
                )
                return _FromGraph(names=resolved, answers=answers)
            guessed = candidate_names(query.text, intent) if plan is None and query.on(Arm.RELATIONAL) else ()
            resolved = await self._resolve(question, [*asked, *(plan.names if plan else ()), *guessed])
            plan = plan or await self._guess(query, intent, guessed, resolved)
            seeds = plan.seeds({match.name for match in resolved}) if plan else ()
            answers = await self._relation(question, plan, seeds) if plan and seeds else ()
        except (*NO_ANSWER, NotReady) as error:
            return _FromGraph(failure=error)
        wanted = {*asked, *(plan.names if plan else ())}
        return _FromGraph(names=tuple(match for match in resolved if match.name in wanted), answers=answers)

    async def _guess(
        self, query: Query, intent: Intent, names: Sequence[str], resolved: Sequence[NameMatch]
    ) -> RelationalPlan | None:
        """A plan by likeness; None also without an embedder: a guess is a bonus and its absence is no fault."""
        try:
            return await self.relation_guess.plan(query.text, intent, names, resolved)
        except (*NO_ANSWER, NotReady):
            return None

    async def _resolve(self, question: Question, names: Sequence[str]) -> tuple[NameMatch, ...]:
        if not names:
            return ()
        request = graph.BatchResolveNamesRequest(
            source=question.filter.source,
            names=list(dict.fromkeys(names))[:NAMES_MAX],
            every_source=not question.filter.source,
            min_revision=question.min_revision,
        )
        return names_of(await self.peers.graph.BatchResolveNames(request, timeout=GRAPH_SECONDS))

    async def _relation(
        self, question: Question, plan: RelationalPlan, names: Sequence[str]
    ) -> tuple[RelationalAnswer, ...]:
        request = graph.AnswerRelationRequest(
            source=question.filter.source,
            names=names,
            hops=[hop_of(hop) for hop in plan.hops],
            limit=ANSWERS_MAX,
            min_revision=question.min_revision,
        )
        response = await self.peers.graph.AnswerRelation(request, timeout=GRAPH_SECONDS)
        # Several names mean a page that stands in the relation to all of them: one that is unknown leaves no answer.
        return () if response.unresolved else answers_of(response)

    async def _arms(self, question: Question, found: _FromSearch, linked: _FromGraph, embedder: str) -> ArmResults:
        """Everything in one place: graph's pages with their passages, and the links to every candidate counted."""
        shown = {row.page.page_id: ArmRow(page=row.page) for rows in found.rows.values() for row in rows}
        of_graph = [match.page for match in linked.names] + [answer.page for answer in linked.answers]
        others = list(dict.fromkeys(page.page_id for page in of_graph if page.page_id not in shown))
        backlinks, details = await asyncio.gather(
            self._backlinks(question, [*shown, *others]), self._details(question, others[:DETAILED_MAX])
        )
        shown |= details

        def row(page: PageRef) -> ArmRow | None:
            """The page as search shows it; None when the filter leaves it out."""
            at_search = shown.get(page.page_id)
            # A page that search does not show yet can pass no filter that only search can apply.
            return at_search or (None if _narrows(question.filter) else ArmRow(page=page))

        names = [(match, row(match.page)) for match in linked.names]
        answers = [(answer, row(answer.page)) for answer in linked.answers]
        missing = found.missing
        if linked.failure:
            missing = (*missing, MissingArm(arm=Arm.RELATIONAL, reason=_reason(linked.failure)))
        return ArmResults(
            rows=found.rows,
            names=tuple(replace(match, page=at.page, text=at.text) for match, at in names if at),
            answers=tuple(replace(answer, page=at.page, text=at.text) for answer, at in answers if at),
            backlinks=backlinks,
            missing=missing,
            degraded=found.degraded,
            embedder=embedder,
        )

    async def _backlinks(self, question: Question, page_ids: Sequence[str]) -> Mapping[str, int] | None:
        """How many pages link to each; None when graph is left out or does not answer, which the trace then shows."""
        if not question.uses_graph or not question.query.on(Stage.BACKLINKS) or not page_ids:
            return None
        request = graph.BatchCountBacklinksRequest(page_ids=page_ids[:COUNTED_MAX])
        try:
            response = await self.peers.graph.BatchCountBacklinks(request, timeout=DETAIL_SECONDS)
        except NO_ANSWER:
            return None
        return dict(zip(request.page_ids, response.counts, strict=True))

    async def _details(self, question: Question, page_ids: Sequence[str]) -> dict[str, ArmRow]:
        """Pages that no list brought, with their best passage, as far as they pass the filter."""
        if not page_ids:
            return {}
        request = search.BatchGetPagesRequest(page_ids=page_ids, query=question.query.text)
        try:
            response = await self.peers.search.BatchGetPages(request, timeout=DETAIL_SECONDS)
        except NO_ANSWER:
            return {}
        return {hit.page.page_id: row_of(hit) for hit in response.pages if passes(hit.page, question.filter)}

    async def _embedder_name(self, query: Query) -> str:
        """What the vectors in use were made with: a cosine means nothing without it."""
        if not query.on(Arm.DENSE):
            return ""
        now = self.clock()
        if self._embedder is None or now - self._embedder[0] > EMBEDDER_SECONDS:
            try:
                response = await self.peers.search.GetProgress(
                    search.GetSearchProgressRequest(), timeout=DETAIL_SECONDS
                )
            except NO_ANSWER:
                return ""
            engines = [state.engine for state in response.projections if state.projection == "search-vectors"]
            self._embedder = (now, engines[0] if engines else "")
        return self._embedder[1]


def _narrows(wanted: search.PageFilter) -> bool:
    return wanted != search.PageFilter(source=wanted.source)


def _reason(error: BrainError) -> str:
    """Why an arm is missing, in the words that search uses for its own."""
    if isinstance(error, DeadlineExceeded):
        return "deadline"
    return "behind" if isinstance(error, NotReady) else "unavailable"
