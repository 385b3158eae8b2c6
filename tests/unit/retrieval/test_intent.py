"""Intent of English and Chinese questions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.retrieval.intent import IntentKind, classify
from gateway.retrieval.model import Language
from gateway.retrieval.terms import detect_language, question_terms, stem


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("who is Dana Ruiz", IntentKind.ENTITY),
        ("董娜是谁", IntentKind.ENTITY),
        ("介绍一下澜石科技", IntentKind.ENTITY),
        ("tell me about Northwind", IntentKind.ENTITY),
        ("what do I know about slow software", IntentKind.ENTITY),
        ("when did I first write about heat islands", IntentKind.FIRST_TIME),
        ("我什么时候开始关注城市热岛", IntentKind.FIRST_TIME),
        ("我第一次提到城市热岛是什么时候", IntentKind.FIRST_TIME),
        ("when did I last talk to Ben", IntentKind.MOST_RECENT),
        ("上次见董娜聊了什么", IntentKind.MOST_RECENT),
        ("what happened last month", IntentKind.TEMPORAL),
        ("最近和董娜聊了什么", IntentKind.TEMPORAL),
        ("when is the launch", IntentKind.TEMPORAL),
        ("谁投资了北风", IntentKind.RELATIONAL),
        ("who first invested in Northwind", IntentKind.RELATIONAL),
        ("people/dana-ruiz", IntentKind.EXACT_NAME),
        ("Atlas budget", IntentKind.EXACT_NAME),
        ("ORD-4471", IntentKind.EXACT_NAME),
        ("城市热岛笔记", IntentKind.EXACT_NAME),
        ("how do queues behave under load", IntentKind.GENERAL),
        ("为什么筷子的长度重要", IntentKind.GENERAL),
    ],
)
def test_the_kind_of_a_question_is_read_in_both_languages(question: str, kind: IntentKind) -> None:
    assert classify(question).kind is kind


def test_a_question_with_an_explicit_present_keeps_its_subject_and_wants_newer_pages() -> None:
    intent = classify("who is Dana Ruiz today")

    assert (intent.subject, intent.recency) == ("Dana Ruiz", True)
    assert classify("what is going on with Northwind").recency
    assert classify("澜石科技最近有什么进展").recency


def test_without_the_relational_arm_no_plan_is_made() -> None:
    assert classify("谁投资了北风", relational=False).plan is None


def test_a_chinese_name_in_an_english_question_leaves_it_english() -> None:
    assert detect_language("who invested in 北风") is Language.ENGLISH
    assert detect_language("Kubernetes 是什么") is Language.CHINESE


@pytest.mark.parametrize("query", ["the who", "to be or not to be", "it", "这个是什么", "有没有"])
def test_a_question_of_stop_words_is_known_as_one(query: str) -> None:
    """BC-100."""
    assert question_terms(query).stopwords_only


def test_a_long_paste_is_judged_by_the_question_at_its_end() -> None:
    """BC-101."""
    terms = question_terms("lorem ipsum dolor " * 4_000 + "Who owns Acme Example?")

    assert terms.content[-2:] == ("acm", "exampl")
    assert len(terms.content) <= 64
    assert "acme example" in terms.names


@pytest.mark.parametrize(
    "words", ["invest invested invests investing", "company companies", "battery batteries", "note notes"]
)
def test_forms_of_a_word_share_their_stem(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == 1


OPERATORS = [
    "ORD-4471",
    "don't",
    "a/b",
    "user:/x",
    "foo(bar",
    '"unclosed',
    "C++",
    "*",
    "((",
    "x AND",
    "-only",
    "100%",
    "\\",
]


@pytest.mark.parametrize("query", OPERATORS)
def test_operators_in_a_question_are_text(query: str) -> None:
    """BC-095, BC-097."""
    classify(query)
    question_terms(query)


@given(st.text(max_size=600))
def test_every_text_has_an_intent_and_bounded_terms(text: str) -> None:
    terms = question_terms(text)

    assert classify(text).kind in IntentKind
    assert len(terms.content) <= 64
    assert len(set(terms.content)) == len(terms.content)
