"""From the newest record of a slug to what the indexes keep of it. Pure."""

from __future__ import annotations

from services.domain.page import Chunk, ParsedPage
from services.domain.parser import PageParser
from services.domain.records import PageRecord
from services.domain.text import analyze
from services.search.values import (
    PageDocument,
    PageRow,
    Passage,
    PassageDocument,
    SlugState,
    VectorPassage,
    VectorState,
    microseconds,
)

LEAD_CHARACTERS_MAX = 400
"""Kept of a page's beginning: a snippet is 240 characters unless asked for otherwise."""


def slug_state(record: PageRecord, parser: PageParser) -> SlugState:
    """What a record says to the lexical index. Parses and analyses: some milliseconds for a long page."""
    if record.body is None:
        return SlugState(key=record.key, revision=record.revision, page=None)
    page = parser.parse(record.source, record.slug, record.body, path=record.provenance.path)
    return SlugState(key=record.key, revision=record.revision, page=page_document(record, page))


def page_document(record: PageRecord, page: ParsedPage) -> PageDocument:
    """A page with all its text analysed.

    A passage is found by the title and heading above it too: alone it often does not name what it is about. The page's
    terms are those of its passages, so that no text is analysed twice; what passages repeat of each other counts twice.
    """
    title = " ".join(analyze(page.title))
    aliases = " ".join(term for alias in page.aliases for term in analyze(alias))
    tags = " ".join(term for tag in page.tags for term in analyze(tag))
    bodies = [" ".join(analyze(chunk.text)) for chunk in page.chunks]
    return PageDocument(
        row=page_row(record, page),
        lead=page.compiled_truth[:LEAD_CHARACTERS_MAX] or page.timeline[:LEAD_CHARACTERS_MAX],
        title_terms=title,
        alias_terms=aliases,
        terms=" ".join((title, aliases, tags, *bodies)),
        passages=tuple(
            PassageDocument(passage=passage(chunk), terms=f"{title} {_heading_terms(chunk, page)} {body}")
            for chunk, body in zip(page.chunks, bodies, strict=True)
        ),
    )


def vector_state(record: PageRecord, parser: PageParser) -> VectorState:
    """What a record says to the vectors."""
    if record.body is None:
        return VectorState(key=record.key, revision=record.revision, page=None)
    page = parser.parse(record.source, record.slug, record.body, path=record.provenance.path)
    return VectorState(
        key=record.key,
        revision=record.revision,
        page=page_row(record, page),
        passages=tuple(
            VectorPassage(ordinal=chunk.ordinal, hash=chunk.hash, text=embedded_text(page.title, chunk))
            for chunk in page.chunks
        ),
    )


def embedded_text(title: str, chunk: Chunk) -> str:
    """What a model reads of a passage: title and heading first, unless the passage itself begins with them."""
    above = [line for line in dict.fromkeys((title, chunk.heading)) if line and line not in chunk.text[:200]]
    return "\n".join((*above, chunk.text))


def page_row(record: PageRecord, page: ParsedPage) -> PageRow:
    """What is kept of a page without its text."""
    return PageRow(
        source=record.source,
        slug=record.slug,
        page_id=record.page_id,
        revision=record.revision,
        title=page.title,
        type=page.type,
        tags=page.tags,
        aliases=page.aliases,
        date=page.date,
        updated=microseconds(record.time),
        created=microseconds(record.create_time or record.time),
        visibility=page.visibility,
        body_bytes=len(record.body or b""),
    )


def passage(chunk: Chunk) -> Passage:
    """What is kept of a chunk for showing."""
    return Passage(ordinal=chunk.ordinal, kind=chunk.kind, heading=chunk.heading, text=chunk.text, hash=chunk.hash)


def _heading_terms(chunk: Chunk, page: ParsedPage) -> str:
    return (
        ""
        if chunk.heading in ("", page.title) or chunk.heading in chunk.text[:200]
        else " ".join(analyze(chunk.heading))
    )
