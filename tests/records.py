"""Records for tests of the log and of what reads it."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from services.domain.records import PageId, PageKey, PageRecord, Predecessor, RecordKind

TIME = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


def put(
    slug: str,
    body: str | bytes = "A page.",
    *,
    expected: int = 0,
    page_id: str = "",
    request_id: str = "",
    source: str = "default",
    predecessors: tuple[Predecessor, ...] = (),
) -> PageRecord:
    """A put as ingest would append it."""
    data = body.encode() if isinstance(body, str) else body
    return PageRecord(
        source=source,
        slug=slug,
        kind=RecordKind.PUT,
        page_id=PageId(page_id or f"id-of-{slug}"),
        time=TIME,
        actor="tester",
        request_id=request_id,
        request_digest=hashlib.sha256(data).digest(),
        body=data,
        content_hash=hashlib.sha256(data).digest(),
        expected=expected,
        predecessors=predecessors,
        create_time=TIME,
    )


def key(slug: str, source: str = "default") -> PageKey:
    """The address of a slug."""
    return PageKey(source, slug)
