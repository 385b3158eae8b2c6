"""Passages: a page cut into chunks that are about one thing, none too long to embed, no character of it lost."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from services.domain.body import Halves
from services.domain.markdown import Layout
from services.domain.page import Chunk, ChunkKind

SIZE_MAX = 300
"""Units of a chunk: words, or characters where a script has no spaces. The embedders read 512 tokens, and 300 English
words or Chinese characters stay below."""

SECTION_SIZE_MIN = 100
"""A heading begins a new chunk when the one before it has at least this size; shorter sections stay together."""

OVERLAP_SIZE_MAX = 40
"""Whole sentences repeated from the chunk before when a chunk begins inside a section: a thought has two ends."""

CHARACTERS_PER_UNIT = 8
"""Text is never counted smaller than this, so that no chunk has more than 2,400 characters: tables, URLs and data have
few words but many tokens."""

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")
_CUTS = tuple(
    map(
        re.compile,
        (
            r"\n",
            r"[.!?。！？…](?:(?<=[.!?])[)\]\"'”’]?[ \t]+|(?<=[。！？…])[”’」』）)]?)",
            r"[;:,][ \t]+|[；：，、]",
            r"[ \t]+(?:[^ \t]{1,64}[ \t]+){0,15}",
        ),
    )
)
"""Where a passage that is too long is cut: after a line, a sentence, a clause, some words; then between characters."""
_SENTENCE = _CUTS[1]
_DEFINITION = re.compile(
    r"^[ \t]*(?:(?:export|default|public|private|protected|static|async|abstract|final|override|inline"
    r"|pub(?:\([a-z]+\))?)[ \t]+)*"
    r"(?:def|class|function|func|fn|interface|struct|enum|trait|impl|type|module|object|contract|message|service)[ \t]+"
    r"([A-Za-z_$][\w$]*)",
    re.MULTILINE,
)


@dataclass(slots=True)
class _Passage:
    """A chunk in the making: spans of the text, in order."""

    kind: ChunkKind
    spans: list[tuple[int, int]]
    size: int
    language: str = ""


def chunk_page(layout: Layout, halves: Halves, title: str) -> tuple[Chunk, ...]:
    """The chunks of a Markdown page in the order of the page: compiled truth, timeline, and fenced code apart.

    Every character that is no space, divider or fence mark is in at least one chunk.
    """
    passages: list[_Passage] = []
    for kind, spans in ((ChunkKind.COMPILED_TRUTH, halves.truth), (ChunkKind.TIMELINE, halves.timeline)):
        for begin, end in spans:
            passages += _prose(layout, begin, end, kind)
    for fence in layout.fences:
        if fence.inner_end > fence.inner_start:
            pieces = _pieces(layout.text, fence.inner_start, fence.inner_end, ())
            passages += _pack(layout.text, pieces, ChunkKind.FENCED_CODE, fence.language)
    passages.sort(key=lambda passage: passage.spans[0][0])
    return _finished(layout.text, passages, title, layout.heading_at)


def chunk_code(text: str, language: str, title: str) -> tuple[Chunk, ...]:
    """The chunks of a code file: blocks between blank lines, packed; the heading is the last definition above."""
    names = [(match.start(), match[1]) for match in _DEFINITION.finditer(text)]
    passages = list(_pack(text, _pieces(text, 0, len(text), ()), ChunkKind.CODE, language))
    position = 0

    def heading_at(offset: int) -> str:
        nonlocal position
        line_end = text.find("\n", offset)
        while position < len(names) and names[position][0] <= (line_end if line_end >= 0 else len(text)):
            position += 1
        return names[position - 1][1] if position else ""

    return _finished(text, passages, title, heading_at)


def chunk_hash(kind: ChunkKind, title: str, heading: str, text: str) -> str:
    """Hex SHA-256 of what is embedded; equal hashes need no new vector."""
    return hashlib.sha256("\0".join((kind, title, heading, text)).encode("utf-8", "replace")).hexdigest()


def size_of(text: str, begin: int, end: int) -> int:
    """The size of a span in units, at least 1: words, and characters of scripts without spaces."""
    return _size(text[begin:end])


def _size(span: str) -> int:
    words = span.count(" ") + span.count("\n") + 1
    if not span.isascii():
        words += len(span) - len(_UNSPACED.sub("", span))
    return max(words, len(span) // CHARACTERS_PER_UNIT)


def _prose(layout: Layout, begin: int, end: int, kind: ChunkKind) -> Iterator[_Passage]:
    """The passages of a span of prose, without the fences in it."""
    text = layout.text
    heads = [heading.start for heading in layout.headings if begin <= heading.start < end]
    pieces: list[tuple[int, int, int]] = []
    for fence in layout.fences:
        if begin <= fence.start < end:
            pieces += _pieces(text, begin, fence.start, heads)
            begin = max(begin, fence.end)
    pieces += _pieces(text, begin, end, heads)
    yield from _pack(text, pieces, kind, heads=frozenset(heads), overlap=True)


def _pieces(text: str, begin: int, end: int, heads: Sequence[int]) -> list[tuple[int, int, int]]:
    """The paragraphs of a span as (begin, end, size), none larger than a chunk, each without outer blank lines."""
    if begin >= end:
        return []
    cuts = {begin, *[match.end() for match in _BLANK_LINES.finditer(text, begin, end)], end}
    cuts.update(head for head in heads if begin <= head < end)
    pieces: list[tuple[int, int, int]] = []
    for start, stop in pairwise(sorted(cuts)):
        span = text[start:stop]
        if span.isspace():
            continue
        size = _size(span)
        if size <= SIZE_MAX:
            pieces.append((start, stop, size))
        else:
            pieces += _divided(text, start, stop, 0)
    return pieces


def _divided(text: str, begin: int, end: int, level: int) -> list[tuple[int, int, int]]:
    """A span that is too long, cut at the coarsest places that make it short enough, each piece nearly full."""
    if level == len(_CUTS):
        step = SIZE_MAX if _UNSPACED.search(text, begin, end) else SIZE_MAX * CHARACTERS_PER_UNIT
        return [(at, min(end, at + step), SIZE_MAX) for at in range(begin, end, step)]
    pieces: list[tuple[int, int, int]] = []
    start, size = begin, 0
    position = begin
    for stop in _stops(_CUTS[level], text, begin, end):
        piece = size_of(text, position, stop)
        if size and size + piece > SIZE_MAX:
            pieces.append((start, position, size))
            start, size = position, 0
        if piece > SIZE_MAX:
            pieces += _divided(text, position, stop, level + 1)
            start, size = stop, 0
        else:
            size += piece
        position = stop
    if start < end:
        pieces.append((start, end, size))
    return [piece for piece in pieces if text[piece[0] : piece[1]].strip()]


def _stops(cut: re.Pattern[str], text: str, begin: int, end: int) -> Iterator[int]:
    last = begin
    for match in cut.finditer(text, begin, end):
        last = match.end()
        yield last
    if last < end:
        yield end


def _pack(
    text: str,
    pieces: Iterable[tuple[int, int, int]],
    kind: ChunkKind,
    language: str = "",
    *,
    heads: frozenset[int] = frozenset(),
    overlap: bool = False,
) -> Iterator[_Passage]:
    """Fill passages with pieces, greedily; a heading begins a new one when the last is long enough to stand alone."""
    passage: _Passage | None = None
    for begin, end, size in pieces:
        head = begin in heads
        if passage and (passage.size + size > SIZE_MAX or (head and passage.size >= SECTION_SIZE_MIN)):
            yield passage
            start = _overlap(text, passage, begin) if overlap and not head else begin
            passage = _Passage(kind, [(start, end)], size, language)
        elif passage is None:
            passage = _Passage(kind, [(begin, end)], size, language)
        elif passage.spans[-1][1] == begin:
            passage.spans[-1] = (passage.spans[-1][0], end)
            passage.size += size
        else:
            passage.spans.append((begin, end))
            passage.size += size
    if passage:
        yield passage


def _overlap(text: str, before: _Passage, begin: int) -> int:
    """Where a passage begins that repeats the last sentences of the one before; `begin` when none is short enough."""
    first, last = before.spans[-1]
    if last != begin:
        return begin
    low = max(first, begin - OVERLAP_SIZE_MAX * CHARACTERS_PER_UNIT)
    start = begin
    for at in reversed([match.end() for match in _SENTENCE.finditer(text, low, begin)]):
        if size_of(text, at, begin) > OVERLAP_SIZE_MAX:
            break
        start = at
    return start


def _finished(
    text: str, passages: Sequence[_Passage], title: str, heading_at: Callable[[int], str]
) -> tuple[Chunk, ...]:
    chunks: list[Chunk] = []
    line, position = 1, 0
    for passage in passages:
        words = "\n\n".join(part for begin, end in passage.spans if (part := text[begin:end].strip("\n").rstrip()))
        begin = passage.spans[0][0]
        while begin < passage.spans[0][1] and text[begin] == "\n":
            begin += 1
        line += text.count("\n", position, begin) if begin >= position else -text.count("\n", begin, position)
        position = begin
        heading = heading_at(begin)
        chunks.append(
            Chunk(
                ordinal=len(chunks),
                kind=passage.kind,
                text=words,
                heading=heading,
                start_line=line,
                language=passage.language,
                hash=chunk_hash(passage.kind, title, heading, words),
            )
        )
    return tuple(chunks)
