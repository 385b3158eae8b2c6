"""The lie of a Markdown text: where its fences and headings are, and what of it is prose that may hold links.

One pass forward, linear whatever the text; offsets are those of the text handed in.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from services.domain.languages import fence_language

_LINE = re.compile(r"\n[ \t>]*+(?:(`{3,}|~{3,})([^\n]*)|(\#{1,6})(?:[ \t]+([^\n]*))?)(?=\n|\Z)")
_LINE_OR_UNDERLINED = re.compile(
    r"\n[ \t>]*+(?:(`{3,}|~{3,})([^\n]*)|(\#{1,6})(?:[ \t]+([^\n]*))?|([^\s`~#>|<][^\n]*+)\n=+[ \t]*)(?=\n|\Z)"
)
"""The same with underlined headings, for which every line is read to its end."""
_SPAN = re.compile(r"`+|<!--|%%|<(?:pre|code|script|style)[\s>]", re.IGNORECASE)
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")
_INDENTED = re.compile(r"(?:\A|\n[ \t]*\n)(?: {4}|\t)")
_LIST_ITEM = re.compile(r"[ \t]{0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)|\[\^")
_EMPHASIS = re.compile(r"[*_~=]{2,}|(?<![\w*])[*_](?=\S)|(?<=\S)[*_](?![\w*])|`")
_INLINE_LINK = re.compile(
    r"\[(?:\[(?:[^\[\]|\n]{0,256}\|)?([^\[\]|\n]{1,256})\]\]|([^\[\]\n]{1,256})\]\([^()\n]{0,512}\))"
)
_INLINE_EMBED = re.compile(f"!?{_INLINE_LINK.pattern}")
"""The same with the mark of an embed; apart, because a pattern with one certain first letter is found much faster."""


@dataclass(frozen=True, slots=True)
class Fence:
    """A block of fenced code: `text[start:end]` with its fences, `text[inner_start:inner_end]` without."""

    start: int
    end: int
    inner_start: int
    inner_end: int
    language: str


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading line: `text[start:end]`, its level from 1, and its words without marks."""

    start: int
    end: int
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Layout:
    """What one pass over a text has found."""

    text: str
    start: int
    """Where the body begins; nothing is found before it."""
    fences: tuple[Fence, ...]
    headings: tuple[Heading, ...]
    prose: str
    """The text with code, comments and what lies before `start` blanked by spaces: same length, same lines."""

    def heading_at(self, offset: int) -> str:
        """The words of the nearest heading at or above an offset; empty before the first."""
        index = bisect_right(self.headings, offset, key=_heading_start)
        return self.headings[index - 1].text if index else ""

    def fenced(self, offset: int) -> bool:
        """Whether an offset lies in fenced code."""
        index = bisect_right(self.fences, offset, key=_fence_start)
        return index > 0 and offset < self.fences[index - 1].end


def scan(text: str, start: int = 0) -> Layout:
    """Find the fences and headings of a text from `start` on, and blank what must not yield links.

    Fences, inline code, indented code, HTML comments and raw HTML blocks, and `%%` comments are blanked; an unclosed
    fence or HTML comment runs to the end, an unclosed backtick or `%%` is text.
    """
    fences: list[Fence] = []
    headings: list[Heading] = []
    blanks: list[tuple[int, int]] = [(0, start)] if start else []
    spans = _Spans(text) if "`" in text or "%%" in text or "<" in text else None
    shifted = "\n" + text
    position, line_from = start, start
    lines = _LINE_OR_UNDERLINED if "\n=" in text else _LINE
    line = lines.search(shifted, start)
    span = spans.next(start) if spans else None
    while line or span:
        if span and (not line or span[0] < line.start()):
            blanks.append(span)
            position = span[1]
            line_from = max(line_from, position)
            if line and line.start() < line_from:
                line = lines.search(shifted, line_from)
        elif line and line[1]:
            fence = _fence(text, line)
            if fence:
                fences.append(fence)
                blanks.append((fence.start, fence.end))
                position = fence.end
            line_from = fence.end if fence else line.end() - 1
            line = lines.search(shifted, line_from)
        elif line:
            headings.append(_heading(line))
            # The match ends before the line break that the next match begins with.
            line_from = line.end() - 1
            line = lines.search(shifted, line.end())
        if spans and span and (span[0] < position or span[1] <= position):
            span = spans.next(position)
    if ("\n    " in text or "\n\t" in text or text.startswith(("    ", "\t"))) and _INDENTED.search(text, start):
        blanks = sorted(blanks + _indented(text, start))
    return Layout(text, start, tuple(fences), tuple(headings), _blanked(text, blanks))


