"""Rows, pages and lists for the tests of the pipeline: only what a test is about has to be said."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.retrieval.model import Arm, ArmResults, ArmRow, Candidate, PageRef
from services.domain.page import ChunkKind


def page(
    page_id: str,
    *,
    title: str = "",
    slug: str = "",
    kind: str = "note",
    date: str = "",
    aliases: tuple[str, ...] = (),
) -> PageRef:
    return PageRef(
        page_id=page_id,
        source="default",
        slug=slug or f"notes/{page_id}",
        title=title or f"Title of {page_id}",
        type=kind,
        revision=1,
        aliases=aliases,
        date=date,
    )


def passage(
    about: PageRef, text: str = "", *, score: float = 1.0, ordinal: int = 0, kind: ChunkKind = ChunkKind.COMPILED_TRUTH
) -> ArmRow:
    return ArmRow(page=about, score=score, ordinal=ordinal, chunk_kind=kind, text=text)


def whole(about: PageRef, text: str = "", *, score: float = 1.0) -> ArmRow:
    return ArmRow(page=about, score=score, text=text)


def chunks(rows: Iterable[ArmRow], **more: tuple[ArmRow, ...]) -> ArmResults:
    return ArmResults(rows={Arm.LEXICAL_CHUNKS: tuple(rows), **{Arm(name): value for name, value in more.items()}})


def candidate(
    about: PageRef, score: float, text: str = "", *, arm: Arm = Arm.LEXICAL_CHUNKS, rank: int = 1
) -> Candidate:
    return Candidate(page=about, score=score, matched_by={arm: rank}, passage=passage(about, text))


def ids(candidates: Iterable[Candidate]) -> list[str]:
    return [item.page.page_id for item in candidates]
