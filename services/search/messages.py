"""Values as messages and messages as values. Nothing is decided here."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from brain.v1 import page_pb2, projection_pb2
from brain.v1 import search_service_pb2 as pb
from services.domain.page import Visibility
from services.runtime.projection_store import ProjectionProgress
from services.search.app.ranking import RankedHit, RankedHits
from services.search.app.work import Step
from services.search.values import PageOrder, PageRow, Retriever

RETRIEVERS = {
    pb.RETRIEVER_LEXICAL_PAGES: Retriever.LEXICAL_PAGES,
    pb.RETRIEVER_LEXICAL_CHUNKS: Retriever.LEXICAL_CHUNKS,
    pb.RETRIEVER_TITLE: Retriever.TITLE,
    pb.RETRIEVER_DENSE: Retriever.DENSE,
}
RETRIEVER_VALUES = {retriever: value for value, retriever in RETRIEVERS.items()}

ORDERS = {
    pb.PAGE_ORDER_UNSPECIFIED: PageOrder.UPDATED_DESC,
    pb.PAGE_ORDER_UPDATED_DESC: PageOrder.UPDATED_DESC,
    pb.PAGE_ORDER_UPDATED_ASC: PageOrder.UPDATED_ASC,
    pb.PAGE_ORDER_CREATED_DESC: PageOrder.CREATED_DESC,
    pb.PAGE_ORDER_SLUG: PageOrder.SLUG,
}

SUMMARIES_MAX = 4_096
"""Remembered at most: about 4 MB."""

VISIBILITIES = {
    Visibility.WORLD: page_pb2.VISIBILITY_WORLD,
    Visibility.PRIVATE: page_pb2.VISIBILITY_PRIVATE,
}


def summary(row: PageRow) -> pb.PageSummary:
    """A row as a message."""
    return pb.PageSummary(
        source=row.source,
        slug=row.slug,
        page_id=row.page_id,
        revision=row.revision,
        title=row.title,
        type=row.type,
        tags=row.tags,
        aliases=row.aliases,
        date=row.date,
        update_time=timestamp(row.updated),
        create_time=timestamp(row.created),
        visibility=VISIBILITIES[row.visibility],
        body_bytes=row.body_bytes,
    )


class Summaries:
    """Rows as messages, remembered: an answer has two hundred, the same pages come again, and each costs 20 µs."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], pb.PageSummary] = {}

    def of(self, row: PageRow) -> pb.PageSummary:
        """The message of a row. A page at a revision never changes."""
        key = (row.page_id, row.revision)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= SUMMARIES_MAX:
                self._known.clear()
            found = self._known[key] = summary(row)
        return found


def passage_hit(ranked: RankedHit, summaries: Summaries) -> pb.PassageHit:
    """A hit as a message."""
    hit = ranked.hit
    page = summaries.of(hit.row)
    if hit.passage is None:
        return pb.PassageHit(page=page, ordinal=-1, snippet=ranked.snippet, score=hit.score, matched_tokens=hit.matched)
    return pb.PassageHit(
        page=page,
        ordinal=hit.passage.ordinal,
        chunk_kind=hit.passage.kind.value,
        heading=hit.passage.heading,
        snippet=ranked.snippet,
        score=hit.score,
        matched_tokens=hit.matched,
        chunk_hash=hit.passage.hash,
    )


def ranked_list(ranked: RankedHits, summaries: Summaries) -> pb.RankedList:
    """One retriever's answer as a message."""
    return pb.RankedList(
        retriever=RETRIEVER_VALUES[ranked.retriever],
        hits=[passage_hit(hit, summaries) for hit in ranked.hits],
        elapsed_ms=ranked.elapsed_ms,
    )


def projection_state(progress: ProjectionProgress, engine: str) -> projection_pb2.ProjectionState:
    """A projection's state as a message."""
    return projection_pb2.ProjectionState(
        projection=progress.projection,
        store_id=progress.store_id,
        indexed_revision=progress.indexed_revision,
        last_revision=progress.last_revision,
        pending=progress.pending,
        dead_letters=progress.dead_letters,
        ready=progress.ready,
        rebuilding=progress.rebuilding,
        engine=engine,
        waiting_for=progress.waiting_for,
    )


def work_progress(job_id: str, step: Step) -> projection_pb2.WorkProgress:
    """How far work is, as a message."""
    return projection_pb2.WorkProgress(
        job_id=job_id,
        finished=step.finished,
        total=step.total,
        done=step.done,
        unit=step.unit,
        store_id=step.store_id,
    )


def timestamp(microseconds: int) -> Timestamp:
    """A time as a message."""
    seconds, rest = divmod(microseconds, 1_000_000)
    return Timestamp(seconds=seconds, nanos=rest * 1_000)
