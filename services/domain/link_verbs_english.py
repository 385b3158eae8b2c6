"""The verbs of the English rules, and where a sentence holds them."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from services.domain.link_types import MARK, VERBS_MAX
from services.domain.relations import ADVISES, ATTENDED, FOUNDED, INVESTED_IN, WORKED_AT, WORKS_AT

TITLE = (  # Of folded text, as all patterns here.
    r"(?:ceo|cto|coo|cfo|cmo|cro|cpo|cio|chief\s+[a-z]+(?:\s+officer)?|(?:vice\s+)?president|vp(?:\s+of\s+\w+)?|"
    r"head\s+of\s+[\w-]+(?:\s+[\w-]+)?|heads?\s+up|director\s+of\s+\w+|"
    r"(?:[a-z]+\s+){0,2}(?:partner|principal|director|engineer|designer|analyst|developer|scientist|researcher|manager|"
    r"lead|chair(?:man|woman|person)?|employee|associate|staff|intern|architect|consultant|lawyer|accountant))"
)
TITLE_WORDS = (
    "ceo cto coo cfo cmo cro cpo cio chief "
    "president vp partner principal director head heads manager engineer designer "
    "analyst developer scientist researcher lead chair chairman chairwoman chairperson employee associate staff intern "
    "architect consultant lawyer accountant"
)
_WORK_WORDS = f"work works working employed hired joined runs leads manages role position job since {TITLE_WORDS}"
_PAST_WORDS = (
    f"work works worked working left quit resigned departed previously formerly spent stint alum ex {TITLE_WORDS}"
)
THE = r"(?:(?:the|a|an|its|our|their|his|her|one\s+of\s+the|still|now)\s+){0,2}"


class Verb(NamedTuple):
    """A way of stating a relation."""

    link_type: str
    frame: Literal["active", "passive"]
    """Whether the subject of the sentence is that of the relation."""
    words: str
    """Of these one is in every match: most sentences hold none, and their patterns are not tried."""
    pattern: str
    also: str = ""
    """Of these too, where it says any."""


# Order matters at one place in the text: the first that matches there is taken.
_VERBS = (
    Verb(
        FOUNDED,
        "passive",
        "founded cofounded established started incorporated set created",
        r"(?:co-?)?(?:founded|established|started|incorporated|set\s+up|created)\s+(?:\w+\s+)?"
        r"(?:in\s+\d{4}\s+)?by",
        also="by",
    ),
    Verb(
        INVESTED_IN,
        "passive",
        "backed funded financed bankrolled raised raises raising "
        "funding investment investments money capital backing cheque "
        "cheques check checks led investors",
        r"(?:backed|funded|financed|seed-funded|bankrolled)\s+(?:early\s+)?by|rais(?:ed|es|"
        r"ing)(?:\s+[^.;,]{0,40}?)?\s+from|(?:funding|investments?|money|capital|backing|"
        r"cheques?|checks?)\s+(?:came\s+)?from|(?:round|seed)\s+(?:was\s+)?led\s+by|(?:its\s+)?investors\s"
        r"+(?:are|include|includes|were)",
        also="by from are include includes were",
    ),
    Verb(
        ADVISES,
        "passive",
        "advised advisor adviser advisors advisers",
        r"advised\s+by|(?:its\s+)?advis[eo]rs?\s+(?:is|are|include|includes)",
        also="by is are include includes",
    ),
    Verb(
        ATTENDED,
        "passive",
        "attended",
        r"attended\s+by",
        also="by",
    ),
    Verb(
        ATTENDED,
        "passive",
        "attendance present attending attendee attendees participant participants",
        r"(?:in\s+attendance|present|attending|attendees?|participants?)\s*(?:were|"
        r"are|was|:)",
    ),
    Verb(
        WORKS_AT,
        "passive",
        "employs staff team",
        r"(?:its\s+|the\s+)?(?:employs|staff\s+(?:includes?|are)|team\s+(?:includes?|is))",
    ),
    Verb(
        FOUNDED,
        "passive",
        "founder founders",
        r"(?:its\s+|the\s+)?(?:co-?)?founders?\s+(?:is|are|was|were|include|includes)",
        also="is are was were include includes",
    ),
    Verb(
        WORKED_AT,
        "active",
        _PAST_WORDS,
        rf"(?:no\s+longer\s+(?:works?|working|employed)\s+(?:at|for|by)|used\s+to\s+work\s+(?:at|"
        rf"for)|worked\s+(?:at|for|here|there)|(?:left|quit|resigned\s+from|departed(?:\s+from)?)(?=\s+(?:t"
        rf"he\s+)?(?:{MARK}|it\b|us\b|them\b|here\b|there\b|in\s+\d{{4}}))|(?:former|previous|"
        rf"ex-?|past|one-time|then-)\s*-?\s*{TITLE}\s+(?:of|at|for)|previously\s+(?:{TITLE}\s+)?(?:of|"
        rf"at|with)|formerly\s+(?:{TITLE}\s+)?(?:of|at|with)|spent\s+[^.;,]{{1,40}}?\s+(?:years?|"
        rf"months?)\s+at|(?:was|were)\s+{THE}{TITLE}\s+(?:of|at|for)|stint\s+(?:at|with)|"
        rf"alum(?:nus|na|ni)?\s+of|ex-(?={MARK}))",
    ),
    Verb(
        FOUNDED,
        "active",
        "founder cofounder founded cofounded founds founding "
        "cofounding incorporated established started set created launched",
        r"(?:co-?)?founder(?:\s*(?:,|and|&|/)\s*(?:[\w-]+\s*){1,4}?)?\s+(?:of|at)|(?:co-?)?(?:founded|"
        r"founds|founding)|incorporated|(?:established|started|set\s+up|created|launched)\s+(?:the\s+)?(?:"
        r"company|startup|fund|firm|business|studio)|(?:started|established|set\s+up)(?=\s+(?:MARK|"
        r"it\b))".replace("MARK", MARK),
    ),
    Verb(
        INVESTED_IN,
        "active",
        "investor investors invest invests invested investing investment "
        "investments back backs backed backing fund funds funded "
        "led co joined participated wrote wired cut board put stake owns",
        r"(?:(?:early|angel|seed|lead|first|major|existing)\s+)*investors?\s+in|invest(?:s|"
        r"ed|ing|ments?)?(?:\s+(?!in\b)[^\s.,;]{1,20}){0,4}?\s+(?:in|into)|invested|back(?:s|"
        r"ed|ing)(?!\s+(?:by|out|up|off|away|down))|fund(?:s|ed)(?!\s+by)|(?:led|co-?led|"
        r"joined|participated\s+in)\s+(?:the\s+|its\s+|their\s+|our\s+|a\s+)?(?:seed|pre-seed|"
        r"series\s+[a-f]|angel|first|second|extension|round|investment)(?:\s+(?:round|investment|"
        r"extension))?(?:\s+(?:of|in|for|at))?|(?:wrote|wired|cut)\s+(?:a\s+|the\s+|its\s+|"
        r"her\s+|his\s+)?(?:[\w-]+\s+)?(?:che(?:ck|que)s?|money)(?:\s+(?:to|for|into))?|board\s+seat\s+(?:"
        r"at|in|on)|put\s+(?:money|[\d.,]+\s*\w*)\s+into|took\s+a\s+stake\s+in|owns\s+(?:a\s+)?(?:stake|"
        r"shares)\s+in",
    ),
    Verb(
        ADVISES,
        "active",
        "advises advised advising advisor adviser advisory consults",
        r"advis(?:es|ed|ing)(?!\s+by)|(?:an?\s+|the\s+|its\s+)?(?:[a-z]+\s+)?advis[eo]r(?:\s+(?:to|"
        r"at|for|of))?|(?:sits|serves|served|joined)\s+(?:on\s+)?the\s+advisory\s+board\s+(?:of|"
        r"at)|advisory\s+(?:role|position|board)\s+(?:at|with|of)|consults\s+for",
    ),
    Verb(
        WORKS_AT,
        "active",
        _WORK_WORDS,
        rf"works?\s+(?:at|for|here)|working\s+(?:at|for)|(?:employed|hired)\s+(?:at|by)|(?:is|"
        rf"are|as|,|and|^|still)?\s*{THE}{TITLE}\s+(?:of|at|for)|joined(?:\s+(?!forces|us\b|"
        rf"the\s+(?:call|meeting|dinner|lunch))(?:as\s+[^.;,]{{1,40}}?\s+at|the\s+team\s+(?:at|"
        rf"of)))?|(?:runs|leads|manages|heads)\s+[\w-]+(?:\s+[\w-]+)?\s+at|(?:role|position|"
        rf"job)\s+at|at(?=\s+{MARK}\s*,?\s*(?:since|as)\b)",
    ),
    Verb(
        ATTENDED,
        "active",
        "attend attends attended attending took participated showed joined "
        "came dialled dialed went spoke hosted chaired led",
        r"(?:hosted|chaired|led)(?=\s*(?:[,.;]|it\b|the\s+(?:meeting|call|session|dinner|"
        r"lunch)))|attend(?:s|ed|ing)(?!\s+by)|was\s+(?:present\s+)?at(?=\s+(?:the\s+)?MARK)|"
        r"took\s+part\s+in|participated\s+in|showed\s+up|joined\s+from|came\s+along|dialled\s+in|"
        r"dialed\s+in|went\s+to(?=\s+(?:the\s+)?MARK)|spoke\s+at".replace("MARK", MARK),
    ),
)
_PATTERNS = tuple(re.compile(f"(?<![\\w-])(?:{verb.pattern})(?!\\w)") for verb in _VERBS)
"""Of folded text: `re` passes over a letter that cannot begin a word much faster when it need not fold it."""
_TRIGGERS = {
    word: tuple(order for order, verb in enumerate(_VERBS) if word in verb.words.split())
    for word in " ".join(verb.words for verb in _VERBS).split()
}
_ALSO = tuple(frozenset(verb.also.split()) for verb in _VERBS)
_TRIGGER_WORDS = frozenset(_TRIGGERS)
_LATIN_WORD = re.compile("[a-z]+")
_FOLDED_LETTERS = (("\u0130", "i"), ("\u0131", "i"), ("\u017f", "s"))
"""Letters that are equal to an ASCII letter but for case, and would not become one."""
_REACH_BACK, _REACH_ON = 64, 120
"""How far before and after its word a verb's pattern may reach, in characters."""


