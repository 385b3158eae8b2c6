"""Frontmatter is read as typed, tolerantly, and never refuses a page."""

from __future__ import annotations

import textwrap

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from services.domain.frontmatter import DEPTH_MAX, Frontmatter, read_frontmatter
from services.domain.names import identity


def read(block: str) -> Frontmatter:
    return read_frontmatter(f"---\n{textwrap.dedent(block).strip(chr(10))}\n---\nbody\n")


def codes(front: Frontmatter) -> list[tuple[str, int]]:
    return [(finding.code, finding.line) for finding in front.findings]


@given(st.text(max_size=300))
def test_no_text_is_an_error_and_the_body_is_a_tail_of_it(text: str) -> None:
    front = read_frontmatter(text)

    assert 0 <= front.body_start <= len(text)
    assert front.body_line == text.count("\n", 0, front.body_start) + 1


@given(st.text(alphabet="ab:-[]{}#&*!|>'\"%@`?,\t\n 0", max_size=120))
def test_no_yaml_lookalike_is_an_error(block: str) -> None:
    front = read_frontmatter(f"---\nkey: 1\n{block}\n---\nbody")

    assert "key" in front.values


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,8}", fullmatch=True),
        st.one_of(st.text(max_size=20), st.lists(st.text(max_size=10), max_size=4)),
        max_size=6,
    )
)
def test_what_a_yaml_writer_writes_is_read_back(values: dict[str, str | list[str]]) -> None:
    block = yaml.safe_dump(values, allow_unicode=True, default_style='"', sort_keys=False)
    front = read_frontmatter(f"---\n{block}---\nbody")

    if values:
        expected = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
        assert dict(front.values) == expected
        assert front.findings == ()


PLAIN_WORD = st.one_of(st.from_regex(r"\w[\w ./-]{0,12}", fullmatch=True), st.sampled_from(["null", "true", "x  "]))


@given(
    st.dictionaries(
        st.from_regex(r"[A-Za-z_][\w-]{0,8}", fullmatch=True),
        st.one_of(PLAIN_WORD, st.just(""), st.lists(PLAIN_WORD, max_size=4).map(lambda words: f"[{', '.join(words)}]")),
        min_size=1,
        max_size=6,
    )
)
def test_words_without_quotes_are_what_yaml_says_they_are(values: dict[str, str]) -> None:
    block = "".join(f"{key}: {value}\n" for key, value in values.items())
    quoted = {"": None, "null": None, "true": True}
    mapping = yaml.compose(block, Loader=yaml.CSafeLoader)
    front = read_frontmatter(f"---\n{block}---\nbody")

    assert isinstance(mapping, yaml.MappingNode)
    expected = {
        identity(key.value): tuple(quoted.get(item.value, item.value) for item in value.value)
        if isinstance(value, yaml.SequenceNode)
        else quoted.get(value.value, value.value)
        for key, value in reversed(mapping.value)
    }
    assert dict(front.values) == expected


def test_words_that_yaml_1_1_made_booleans_stay_words() -> None:
    """BC-016: the YAML 1.2 core schema."""
    front = read("""
        title: No
        aliases: [on, y, Off]
        country: NO
        done: true
        open: False
    """)

    assert front.values == {
        "title": "No", "aliases": ("on", "y", "Off"), "country": "NO", "done": True, "open": False,
    }  # fmt: skip


def test_numbers_and_dates_stay_as_typed() -> None:
    """BC-017: all four stay exactly as typed."""
    front = read("""
        title: 18E05
        code: 04270
        build: 0o17
        version: 1.10
        date: 2024-01-02
    """)

    assert list(front.values.values()) == ["18E05", "04270", "0o17", "1.10", "2024-01-02"]


def test_a_malformed_value_is_kept_as_text_with_its_line() -> None:
    """BC-019: listed with line and reason."""
    front = read_frontmatter("---\n path: `C:\\agent\\run`\n---\nMARK")

    assert front.values == {"path": "`C:\\agent\\run`"}
    assert codes(front) == [("FRONTMATTER_KEY_UNREADABLE", 2)]


