"""Passages: nothing of a page is lost, nothing is too long, and code stays apart from prose."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.domain.chunker import CHARACTERS_PER_UNIT, OVERLAP_SIZE_MAX, SIZE_MAX
from services.domain.markdown import scan
from services.domain.page import Chunk, ChunkKind, ParsedPage
from services.domain.parser import parse_page

LENGTH_MAX = (SIZE_MAX + OVERLAP_SIZE_MAX) * CHARACTERS_PER_UNIT + 2 * CHARACTERS_PER_UNIT
LINES = st.one_of(
    st.sampled_from(
        [
            *("", "", "# Title", "## Work", "```", "```py", "~~~", "- item one", "> quote", "---", "===", "    code"),
            *("\ttab", "| a | b |", "<!-- x", "-->", "%% c %%", "`tick`", "``", "<pre>", "</pre>", "## Timeline"),
            "- 2024-01-02 met",
        ]
    ),
    st.text(alphabet="ab c.!?，。中文 \t", max_size=60),
    st.integers(100, 900).map(lambda n: "word " * n),
    st.integers(100, 900).map(lambda n: "字" * n),
    st.integers(1000, 6000).map(lambda n: "x" * n),
)
PAGES = st.lists(LINES, max_size=14).map("\n".join)


def chunks(text: str, slug: str = "notes/a") -> tuple[Chunk, ...]:
    return parse_page("default", slug, text.encode()).chunks


def of_kind(page: ParsedPage, kind: ChunkKind) -> list[str]:
    return [chunk.text for chunk in page.chunks if chunk.kind is kind]


@settings(max_examples=40)
@given(PAGES)
def test_no_character_of_a_page_is_lost(text: str) -> None:
    layout = scan(text)
    marks = re.compile(r"^[ \t>]*(`{3,}|~{3,})[^\n]*$|^[ \t]*<!--[ \t]*timeline[ \t]*-->$|^-{3,}$", re.MULTILINE)
    kept = Counter(c for chunk in chunks(text) for c in chunk.text if not c.isspace())

    outside = list(text)
    for fence in layout.fences:
        for position in (*range(fence.start, fence.inner_start), *range(fence.inner_end, fence.end)):
            outside[position] = " "
    wanted = Counter(c for c in marks.sub("", "".join(outside)) if not c.isspace())
    assert not wanted - kept


@settings(max_examples=40)
@given(PAGES)
def test_no_chunk_is_too_long_or_empty(text: str) -> None:
    found = chunks(text)

    assert [chunk.ordinal for chunk in found] == list(range(len(found)))
    assert all(chunk.text.strip() and len(chunk.text) <= LENGTH_MAX for chunk in found)


@settings(max_examples=40)
@given(PAGES)
def test_a_chunk_begins_at_its_line(text: str) -> None:
    lines = text.split("\n")
    starts = [chunk.start_line for chunk in chunks(text)]

    assert starts == sorted(starts)
    for chunk in chunks(text):
        assert chunk.text.split("\n")[0].strip()[:20] in lines[chunk.start_line - 1]


@settings(max_examples=40)
@given(PAGES)
def test_equal_pages_have_equal_hashes_and_another_title_none(text: str) -> None:
    one, two = chunks(text), chunks(text, "notes/other")

    assert [chunk.hash for chunk in one] == [chunk.hash for chunk in chunks(text)]
    if "# " not in text and "=" not in text:
        assert not {chunk.hash for chunk in one} & {chunk.hash for chunk in two}


def test_an_edit_leaves_the_hashes_of_other_sections() -> None:
    sections = [f"## Part {n}\n\n" + f"Sentence about {n}. " * 60 for n in range(6)]
    before = chunks("# T\n\n" + "\n\n".join(sections))
    sections[3] = sections[3].replace("Sentence", "Statement")
    after = chunks("# T\n\n" + "\n\n".join(sections))

    changed = {chunk.hash for chunk in after} - {chunk.hash for chunk in before}
    assert len(changed) == 1


def test_a_passage_that_continues_repeats_the_end_of_the_last() -> None:
    text = " ".join(f"This is sentence number {n} of a long paragraph." for n in range(120))

    found = chunks(text)

    assert len(found) > 2
    for before, after in pairwise(found):
        first = after.text.split(".")[0]
        assert first in before.text


def test_chinese_is_measured_in_characters_and_cut_at_sentences() -> None:
    text = "".join(f"这是第{n}句话，说的是果园里的事情。" for n in range(200))

    found = chunks(text)

    assert all(len(chunk.text) <= 1.5 * SIZE_MAX for chunk in found)
    assert all(chunk.text.endswith("。") for chunk in found)


def test_fenced_code_is_a_chunk_of_its_own_and_not_in_the_prose() -> None:
    page = parse_page("default", "notes/a", b"# T\n\nBefore.\n\n```Python\nx = compute()\n```\n\nAfter.\n")

    assert of_kind(page, ChunkKind.FENCED_CODE) == ["x = compute()"]
    assert of_kind(page, ChunkKind.COMPILED_TRUTH) == ["# T\n\nBefore.\n\nAfter."]
    code = next(chunk for chunk in page.chunks if chunk.kind is ChunkKind.FENCED_CODE)
    assert (code.language, code.start_line, code.heading) == ("python", 6, "T")


def test_a_code_file_is_cut_between_its_blocks() -> None:
    source = "\n\n".join(f"def function_{n}(a, b):\n" + "    total = a + b\n" * 20 for n in range(20))

    found = chunks(source, "src/tool.py")

    assert len(found) > 2
    assert {chunk.kind for chunk in found} == {ChunkKind.CODE}
    assert {chunk.language for chunk in found} == {"python"}
    assert all(chunk.text.startswith("def function_") for chunk in found)
    assert found[1].heading in found[1].text


def test_a_slug_that_only_sounds_like_code_stays_a_page() -> None:
    page = parse_page("default", "concepts/node.js", b"# Node.js\n\nA runtime, see [[concepts/event-loop]].")

    assert page.type == "concept"
    assert page.links


def test_headings_are_followed() -> None:
    text = "Intro.\n\n# One\n\n" + "First text. " * 150 + "\n\nTwo\n===\n\n" + "Second text. " * 150

    assert chunks(text)[0].heading == ""
    assert {chunk.heading for chunk in chunks(text)} == {"", "One", "Two"}


@pytest.mark.parametrize(
    ("name", "body", "code"),
    [
        ("lists", b"\n".join(b"  " * level + b"- item" for level in range(120)), "NESTED_TOO_DEEP"),
        ("quotes", b"\n".join(b">" * level + b" quoted" for level in range(1, 41)), "NESTED_TOO_DEEP"),
        ("words", b"word " * 250_000, "LINE_TOO_LONG"),
        ("letters", b"a" * 1_000_000, "LINE_TOO_LONG"),
        ("chinese", "中".encode() * 200_000, "LINE_TOO_LONG"),
        ("table", b"| a | b |\n" * 100_000, ""),
        ("brackets", b"[[" * 500_000, "LINE_TOO_LONG"),
        ("labels", b"[a](" * 100_000, "LINE_TOO_LONG"),
        ("nested labels", b"[x [a] " * 100_000, "LINE_TOO_LONG"),
        ("backticks", b" ".join(b"`" * (1 + n % 300) for n in range(12_000)), "LINE_TOO_LONG"),
        ("html", b"<pre <code <!" * 100_000, "LINE_TOO_LONG"),
        ("fences", b"```\n~~~\n" * 20_000, ""),
        ("slashes", b"people/" * 100_000, "LINE_TOO_LONG"),
        ("headings", b"# a\n" * 60_000, ""),
        ("verbs", b"- founded and invested in [[companies/a]] who joined [[companies/b]]\n" * 3_000, ""),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_monstrous_page_is_read_as_plain_text(name: str, body: bytes, code: str) -> None:
    """BC-047: bounded parse, chunked as plain text with a finding; the import goes on."""
    slug = "companies/z" if name == "verbs" else "notes/a"

    page = parse_page("default", slug, body)

    assert all(len(chunk.text) <= LENGTH_MAX for chunk in page.chunks)
    assert page.chunks
    if code:
        assert code in [finding.code for finding in page.findings]
