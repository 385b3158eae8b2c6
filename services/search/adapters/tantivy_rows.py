"""Rows as they are stored beside the index's terms, and documents as they are handed to it."""

from __future__ import annotations

from typing import Any

import orjson
from tantivy import Document

from services.domain.page import ChunkKind, Visibility
from services.domain.records import PageId, PageKey
from services.search.adapters.tantivy_queries import microseconds, time_of
from services.search.adapters.tantivy_table import page_number
from services.search.values import HeldPage, LexicalHit, PageDocument, PageRow, Passage, PassageDocument, date_code


def page_entry(page: PageDocument) -> Document:
    """The document of a page in the table of pages."""
    document = _entry(page.row, page.terms)
    document.add_text("title", page.title_terms)
    document.add_text("alias", page.alias_terms)
    document.add_text("order", order_key(page.row.slug, page.row.source))
    document.add_bytes("row", orjson.dumps([_row_values(page.row), page.lead]))
    return document


def passage_entry(row: PageRow, entry: PassageDocument) -> Document:
    """The document of a passage in the table of passages."""
    passage = entry.passage
    document = _entry(row, entry.terms)
    document.add_text("passage_id", passage_id(row.page_id, passage.ordinal))
    document.add_unsigned("ordinal", passage.ordinal)
    values = [_row_values(row), passage.ordinal, passage.kind.value, passage.heading, passage.text, passage.hash]
    document.add_bytes("row", orjson.dumps(values))
    return document


def page_hit(stored: bytes, score: float = 0.0) -> LexicalHit:
    """A stored page as a hit."""
    values, lead = orjson.loads(stored)
    return LexicalHit(row=_row(values), passage=None, lead=lead, score=score)


def passage_hit(stored: bytes, score: float = 0.0) -> LexicalHit:
    """A stored passage as a hit."""
    values, ordinal, kind, heading, text, chunk_hash = orjson.loads(stored)
    passage = Passage(ordinal=ordinal, kind=ChunkKind(kind), heading=heading, text=text, hash=chunk_hash)
    return LexicalHit(row=_row(values), passage=passage, lead="", score=score)


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
    document.add_integer("updated", microseconds(row.update_time))
    document.add_integer("created", microseconds(row.create_time))
    document.add_unsigned("date", date_code(row.date))
    document.add_text("terms", terms)
    return document


def _row_values(row: PageRow) -> list[Any]:
    return [
        row.source,
        row.slug,
        row.page_id,
        row.revision,
        row.title,
        row.type,
        row.tags,
        row.aliases,
        row.date,
        microseconds(row.update_time),
        microseconds(row.create_time),
        row.visibility.value,
        row.body_bytes,
    ]


def _row(values: list[Any]) -> PageRow:
    source, slug, page_id, revision, title, kind, tags, aliases, date, updated, created, visibility, size = values
    return PageRow(
        source=source,
        slug=slug,
        page_id=PageId(page_id),
        revision=revision,
        title=title,
        type=kind,
        tags=tuple(tags),
        aliases=tuple(aliases),
        date=date,
        update_time=time_of(updated),
        create_time=time_of(created),
        visibility=Visibility(visibility),
        body_bytes=size,
    )
