"""Frontmatter: the YAML block on top of a page, read tolerantly and as typed.

A plain scalar stays the text that was typed (`No`, `18E05`, `1.10`, a date), but for null and `true` and `false`;
what a field means by it is decided where the field is used. Nothing in a block refuses a page: a key that cannot be
read keeps its raw text, with a finding that names the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from services.domain.names import identity
from services.domain.page import Finding, FrontmatterValue

BLOCK_CHARACTERS_MAX = 256 * 1024
"""A block longer than this is not frontmatter; reading it is linear, but its values are kept in every index."""

DEPTH_MAX = 16
"""Nesting of lists and mappings; deeper ones are kept raw."""

KEYS_MAX = 512
"""Top-level keys read; far above any real page."""

FINDINGS_MAX = 32
"""Findings of one block: an author reads a few, and a broken file breaks in the same way everywhere."""

RESERVED_KEYS = frozenset(
    {
        "quarantine", "content_flag", "embed_skip", "captured_via", "captured_at", "ingested_via", "ingested_at",
        "source_kind", "source_uri", "imported_from", "imported_at", "dream_generated", "legacy_type",
        "contextual_retrieval",
    }
)  # fmt: skip
"""Keys that only a local caller may set: they steer gates and jobs, or say where a page came from."""

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_OPEN = re.compile(r"(?:[ \t]*\n){0,8}---[ \t]*(?:\n|\Z)")
_CLOSE = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)
_KEY_LINE = re.compile(
    r"""[ \t]*+(?:"(?:[^"\\\n]|\\.){1,128}"|'[^'\n]{1,128}'|-[^\s:][^:\n]{0,126}?"""
    r"""|[^\s:#\-\[\]{}&*!|>'"%@`,?][^:\n]{0,127}?)[ \t]*+:(?:[ \t]|$)""",
    re.MULTILINE,
)
_PLAIN_VALUE = r"\w[\w ./-]*+"
_PLAIN_LINE = re.compile(
    rf"([A-Za-z_][\w-]{{0,126}}+):(?: ++(?:({_PLAIN_VALUE})|\[ *+((?:{_PLAIN_VALUE}(?:, *+{_PLAIN_VALUE})*+)?)\] *+)?)?"
    r"(?:\n|\Z)"
)
"""A key with a word or a list of words that YAML reads as they stand there."""
_SKIPPED_LINE = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*")
_CONTINUED = re.compile(r"[ \t#]|-(?:[ \t]|$)|[\]}]|$")
_TAB_INDENT = re.compile(r"^( *\t[ \t]*)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontmatter:
    """The block of a page and where its body begins."""

    values: Mapping[str, FrontmatterValue] = field(default_factory=dict)
    """By key as typed, in order; lists as tuples."""
    body_start: int = 0
    """Offset of the body's first character."""
    body_line: int = 1
    """Line of the body's first character, from 1."""
    lines: Mapping[str, int] = field(default_factory=dict)
    """The line of each key."""
    findings: tuple[Finding, ...] = ()
    _folded: Mapping[str, FrontmatterValue] = field(init=False, repr=False, compare=False)
    """The values by folded key."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_folded", {key.casefold(): value for key, value in self.values.items()})

    def get(self, *names: str) -> FrontmatterValue:
        """The value of the first of these keys that is there with a value, whatever its case; None when none is."""
        for name in names:
            value = self._folded.get(name)
            if value is not None:
                return value
        return None


NO_FRONTMATTER = Frontmatter()


class _UnreadableError(Exception):
    """Why a piece of YAML is kept raw, and its line, from 0, in the piece."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line
        self.why = why


def read_frontmatter(text: str) -> Frontmatter:
    """Read the block on top of a page; a page without one has its body from the start.

    A rule on top (`---` with no `key:` below it) is body. Expects LF line ends and no BOM.
    """
    opening = _OPEN.match(text)
    if not opening:
        return NO_FRONTMATTER
    start = opening.end()
    first_line = text.count("\n", 0, start) + 1
    closing = _CLOSE.search(text, start, start + BLOCK_CHARACTERS_MAX)
    content = _SKIPPED_LINE.match(text, start)
    content_start = content.end() if content else start
    if closing and content_start >= closing.start():
        return _block("", first_line, closing.end(), text, ())
    if not (_KEY_LINE.match(text, content_start) or text.startswith("{", content_start)):
        return NO_FRONTMATTER
    if closing:
        block = text[start : closing.start()]
        read = _whole(block, first_line)
        if read is not None or not _prose(block):
            return _block(block, first_line, closing.end(), text, (), read)
    # No closing fence, or one far down in the body: the keys that stand together on top are the block.
    end = start + _leading_keys(text[start : start + BLOCK_CHARACTERS_MAX])
    finding = Finding(
        code="FRONTMATTER_UNCLOSED",
        line=first_line - 1,
        message="the frontmatter has no closing `---`",
        next_step="Add a line `---` after the last key.",
    )
    return _block(text[start:end], first_line, end, text, (finding,))


def _block(
    block: str,
    first_line: int,
    end: int,
    text: str,
    findings: tuple[Finding, ...],
    read: _Reader | None = None,
) -> Frontmatter:
    body_start = end + text.startswith("\n", end)
    reader = read or _whole(block, first_line) or _by_key(block, first_line)
    return Frontmatter(
        values=reader.values,
        body_start=body_start,
        body_line=text.count("\n", 0, body_start) + 1,
        lines=reader.lines,
        findings=(*findings, *reader.findings[:FINDINGS_MAX]),
    )


VISIBILITY_KEYS = ("visibility", "可见性")
OPEN_WORDS = frozenset({"world", "public", "公开"})
"""Values of a visibility key that show a page to everybody; of several keys the strictest holds."""


class _Reader:
    """Collects keys, in order, and what was odd about them."""

    def __init__(self) -> None:
        self.values: dict[str, FrontmatterValue] = {}
        self.lines: dict[str, int] = {}
        self.findings: list[Finding] = []

    def add(self, key: str, value: FrontmatterValue, line: int) -> None:
        """Keep a key; the first of several wins, but a second `visibility` can only hide."""
        key = identity(key)
        if key in self.values:
            self.find("FRONTMATTER_KEY_TWICE", line, f"the key {key!r} is there twice", "Keep one of the two.")
            if key.casefold() in VISIBILITY_KEYS and str(value).strip().casefold() not in OPEN_WORDS:
                self.values[key] = value
        elif len(self.values) < KEYS_MAX:
            self.values[key] = value
            self.lines[key] = line
        elif not any(finding.code == "FRONTMATTER_KEYS_LIMIT" for finding in self.findings):
            why = f"only the first {KEYS_MAX} keys are read"
            self.find("FRONTMATTER_KEYS_LIMIT", line, why, "Move the rest into the body.")

    def find(self, code: str, line: int, message: str, next_step: str) -> None:
        """Note a finding."""
        self.findings.append(Finding(code=code, line=line, message=message, next_step=next_step))


def _whole(block: str, first_line: int) -> _Reader | None:
    """The block read in one go, or None when any of it is not YAML as we take it."""
    reader = _plain(block, first_line)
    if reader:
        return reader
    reader = _Reader()
    try:
        events = _Events(block)
        for key, line, value in events.mapping():
            reader.add(key, value, first_line + line)
    except _UnreadableError:
        return None
    return reader


def _plain(block: str, first_line: int) -> _Reader | None:
    """The block read without YAML, or None when it needs it: most blocks are a few words behind their keys."""
    reader = _Reader()
    position, line = 0, first_line
    while position < len(block):
        match = _PLAIN_LINE.match(block, position)
        if not match:
            return None
        key, word, items = match.groups()
        if items is None:
            reader.add(key, _unquoted((word or "").rstrip(" ")), line)
        else:
            reader.add(key, tuple(_unquoted(item.strip(" ")) for item in items.split(",") if items), line)
        position, line = match.end(), line + 1
    return reader


def _by_key(block: str, first_line: int) -> _Reader:
    """The block read key by key, so that one bad key costs only itself."""
    reader = _Reader()
    for line, piece in _pieces(block):
        _add_piece(reader, piece, first_line + line)
    return reader


def _add_piece(reader: _Reader, piece: str, line: int) -> None:
    tab = _TAB_INDENT.search(piece)
    if tab:
        tab_line = line + piece.count("\n", 0, tab.start())
        reader.find("FRONTMATTER_TAB", tab_line, "tab in indentation", "Indent YAML by spaces.")
        piece = _TAB_INDENT.sub(lambda match: match[0].replace("\t", "  "), piece)
    key, _, raw = piece.partition(":")
    # A comment mark in a block that is no YAML is as likely text that was never meant as a comment.
    commented = " #" in raw.partition("\n")[0] and not raw.strip().startswith(('"', "'", "[", "{", "|", ">"))
    why, at = ("` #` in an unquoted value", 0) if commented else ("", 0)
    if not commented:
        try:
            for name, offset, value in list(_Events(piece).mapping()):
                reader.add(name, value, line + offset)
        except _UnreadableError as error:
            why, at = error.why, error.line
    if why:
        key = key.strip().strip("\"'")
        reader.add(key, raw.strip(), line)
        message = f"the value of {key!r} is not readable as YAML ({why}) and is kept as text"
        reader.find("FRONTMATTER_KEY_UNREADABLE", line + at, message, "Put the value into quotes.")


def _pieces(block: str) -> Iterator[tuple[int, str]]:
    """Each top-level key with the lines that belong to it, and the line it begins at, from 0."""
    lines = block.split("\n")
    indents = [len(line) - len(line.lstrip(" ")) for line in lines if line.strip()]
    indent = min(indents, default=0)
    begin: int | None = None
    for number, line in enumerate([*lines, "end:"]):
        text = line[indent:] if number < len(lines) else line
        if _CONTINUED.match(text) or not _KEY_LINE.match(text):
            continue
        if begin is not None:
            yield begin, "\n".join(kept[indent:] for kept in lines[begin:number])
        begin = number


def _prose(block: str) -> bool:
    """Whether a block that is no YAML holds lines of prose: then the fence below it is a rule of the body."""
    lines = block.split("\n")
    indent = min((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), default=0)
    loose = [n for n, line in enumerate(lines) if not (_CONTINUED.match(line[indent:]) or _KEY_LINE.match(line))]
    headings = [n for n, line in enumerate(lines) if line.startswith("#") and n and not lines[n - 1].strip()]
    return any(n and not lines[n - 1].strip() for n in loose) or bool(headings and loose)


def _leading_keys(text: str) -> int:
    """The length of the keys on top of the text, up to the first line that is neither key nor part of one."""
    length = 0
    for line in text.split("\n"):
        if not line.strip() or not (_KEY_LINE.match(line) or (_CONTINUED.match(line) and line[0] != "#")):
            break
        length += len(line) + 1
    return min(length, len(text))


class _Events:
    """Values made from the parser's events: no recursion in C, no alias expanded, lines at hand, bounded depth."""

    def __init__(self, text: str) -> None:
        self.events = self._read(text)

    @staticmethod
    def _read(text: str) -> Iterator[yaml.Event]:
        try:
            yield from yaml.parse(text, Loader=yaml.CSafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise _UnreadableError(mark.line if mark else 0, error.problem or "unreadable") from error
        except yaml.YAMLError as error:
            raise _UnreadableError(0, str(error).partition("\n")[0]) from error

    def mapping(self) -> Iterator[tuple[str, int, FrontmatterValue]]:
        """Each key of the top mapping with its line, from 0, and its value; nothing when the text has no value."""
        next(self.events)
        event = next(self.events)
        if isinstance(event, yaml.StreamEndEvent):
            return
        event = next(self.events)
        if isinstance(event, yaml.ScalarEvent) and event.value in _NULLS:
            return
        if not isinstance(event, yaml.MappingStartEvent):
            raise _UnreadableError(0, "no mapping of keys to values")
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            line = _line(event)
            yield self.key(event), line, self.value(next(self.events), 1)
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                raise _UnreadableError(_line(event), "a second document")

    def key(self, event: yaml.Event) -> str:
        """The key as typed; only scalars are keys."""
        if isinstance(event, yaml.ScalarEvent) and not event.anchor:
            return str(event.value)
        raise _UnreadableError(_line(event), "a key that is no plain word")

    def value(self, event: yaml.Event, depth: int) -> FrontmatterValue:
        """The value an event begins."""
        if depth > DEPTH_MAX:
            raise _UnreadableError(_line(event), f"nested deeper than {DEPTH_MAX}")
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _UnreadableError(_line(event), "an anchor or alias (`&`, `*`)")
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[FrontmatterValue] = []
            while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
                items.append(self.value(event, depth + 1))
            return tuple(items)
        mapping: dict[str, FrontmatterValue] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self.key(event)
            value = self.value(next(self.events), depth + 1)
            mapping.setdefault(key, value)
        return mapping


def _line(event: yaml.Event) -> int:
    return event.start_mark.line if event.start_mark else 0


def _scalar(event: yaml.ScalarEvent) -> FrontmatterValue:
    text = str(event.value)
    return text if event.style else _unquoted(text)


def _unquoted(text: str) -> FrontmatterValue:
    if text in _NULLS:
        return None
    return _BOOLEANS.get(text, text)
