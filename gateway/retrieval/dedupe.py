"""Variety: near-copies and crowds of one type step back, so that every place in the answer says something new.

Nothing is dropped: a page that steps back still stands in the answer when there is room. That a page appears once is
fusion's work already.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from gateway.retrieval.model import Arm, ArmResults, Candidate

SIMILARITY = 0.85
"""Jaccard likeness of shingles from which two passages count as one. Source: the peer system's threshold."""
SHINGLES_MIN = 12
"""Shorter passages are alike by chance: headings, one-line notes, templates."""
PROBES = 4
"""Shingles looked up before two passages are compared whole: nearly all pairs end there."""
KEPT_PER_PLACE = 2
"""Candidates that no other copies, per place of the answer, until judging ends; further back nothing reaches it, and
comparing is quadratic."""
TYPE_SHARE = 0.6
"""No type takes more than this share of the places while others are nearly as good. Source: the peer's share."""
TYPE_SCORE_RATIO = 0.9
"""A page of another type steps forward only with this share of the score of the one that waits: with rank constant 20
that is about two ranks, so variety costs next to no relevance."""
POOL_ROWS_MAX = 500
"""The most rows search gives for one list."""
POOL_GROWTH = 4
"""So the third try holds what one page of 400 passages pushed out (50, 200, 500), and there is no fourth."""

Shingle = str | tuple[str, str]


def larger_pool(results: ArmResults, *, rows: int, limit: int) -> int | None:
    """How many rows a list to ask for next, when passages of few pages fill lists that were cut; None when enough.

    Args:
        results: What the arms brought.
        rows: How many rows a list were asked for.
        limit: How many distinct pages the caller wants.
    """
    if rows >= POOL_ROWS_MAX:
        return None
    pages = {row.page.page_id for arm_rows in results.rows.values() for row in arm_rows}
    cut = any(len(results.rows.get(arm, ())) >= rows for arm in (Arm.LEXICAL_CHUNKS, Arm.DENSE))
    return min(rows * POOL_GROWTH, POOL_ROWS_MAX) if cut and len(pages) < limit else None


def near_duplicates_last(candidates: Sequence[Candidate], *, limit: int) -> list[Candidate]:
    """The candidates with near-copies of a better one behind all others, in order; idempotent."""
    kept: list[Candidate] = []
    seen: list[frozenset[Shingle]] = []
    copies: list[Candidate] = []
    judged = 0
    for candidate in candidates:
        if len(kept) >= limit * KEPT_PER_PLACE:
            break
        judged += 1
        shingles = _shingles(candidate.text)
        if len(shingles) < SHINGLES_MIN:
            kept.append(candidate)
            continue
        whole = frozenset(shingles)
        probes = shingles[:: max(1, len(shingles) // PROBES)]
        # Probes spread over the passage: an edit that leaves it a near-copy cannot have touched them all.
        likely = (other for other in seen if not other.isdisjoint(probes))
        if any(_alike(whole, other) for other in likely):
            copies.append(candidate)
        else:
            kept.append(candidate)
            seen.append(whole)
    return [*kept, *candidates[judged:], *copies]


def diverse_types(candidates: Sequence[Candidate], *, limit: int) -> list[Candidate]:
    """The candidates with the first `limit` places shared among types where scores allow it; idempotent."""
    cap = math.ceil(TYPE_SHARE * limit)
    if len(candidates) <= cap or len({candidate.page.type for candidate in candidates}) < 2:
        return list(candidates)
    remaining = list(candidates)
    chosen: list[Candidate] = []
    taken: Counter[str] = Counter()
    while remaining and len(chosen) < limit:
        position = 0
        if taken[remaining[0].page.type] >= cap:
            roomy = [i for i, candidate in enumerate(remaining) if taken[candidate.page.type] < cap]
            best = max(roomy, key=lambda i: (remaining[i].score, remaining[i].page.page_id), default=0)
            if remaining[best].score >= TYPE_SCORE_RATIO * remaining[0].score:
                position = best
        candidate = remaining.pop(position)
        taken[candidate.page.type] += 1
        chosen.append(candidate)
    return [*chosen, *remaining]


def falling(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates in the order given with scores in 0..1 that fall strictly: who stands higher scores higher.

    Scores that fall already keep their distances; one that does not is raised just above the one below it.
    """
    step = 1e-6
    scores: list[float] = []
    for candidate in reversed(candidates):
        score = candidate.score if math.isfinite(candidate.score) else 0.0
        scores.append(max(score, scores[-1] + step) if scores else max(score, 0.0))
    scores.reverse()
    top = max(1.0, scores[0]) if scores else 1.0
    return [replace(candidate, score=score / top) for candidate, score in zip(candidates, scores, strict=True)]


def _shingles(text: str) -> list[Shingle]:
    """Pairs of neighbouring words, or runs of three characters where words are not spaced, in order."""
    words = text.lower().split()
    if len(words) * 12 >= len(text):
        return list(pairwise(words))
    return [text[i : i + 3] for i in range(len(text) - 2)]


def _alike(left: frozenset[Shingle], right: frozenset[Shingle]) -> bool:
    smaller, larger = (len(left), len(right)) if len(left) < len(right) else (len(right), len(left))
    if smaller < SIMILARITY * larger:
        return False
    shared = len(left & right)
    return shared >= SIMILARITY * (smaller + larger - shared)
