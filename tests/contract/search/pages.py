"""Pages as the suites write them: records of the log, made short."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from services.domain.parser import PageParser
from services.domain.records import PageId, PageRecord, RecordKind
from services.search.documents import slug_state
from services.search.values import PageFilter, SlugState

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
EVERYTHING = PageFilter(sources=None, private=True)
PARSER = PageParser()


def record(
    slug: str, body: str | None, revision: int, *, page_id: str = "", source: str = "default", kind: str = ""
) -> PageRecord:
    return PageRecord(
        source=source,
        slug=slug,
        kind=RecordKind(kind or ("put" if body is not None else "delete")),
        page_id=PageId(page_id or f"id-{source}-{slug}"),
        time=NOON + timedelta(seconds=revision),
        actor="tester",
        body=None if body is None else body.encode(),
        revision=revision,
        create_time=NOON,
    )


def state(slug: str, body: str | None, revision: int, *, page_id: str = "", source: str = "default") -> SlugState:
    return slug_state(record(slug, body, revision, page_id=page_id, source=source), PARSER)


def within(**narrowed: object) -> PageFilter:
    return replace(EVERYTHING, **narrowed)  # type: ignore[arg-type]
