"""The gRPC edge of search: messages in, use cases called, messages out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC

import orjson
from grpc import aio

from brain.v1 import search_service_pb2 as pb
from brain.v1 import search_service_pb2_grpc
from brain.v1.projection_pb2 import WorkProgress
from services.domain.context import OperationContext
from services.domain.errors import InvalidArgument, NotReady
from services.domain.records import PageId
from services.runtime.calls import current_context, remaining_seconds
from services.runtime.pages import decode_page_token, encode_page_token
from services.search import messages
from services.search.app.pages import KnownPages
from services.search.app.ranking import Question, RankPassages
from services.search.app.reads import ANSWER_SECONDS, WAIT_SECONDS_MAX, invalid, page_filter, reached
from services.search.app.work import LongWork
from services.search.ports import Collections, LexicalHolder, Projection, Purpose
from services.search.values import PageFilter, PagePosition, Retriever

QUERY_CHARACTERS_MAX = 8_192
HITS_DEFAULT, HITS_MAX = 50, 500
SNIPPET_DEFAULT, SNIPPET_MAX = 240, 2_000
PAGES_DEFAULT, PAGES_MAX, OFFSET_MAX = 50, 500, 10_000
PAGE_IDS_MAX = 500
TEXTS_MAX, TEXT_CHARACTERS_MAX = 256, 8_192
JOB_ID_CHARACTERS_MAX = 64
TYPES_MAX = 200


class SearchServicer(search_service_pb2_grpc.SearchServiceServicer):
    """`brain.v1.SearchService`. Errors are raised as they are; the interceptor gives them their status."""

    def __init__(
        self,
        lexical: Projection[LexicalHolder],
        collections: Collections,
        *,
        ranking: RankPassages,
        pages: KnownPages,
        work: LongWork,
        lexical_engine: str,
    ) -> None:
        self._lexical = lexical
        self._collections = collections
        self._ranking = ranking
        self._pages = pages
        self._work = work
        self._lexical_engine = lexical_engine
        self._summaries = messages.Summaries()

    async def SearchPassages(  # noqa: N802
        self,
        request: pb.SearchPassagesRequest,
        context: aio.ServicerContext[pb.SearchPassagesRequest, pb.SearchPassagesResponse],
    ) -> pb.SearchPassagesResponse:
        """Returns one ranked list per retriever."""
        question = Question(
            text=_query(request.query),
            retrievers=_retrievers(list(request.retrievers)),
            within=_filter(current_context(), request.filter),
            limit=_bounded("limit", request.limit, HITS_DEFAULT, HITS_MAX),
            snippet_characters=_bounded("snippet_characters", request.snippet_characters, SNIPPET_DEFAULT, SNIPPET_MAX),
        )
        await self._reach(request.min_revision)
        indexed_revision = self._lexical.indexed_revision
        answer = await self._ranking.rank(question, remaining_seconds())
        return pb.SearchPassagesResponse(
            lists=[messages.ranked_list(ranked, self._summaries) for ranked in answer.lists],
            missing=[
                pb.MissingRetriever(retriever=messages.RETRIEVER_VALUES[retriever], reason=reason)
                for retriever, reason in answer.missing
            ],
            query_tokens=answer.terms,
            stopwords_only=answer.stop_words_only,
            query_cut=answer.cut,
            indexed_revision=indexed_revision,
        )

    async def ListPages(  # noqa: N802
        self, request: pb.ListPagesRequest, context: aio.ServicerContext[pb.ListPagesRequest, pb.ListPagesResponse]
    ) -> pb.ListPagesResponse:
        """Lists live pages by filters."""
        within = _filter(current_context(), request.filter)
        order = messages.ORDERS.get(request.order)
        if order is None:
            raise invalid("order", request.order, "is no order", "Use one of PageOrder.")
        if request.page_size < 0:
            raise invalid("page_size", request.page_size, "is negative", "Use 1 to 500, or 0 for 50.")
        if not 0 <= request.offset <= OFFSET_MAX:
            raise invalid("offset", request.offset, f"is not 0 to {OFFSET_MAX}", "Follow next_page_token instead.")
        arguments = {"filter": request.filter.SerializeToString(deterministic=True).hex(), "order": order.value}
        after = _position(decode_page_token(request.page_token, arguments)) if request.page_token else None
        await self._reach(request.min_revision)
        indexed_revision = self._lexical.indexed_revision
        limit = min(request.page_size or PAGES_DEFAULT, PAGES_MAX)
        listed = await self._pages.listed(within, order, after=after, offset=request.offset, limit=limit)
        return pb.ListPagesResponse(
            pages=[messages.summary(row) for row in listed.rows],
            next_page_token=encode_page_token(_position_text(listed.next), arguments) if listed.next else "",
            indexed_revision=indexed_revision,
        )

    async def BatchGetPages(  # noqa: N802
        self,
        request: pb.BatchGetPagesRequest,
        context: aio.ServicerContext[pb.BatchGetPagesRequest, pb.BatchGetPagesResponse],
    ) -> pb.BatchGetPagesResponse:
        """Returns what is known of some pages."""
        if len(request.page_ids) > PAGE_IDS_MAX:
            raise invalid("page_ids", len(request.page_ids), f"are more than {PAGE_IDS_MAX}", "Ask in several calls.")
        if len(request.query) > QUERY_CHARACTERS_MAX:
            raise invalid("query", request.query, f"has more than {QUERY_CHARACTERS_MAX} characters", "Shorten it.")
        within = _filter(current_context(), pb.PageFilter())
        await self._reach(request.min_revision)
        shown = await self._pages.shown([PageId(page_id) for page_id in request.page_ids], request.query, within)
        return pb.BatchGetPagesResponse(pages=[messages.passage_hit(hit, self._summaries) for hit in shown])

    async def EmbedTexts(  # noqa: N802
        self, request: pb.EmbedTextsRequest, context: aio.ServicerContext[pb.EmbedTextsRequest, pb.EmbedTextsResponse]
    ) -> pb.EmbedTextsResponse:
        """Embeds texts with the model in use."""
        if len(request.texts) > TEXTS_MAX:
            raise invalid("texts", len(request.texts), f"are more than {TEXTS_MAX}", "Send them in several calls.")
        for text in request.texts:
            if len(text) > TEXT_CHARACTERS_MAX:
                raise invalid("texts", text, f"has one of more than {TEXT_CHARACTERS_MAX} characters", "Shorten it.")
        current = self._collections.current
        if current is None:
            raise NotReady(
                "FEATURE_OFF",
                "there is no embedder",
                field="FLEETBRAIN_EMBEDDER_URL",
                value="none",
                next_step="Set FLEETBRAIN_EMBEDDER_URL, for example to local:use, and start again.",
            )
        purpose = Purpose.PASSAGE if request.purpose == pb.EMBED_PURPOSE_PASSAGE else Purpose.QUERY
        with current.use() as vectors:
            made = await vectors.embedder.embed(list(request.texts), purpose)
            signature = vectors.embedder.signature
        return pb.EmbedTextsResponse(
            embeddings=[pb.Embedding(values=row.tolist()) for row in made], signature=signature
        )

    async def RebuildProjection(  # noqa: N802
        self,
        request: pb.RebuildSearchProjectionRequest,
        context: aio.ServicerContext[pb.RebuildSearchProjectionRequest, WorkProgress],
    ) -> AsyncIterator[WorkProgress]:
        """Builds a projection anew."""
        async for step in self._work.rebuild(_job_id(request.job_id), request.projection, to=request.to):
            yield messages.work_progress(request.job_id, step)

    async def EmbedMissing(  # noqa: N802
        self, request: pb.EmbedMissingRequest, context: aio.ServicerContext[pb.EmbedMissingRequest, WorkProgress]
    ) -> AsyncIterator[WorkProgress]:
        """Embeds what has no vector."""
        async for step in self._work.embed_missing(_job_id(request.job_id)):
            yield messages.work_progress(request.job_id, step)

    async def CancelWork(  # noqa: N802
        self,
        request: pb.CancelSearchWorkRequest,
        context: aio.ServicerContext[pb.CancelSearchWorkRequest, pb.CancelSearchWorkResponse],
    ) -> pb.CancelSearchWorkResponse:
        """Ends the work of a job."""
        return pb.CancelSearchWorkResponse(cancelled=await self._work.cancel(_job_id(request.job_id)))

    async def GetProgress(  # noqa: N802
        self,
        request: pb.GetSearchProgressRequest,
        context: aio.ServicerContext[pb.GetSearchProgressRequest, pb.GetSearchProgressResponse],
    ) -> pb.GetSearchProgressResponse:
        """Tells how far the projections are."""
        remaining = remaining_seconds()
        seconds = WAIT_SECONDS_MAX if remaining is None else max(0.0, remaining - ANSWER_SECONDS)
        seen = await self._pages.waited(
            list(request.projections), request.min_revision, embedded=request.embedded, timeout_seconds=seconds
        )
        return pb.GetSearchProgressResponse(
            projections=[messages.projection_state(one, self._engine(one.projection)) for one in seen.projections],
            reached=seen.reached,
            unembedded=seen.unembedded,
        )

    async def GetStats(  # noqa: N802
        self,
        request: pb.GetSearchStatsRequest,
        context: aio.ServicerContext[pb.GetSearchStatsRequest, pb.GetSearchStatsResponse],
    ) -> pb.GetSearchStatsResponse:
        """Counts what is held."""
        within = _filter(current_context(), pb.PageFilter(source=request.source))
        await self._reach(request.min_revision)
        stats = await self._pages.stats(within)
        counts = stats.counts
        return pb.GetSearchStatsResponse(
            pages=counts.pages,
            chunks=counts.chunks,
            embedded=stats.embedded,
            tags=counts.tags,
            types=[pb.TypeCount(type=name, pages=pages) for name, pages in counts.types[:TYPES_MAX]],
            projections=[messages.projection_state(one, self._engine(one.projection)) for one in stats.projections],
            embedder=self._collections.signature(self._collections.current),
            next_embedder=self._collections.signature(self._collections.following),
        )

    async def _reach(self, min_revision: int) -> None:
        if min_revision < 0:
            raise invalid("min_revision", min_revision, "is negative", "Use the revision a write returned, or 0.")
        await reached(self._lexical, min_revision, remaining_seconds())

    def _engine(self, projection: str) -> str:
        if projection == self._lexical.name:
            return self._lexical_engine
        return self._collections.signature(self._collections.current)


def _query(text: str) -> str:
    if not text.strip():
        raise InvalidArgument(
            "QUERY_EMPTY", "the query has no text", field="query", next_step="Say what you look for, in plain words."
        )
    if len(text) > QUERY_CHARACTERS_MAX:
        raise invalid("query", text, f"has more than {QUERY_CHARACTERS_MAX} characters", "Send its end only.")
    return text


def _retrievers(values: list[int]) -> tuple[Retriever, ...]:
    if len(set(values)) != len(values):
        raise invalid("retrievers", values, "names one twice", "Name each once, or none for all.")
    unknown = [value for value in values if value not in messages.RETRIEVERS]
    if unknown:
        raise invalid("retrievers", unknown[0], "is no retriever", "Use values of Retriever, or none for all.")
    return tuple(messages.RETRIEVERS[pb.Retriever.ValueType(value)] for value in values) or tuple(Retriever)


def _filter(caller: OperationContext, narrowed: pb.PageFilter) -> PageFilter:
    updated = narrowed.updated_after_time
    return page_filter(
        caller,
        source=narrowed.source,
        types=tuple(narrowed.types),
        tags=tuple(narrowed.tags),
        slug_prefix=narrowed.slug_prefix,
        updated_after=updated.ToDatetime(UTC) if narrowed.HasField("updated_after_time") else None,
        since=narrowed.since,
        until=narrowed.until,
    )


def _bounded(field: str, value: int, default: int, most: int) -> int:
    if not 0 <= value <= most:
        raise invalid(field, value, f"is not 1 to {most}", f"Use 1 to {most}, or 0 for {default}.")
    return value or default


def _job_id(job_id: str) -> str:
    if not job_id:
        raise InvalidArgument("FIELD_REQUIRED", "job_id is missing", field="job_id", next_step="Give the job's id.")
    if len(job_id) > JOB_ID_CHARACTERS_MAX:
        raise invalid("job_id", job_id, f"has more than {JOB_ID_CHARACTERS_MAX} characters", "Use a shorter id.")
    return job_id


def _position_text(position: PagePosition) -> str:
    return orjson.dumps([position.value, position.slug, position.source]).decode()


def _position(text: str) -> PagePosition:
    value, slug, source = orjson.loads(text)
    return PagePosition(value=value, slug=slug, source=source)
