"""From a page's bytes to everything that projections store of it: a pure function, and a memory of its results."""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict

from services.domain.body import joined, split_body
from services.domain.chunker import chunk_code, chunk_page
from services.domain.errors import InvalidArgument
from services.domain.frontmatter import NO_FRONTMATTER, read_frontmatter
from services.domain.inference import FOLDER_TYPES, infer, readable_name
from services.domain.languages import code_language
from services.domain.links import extract_links
from services.domain.markdown import scan
from services.domain.page import Finding, ParsedPage

REMEMBERED_PAGES_MAX = 256
"""Pages kept parsed: a batch of every projection of the process, which follow each other within a second."""

REMEMBERED_BYTES_MAX = 8 * 1024 * 1024
"""Bytes of the bodies of those pages: a parsed page is some times its body, and bodies may be 5 MB."""

LINE_CHARACTERS_MAX = 64 * 1024
NESTING_MAX = 64
"""Beyond these a text is data or an accident: it is still read as plain text, and its author is told."""

_BOM = b"\xef\xbb\xbf"
_NESTED = re.compile(rf"\n(?:(?:[ \t]*>){{{NESTING_MAX // 2}}}|[ \t]{{{2 * NESTING_MAX}}})")


def decode_body(body: bytes, *, field: str = "body") -> str:
    """The text of a page as bytes, strictly.

    Raises:
        InvalidArgument: `ENCODING_INVALID` with line and byte offset when it is not UTF-8 or has a NUL.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _undecodable(body, error.start, f"byte 0x{body[error.start]:02X} is not UTF-8", field) from error
    nul = body.find(b"\0")
    if nul >= 0:
        raise _undecodable(body, nul, "there is a NUL", field)
    return text


def content_hash(body: bytes) -> bytes:
    """SHA-256 of a body without BOM and with LF line ends: what decides whether a page must be indexed again."""
    return hashlib.sha256(_normal_bytes(body)).digest()


def parse_page(source: str, slug: str, body: bytes, *, path: str = "") -> ParsedPage:
    """Read a page. Pure and total: what cannot be read is text, with a finding; bytes that are not UTF-8 are replaced.

    Args:
        source: The source the page is in; unqualified links resolve there.
        slug: Its canonical slug.
        body: Its Markdown, or its code when the slug ends like a code file.
        path: The path it was imported from, if it was.
    """
    text = visible_text(_normal_bytes(body).decode("utf-8", "replace"))
    language = code_language(path) if path else code_language(slug)
    if language and (path or not _markdown_after_all(slug, text)):
        return _code_page(source, slug, text, language)
    front = read_frontmatter(text)
    layout = scan(text, front.body_start)
    halves = split_body(layout)
    about = infer(slug, path, front, layout)
    links, link_findings = extract_links(source=source, slug=slug, path=path, about=about, front=front, layout=layout)
    return ParsedPage(
        source=source,
        slug=slug,
        title=about.title,
        type=about.type,
        tags=about.tags,
        aliases=about.aliases,
        date=about.date,
        date_source=about.date_source,
        visibility=about.visibility,
        frontmatter=front.values,
        compiled_truth=joined(text, halves.truth),
        timeline=joined(text, halves.timeline),
        chunks=chunk_page(layout, halves, about.title),
        links=links,
        findings=(*front.findings, *about.findings, *link_findings, *_shape_findings(text)),
    )


def visible_text(text: str) -> str:
    """The text that may be indexed: the one place where private facts and takes are taken out, once pages have them."""
    return text


class PageParser:
    """Parses each page once a process: all projections share one, and a page is asked for once by each of them.

    Safe to use from several threads. Two that ask for one page at the same moment may both parse it; the results are
    equal.
    """

    def __init__(self, *, pages_max: int = REMEMBERED_PAGES_MAX, bytes_max: int = REMEMBERED_BYTES_MAX) -> None:
        self._pages_max = pages_max
        self._bytes_max = bytes_max
        self._bytes = 0
        self._lock = threading.Lock()
        self._pages: OrderedDict[tuple[str, str, str, bytes], tuple[ParsedPage, int]] = OrderedDict()

    def parse(self, source: str, slug: str, body: bytes, *, path: str = "") -> ParsedPage:
        """The parsed page, from memory if it was read before."""
        key = (source, slug, path, hashlib.sha256(body).digest())
        with self._lock:
            found = self._pages.get(key)
            if found:
                self._pages.move_to_end(key)
                return found[0]
        page = parse_page(source, slug, body, path=path)
        with self._lock:
            if key not in self._pages:
                self._pages[key] = page, len(body)
                self._bytes += len(body)
            while len(self._pages) > self._pages_max or (self._bytes > self._bytes_max and len(self._pages) > 1):
                self._bytes -= self._pages.popitem(last=False)[1][1]
        return page


def _code_page(source: str, slug: str, text: str, language: str) -> ParsedPage:
    title = readable_name(slug)
    return ParsedPage(
        source=source,
        slug=slug,
        title=title,
        type="code",
        tags=tuple(dict.fromkeys(("code", language))),
        compiled_truth=text.strip("\n"),
        chunks=chunk_code(text, language, title),
        findings=_shape_findings(text),
    )


def _markdown_after_all(slug: str, text: str) -> bool:
    """Whether a page that was put under a slug like `concepts/node.js` is a Markdown page about it."""
    folders = slug.split("/")[:-1]
    known = any(FOLDER_TYPES.get(folder, "code") != "code" for folder in folders)
    return known or read_frontmatter(text) is not NO_FRONTMATTER


def _normal_bytes(body: bytes) -> bytes:
    body = body.removeprefix(_BOM)
    return body.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in body else body


def _undecodable(body: bytes, offset: int, why: str, field: str) -> InvalidArgument:
    line = body.count(b"\n", 0, offset) + 1
    return InvalidArgument(
        "ENCODING_INVALID",
        f"{why} at byte {offset}, line {line}",
        field=field,
        value=f"byte {offset}",
        next_step="Send the page as UTF-8 text without NUL.",
        metadata={"offset": str(offset), "line": str(line)},
    )


def _shape_findings(text: str) -> tuple[Finding, ...]:
    """Findings about lines that no structure can be read from."""
    findings: list[Finding] = []
    if len(text) > LINE_CHARACTERS_MAX and len(longest := max(text.split("\n"), key=len)) > LINE_CHARACTERS_MAX:
        line = text.count("\n", 0, text.find(longest)) + 1
        findings.append(
            Finding(
                code="LINE_TOO_LONG",
                line=line,
                message=f"the line has {len(longest)} characters and is read as plain text",
                next_step="Break long lines, or keep data outside of pages.",
            )
        )
    nested = _NESTED.search(text)
    if nested:
        findings.append(
            Finding(
                code="NESTED_TOO_DEEP",
                line=text.count("\n", 0, nested.start()) + 2,
                message=f"lists or quotes are nested deeper than {NESTING_MAX // 2} levels and are read as plain text",
                next_step="Flatten the list or the quote.",
            )
        )
    return tuple(findings)
