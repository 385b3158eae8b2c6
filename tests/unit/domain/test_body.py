"""Compiled truth and timeline: a page is split only where it says so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.parser import parse_page


def halves(text: str) -> tuple[str, str]:
    page = parse_page("default", "notes/a", text.encode())
    return page.compiled_truth, page.timeline


@pytest.mark.parametrize(
    ("text", "truth", "timeline"),
    [
        ("A\n<!-- timeline -->\nB", "A", "B"),
        ("A\n<!--timeline-->\nB", "A", "B"),
        ("A\n--- TIMELINE ---\nB", "A", "B"),
        ("甲\n\n<!-- 时间线 -->\n乙", "甲", "乙"),
        ("甲\n\n--- 时间线 ---\n\n乙", "甲", "乙"),
        ("Truth.\n\n---\n\n## History\n- 2020: x", "Truth.", "## History\n- 2020: x"),
        ("A\n\n---\n\nB", "A\n\n---\n\nB", ""),
        (
            "A\n\n## Timeline\n- **2024-01-02** | s — e\n\n## Next\nB",
            "A\n\n## Next\nB",
            "## Timeline\n- **2024-01-02** | s — e",
        ),
        ("A\n\n## 时间线\n\n- 2024年3月5日 成立\n  细节", "A", "## 时间线\n\n- 2024年3月5日 成立\n  细节"),
        ("A\n## History\nWe began in 1990.", "A\n## History\nWe began in 1990.", ""),
        ("## Timeline\n- 2024-01-02 x", "", "## Timeline\n- 2024-01-02 x"),
        (
            "A\n\n## Timeline\n\n### 2024-04-04 — Launch\nIt went well.",
            "A",
            "## Timeline\n\n### 2024-04-04 — Launch\nIt went well.",
        ),
        ("```\n<!-- timeline -->\n```\nB", "```\n<!-- timeline -->\n```\nB", ""),
        ("A says <!-- timeline --> inline", "A says <!-- timeline --> inline", ""),
    ],
)  # fmt: skip
def test_a_page_is_split_where_it_says_so(text: str, truth: str, timeline: str) -> None:
    assert halves(text) == (truth, timeline)


def test_a_rule_cuts_nothing() -> None:
    """BC-023: the text after the second rule stays, and its link exists."""
    page = parse_page(
        "default",
        "notes/long",
        b"---\ntitle: Long\n---\nPart one\n\n---\n\nPart two [[concepts/tail-example]] MARK-TAIL\n",
    )

    assert "MARK-TAIL" in page.compiled_truth
    assert [link.name for link in page.links] == ["concepts/tail-example"]


@given(st.text(alphabet="ab\n#-<!> timeline2024*`", max_size=200))
def test_both_halves_together_hold_all_words(text: str) -> None:
    truth, timeline = halves("Q " + text)

    assert "Q" in truth
    letters = sum(c in "ab" for c in text)
    assert sum(c in "ab" for c in truth + timeline) == letters
