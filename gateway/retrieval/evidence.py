"""Why a hit is here, in one word and one sentence; whether a page exists already; and when to say "I don't know"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.retrieval.confidence import Calibration
from gateway.retrieval.intent import Intent, IntentKind
from gateway.retrieval.model import Arm, Candidate, CreateSafety, Evidence, Language, NameKind, PathStep
from gateway.retrieval.terms import (
    QuestionTerms,
    TextUnits,
    coverage,
    fold,
    holds_phrase,
    page_units,
    question_terms,
    words_of,
)
from services.domain.relations import RELATIONS

KEYWORD_EXACT = 0.99
"""Every content word of the question."""
ABSTAIN_JUDGED = 10
"""Hits that may save an answer from abstention: what a caller reads."""
REST_SURE = 0.34
"""Of a question about a known name, the share of its other words that a passage on that name must hold: "When is Ana
Ferro's birthday?" finds Ana's page and no birthday. More than one of three, because an answer has its own words."""
NAMELESS_SURE = 0.2
"""Of a question that names nothing, the share of its words below which only meaning can speak for a hit. Low, because
who half remembers a thing describes it in other words, and the nearest pages are then what is wanted."""
_CALENDAR = frozenset(
    """january february march april may june july august september october november december jan feb mar apr jun jul
    aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday spring summer autumn winter
    english chinese""".split()
)
"""Capitals that name no page."""
_WORDS_SHOWN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A candidate with what the question's words and the vectors say of it."""

    candidate: Candidate
    units: TextUnits
    coverage: float
    evidence: Evidence
    sentence: str
    create_safety: CreateSafety


def judge(candidate: Candidate, terms: QuestionTerms, scale: Calibration, *, language: Language) -> Judged:
    """The evidence of a candidate: the strongest kind that holds."""
    passage = candidate.passage
    units = (
        page_units(candidate.page, passage.text, passage.heading, passage.matched_tokens)
        if passage
        else page_units(candidate.page, "")
    )
    share = coverage(terms, units)
    evidence = _kind(candidate, terms, share, scale)
    return Judged(
        candidate=candidate,
        units=units,
        coverage=share,
        evidence=evidence,
        sentence=_sentence(candidate, terms, units, evidence, language),
        create_safety=_safety(evidence),
    )


def abstention(
    judged: Sequence[Judged],
    terms: QuestionTerms,
    scale: Calibration,
    intent: Intent,
    *,
    named: Sequence[str] = (),
    graph_answered: bool = True,
) -> str:
    """Why the answer should be "I don't know", in the query's language; empty when something found is relevant.

    Deterministic, from what the arms brought: a page with the asked name, an answer of graph, words, cosines.

    Args:
        judged: The hits, best first.
        terms: The question's words.
        scale: What the embedder's cosines mean.
        intent: The question's kind.
        named: Names of the question that graph resolved.
        graph_answered: Whether graph was there to say that there is no such link.
    """
    chinese = intent.language is Language.CHINESE
    if not judged:
        return "没有找到任何页面。" if chinese else "No page was found."
    head = judged[:ABSTAIN_JUDGED]
    if any(hit.evidence in {Evidence.ALIAS_HIT, Evidence.EXACT_TITLE_MATCH, Evidence.RELATIONAL} for hit in head):
        return ""
    if not terms.content:
        return ""
    cosine = max((hit.candidate.cosine or 0.0 for hit in head), default=0.0)
    if cosine >= scale.high:
        return ""
    unknown, known = _names_held(head, terms, intent, named)
    if unknown and not known:
        return _unknown_name(unknown[0], chinese=chinese)
    if intent.plan is not None:
        # Graph knows the name and no such link; only a text that says the whole of it may speak against graph.
        if not (intent.plan.sure and graph_answered) or any(hit.coverage >= KEYWORD_EXACT for hit in head):
            return ""
        return (
            "图谱中没有这样的关系，找到的文字也没有说明。"
            if chinese
            else "The graph has no such link, and no passage found says it in words."
        )
    if cosine >= scale.relevant and not unknown:
        return ""
    if known:
        # What asks for a time asks in verbs (hear, notice, 关注) that the notes themselves need not have.
        if intent.kind in {IntentKind.FIRST_TIME, IntentKind.MOST_RECENT}:
            return ""
        return _silent_on_name(head, terms, known, chinese=chinese)
    best = max(hit.coverage for hit in head)
    if best >= NAMELESS_SURE or cosine >= scale.chance:
        return ""
    return (
        f"找到的内容最多只涉及问题中 {best:.0%} 的词语，含义也不够接近。"
        if chinese
        else f"The nearest passage holds {best:.0%} of the question's words, and none is close in meaning."
    )


