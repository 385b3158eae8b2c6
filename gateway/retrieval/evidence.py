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
    is_han,
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
MEANT_LETTERS = 20
"""Letters below which a passage that shares no word has no meaning to be near to; a Han character counts as
HAN_LETTERS. USE puts "x" at 0.54 from "hushtog xylo": what says nothing lies near to everything unknown."""
HAN_LETTERS = 3
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
    cosine: float
    """How near its meaning is; 0 where that is no evidence, or no vector spoke."""
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
    cosine = _meant_cosine(candidate, share)
    evidence = _kind(candidate, terms, share, cosine, scale)
    return Judged(
        candidate=candidate,
        units=units,
        coverage=share,
        cosine=cosine,
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
    cosine = max(hit.cosine for hit in head)
    if cosine >= scale.high:
        return ""
    unknown, known = _names_held(head, terms, intent, named)
    if unknown and not known:
        return _unknown_names(unknown, chinese=chinese)
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
    # Where not one word is shared, being nearer than chance is not enough: something is always nearest.
    if best >= NAMELESS_SURE or (best > 0 and cosine >= scale.chance):
        return ""
    if not best:
        return _unknown_words(terms, chinese=chinese)
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
        return ([] if known else [name for name in readings[0] if not held(name)]), known
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


def _unknown_names(names: Sequence[str], *, chinese: bool) -> str:
    """Names all that are missing: who reads one of two takes the other for known."""
    shown = names[:_WORDS_SHOWN]
    if chinese:
        return "没有任何页面提到" + "、".join(f"“{name}”" for name in shown) + "。"
    return "No page found mentions " + " or ".join(f'"{name}"' for name in shown) + "."


def _unknown_words(terms: QuestionTerms, *, chinese: bool) -> str:
    words = [terms.spellings[unit] for unit in terms.content[:_WORDS_SHOWN]]
    return (
        f"找到的内容都没有提到“{'、'.join(words)}”，含义也不够接近。"
        if chinese
        else f"No page found holds any of these words, and none is close in meaning: {', '.join(words)}."
    )


def _meant_cosine(candidate: Candidate, share: float) -> float:
    """The cosine as far as it is evidence."""
    if candidate.cosine is None:
        return 0.0
    if share > 0:
        return candidate.cosine
    text = candidate.page.title + (candidate.passage.text if candidate.passage else "")
    letters = sum(HAN_LETTERS if is_han(character) else 1 for character in text if character.isalnum())
    return candidate.cosine if letters >= MEANT_LETTERS else 0.0


def _kind(candidate: Candidate, terms: QuestionTerms, share: float, cosine: float, scale: Calibration) -> Evidence:
    match candidate.identity:
        case NameKind.SLUG | NameKind.REDIRECT | NameKind.ALIAS:
            return Evidence.ALIAS_HIT
        case NameKind.TITLE | NameKind.SLUG_TAIL:
            return Evidence.EXACT_TITLE_MATCH
        case NameKind.PART | None:
            # A part of a name is a good guess at the page, and no proof that it is the one meant.
            pass
    if Arm.RELATIONAL in candidate.matched_by:
        return Evidence.RELATIONAL
    if cosine >= scale.high:
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