def plain_words(text: str) -> str:
    """A line of Markdown as its reader sees it: links as their labels, without emphasis and code marks."""
    if "[" in text:
        link = _INLINE_EMBED if "![" in text else _INLINE_LINK
        text = link.sub(lambda match: match[1] or match[2], text)
    if "*" in text or "_" in text or "`" in text or "~" in text or "=" in text:
        text = _EMPHASIS.sub("", text)
    return text.strip()


def _heading_start(heading: Heading) -> int:
    return heading.start


def _fence_start(fence: Fence) -> int:
    return fence.start


def _heading(line: re.Match[str]) -> Heading:
    start = line.start()
    if line[3]:
        words = (line[4] or "").rstrip()
        return Heading(start, line.end() - 1, len(line[3]), plain_words(re.sub(r"(?:^|[ \t])#+\Z", "", words)))
    return Heading(start, line.end() - 1, 1, plain_words(line[5]))


def _fence(text: str, opening: re.Match[str]) -> Fence | None:
    """The block an opening line begins, or None when the line only looks like one."""
    mark, info = opening[1], opening[2]
    if mark[0] == "`" and "`" in info:
        return None
    end_of_line = opening.end() - 1
    inner_start = min(end_of_line + 1, len(text))
    closing = re.compile(rf"^[ \t>]*{re.escape(mark)}{re.escape(mark[0])}*[ \t]*$", re.MULTILINE).search(
        text, inner_start
    )
    inner_end = closing.start() if closing else len(text)
    end = closing.end() if closing else len(text)
    return Fence(opening.start(), end, inner_start, max(inner_start, inner_end), fence_language(info))


class _Spans:
    """Inline code, comments and raw HTML, in order of their beginning."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.runs: dict[int, list[int]] | None = None
        self.paragraph_end = -1
        self.unclosed: set[str] = set()

    def next(self, position: int) -> tuple[int, int] | None:
        """The first span that begins at or after a position."""
        text = self.text
        while match := _SPAN.search(text, position):
            begin, position = match.span()
            mark = match[0]
            if mark[0] == "`":
                end = self.code_end(begin, position)
            elif mark == "<!--":
                end = text.find("-->", position) + 3
                if end < 3:
                    return begin, len(text)
            elif mark == "%%":
                end = text.find("%%", position) + 2
            else:
                end = self.element_end(mark[1:-1].lower(), position)
            if end > position:
                return begin, end
        return None

    def element_end(self, name: str, position: int) -> int:
        """Where a raw HTML element ends; 0 when it never does, which is looked for once a name."""
        closing = None if name in self.unclosed else re.compile(f"</{name}", re.IGNORECASE).search(self.text, position)
        if not closing:
            self.unclosed.add(name)
        return closing.end() if closing else 0

    def code_end(self, begin: int, position: int) -> int:
        """Where inline code ends that a run of backticks begins; 0 when no run of that length follows in its paragraph.

        Source: CommonMark 0.31, code spans. All runs are listed once, so that a text of backticks stays linear.
        """
        if begin and self.text[begin - 1] == "\\" and (begin < 2 or self.text[begin - 2] != "\\"):
            return 0
        if self.runs is None:
            self.runs = {}
            for run in re.finditer("`+", self.text):
                self.runs.setdefault(run.end() - run.start(), []).append(run.start())
        length = position - begin
        starts = self.runs.get(length, [])
        index = bisect_right(starts, begin)
        if index == len(starts):
            return 0
        if begin >= self.paragraph_end:
            blank = _PARAGRAPH_END.search(self.text, begin)
            self.paragraph_end = blank.start() if blank else len(self.text)
        return starts[index] + length if starts[index] < self.paragraph_end else 0


def _indented(text: str, start: int) -> list[tuple[int, int]]:
    """Indented code: lines four in, after a blank line, outside of lists."""
    spans: list[tuple[int, int]] = []
    in_list = in_code = False
    after_blank = True
    position = start
    for line in text[start:].split("\n"):
        end = position + len(line)
        if not line.strip():
            after_blank = True
        else:
            indented = line.startswith(("    ", "\t"))
            if not indented:
                in_list = bool(_LIST_ITEM.match(line)) or (in_list and line[0] == " ")
            in_code = indented and not in_list and (after_blank or in_code)
            if in_code:
                spans.append((position, end))
            after_blank = False
        position = end + 1
    return spans


def _blanked(text: str, blanks: list[tuple[int, int]]) -> str:
    if not blanks:
        return text
    pieces: list[str] = []
    position = 0
    for begin, end in blanks:
        if end <= position:
            continue
        pieces.append(text[position:begin] if begin > position else "")
        span = text[max(begin, position) : end]
        pieces.append("\n".join([" " * len(line) for line in span.split("\n")]))
        position = end
    pieces.append(text[position:])
    return "".join(pieces)
