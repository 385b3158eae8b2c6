"""Excerpts: bounded, around the match, in any script."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from services.search.app.excerpts import beginning, excerpt

FILLER = "Words about gardens and rivers that nobody asked for. " * 12


def test_an_excerpt_shows_where_most_terms_stand_together() -> None:
    text = f"The solar day. {FILLER} Ana sold the solar fund in Lisbon. {FILLER}"
    shown = excerpt(text, ["solar", "fund", "lisbon"], 120)
    assert "solar fund in Lisbon" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")


def test_a_chinese_excerpt_shows_the_match() -> None:
    text = "今天天气很好。" * 60 + "数据库设计由程予安负责。" + "明天开会。" * 60
    shown = excerpt(text, ["数据", "据库", "设计"], 60)
    assert "数据库设计" in shown


def test_without_a_match_it_is_the_beginning_on_one_line() -> None:
    assert excerpt("# Title\n\nText  here.", ["absent"], 240) == "# Title Text here."
    assert excerpt(FILLER, ["absent"], 40) == "Words about gardens and rivers that…"


@given(
    text=st.text(max_size=400), terms=st.lists(st.text(min_size=1, max_size=6), max_size=5), limit=st.integers(20, 300)
)
def test_an_excerpt_is_one_line_within_its_limit_and_never_begins_with_half_a_character(
    text: str, terms: list[str], limit: int
) -> None:
    for shown in (excerpt(text, terms, limit), beginning(text, limit)):
        assert len(shown) <= limit
        assert "\n" not in shown
        cut = shown.removesuffix("…")
        rest = " ".join(text.split())
        if shown.endswith("…") and rest.startswith(cut) and len(cut) < len(rest):
            assert not unicodedata.combining(rest[len(cut)])
