"""A page is parsed whole, purely, and once a process."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.errors import InvalidArgument
from services.domain.parser import PageParser, content_hash, decode_body, parse_page
from services.domain.slugs import slug_from_path

DEMO = Path(__file__).parents[2] / "corpora" / "demo" / "vault"


@given(st.binary(max_size=200), st.sampled_from(["notes/a", "people/王伟", "src/a.py", "concepts/node.js"]))
def test_no_bytes_are_an_error(body: bytes, slug: str) -> None:
    page = parse_page("default", slug, body)

    assert page.title
    assert page == parse_page("default", slug, body)


def test_byte_order_mark_and_line_ends_change_nothing_but_the_bytes() -> None:
    """BC-025: title `Win`; the content hash ignores BOM and line ends."""
    windows, unix = b"\xef\xbb\xbf---\r\ntitle: Win\r\n---\r\nbody\r\n", b"---\ntitle: Win\n---\nbody\n"

    assert parse_page("default", "a", windows).title == "Win"
    assert parse_page("default", "a", windows) == parse_page("default", "a", unix)
    assert content_hash(windows) == content_hash(unix)
    assert content_hash(unix) != content_hash(unix + b" ")


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"one\ntwo \xff three", "byte 8, line 2"),
        (b"one\ntwo\x00", "byte 7, line 2"),
        ("# Notes".encode("utf-16"), "byte 0, line 1"),
        (b"\xed\xa0\x80", "byte 0, line 1"),
    ],
)
def test_a_body_that_is_not_text_is_refused_with_its_place(body: bytes, named: str) -> None:
    """BC-164: wrong encoding and NUL are told with their place."""
    with pytest.raises(InvalidArgument) as refusal:
        decode_body(body)

    assert named in refusal.value.message
    assert refusal.value.reason == "ENCODING_INVALID"
    assert decode_body("文".encode()) == "文"


def test_a_page_is_parsed_once() -> None:
    parser = PageParser()

    first = parser.parse("default", "notes/a", b"# A")

    assert parser.parse("default", "notes/a", b"# A") is first
    assert parser.parse("default", "notes/a", b"# B") is not first
    assert parser.parse("default", "notes/a", b"# A", path="notes/A.md") is not first
    assert parser.parse("other", "notes/a", b"# A").source == "other"


def test_only_the_newest_pages_are_remembered() -> None:
    parser = PageParser(pages_max=2, bytes_max=1_000)
    first = parser.parse("default", "notes/1", b"# 1")

    for number in range(2, 4):
        parser.parse("default", f"notes/{number}", b"# x")

    assert parser.parse("default", "notes/1", b"# 1") is not first
    large = parser.parse("default", "notes/large", b"x" * 5_000)
    parser.parse("default", "notes/small", b"x")
    assert parser.parse("default", "notes/large", b"x" * 5_000) is not large


def test_threads_share_a_parser() -> None:
    parser = PageParser(pages_max=4)
    titles: list[str] = []

    def run() -> None:
        titles.extend(parser.parse("default", "notes/a", f"# T{n % 8}".encode()).title for n in range(200))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(set(titles)) == [f"T{n}" for n in range(8)]
    assert len(titles) == 800


def test_every_page_of_the_demo_is_read_without_a_finding() -> None:
    files = [path for path in sorted(DEMO.rglob("*")) if path.is_file()]
    pages = []
    for path in files:
        relative = path.relative_to(DEMO).as_posix()
        pages.append(parse_page("default", slug_from_path(relative), path.read_bytes(), path=relative))

    assert len(pages) >= 80
    assert {page.slug: page.findings for page in pages if page.findings} == {}
    assert all(page.chunks for page in pages)
