"""Boosts: factors from what is known of a page beyond its rank; each multiplies, is bounded, can be switched off."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date

from gateway.retrieval.model import Candidate, PageRef, Stage
from gateway.retrieval.terms import STOP_ENGLISH, QuestionTerms, fold, holds_phrase, is_han, words_of
from services.domain.page import ChunkKind

PRODUCT_MIN = 0.4
PRODUCT_MAX = 1.6
"""All boosts of a page together stay within these: with rank constant 20, 1.6 lifts rank 14 to the first at most, and
nothing lifts noise from the tail. Stacked factors without a cap are a known fault of the peer system."""

COMPILED_TRUTH = 1.05
"""For questions on what something is: the part of a page that says what is true now beats its log of events by about
one rank; a doubling, as the peer does it, buries facts that only a timeline holds."""

SOURCE_TIERS: Mapping[str, float] = {
    # First part of the slug. Demoted, never hidden. Order of size after the peer's table (archive and chat 0.5).
    "archive": 0.6, "archives": 0.6, "归档": 0.6, "存档": 0.6, "旧": 0.6,
    "chat": 0.75, "chats": 0.75, "聊天": 0.75, "群聊": 0.75, "对话": 0.75,
    "extracts": 0.6, "trash": 0.4, "回收站": 0.4,
    "bookmarks": 0.9, "收藏": 0.9, "书签": 0.9, "inbox": 0.9, "收件箱": 0.9,
}  # fmt: skip
CHAT_FOLDERS = frozenset({"chat", "chats", "聊天", "群聊", "对话"})
ARCHIVE_FOLDERS = frozenset({"archive", "archives", "归档", "存档", "旧", "trash", "回收站"})

BACKLINK_SLOPE = 0.01
BACKLINK_MAX = 1.05
"""1 + 0.01 ln(1 + n), at most 1.05 (n = 150): one rank with rank constant 20, so it decides between pages that the arms
hold for equal. The peer's 0.05 lost on the demo questions: hubs are named where others answer."""

RECENCY_STRENGTH = 0.5
RECENCY_HALF_LIFE_DAYS = 30.0
"""1 + 0.5 * 30 / (30 + age in days): a note of today gains half, one of last month a quarter, one of last year a
twenty-fifth. Only for questions that want newer pages."""

TITLE_PHRASE = 1.1
"""The question holds the page's whole title as a phrase, or the title the question's. The peer's 1.25 is six ranks with
rank constant 20, and lost on the demo questions; this is two."""
TITLE_WORDS_MIN = 2
"""A phrase of one content word is no phrase unless it is the whole title."""

Boost = Callable[[Candidate], float]


def factors(candidates: Sequence[Candidate], boost: Boost) -> list[float]:
    """The factor of every candidate, in order."""
    return [boost(candidate) for candidate in candidates]


def apply_factors(candidates: Sequence[Candidate], stages: Sequence[tuple[Stage, Sequence[float]]]) -> list[Candidate]:
    """The candidates with the factors of all stages applied and noted, best first again, ties by page id.

    The product of all boosts of a candidate stays within PRODUCT_MIN..PRODUCT_MAX, whatever the order of the stages.
    """
    boosted = []
    for position, candidate in enumerate(candidates):
        noted = {stage.value: column[position] for stage, column in stages if column[position] != 1.0}
        if not noted:
            boosted.append(candidate)
            continue
        product = min(max(math.prod(noted.values()), PRODUCT_MIN), PRODUCT_MAX)
        boosted.append(candidate.boosted(candidate.score * product, noted))
    return by_score(boosted)


def by_score(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Best first, ties by page id."""
    return sorted(candidates, key=lambda candidate: (-candidate.score, candidate.page.page_id))


def compiled_truth_boost(candidate: Candidate) -> float:
    """For a candidate whose passage is compiled truth."""
    passage = candidate.passage
    return COMPILED_TRUTH if passage is not None and passage.chunk_kind is ChunkKind.COMPILED_TRUTH else 1.0


def source_tier_boost(*, asks_for_chat: bool) -> Boost:
    """By the first folder of the slug; conversations stay where they are when they are asked for."""

    def boost(candidate: Candidate) -> float:
        folder = folder_of(candidate.page)
        return 1.0 if asks_for_chat and folder in CHAT_FOLDERS else SOURCE_TIERS.get(folder, 1.0)

    return boost


def folder_of(page: PageRef) -> str:
    """The first part of the slug of a page in a folder; empty at the top."""
    head, slash, _ = page.slug.partition("/")
    return head if slash else ""


def backlink_boost(counts: Mapping[str, int]) -> Boost:
    """By the number of pages that link to the page, on a logarithmic scale."""

    def boost(candidate: Candidate) -> float:
        count = max(0, counts.get(candidate.page.page_id, 0))
        return min(BACKLINK_MAX, 1 + BACKLINK_SLOPE * math.log1p(count))

    return boost


def recency_boost(today: date) -> Boost:
    """By the age of the page's date, or of its revision when it has none; a date ahead counts as today."""

    def boost(candidate: Candidate) -> float:
        page = candidate.page
        day = earliest_day(page.date) or (page.update_time.date() if page.update_time else None)
        if day is None:
            return 1.0
        age = max(0, (today - day).days)
        return 1 + RECENCY_STRENGTH * RECENCY_HALF_LIFE_DAYS / (RECENCY_HALF_LIFE_DAYS + age)

    return boost


def title_phrase_boost(terms: QuestionTerms) -> Boost:
    """For a title or alias that is a phrase of the question, or of which the question is a phrase.

    Never by bag of words, never inside a word.
    """
    question = terms.words
    content = tuple(word for word in question if word not in STOP_ENGLISH)

    def boost(candidate: Candidate) -> float:
        for name in (candidate.page.title, *candidate.page.aliases):
            folded = fold(name)
            # A phrase shares a content word in any case; most titles share none and need no taking apart.
            if any(word in folded for word in content) and _phrase(words_of(folded), question, content):
                return TITLE_PHRASE
        return 1.0

    return boost


def _phrase(name: tuple[str, ...], question: tuple[str, ...], content: tuple[str, ...]) -> bool:
    weighty = sum(1 for word in name if word not in STOP_ENGLISH)
    if not weighty:
        return False
    # One Han character is a word here, and hardly ever a title; two make one.
    least = TITLE_WORDS_MIN if len(name) == 1 and is_han(name[0]) else 1
    if weighty >= least and holds_phrase(question, name):
        return True
    return len(content) >= TITLE_WORDS_MIN and holds_phrase(name, content)


def earliest_day(iso: str) -> date | None:
    """The first day of a date of any precision (2026, 2026-03, 2026-03-01, also with a time); None without one."""
    parts = iso[:10].split("-")
    try:
        year, month, day = (*map(int, parts), *([1] * (3 - len(parts))))
        return date(year, month, day)
    except (ValueError, TypeError):
        return None