def _silent_on_name(head: Sequence[Judged], terms: QuestionTerms, known: Sequence[str], *, chinese: bool) -> str:
    """Why nothing found answers a question about known names; empty when a passage on one speaks of the rest too."""
    of_names = {unit for name in known for unit in question_terms(name).content}
    rest = [unit for unit in terms.content if unit not in of_names]
    on_name = [hit for hit in head if any(hit.units.names(fold(name)) for name in known)]
    if not rest or not on_name:
        return ""
    held = max(sum(map(hit.units.holds, rest)) for hit in on_name)
    if held >= REST_SURE * len(rest):
        return ""
    missing = ("、" if chinese else ", ").join(terms.spellings[unit] for unit in rest[:_WORDS_SHOWN])
    return (
        f"找到了“{known[0]}”，但没有关于“{missing}”的内容。"
        if chinese
        else f'Pages on "{known[0]}" were found, but none says anything of: {missing}.'
    )


def _names_held(
    head: Sequence[Judged], terms: QuestionTerms, intent: Intent, named: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The names of the question that no hit holds, and those that one does or that graph knows.

    Names are what the question spells as such, and every title or alias of a hit that stands in it: so names are known
    in Chinese too.
    """
    resolved = {fold(name) for name in named}

    def held(name: str) -> bool:
        return fold(name) in resolved or any(hit.units.names(fold(name)) for hit in head)

    if intent.plan is not None:
        # One name, read in several ways: it is known when one of them is.
        readings = intent.plan.readings
        known = next((list(reading) for reading in readings if all(map(held, reading))), [])
        return ([] if known else list(readings[0])), known
    if intent.kind is IntentKind.ENTITY and intent.person and intent.subject:
        names = [intent.subject]
    else:
        names = [name for name in terms.names if not set(name.split()) <= _CALENDAR]
    titles = [
        name
        for hit in head
        for name in (hit.candidate.page.title, *hit.candidate.page.aliases)
        if len(name) > 1 and holds_phrase(terms.words, words_of(fold(name)))
    ]
    known = list(dict.fromkeys([*titles, *(name for name in names if held(name))]))
    return [name for name in names if not held(name)], known


def _unknown_name(name: str, *, chinese: bool) -> str:
    return f"没有任何页面提到“{name}”。" if chinese else f'No page found mentions "{name}".'


def _kind(candidate: Candidate, terms: QuestionTerms, share: float, scale: Calibration) -> Evidence:
    match candidate.identity:
        case NameKind.SLUG | NameKind.REDIRECT | NameKind.ALIAS:
            return Evidence.ALIAS_HIT
        case NameKind.TITLE | NameKind.SLUG_TAIL:
            return Evidence.EXACT_TITLE_MATCH
        case None:
            pass
    if Arm.RELATIONAL in candidate.matched_by:
        return Evidence.RELATIONAL
    if candidate.cosine is not None and candidate.cosine >= scale.high:
        return Evidence.HIGH_VECTOR_MATCH
    by_words = candidate.matched_by.keys() - {Arm.DENSE}
    if by_words and terms.content and share >= KEYWORD_EXACT:
        return Evidence.KEYWORD_EXACT
    return Evidence.WEAK_SEMANTIC


def _safety(evidence: Evidence) -> CreateSafety:
    """Whether a page for what was asked exists. A close vector is only probable: its scale depends on the embedder."""
    match evidence:
        case Evidence.ALIAS_HIT | Evidence.EXACT_TITLE_MATCH:
            return CreateSafety.EXISTS
        case Evidence.RELATIONAL | Evidence.HIGH_VECTOR_MATCH | Evidence.KEYWORD_EXACT:
            return CreateSafety.PROBABLE
        case Evidence.WEAK_SEMANTIC:
            return CreateSafety.UNKNOWN


def _sentence(
    candidate: Candidate, terms: QuestionTerms, units: TextUnits, evidence: Evidence, language: Language
) -> str:
    chinese = language is Language.CHINESE
    name = candidate.matched_name or candidate.page.title
    match evidence:
        case Evidence.ALIAS_HIT | Evidence.EXACT_TITLE_MATCH:
            return _identity_sentence(candidate.identity, name, chinese=chinese)
        case Evidence.RELATIONAL:
            path = path_text(candidate.path, chinese=chinese)
            return f"图谱关系：{path}。" if chinese else f"The graph says: {path}."
        case Evidence.HIGH_VECTOR_MATCH:
            cosine = candidate.cosine or 0.0
            return (
                f"含义与问题非常接近（余弦 {cosine:.2f}）。"
                if chinese
                else f"Very close in meaning (cosine {cosine:.2f})."
            )
        case Evidence.KEYWORD_EXACT | Evidence.WEAK_SEMANTIC:
            return _words_sentence(candidate, terms, units, chinese=chinese)


def _identity_sentence(kind: NameKind | None, name: str, *, chinese: bool) -> str:
    match kind:
        case NameKind.SLUG:
            return f"它的路径正是“{name}”。" if chinese else f'Its slug is exactly "{name}".'
        case NameKind.REDIRECT:
            return f"它曾用路径“{name}”。" if chinese else f'Its slug was "{name}" before it moved.'
        case NameKind.ALIAS:
            return f"“{name}”是它的别名。" if chinese else f'"{name}" is one of its aliases.'
        case NameKind.SLUG_TAIL:
            return f"它的文件名正是“{name}”。" if chinese else f'The last part of its slug is "{name}".'
        case _:
            return f"标题正是“{name}”。" if chinese else f'Its title is exactly "{name}".'


def path_text(path: Sequence[PathStep], *, chinese: bool) -> str:
    """The links of an answer as one line, each in its own direction, in the words of the table of relations."""
    steps = []
    for step in path:
        relation = RELATIONS.get(step.link_type)
        verb = step.link_type if relation is None else relation.chinese if chinese else relation.english
        steps.append(f"{step.from_slug} {verb} {step.to_slug}")
    return ("，" if chinese else ", ").join(steps)


def _words_sentence(candidate: Candidate, terms: QuestionTerms, units: TextUnits, *, chinese: bool) -> str:
    held = [terms.spellings[unit] for unit in terms.content if units.holds(unit)]
    missing = [terms.spellings[unit] for unit in terms.content if terms.spellings[unit] not in held]
    if not held:
        if candidate.cosine is not None:
            near = f"{candidate.cosine:.2f}"
            return (
                f"没有共同的词语，只是含义相近（余弦 {near}）。"
                if chinese
                else f"Shares no word with the question; near in meaning only (cosine {near})."
            )
        return "只有常用词相同。" if chinese else "Shares only common words with the question."
    shown = ("、" if chinese else ", ").join(held[:_WORDS_SHOWN])
    if not missing:
        return f"包含问题中的全部词语：{shown}。" if chinese else f"Has every word of the question: {shown}."
    lost = ("、" if chinese else ", ").join(missing[:_WORDS_SHOWN])
    if chinese:
        return f"包含问题 {len(terms.content)} 个词语中的 {len(held)} 个：{shown}；没有：{lost}。"
    return f"Has {len(held)} of {len(terms.content)} words of the question: {shown}; not: {lost}."
