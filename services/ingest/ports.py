"""What ingest needs from the world around it. `services.runtime.page_log.PageLog` is the log there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from services.domain.page import ParsedPage
from services.domain.records import PageId, PageKey, PageRecord
from services.runtime.page_log import WrongLastSequence

__all__ = ["Clock", "NewPageId", "PageLog", "Parser", "WrongLastSequence"]

Clock = Callable[[], datetime]
"""The time now, in UTC."""

NewPageId = Callable[[], PageId]
"""A new identity for a page, such as a random UUID."""


class PageLog(Protocol):
    """The page log: compare-and-set per slug, the newest records of a slug readable.

    Every read is of the newest state there is. Methods raise Unavailable when the log does not answer.
    """

    async def newest(self, key: PageKey) -> PageRecord | None:
        """The newest record of a slug."""

    async def newest_of(self, keys: Sequence[PageKey]) -> list[PageRecord | None]:
        """The newest records of many slugs, in the order of the keys."""

    async def at(self, key: PageKey, revision: int) -> PageRecord | None:
        """The record with this revision; None when it is gone or another slug's."""

    async def kept(self, key: PageKey) -> list[PageRecord]:
        """The kept records of a slug, old to new."""

    async def append(self, batch: Sequence[PageRecord]) -> list[PageRecord]:
        """Stores all or none and returns them with their revisions; WrongLastSequence when others were faster."""

    async def erase(self, key: PageKey, revision: int) -> None:
        """Removes one record for good; repeatable; never a slug's newest."""

    async def last_revision(self) -> int:
        """The last revision of the log."""

    async def keys(self, source: str, folder: str = "") -> list[PageKey]:
        """All addresses of a source, or at and below a folder, that have any record."""


class Parser(Protocol):
    """Reads a page's bytes; `services.domain.parser.PageParser` remembers what it read."""

    def parse(self, source: str, slug: str, body: bytes, *, path: str = "") -> ParsedPage:
        """The parsed page."""
