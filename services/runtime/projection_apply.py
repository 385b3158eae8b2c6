"""The consumer rule of the page log: write what the newest record says, look again, start over if it changed.

Nothing is skipped because it is held already. A process that wrote something that was old by then sees so in its last
look and repairs it, before it acknowledges; so redelivery, reordering and a death in the middle are harmless.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from services.domain.errors import Unavailable
from services.domain.records import PageKey, PageRecord
from services.domain.slugs import subject_of
from services.runtime.page_log import PageLog
from services.runtime.projection_store import ProjectionStore

log = logging.getLogger(__name__)

ROUNDS_MAX = 100
"""Rounds in which the same slugs changed again while they were applied; then the messages come again later."""


class Applier:
    """Applies records to one store, one batch at a time, until the store shows the newest of each."""

    def __init__(self, page_log: PageLog, store: ProjectionStore, *, batch_max: int) -> None:
        self._page_log = page_log
        self._store = store
        self._batch_max = batch_max
        self._lock = asyncio.Lock()

    async def bring_up(self, records: Mapping[PageKey, PageRecord]) -> dict[PageKey, Exception]:
        """Applies the records, and newer ones of their slugs that came meanwhile; returns what cannot be applied.

        Raises:
            Unavailable: The engine or the log does not answer, or a slug changed without end. What was applied stays.
        """
        pending = dict(records)
        failed: dict[PageKey, Exception] = {}
        async with self._lock:
            for _ in range(ROUNDS_MAX):
                ordered = sorted(pending.values(), key=lambda record: record.revision)
                for start in range(0, len(ordered), self._batch_max):
                    failed |= await self._apply(ordered[start : start + self._batch_max])
                applied = [record for record in ordered if record.key not in failed]
                newer = await self._page_log.newest_revisions(
                    [subject_of(record.key) for record in applied], [record.revision for record in applied]
                )
                pending = {record.key: record for record in newer if record is not None}
                if not pending:
                    return failed
        raise Unavailable("WRITE_CONTENDED", f"{len(pending)} slugs kept changing while they were applied")

    async def _apply(self, records: Sequence[PageRecord]) -> dict[PageKey, Exception]:
        try:
            await self._store.apply(records)
        except Unavailable:
            raise
        except (OSError, MemoryError) as error:
            # A full disk refuses every page; that is no page's fault.
            raise Unavailable("PEER_UNAVAILABLE", f"the store cannot be written: {error}") from error
        except Exception as error:  # the edge of the consumer loop: a record that cannot be applied must not stop it
            if len(records) == 1:
                log.warning("record cannot be applied", exc_info=error, extra={"revision": records[0].revision})
                return {records[0].key: error}
            half = len(records) // 2
            return {**await self._apply(records[:half]), **await self._apply(records[half:])}
        return {}
