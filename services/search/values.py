"""The words of the search service: who may see what, what is asked for, what is kept of a page, what is found."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from services.domain.page import ChunkKind, Visibility
from services.domain.records import PageId, PageKey


class Retriever(StrEnum):
    """A way of finding."""

    LEXICAL_PAGES = "lexical_pages"
    LEXICAL_CHUNKS = "lexical_chunks"
    TITLE = "title"
    DENSE = "dense"


class PageOrder(StrEnum):
    """An order of a list of pages; ties by slug, then by source."""

    UPDATED_DESC = "updated_desc"
    UPDATED_ASC = "updated_asc"
    CREATED_DESC = "created_desc"
    SLUG = "slug"


class PassageKey(NamedTuple):
    """The address of a passage: stable under moves, unlike a slug."""

    page_id: PageId
    ordinal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFilter:
    """What a read is confined to, compiled into every engine's own query. Nothing is filtered after the fact."""

    sources: frozenset[str] | None
    """The sources that may be seen; None is every source, the empty set none."""
    private: bool
    """Whether pages with visibility `private` exist for the reader."""
    types: tuple[str, ...] = ()
    """Any of these; empty does not narrow."""
    tags: tuple[str, ...] = ()
    """All of these."""
    slug_prefix: str = ""
    """Slugs that begin with this, literally."""
    updated_after: datetime | None = None
    """Updated at or after."""
    since: int = 0
    """Date code at or after, see `date_code`; 0 does not narrow."""
    until: int = 0
    """Date code at or before; 0 does not narrow. A page without a date is in no period."""


class PageRow(NamedTuple):
    """What an index knows of a page without its text. A tuple, and times as numbers: one answer makes hundreds."""

    source: str
    slug: str
    page_id: PageId
    revision: int
    title: str
    type: str
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    date: str
    updated: int
    """When this revision was accepted, in microseconds since 1970."""
    created: int
    """When the page was first written, in microseconds since 1970."""
    visibility: Visibility
    body_bytes: int


class Passage(NamedTuple):
    """A chunk of a page as it is kept for showing. A tuple as `PageRow` is."""

    ordinal: int
    kind: ChunkKind
    heading: str
    text: str
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageDocument:
    """A passage to be indexed: `terms` are analysed and joined by spaces."""

    passage: Passage
    terms: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageDocument:
    """A page to be indexed, all of it analysed: no engine analyses text itself."""

    row: PageRow
    lead: str
    """How the page begins, shown where no passage of it matched."""
    title_terms: str
    alias_terms: str
    terms: str
    """Of the whole page, title and aliases included."""
    passages: tuple[PassageDocument, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlugState:
    """What the newest record of a slug says: a page, or that no page has it (a delete, a redirect)."""

    key: PageKey
    revision: int
    page: PageDocument | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorPassage:
    """A passage to be embedded: equal hashes have equal vectors, so a held one is used again."""

    ordinal: int
    hash: str
    text: str
    """What is embedded: title, heading and text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorState:
    """What the newest record of a slug says to the vectors: the page and its passages, or that no page has it."""

    key: PageKey
    revision: int
    page: PageRow | None
    passages: tuple[VectorPassage, ...] = ()


class HeldPage(NamedTuple):
    """A page that an index holds: for sweeps and checks against the log."""

    key: PageKey
    page_id: PageId
    revision: int


class LexicalHit(NamedTuple):
    """A page or passage that matched words. A tuple as `PageRow` is."""

    row: PageRow
    passage: Passage | None
    """None when the hit is the page as a whole."""
    lead: str
    """How the page begins; empty for a passage."""
    score: float
    matched: tuple[str, ...] = ()
    """The terms of the query that it holds, in the query's order."""


class VectorHit(NamedTuple):
    """A passage near in meaning. A tuple as `PageRow` is; it comes from another process at that."""

    key: PassageKey
    revision: int
    hash: str
    score: float
    """The cosine, -1 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePosition:
    """Where a list of pages goes on: behind the page with this sort value and slug."""

    value: int
    """Microseconds for orders by time; 0 for the order by slug."""
    slug: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageList:
    """A part of a list of pages."""

    rows: tuple[PageRow, ...]
    next: PagePosition | None
    """None at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalCounts:
    """What is held, as far as a filter lets see."""

    pages: int
    chunks: int
    tags: int
    types: tuple[tuple[str, int], ...]
    """Most first; ties by type."""


PASSAGES_PER_PAGE_MAX = 5
"""Of one page in one ranked list: a page of 400 like passages must not push out the twenty others that fit, and no
stage behind looks at more than the best few of a page."""


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(time: datetime) -> int:
    """A time as indexes keep it: whole microseconds since 1970."""
    return (time - _EPOCH) // _MICROSECOND


def date_code(date: str) -> int:
    """A date of known precision as a number that orders: 2026 is 20260000, 2026-03 is 20260300; 0 when it is none."""
    digits = date[:10].split("-")
    if not 1 <= len(digits) <= 3 or not all(part.isascii() and part.isdigit() for part in digits):
        return 0
    if [len(part) for part in digits] != [4, 2, 2][: len(digits)]:
        return 0
    return int("".join(digits).ljust(8, "0"))


def last_date_code(date: str) -> int:
    """The number of the end of a period, so that `until` takes the whole of it; 0 when it is no date."""
    code = date_code(date)
    return code and code + {4: 9999, 7: 99}.get(len(date[:10]), 0)