class EnglishSentence:
    """A sentence, the same folded letter by letter, and its words, folded."""

    __slots__ = ("folded", "negating", "sentence", "words")

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence
        self.folded = _letters_folded(sentence)
        self.words: list[str] = _LATIN_WORD.findall(self.folded)
        self.negating: bool | None = None
        """Whether any word can negate; None until it is asked."""

    def places(self, word: str) -> tuple[int, int]:
        """Where one of its words begins first and last."""
        folded = self.folded
        places: list[int] = []
        position = folded.find(word)
        while position >= 0:
            end = position + len(word)
            if not ("a" <= folded[position - 1 : position] <= "z" or "a" <= folded[end : end + 1] <= "z"):
                places.append(position)
            position = folded.find(word, end)
        return places[0], places[-1]


def _letters_folded(text: str) -> str:
    for letter, folded in _FOLDED_LETTERS:
        if letter in text:
            text = text.replace(letter, folded)
    return text.lower()


def verbs_of(text: EnglishSentence) -> list[tuple[Verb, re.Match[str]]]:
    """The verbs of a sentence in order, none inside another; of two at one place the first of the table."""
    triggers = _TRIGGER_WORDS.intersection(text.words)
    if not triggers:
        return []
    reach: dict[int, tuple[int, int]] = {}
    for word in triggers:
        first, last = text.places(word)
        for order in _TRIGGERS[word]:
            begin, end = reach.get(order, (len(text.folded), 0))
            if _ALSO[order] and _ALSO[order].isdisjoint(text.words):
                continue
            reach[order] = min(begin, max(0, first - _REACH_BACK)), max(end, last + _REACH_ON)
    found = sorted(
        (
            (match.start(), order, match)
            for order, (begin, end) in reach.items()
            for match in _PATTERNS[order].finditer(text.folded, begin, end)
        ),
        key=lambda entry: entry[:2],
    )
    kept: list[tuple[Verb, re.Match[str]]] = []
    for start, order, match in found:
        if not kept or start >= kept[-1][1].end():
            kept.append((_VERBS[order], match))
    return kept[:VERBS_MAX]
