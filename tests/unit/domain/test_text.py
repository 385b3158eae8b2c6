"""Text analysis: the same terms for index and query, in English, Chinese and identifiers, for any input."""

from __future__ import annotations

import threading
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.text import (
    QUERY_TERMS_MAX,
    TERM_CHARACTERS_MAX,
    analyze,
    analyze_query,
    snippet,
    stop_term,
)


@given(st.text(alphabet=st.characters(), max_size=200))
def test_no_text_is_an_error_and_no_term_holds_a_space(text: str) -> None:
    for term in analyze(text):
        assert term
        assert len(term) <= 4 * TERM_CHARACTERS_MAX
        assert not any(c.isspace() for c in term)
        term.encode()


@given(st.text(max_size=100), st.text(max_size=100))
def test_terms_of_two_lines_are_the_terms_of_each(one: str, two: str) -> None:
    assert analyze(f"{one}\n{two}") == analyze(one) + analyze(two)


CHINESE = st.text(alphabet="的了在账本港口涡轮投资公司创立人々ノー〇", min_size=1, max_size=12)


@given(CHINESE, st.sampled_from(["，", "。", "：", " ", "a", "1 "]), CHINESE)
def test_the_words_of_a_run_of_characters_do_not_depend_on_other_runs(one: str, between: str, two: str) -> None:
    assert analyze(one + between + two) == [*analyze(one), *analyze(between), *analyze(two)]


@given(st.text(max_size=100))
def test_compatible_spellings_have_the_same_terms(text: str) -> None:
    assert analyze(text) == analyze(unicodedata.normalize("NFKC", text))


@given(st.text(max_size=100))
def test_a_query_looks_for_terms_the_index_has(text: str) -> None:
    query = analyze_query(text)

    assert set(query.terms) <= set(analyze(text))
    assert len(query.terms) == len(set(query.terms)) <= QUERY_TERMS_MAX


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Running companies", {"running", "run", "companies", "compani"}),
        ("parseHTTPResponse", {"parsehttpresponse", "parse", "http", "response"}),
        ("snake_case_name", {"snake_case_name", "snake", "case", "name"}),
        ("ORD-4471", {"ord-4471", "ord", "4471"}),
        ("C++ and C#", {"c++", "c#"}),
        ("v1.10.2", {"v1.10.2", "10"}),
        ("a/b/c.py", {"a/b/c.py", "py"}),
        ("Ana's café", {"ana", "café", "cafe"}),
        ("don’t", {"don't", "dont"}),
        ("Ｆｕｌｌ", {"full"}),
        ("STRASSE straße", {"strasse"}),
        ("王伟创立了人工智能公司", {"王伟", "创立", "人工智能", "公司"}),
        ("한국어를", {"한국", "국어"}),
        ("हिन्दी", {"हिन्दी"}),
        ("ภาษาไทย", {"ภา"}),
        ("東京タワー", {"東京"}),
    ],
)
def test_a_text_is_found_by_the_terms_people_type(text: str, terms: set[str]) -> None:
    assert terms <= set(analyze(text))


@pytest.mark.parametrize(
    "query",
    [
        *("ORD-4471", "don't", "a/b", "user:/x", "foo(bar", '"unclosed', "C++", "*", "((", "x AND", "-only"),
        *("", "\x00", "\ud800"),
    ],
)
def test_query_operators_are_only_text(query: str) -> None:
    """BC-095: never an error; literal search by default."""
    found = analyze_query(query)
    content = tuple(dict.fromkeys(term for term in analyze(query) if not stop_term(term)))

    assert found.terms == content or found.stop_words_only


def test_a_query_of_stop_words_says_so_and_still_looks_for_them() -> None:
    english, chinese = analyze_query("to be or not to be"), analyze_query("这是什么")

    assert english.stop_words_only
    assert chinese.stop_words_only
    assert english.terms == ("to", "be", "or", "not")


def test_a_question_keeps_only_what_it_is_about() -> None:
    assert analyze_query("谁投资了星海科技？").terms == ("投资", "星海", "海科", "科技")
    assert "who" not in analyze_query("Who founded Acme?").terms


def test_an_overlong_query_keeps_its_tail() -> None:
    query = analyze_query("padding words " * 8_000 + " zebra")

    assert query.cut
    assert "zebra" in query.terms


def test_threads_analyse_alike() -> None:
    results: list[list[str]] = []

    def run() -> None:
        results.extend(analyze("Running companies 王伟创立了公司 parseHTTPResponse") for _ in range(50))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(results) == 200
    assert all(result == results[0] for result in results)


@given(st.text(max_size=400), st.lists(st.text(max_size=6), max_size=5), st.integers(1, 120))
def test_a_snippet_is_short_and_from_the_text(text: str, tokens: list[str], limit: int) -> None:
    shown = snippet(text, tokens, limit)

    assert len(shown) <= limit
    assert shown.strip("…").strip() in " ".join(text.split()) or len(shown) <= 2


@pytest.mark.parametrize(
    ("text", "tokens", "wanted"),
    [
        ("A long story. " * 30 + "Ana founded Acme in 2019. " + "More text here. " * 30, ["found", "acme"],
        "Ana founded Acme"),
        ("很长的故事。" * 60 + "王伟创立了星海科技。" + "更多的文字。" * 60, ["创立", "星海"], "王伟创立了星海科技"),
    ],
)  # fmt: skip
def test_a_snippet_shows_the_place_that_matches(text: str, tokens: list[str], wanted: str) -> None:
    assert wanted in snippet(text, tokens, 80)


def test_a_snippet_never_cuts_a_character_from_its_marks() -> None:
    family = "👩\u200d👩\u200d👧"

    for limit in range(3, 60):
        shown = snippet("e\u0301" * 50 + family * 10, ["zz"], limit).strip("…")
        assert not shown.startswith(("\u0301", "\u200d"))
        assert not shown.endswith("e")
        assert not shown.endswith("\u200d")