def test_markdown_in_values_costs_only_its_own_keys() -> None:
    """BC-020: each bad key kept as raw text plus a warning; other keys parsed."""
    front = read("""
        title: *Emphasis*
        related:
          - [[people/ana-example]]suffix
        note: text # 1) not a comment?
        tags: [a, b]
    """)

    assert front.values == {
        "title": "*Emphasis*",
        "related": "- [[people/ana-example]]suffix",
        "note": "text # 1) not a comment?",
        "tags": ("a", "b"),
    }
    assert [code for code, _ in codes(front)] == ["FRONTMATTER_KEY_UNREADABLE"] * 3


def test_a_colon_in_a_title_needs_no_quotes() -> None:
    front = read("title: Re: plan\ntype: note")

    assert front.values == {"title": "Re: plan", "type": "note"}


@pytest.mark.parametrize(
    "text",
    [
        "---\nJust a rule at the top, no closing fence.\n\n# Heading\nMARK-END",
        "---\nA rule.\n\n---\nMARK-END",
        "---\n- a\n- list\n---\nMARK-END",
        "---\n\n# Heading\nMARK-END",
        "---",
    ],
)
def test_a_rule_on_top_is_body(text: str) -> None:
    """BC-022: no YAML mapping inside, so it is body."""
    assert read_frontmatter(text).body_start == 0


def test_rules_in_the_body_cut_nothing() -> None:
    """BC-023: the full body is kept."""
    text = "---\ntitle: Long\n---\nPart one\n\n---\n\nPart two MARK-TAIL\n"

    front = read_frontmatter(text)

    assert text[front.body_start :] == "Part one\n\n---\n\nPart two MARK-TAIL\n"


def test_prose_above_a_far_rule_is_not_swallowed() -> None:
    text = "---\nNote: this began as a page\n\nwith prose in it.\n\n---\nmore"

    front = read_frontmatter(text)

    assert "with prose in it." in text[front.body_start :]
    assert front.findings[0].code == "FRONTMATTER_UNCLOSED"


def test_a_tab_is_named_with_its_line_and_read_all_the_same() -> None:
    """BC-026: a finding with line 3 and 'tab in indentation'."""
    front = read_frontmatter("---\ntags:\n\t- alpha\n---\nbody")

    assert front.values == {"tags": ("alpha",)}
    assert codes(front) == [("FRONTMATTER_TAB", 3)]
    assert front.findings[0].message == "tab in indentation"


def test_quotes_and_nulls_are_told_apart() -> None:
    """BC-031: a lone quote is kept, three nulls are null."""
    front = read("""
        quote: '"'
        empty:
        nil: null
        tilde: ~
        text: "null"
    """)

    assert front.values == {"quote": '"', "empty": None, "nil": None, "tilde": None, "text": "null"}


def test_an_unclosed_block_still_counts() -> None:
    front = read_frontmatter("---\ntitle: Open\ntags: [a]\n\nBody text\n")

    assert front.values == {"title": "Open", "tags": ("a",)}
    assert codes(front) == [("FRONTMATTER_UNCLOSED", 1)]


def test_of_two_equal_keys_the_first_counts_but_privacy_wins() -> None:
    front = read("title: one\ntitle: two\nvisibility: world\nvisibility: private")

    assert front.values == {"title": "one", "visibility": "private"}
    assert [code for code, _ in codes(front)] == ["FRONTMATTER_KEY_TWICE"] * 2


def test_anchors_are_not_expanded() -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40)]
    front = read("\n".join(lines))

    assert front.values["a39"] == "&a39 [*a38, *a38]"


@pytest.mark.parametrize("opening", ["[", "{", "- ", "a: [", '"', "? "])
def test_deep_nesting_is_bounded(opening: str) -> None:
    front = read_frontmatter("---\nok: 1\ndeep: " + opening * 50_000 + "\n---\nbody")

    assert front.values["ok"] == "1"


def test_nesting_up_to_the_limit_is_read() -> None:
    front = read("a: " + "[" * (DEPTH_MAX - 1) + "x" + "]" * (DEPTH_MAX - 1))

    assert front.findings == ()


def test_keys_are_found_whatever_their_case() -> None:
    assert read("Title: X").get("title") == "X"
