"""Order for "when did I first …": among the pages that truly speak of it, the earliest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from gateway.retrieval.boosts import ARCHIVE_FOLDERS, earliest_day, folder_of
from gateway.retrieval.model import Candidate
from gateway.retrieval.terms import QuestionTerms, coverage, page_units

SCORE_FLOOR = 0.35
"""Share of the best score below which a page only brushes the subject: with rank constant 20, a page that one lexical
arm of three has at rank 15 falls below."""
COVERAGE_FLOOR = 0.6
"""Share of the best coverage of the subject's words that a page must reach: two of three, never one of two. Higher
would ask a first note for the words that the later essay found for its thought."""
COSINE_SLACK = 0.08
"""A page this close to the best cosine speaks of the subject in other words, or in the other language."""


def earliest_first(candidates: Sequence[Candidate], terms: QuestionTerms) -> list[Candidate]:
    """The relevant dated pages by date, then all others as they were; archives keep their place among the others.

    Ties of date keep the order of relevance. Scores follow the order, so that the list still falls.
    """
    if not candidates:
        return []
    top = max(candidate.score for candidate in candidates)
    judged = [
        (candidate, _coverage(candidate, terms)) for candidate in candidates if candidate.score >= SCORE_FLOOR * top
    ]
    best_coverage = max((share for _, share in judged), default=0.0)
    best_cosine = max((candidate.cosine or 0.0 for candidate, _ in judged), default=0.0)
    dated: list[tuple[date, int, Candidate]] = []
    for position, (candidate, share) in enumerate(judged):
        day = earliest_day(candidate.page.date)
        near = best_cosine > 0 and (candidate.cosine or 0.0) >= best_cosine - COSINE_SLACK
        relevant = (share > 0 and share >= COVERAGE_FLOOR * best_coverage) or near
        if day is not None and relevant and folder_of(candidate.page) not in ARCHIVE_FOLDERS:
            dated.append((day, position, candidate))
    first = [candidate for _, _, candidate in sorted(dated, key=lambda item: item[:2])]
    chosen = {candidate.page.page_id for candidate in first}
    rest = [candidate for candidate in candidates if candidate.page.page_id not in chosen]
    scores = sorted((candidate.score for candidate in candidates), reverse=True)
    return [replace(candidate, score=score) for candidate, score in zip([*first, *rest], scores, strict=True)]


def _coverage(candidate: Candidate, terms: QuestionTerms) -> float:
    passage = candidate.passage
    if passage is None:
        return coverage(terms, page_units(candidate.page, ""))
    return coverage(terms, page_units(candidate.page, passage.text, passage.heading, passage.matched_tokens))
