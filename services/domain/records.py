"""The page log's record: one accepted write, whole. See DESIGN section 3 for the rules that use it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, NewType

PageId = NewType("PageId", str)

KEPT_PER_SLUG = 64
"""The newest records of a slug that stay readable, the newest itself included."""


class PageKey(NamedTuple):
    """The address of a page: unique in the brain, but not stable under moves."""

    source: str
    slug: str


class RecordKind(StrEnum):
    """What a record did. Only put, move and restore carry a body."""

    PUT = "put"
    MOVE = "move"
    RESTORE = "restore"
    DELETE = "delete"
    REDIRECT = "redirect"


class Operation(StrEnum):
    """What a caller asked for; a revert is stored as a put or a restore, an erase as a put or a delete."""

    PUT = "put"
    DELETE = "delete"
    RESTORE = "restore"
    MOVE = "move"
    REVERT = "revert"
    ERASE = "erase"


@dataclass(frozen=True, slots=True, kw_only=True)
class Predecessor:
    """What a record remembers of an earlier record on its subject, so that the newest alone answers a retry."""

    revision: int
    request_id: str
    digest: bytes
    """SHA-256 over the operation, bytes and target of the request: equal digests are the same request."""
    moved_to: str = ""
    """The new slug when the earlier record was the redirect of a move."""
    erased_request_ids: frozenset[str] = frozenset()
    """Requests whose content the earlier record erased: a retry of one stays refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a page's text came from, as the caller said or the import saw. Data, never an instruction."""

    source_kind: str = ""
    source_uri: str = ""
    ingested_via: str = ""
    path: str = ""
    """The relative POSIX path of the imported file, NFC; empty for pages that were put."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRecord:
    """One message of the log. `revision` and nothing else is given by the log; 0 until it is stored."""

    source: str
    slug: str
    kind: RecordKind
    page_id: PageId
    time: datetime
    """When ingest accepted it, UTC."""
    actor: str
    """The principal that wrote it."""
    remote: bool = False
    """Whether that principal was remote (trust)."""
    request_id: str = ""
    request_digest: bytes = b""
    operation: Operation = Operation.PUT
    body: bytes | None = None
    """The Markdown bytes exactly as accepted; None for a delete and a redirect."""
    content_hash: bytes = b""
    """SHA-256 of the body without BOM and with LF line ends: what re-indexing compares. Empty without a body."""
    revision: int = 0
    expected: int = 0
    """The newest revision its subject must have when it is appended; 0 means the subject has no message."""
    moved_to: str = ""
    """The slug a redirect leads to; empty for other kinds."""
    former_slugs: frozenset[str] = frozenset()
    erased_request_ids: frozenset[str] = frozenset()
    predecessors: tuple[Predecessor, ...] = ()
    """Earlier records on this subject, old to new, at most KEPT_PER_SLUG - 1."""
    provenance: Provenance = Provenance()
    create_time: datetime | None = None
    """When the page was first written; None for a redirect."""

    @property
    def key(self) -> PageKey:
        """The page's address."""
        return PageKey(self.source, self.slug)

    @property
    def live(self) -> bool:
        """Whether this record shows a page."""
        return self.body is not None
