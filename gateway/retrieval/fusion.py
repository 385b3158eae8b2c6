"""Fusion: the lists of the arms become one list of pages, by rank alone, so that scores of engines never meet."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from gateway.retrieval.model import Arm, ArmResults, ArmRow, Candidate, RelationalAnswer

RANK_CONSTANT = 20
"""Source: our measurement (1,982 questions): 20 with weights 1 : 1 : 0.5 put the right page first in 71.0 % and in the
top 5 in 86.9 %. The usual 60 (Cormack, Clarke, Buettcher, SIGIR 2009) flattens the first ranks more than lists of 50
rows can bear."""
POOL_MIN = 60
POOL_PER_PLACE = 4
"""Pages that go on to the later stages: at least 60, and 4 per place of the answer. No boost lifts a page from further
back (their product is at most 1.6, which is 14 ranks from the first), and every stage is paid per page."""


def reciprocal_rank_fusion(
    rankings: Mapping[Arm, Sequence[str]], *, weights: Mapping[Arm, float], rank_constant: float = RANK_CONSTANT
) -> list[tuple[str, float]]:
    """Merges ranked lists of ids by rank alone; best first, ties by id, whatever the order of the mapping.

    An id's score is the sum over arms of weight / (rank_constant + rank), rank from 1; absence adds nothing.

    Args:
        rankings: Per arm its ids, best first, no repeats within a list.
        weights: Per arm its weight, at least 0; an arm without one counts 1.
        rank_constant: Larger flattens the advantage of the first ranks; at least 0.

    Source: Cormack, Clarke, Buettcher, "Reciprocal Rank Fusion outperforms Condorcet", SIGIR 2009.
    """
    scores: dict[str, float] = {}
    # In the arms' own order, because the order of float additions shows in the last digit and so in ties.
    for arm in sorted(rankings):
        weight = weights.get(arm, 1.0)
        for rank, key in enumerate(rankings[arm], start=1):
            scores[key] = scores.get(key, 0.0) + weight / (rank_constant + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def page_ranking(rows: Iterable[ArmRow]) -> dict[str, ArmRow]:
    """The pages of a list, each by its best row, in order: many passages of one page are one vote."""
    best: dict[str, ArmRow] = {}
    for row in rows:
        best.setdefault(row.page.page_id, row)
    return best


def fuse(
    results: ArmResults, *, weights: Mapping[Arm, float], limit: int, rank_constant: float = RANK_CONSTANT
) -> list[Candidate]:
    """Candidates, one per page, best first; each with its ranks and the passage that the arms together like best.

    The score is divided by that of a page that every arm puts first, so it is in 0..1 and says how far the arms agree.

    Args:
        results: What the arms brought.
        weights: Per arm its weight.
        limit: Places of the answer; the pool is at most max(POOL_MIN, POOL_PER_PLACE * limit) pages beside graph's.
        rank_constant: As for `reciprocal_rank_fusion`.
    """
    by_arm = {arm: page_ranking(rows) for arm, rows in results.rows.items() if rows}
    answers: dict[str, RelationalAnswer] = {}
    for answer in results.answers:
        answers.setdefault(answer.page.page_id, answer)
    rankings: dict[Arm, list[str]] = {arm: list(pages) for arm, pages in by_arm.items()}
    if answers:
        rankings[Arm.RELATIONAL] = list(answers)
    fused = reciprocal_rank_fusion(rankings, weights=weights, rank_constant=rank_constant)
    pool = max(POOL_MIN, POOL_PER_PLACE * limit)
    kept = fused[:pool] + [item for item in fused[pool:] if item[0] in answers]
    passages = _best_passages(results, weights, rank_constant, {key for key, _ in kept})
    matched: dict[str, dict[Arm, int]] = {key: {} for key, _ in kept}
    for arm, keys in rankings.items():
        for rank, key in enumerate(keys, start=1):
            if key in matched:
                matched[key][arm] = rank
    dense = by_arm.get(Arm.DENSE, {})
    full = sum(weights.get(arm, 1.0) / (rank_constant + 1) for arm in rankings) or 1.0
    pages_by_arm = list(by_arm.values())
    candidates = []
    for key, score in kept:
        row = passages.get(key) or next((pages[key] for pages in pages_by_arm if key in pages), None)
        found = answers.get(key)
        # Index rows come first: they know a page's aliases and date, which graph does not.
        page = row.page if row is not None else answers[key].page
        if row is None and found is not None and found.text:
            row = ArmRow(page=page, text=found.text)
        close = dense.get(key)
        candidates.append(
            Candidate(
                page=page,
                score=score / full,
                matched_by=matched[key],
                passage=row,
                cosine=close.score if close is not None else None,
                path=found.path if found is not None else (),
            )
        )
    return candidates


def _best_passages(
    results: ArmResults, weights: Mapping[Arm, float], rank_constant: float, pages: Container[str]
) -> dict[str, ArmRow]:
    """Per page the passage with the highest fused score over the passage-grained arms; ties by ordinal."""
    scores: dict[tuple[str, int], float] = {}
    rows: dict[tuple[str, int], ArmRow] = {}
    for arm in (Arm.LEXICAL_CHUNKS, Arm.DENSE):
        weight = weights.get(arm, 1.0)
        for rank, row in enumerate(results.rows.get(arm, ()), start=1):
            page_id, ordinal = row.page.page_id, row.ordinal
            if ordinal is None or not row.text or page_id not in pages:
                continue
            key = (page_id, ordinal)
            scores[key] = scores.get(key, 0.0) + weight / (rank_constant + rank)
            rows.setdefault(key, row)
    best: dict[str, tuple[float, int]] = {}
    for (page_id, ordinal), score in scores.items():
        known = best.get(page_id)
        if known is None or (score, -ordinal) > (known[0], -known[1]):
            best[page_id] = (score, ordinal)
    return {page_id: rows[page_id, ordinal] for page_id, (_, ordinal) in best.items()}
