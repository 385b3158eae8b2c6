"""What a projection needs of the store it fills, and what it says of itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.domain.records import PageId, PageKey, PageRecord


class ProjectionStore(Protocol):
    """One store of a projection. It needs no tombstones and no memory of what was applied.

    Only one call of `apply` runs at a time on one object; reads run beside it.
    """

    async def apply(self, records: Sequence[PageRecord]) -> None:
        """Brings the store up to these records, each the newest known of its slug, one a slug, in order of revision.

        Of each record, whatever its kind: writes the documents it makes (a page and a name when it has a body, only
        the name for a redirect, nothing for a delete), each unless a newer revision is held under the document's id;
        and removes everything else held under the slug with a lower revision, whatever its page id. Durable when it
        returns. It may be called again with the same or with older records, and may die in the middle.

        Raises:
            Unavailable: The engine does not answer; the same call is made again later.
            Exception: Anything else means that a record cannot be applied; records are then tried one by one.
        """

    def held(self) -> AsyncIterator[tuple[PageKey, PageId, int]]:
        """Address, page id and revision of everything held: live pages and redirects, each once."""

    async def close(self) -> None:
        """Lets go of the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionProgress:
    """How far a projection is."""

    projection: str
    store_id: str
    indexed_revision: int
    """Everything up to it is applied; 0 until the store has reached the log's end of when it was begun."""
    last_revision: int
    pending: int
    """Messages to be delivered or not yet acknowledged."""
    dead_letters: int
    ready: bool
    rebuilding: bool
    waiting_for: str = ""
    """What it cannot go on without, in words; empty while it goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildResult:
    """What a rebuild made."""

    job_id: str
    store_id: str
    pages: int
    """Messages applied, one for each address the log knew."""
