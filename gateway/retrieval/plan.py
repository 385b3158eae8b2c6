"""What a relational question becomes: names to begin at and links to follow, with the bounds of such questions."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from gateway.retrieval.model import Direction, Language
from services.domain import relations

QUESTION_CHARACTERS_MAX = 300
"""Longer is pasted text, not a question about a link; the bound also keeps every pattern cheap."""
SEED_CHARACTERS_MAX = 80
"""Longer than any name in use; graph refuses names over 512."""
SEED_WORDS_MAX = 8
"""More words are a clause that the grammar did not read, not a name."""
HOPS_MAX = 2
"""What people ask in one sentence ("founders of companies X invested in"); a third hop is a guess at the reading."""
SEEDS_MAX = 4
"""Names joined in one question; graph takes 8."""

FOUNDED = (relations.FOUNDED,)
INVESTED_IN = (relations.INVESTED_IN, "led_round")
"""Who led a round has invested."""
WORKS_AT = (relations.WORKS_AT,)
WORKED_AT = (relations.WORKED_AT,)
WORKS_OR_WORKED_AT = (relations.WORKS_AT, relations.WORKED_AT)
ADVISES = (relations.ADVISES,)
ATTENDED = (relations.ATTENDED,)
PARTNER_OF = ("partner_of",)

OUT = Direction.OUT
IN = Direction.IN


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One step over links of any of these types."""

    link_types: tuple[str, ...]
    direction: Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationalPlan:
    """What to ask graph for. A reading with several names starts at all of them."""

    readings: tuple[tuple[str, ...], ...]
    """Ways to read the named part, best first: "Smith and Sons" is one name or, when that is no page, two."""
    hops: tuple[Hop, ...]
    """1 to HOPS_MAX, from the names outward."""
    language: Language
    rule: str
    """The rule, or the prototype, that read the question; for the trace."""
    sure: bool = True
    """False when the question asks for more than the plan holds, such as a topic or a year: its answers then are one
    arm among others and take no tier of their own."""

    @property
    def names(self) -> tuple[str, ...]:
        """Every name of every reading, for one resolution call; no repeats."""
        return tuple(dict.fromkeys(name for reading in self.readings for name in reading))

    def seeds(self, resolved: Collection[str]) -> tuple[str, ...]:
        """The first reading whose names all resolve; empty when none does, and then nothing is answered."""
        for reading in self.readings:
            if all(name in resolved for name in reading):
                return reading
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NounPhrase:
    """A part of a question that means pages: a name, and the links from the name to what is meant."""

    readings: tuple[tuple[str, ...], ...]
    hops: tuple[Hop, ...] = ()
    sure: bool = True

    def then(self, link_types: Sequence[str], direction: Direction, *, sure: bool = True) -> NounPhrase | None:
        """The phrase one hop further; None when that is further than people ask."""
        if len(self.hops) >= HOPS_MAX:
            return None
        hop = Hop(link_types=tuple(link_types), direction=direction)
        return replace(self, hops=(*self.hops, hop), sure=self.sure and sure)


def clean_question(text: str) -> str:
    """The question in one line of normal width, without end marks; empty when it is too long to be one."""
    if len(text) > 4 * QUESTION_CHARACTERS_MAX:
        return ""
    line = " ".join(unicodedata.normalize("NFKC", text).replace("’", "'").split())
    line = line.strip(" ?!.。;,~…")
    return line if len(line) <= QUESTION_CHARACTERS_MAX else ""
