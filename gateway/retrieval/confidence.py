"""How much each arm's word counts for one query: by intent, and by how sure the arm itself is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.retrieval.intent import Intent, IntentKind
from gateway.retrieval.model import Arm, ArmResults, ArmRow
from gateway.retrieval.terms import QuestionTerms, coverage, page_units

JUDGED_ROWS = 3
"""An arm is judged by its first rows: one may be chance, and the tail says nothing of what the arm holds for sure."""

_BASE: Mapping[Arm, float] = {
    # Source: our measurement (chat memory, 272 pages, 1,982 questions): pages + chunks + vectors at 1 : 1 : 0.5 with
    # rank constant 20 gave 86.9 / 71.0 in the top 5 / first; equal weights lost to their best arm.
    Arm.LEXICAL_PAGES: 1.0,
    Arm.LEXICAL_CHUNKS: 1.0,
    Arm.DENSE: 0.5,
    # A title that shares words is a hint, and a detail is seldom on the page that is named in the question: on the demo
    # questions 0.5 lost against no title arm at all, 0.2 does not. One that is the question stands in the tier above.
    Arm.TITLE: 0.2,
    # Graph answers what was asked or nothing, so its first rows count as both lexical arms together.
    Arm.RELATIONAL: 2.0,
}
UNSURE_PLAN = 0.5
"""Factor of the relational arm when the plan does not hold all of the question, or was made by likeness."""
_BY_INTENT: Mapping[IntentKind, Mapping[Arm, float]] = {
    # What is asked for by name is found by its title: there the title arm counts as much as each lexical one.
    IntentKind.ENTITY: {Arm.TITLE: 5.0},
    IntentKind.EXACT_NAME: {Arm.TITLE: 5.0},
    # The question's verb ("invested in") is in the wrong pages too; its name is what titles find.
    IntentKind.RELATIONAL: {Arm.TITLE: 5.0},
}
LEXICAL_FLOOR = 0.3
"""A lexical arm whose first rows hold nothing of the question keeps this share of its weight: other words may have
matched through the engine's analysis that our light stems do not see."""
LEXICAL_SURE = 0.5
"""From half of the question's words on, a lexical arm counts whole: questions hold words that answers do not."""
DENSE_SURE = 0.5
DENSE_WITHOUT_WORDS = 6.0
"""Factor of the dense arm when no word is found, falling to 1 where half of the words are. On Chinese notes vectors
alone save what words miss (vague 100 against 71, cross-language 100 against 0), and there they must not be outvoted by
two arms that found nothing; on the demo questions 6 won two first places and two in the top 5 over 2, and lost none."""
DENSE_FLOOR = 0.5
"""The share a dense arm keeps whose best row is no closer than chance; it always has a nearest row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What the cosines of one embedder mean; scales differ by model, so no threshold is shared."""

    chance: float
    """The best row of a question with no answer usually comes this close."""
    relevant: float
    """From here on a passage speaks of what was asked, whatever its words."""
    high: float
    """From here on it says almost the same."""


CALIBRATIONS: Mapping[str, Calibration] = {
    # To be set anew on the demo questions with the real arms; until then from the models' published behaviour:
    # USE spreads its cosines widely, E5's all lie above 0.7.
    "use": Calibration(chance=0.30, relevant=0.45, high=0.70),
    "e5": Calibration(chance=0.80, relevant=0.85, high=0.90),
}
UNCALIBRATED = Calibration(chance=2.0, relevant=2.0, high=2.0)
"""For an unknown embedder no cosine is evidence: above every cosine, so duplicates are not declared by a guess."""


def calibration(signature: str) -> Calibration:
    """The calibration of an embedder by its signature, such as `local:use/512/1`; UNCALIBRATED for unknown ones."""
    lowered = signature.lower()
    # A remote model may be called anything, `house-embed` too.
    own = lowered.removeprefix("local:").partition("/")[0]
    return CALIBRATIONS.get(own, UNCALIBRATED)


def arm_weights(results: ArmResults, terms: QuestionTerms, intent: Intent, *, confident: bool) -> dict[Arm, float]:
    """The weight of every arm that answered.

    Args:
        results: What the arms brought.
        terms: The question's words.
        intent: What it asks for.
        confident: Whether the arms' own sureness counts; off is the ablation.
    """
    factors = _BY_INTENT.get(intent.kind, {})
    weights = {arm: _BASE[arm] * factors.get(arm, 1.0) for arm in Arm if results.rows.get(arm)}
    if results.answers:
        weights[Arm.RELATIONAL] = _BASE[Arm.RELATIONAL]
    if not confident:
        return weights
    if Arm.RELATIONAL in weights and not (intent.plan and intent.plan.sure):
        weights[Arm.RELATIONAL] *= UNSURE_PLAN
    held = {arm: words_held(rows, terms) for arm, rows in results.rows.items() if arm is not Arm.DENSE}
    for arm, share in held.items():
        if arm in weights and terms.content:
            weights[arm] *= LEXICAL_FLOOR + (1 - LEXICAL_FLOOR) * min(1.0, share / LEXICAL_SURE)
    if Arm.DENSE in weights:
        best = results.rows[Arm.DENSE][0].score
        scale = calibration(results.embedder)
        without_words = 1 - min(1.0, max(held.values(), default=0.0) / DENSE_SURE)
        weights[Arm.DENSE] *= 1 + (DENSE_WITHOUT_WORDS - 1) * without_words
        if scale is not UNCALIBRATED:
            rise = (best - scale.chance) / (scale.relevant - scale.chance)
            weights[Arm.DENSE] *= DENSE_FLOOR + (1 - DENSE_FLOOR) * min(1.0, max(0.0, rise))
    return weights


def words_held(rows: Sequence[ArmRow], terms: QuestionTerms) -> float:
    """The largest share of the question's words that one of an arm's first rows holds."""
    return max(
        (
            coverage(terms, page_units(row.page, row.text, row.heading, row.matched_tokens))
            for row in rows[:JUDGED_ROWS]
        ),
        default=0.0,
    )
