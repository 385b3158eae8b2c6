"""The tiers above fusion: pages that the question names exactly, then pages that graph answers it with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gateway.retrieval.intent import Intent
from gateway.retrieval.model import Arm, ArmRow, Candidate, NameKind, NameMatch, PageRef
from gateway.retrieval.terms import HAN, STOP_ENGLISH, fold, words_of

IDENTITY_MAX = 5
"""Pages of one name that stand first; more is a name that tells nothing, and fusion orders them."""
_KIND_ORDER = {kind: order for order, kind in enumerate(NameKind)}
_HAN_RUN = re.compile(f"[{HAN}]+")
_QUOTES = " \t\"'`“”‘’「」『』《》〈〉()（）[]【】"


def name_key(name: str) -> str:
    """The form in which two spellings of a name are equal: folded, one space, without enclosing marks."""
    return " ".join(fold(name).split()).strip(_QUOTES)


def asked_names(text: str, intent: Intent) -> tuple[str, ...]:
    """The names that stand for the page itself: the whole text, and the subject of "who is X"; at most two.

    The names of a relational question are not among them: its answer is another page.
    """
    names = (text.strip(), intent.subject) if intent.plan is None else (text.strip(),)
    return tuple(dict.fromkeys(name for name in names if name and len(name) <= 512))


def only_bearer(name: str, pages: Iterable[PageRef]) -> PageRef | None:
    """The one page whose title or an alias holds every word of a name that resolves to nothing, else None.

    "Desmond" is the only Desmond there is, "the customs workshop" the only page called so with a date behind it; where
    two pages fit, or none, nothing is guessed. The pages are the title arm's, so a name that fits more pages than the
    arm brings back is not taken for unique: its first rows would fit too.
    """
    words = [word for word in words_of(name_key(name)) if word not in STOP_ENGLISH]
    if len("".join(words)) < 2:
        return None
    # Words may stand in another order; characters of a Chinese name may not.
    runs = _HAN_RUN.findall(fold(name))

    def bears(title: str) -> bool:
        folded = fold(title)
        return all(run in folded for run in runs) and set(words) <= set(words_of(folded))

    bearers = {page.page_id: page for page in pages if any(map(bears, (page.title, *page.aliases)))}
    return next(iter(bearers.values())) if len(bearers) == 1 else None


def with_identities(
    candidates: Sequence[Candidate], matches: Sequence[NameMatch], names: Sequence[str], *, parts: bool = True
) -> list[Candidate]:
    """The candidates, those that bear one of the names marked, and those that no arm brought added at the end.

    Graph's table of names decides; where it did not answer, a title, alias or slug that an arm's row shows decides.
    With `parts`, a part of a name marks its only bearer: for questions that are a name or ask for one, not for those
    that ask for another page (the earliest, an answer of the graph) and only happen to hold a title's words.
    """
    keys = {name_key(name): name for name in names}
    keys.pop("", None)
    marks: dict[str, NameMatch] = {}
    for match in matches:
        known = marks.get(match.page.page_id)
        if name_key(match.name) in keys and (known is None or _KIND_ORDER[match.kind] < _KIND_ORDER[known.kind]):
            marks[match.page.page_id] = match
    marked: list[Candidate] = []
    for candidate in candidates:
        found = marks.pop(candidate.page.page_id, None)
        kind = found.kind if found else _own_kind(candidate, keys)
        marked.append(
            candidate if kind is None else replace(candidate, identity=kind, matched_name=found.name if found else "")
        )
    if parts and not marks and all(candidate.identity is None for candidate in marked):
        marked = _part_marked(marked, names)
    for match in marks.values():
        passage = ArmRow(page=match.page, text=match.text) if match.text else None
        marked.append(
            Candidate(
                page=match.page, score=0.0, matched_by={}, passage=passage, identity=match.kind, matched_name=match.name
            )
        )
    return marked


def in_tiers(candidates: Sequence[Candidate], intent: Intent, *, limit: int) -> list[Candidate]:
    """Exact names first, then graph's answers in its order, then the others (BC-109).

    When the plan did not hold all of the question, graph's best answer is only sure of the last place (BC-107).
    """
    named = sorted(
        (candidate for candidate in candidates if candidate.identity is not None),
        key=lambda candidate: (
            _KIND_ORDER[candidate.identity or NameKind.SLUG_TAIL],
            -candidate.score,
            candidate.page.page_id,
        ),
    )[:IDENTITY_MAX]
    above = {candidate.page.page_id for candidate in named}
    others = [candidate for candidate in candidates if candidate.page.page_id not in above]
    answers = [candidate for candidate in others if Arm.RELATIONAL in candidate.matched_by]
    answers.sort(key=lambda candidate: (candidate.matched_by[Arm.RELATIONAL], candidate.page.page_id))
    if intent.plan is not None and intent.plan.sure:
        rest = [candidate for candidate in others if Arm.RELATIONAL not in candidate.matched_by]
        return [*named, *answers, *rest]
    ordered = [*named, *others]
    if answers and not any(Arm.RELATIONAL in candidate.matched_by for candidate in ordered[:limit]):
        ordered.remove(answers[0])
        ordered.insert(limit - 1, answers[0])
    return ordered


def _part_marked(candidates: Sequence[Candidate], names: Sequence[str]) -> list[Candidate]:
    """The candidates, with the only bearer of a part of a name marked. Asked only where no name is one in full."""
    parts: dict[str, str] = {}
    for name in names:
        bearer = only_bearer(name, (candidate.page for candidate in candidates))
        if bearer is not None:
            parts.setdefault(bearer.page_id, name)
    return [
        candidate
        if candidate.page.page_id not in parts
        else replace(candidate, identity=NameKind.PART, matched_name=parts[candidate.page.page_id])
        for candidate in candidates
    ]


def _own_kind(candidate: Candidate, keys: dict[str, str]) -> NameKind | None:
    page = candidate.page
    if page.slug in keys:
        return NameKind.SLUG
    if name_key(page.title) in keys:
        return NameKind.TITLE
    if any(name_key(alias) in keys for alias in page.aliases):
        return NameKind.ALIAS
    return None
