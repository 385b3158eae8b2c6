"""Comparing a whole store with the log, address by address."""

from __future__ import annotations

from datetime import UTC, datetime

from services.domain.records import PageId, PageKey, PageRecord, RecordKind
from services.runtime.page_log import PageLog
from services.runtime.projection_store import ProjectionStore


async def differences(page_log: PageLog, store: ProjectionStore, *, up_to: int) -> list[PageRecord]:
    """What the store must be given, so that it holds the page id and revision of every address that the log has.

    What is newer than `up_to` is left out: the store has not come to it yet.
    """
    held: dict[PageKey, set[tuple[PageId, int]]] = {}
    async for key, page_id, revision in store.held():
        held.setdefault(key, set()).add((page_id, revision))
    different: list[PageRecord] = []
    async for record in page_log.current(None):
        shown = held.pop(record.key, set())
        wanted = set() if record.kind is RecordKind.DELETE else {(record.page_id, record.revision)}
        if shown != wanted and record.revision <= up_to:
            different.append(record)
    different += [unknown_to_log(key, max(revision for _, revision in rows)) for key, rows in held.items()]
    return different


def unknown_to_log(key: PageKey, revision: int) -> PageRecord:
    """A delete for a slug that the log does not know at all, newer than what is held: only a lost log leaves such."""
    return PageRecord(
        source=key.source,
        slug=key.slug,
        kind=RecordKind.DELETE,
        page_id=PageId(""),
        time=datetime.now(UTC),
        actor="service:projection",
        revision=revision + 1,
    )
