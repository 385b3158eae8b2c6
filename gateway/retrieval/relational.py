"""Relational questions as plans, English and Chinese: by rules, and where they miss by likeness to prototypes."""

from __future__ import annotations

from gateway.retrieval import relational_chinese, relational_english
from gateway.retrieval.model import Language
from gateway.retrieval.plan import RelationalPlan, clean_question

_GRAMMARS = (
    (relational_chinese.parse, Language.CHINESE),
    (relational_english.parse, Language.ENGLISH),
)


def parse_relational(text: str) -> RelationalPlan | None:
    """The plan of a relational question, or None: for another question, a negated one, or one without a name."""
    question = clean_question(text)
    if not question:
        return None
    for parse, language in _GRAMMARS:
        read = parse(question)
        if read is not None:
            rule, phrase = read
            return RelationalPlan(
                readings=phrase.readings, hops=phrase.hops, language=language, rule=rule, sure=phrase.sure
            )
    return None
