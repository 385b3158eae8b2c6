"""Rows as they are stored beside the index's terms, and documents as they are handed to it."""

from __future__ import annotations

from typing import Any

import orjson
from tantivy import Document

from services.domain.page import ChunkKind, Visibility
from services.domain.records import PageId, PageKey
from services.search.adapters.tantivy_table import page_number
from services.search.values import HeldPage, LexicalHit, PageDocument, PageRow, Passage, PassageDocument, date_code

_KINDS = {kind.value: kind for kind in ChunkKind}
_VISIBILITIES = {visibility.value: visibility for visibility in Visibility}
"""A look in a table is ten times as fast as asking the enumeration."""


def page_entry(page: PageDocument) -> Document:
    """The document of a page in the table of pages."""
    document = _entry(page.row, page.terms)
    document.add_text("title", page.title_terms)
    document.add_text("alias", page.alias_terms)
    document.add_text("order", order_key(page.row.slug, page.row.source))
    document.add_bytes("row", orjson.dumps([list(page.row), page.lead]))
    return document


def passage_entry(row: PageRow, entry: PassageDocument) -> Document:
    """The document of a passage in the table of passages."""
    passage = entry.passage
    document = _entry(row, entry.terms)
    document.add_text("passage_id", passage_id(row.page_id, passage.ordinal))
    document.add_unsigned("ordinal", passage.ordinal)
    document.add_bytes("row", orjson.dumps([list(row), *passage]))
    return document


def page_hit(stored: bytes, score: float = 0.0) -> LexicalHit:
    """A stored page as a hit."""
    values, lead = orjson.loads(stored)
    return LexicalHit(_row(values), None, lead, score)


def passage_hit(stored: bytes, score: float = 0.0) -> LexicalHit:
    """A stored passage as a hit."""
    values, ordinal, kind, heading, text, chunk_hash = orjson.loads(stored)
    return LexicalHit(_row(values), Passage(ordinal, _KINDS[kind], heading, text, chunk_hash), "", score)


def held_page(stored: bytes) -> HeldPage:
    """What a stored page or passage says of who holds which slug."""
    row = orjson.loads(stored)[0]
    return HeldPage(key=PageKey(row[0], row[1]), page_id=PageId(row[2]), revision=row[3])


def passage_id(page_id: str, ordinal: int) -> str:
    """The one name of a passage in the table."""
    return f"{page_id}:{ordinal}"


def address(key: PageKey) -> str:
    """The one name of a slug in the table."""
    return f"{key.source}:{key.slug}"


def order_key(slug: str, source: str) -> str:
    """What orders pages by slug, then source: no slug holds a line feed, and nothing in one comes before it."""
    return f"{slug}\n{source}"


def _entry(row: PageRow, terms: str) -> Document:
    document = Document()
    document.add_text("page_id", row.page_id)
    document.add_unsigned("page_number", page_number(row.page_id))
    document.add_unsigned("revision", row.revision)
    document.add_text("address", address(PageKey(row.source, row.slug)))
    document.add_text("source", row.source)
    document.add_text("slug", row.slug)
    if row.visibility is Visibility.PRIVATE:
        document.add_text("private", "1")
    document.add_text("type", row.type)
    for tag in row.tags:
        document.add_text("tag", tag)
    document.add_integer("updated", row.updated)
    document.add_integer("created", row.created)
    document.add_unsigned("date", date_code(row.date))
    document.add_text("terms", terms)
    return document


def _row(values: list[Any]) -> PageRow:
    values[6], values[7], values[11] = tuple(values[6]), tuple(values[7]), _VISIBILITIES[values[11]]
    return PageRow._make(values)
