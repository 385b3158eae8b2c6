"""Relation prototypes: sentences whose likeness tells which link a question asks for, when no rule reads it.

The caller masks the resolved name in the question, embeds question and sentences with the local embedder, and asks
`prototype_match`. Pure: vectors come in, a plan or None comes out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul

from gateway.retrieval.model import Language
from gateway.retrieval.plan import (
    ADVISES,
    ATTENDED,
    FOUNDED,
    IN,
    INVESTED_IN,
    OUT,
    WORKED_AT,
    WORKS_AT,
    Hop,
    RelationalPlan,
)
from gateway.retrieval.terms import HAN

MASK = "X"
"""Stands for the name in masked questions and prototypes, so that likeness is of relations and not of names."""
LIKENESS_FLOOR = 0.70
"""A question less like every prototype asks something else. Measured with USE: of 55 masked demo questions that are not
relational none comes closer than 0.65 with a lead; other embedders need their own, E5's cosines all lie higher. The
plan is never sure, so a wrong one costs places and no answer."""
MARGIN = 0.06
"""The best relation must lead the next relation by so much: investors and founders are asked for in like words."""
CANDIDATES_MAX = 64
"""Spans of a question that are tried as names in one call; graph takes 100."""
CANDIDATE_CHARACTERS_MAX = 12
"""Han spans longer than this are clauses; names of four to eight characters are usual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prototype:
    """A way to ask for one relation of X."""

    sentence: str
    hops: tuple[Hop, ...]


def _prototypes() -> tuple[Prototype, ...]:
    table = (
        (FOUNDED, IN, "who was behind the creation of X / whose idea was it to build X / X是哪些人一手做起来的"),
        (FOUNDED, IN, "X是谁拉起来的"),
        (
            FOUNDED,
            OUT,
            "which venture did X get off the ground / what has X built from scratch / X自己做起来了哪家公司",
        ),
        (INVESTED_IN, IN, "whose money is in X / where did X get its funding from / X的钱是谁给的"),
        (INVESTED_IN, IN, "X的资金来自哪些机构"),
        (INVESTED_IN, OUT, "where has X put its money / which bets has X made / X把钱放进了哪些公司 / X押注了哪些项目"),
        (WORKS_AT, IN, "who is on the payroll of X / who does X have on its team now / X那边现在都是些什么人"),
        (WORKS_AT, OUT, "which place does X earn a living at / what is X's day job / X现在在哪儿干活"),
        (WORKED_AT, IN, "who has moved on from X / who is no longer with X / X走了哪些人 / 谁以前是X的人"),
        (WORKED_AT, OUT, "where was X before the current job / X之前在什么地方干过"),
        (ADVISES, IN, "who does X turn to for counsel / who gives X guidance / 谁在给X出主意 / X请谁指导"),
        (ADVISES, OUT, "whom does X give counsel to / X在给哪些公司出主意"),
        (ATTENDED, IN, "who was in the room for X / who showed up for X / X都来了谁 / X到场的有哪些人"),
        (ATTENDED, OUT, "which gatherings did X show up for / X去过哪些会"),
    )
    return tuple(
        Prototype(sentence=sentence, hops=(Hop(link_types=link_types, direction=direction),))
        for link_types, direction, sentences in table
        for sentence in sentences.split(" / ")
    )


PROTOTYPES = _prototypes()


def name_candidates(text: str) -> tuple[str, ...]:
    """Spans of a question that may be names, longest first, at most CANDIDATES_MAX: for one resolution call.

    Spaced scripts give runs of one to four words, Han runs every part of two characters or more.
    """
    spans: dict[str, None] = {}
    words = list(_WORDS.finditer(text))
    for length in range(4, 0, -1):
        for start in range(len(words) - length + 1):
            chosen = words[start : start + length]
            span = text[chosen[0].start() : chosen[-1].end()]
            if _CAPITAL.search(span) and not _BREAK.search(span):
                spans[span] = None
    for run in _HAN_RUN.findall(text):
        for length in range(min(len(run), CANDIDATE_CHARACTERS_MAX), 1, -1):
            spans.update(dict.fromkeys(run[start : start + length] for start in range(len(run) - length + 1)))
    return tuple(sorted(spans, key=lambda span: -len(span))[:CANDIDATES_MAX])


def masked_question(text: str, name: str) -> str:
    """The question with the name replaced by MASK wherever it stands."""
    return re.sub(re.escape(name), MASK, text, flags=re.IGNORECASE)


def prototype_match(
    question: Sequence[float],
    vectors: Sequence[Sequence[float]],
    *,
    name: str,
    language: Language,
    prototypes: Sequence[Prototype] = PROTOTYPES,
    floor: float = LIKENESS_FLOOR,
    margin: float = MARGIN,
) -> RelationalPlan | None:
    """The plan of the relation whose prototype is most like the masked question, or None rather than a guess.

    Args:
        question: float[dimension], of the masked question.
        vectors: One per prototype, in their order, of the same dimension.
        name: The name that was masked; it has resolved.
        language: Of the question.
        prototypes: What the vectors are of.
        floor: The least cosine that counts.
        margin: The least lead over the best prototype of any other relation.
    """
    if len(vectors) != len(prototypes):
        raise ValueError(f"{len(prototypes)} prototypes need as many vectors, got {len(vectors)}")
    best: dict[tuple[Hop, ...], float] = {}
    for prototype, vector in zip(prototypes, vectors, strict=True):
        best[prototype.hops] = max(best.get(prototype.hops, -1.0), cosine(question, vector))
    ranked = sorted(best.items(), key=lambda item: -item[1])
    if not ranked or ranked[0][1] < floor or (len(ranked) > 1 and ranked[0][1] - ranked[1][1] < margin):
        return None
    hops = ranked[0][0]
    rule = f"prototype {hops[0].link_types[0]} {hops[0].direction.value}"
    return RelationalPlan(readings=((name,),), hops=hops, language=language, rule=rule, sure=False)


def cosine(left: Sequence[float], right: Sequence[float]) -> float:
    """The cosine of two vectors of one dimension; 0 when one has no length."""
    norm = math.sqrt(sum(map(mul, left, left)) * sum(map(mul, right, right)))
    return sum(map(mul, left, right)) / norm if norm else 0.0


_WORDS = re.compile(f'[^\\s{HAN},;:?!()"“”]+')
_HAN_RUN = re.compile(f"[{HAN}]{{2,}}")
_CAPITAL = re.compile(r"[A-Z0-9]|[^\x00-\x7f]")
_BREAK = re.compile(r"[,;:?!()\"“”]")
