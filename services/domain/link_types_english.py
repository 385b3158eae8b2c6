"""The English rules for what a sentence states about its links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from services.domain.link_types import (
    MARK,
    PAGE,
    VERBS_MAX,
    Party,
    Setting,
    Stated,
    marks_before,
    run_after,
    run_before,
)
from services.domain.relations import ADVISES, ATTENDED, FOUNDED, INVESTED_IN, WORKED_AT, WORKS_AT, Role

_ADVERB = (
    r"(?:has|have|had|is|are|was|were|been|being|be|'s|also|later|then|once|previously|formerly|originally|recently|"
    r"first|both|each|all|jointly|together|already|now|still|currently|since|briefly|subsequently|eventually|soon|"
    r"himself|herself|themselves|who|so|again|just|early|only|personally|therefore|actively|reportedly|"
    r"(?:in|since|from|until|by|during)\s+(?:early\s+|late\s+|mid-?)?(?:\w{3,9}\s+)?(?:19|20)\d\d|"
    r"(?:19|20)\d\d|an?|the|one\s+of\s+the|after\s+that|before\s+that|at\s+first|for\s+now|"
    r"these\s+days|at\s+the\s+time)"
)
_TITLE = (
    r"(?:ceo|cto|coo|cfo|cmo|cro|cpo|cio|chief\s+[a-z]+(?:\s+officer)?|(?:vice\s+)?president|vp(?:\s+of\s+\w+)?|"
    r"head\s+of\s+[\w-]+(?:\s+[\w-]+)?|heads?\s+up|director\s+of\s+\w+|"
    r"(?:[a-z]+\s+){0,2}(?:partner|principal|director|engineer|designer|analyst|developer|scientist|researcher|manager|"
    r"lead|chair(?:man|woman|person)?|employee|associate|staff|intern|architect|consultant|lawyer|accountant))"
)
_TITLE_WORDS = (
    "ceo cto coo cfo cmo cro cpo cio chief "
    "president vp partner principal director head heads manager engineer designer "
    "analyst developer scientist researcher lead chair chairman chairwoman chairperson employee associate staff intern "
    "architect consultant lawyer accountant"
)
_WORK_WORDS = f"work works working employed hired joined runs leads manages role position job since {_TITLE_WORDS}"
_PAST_WORDS = (
    f"work works worked working left quit resigned departed previously formerly spent stint alum ex {_TITLE_WORDS}"
)
_THE = r"(?:(?:the|a|an|its|our|their|his|her|one\s+of\s+the|still|now)\s+){0,2}"


class _Verb(NamedTuple):
    link_type: str
    frame: Literal["active", "passive"]
    words: str
    """Of these one is in every match: most sentences hold none, and their patterns are not tried."""
    pattern: str


# Order matters at one place in the text: the first that matches there is taken.
_VERBS = (
    _Verb(
        FOUNDED,
        "passive",
        "founded cofounded established started incorporated set created",
        r"(?:co-?)?(?:founded|established|started|incorporated|set\s+up|created)\s+(?:\w+\s+)?"
        r"(?:in\s+\d{4}\s+)?by",
    ),
    _Verb(
        INVESTED_IN,
        "passive",
        "backed funded financed bankrolled raised raises raising "
        "funding investment investments money capital backing cheque "
        "cheques check checks led investors",
        r"(?:backed|funded|financed|seed-funded|bankrolled)\s+(?:early\s+)?by|rais(?:ed|es|"
        r"ing)(?:\s+[^.;,]{0,40}?)?\s+from|(?:funding|investments?|money|capital|backing|"
        r"cheques?|checks?)\s+(?:came\s+)?from|(?:round|seed)\s+(?:was\s+)?led\s+by|(?:its\s+)?investors\s"
        r"+(?:are|include|includes|were)",
    ),
    _Verb(
        ADVISES,
        "passive",
        "advised advisor adviser advisors advisers",
        r"advised\s+by|(?:its\s+)?advis[eo]rs?\s+(?:is|are|include|includes)",
    ),
    _Verb(
        ATTENDED,
        "passive",
        "attended attendance present attending attendee attendees participant participants",
        r"attended\s+by|(?:in\s+attendance|present|attending|attendees?|participants?)\s*(?:were|"
        r"are|was|:)",
    ),
    _Verb(
        WORKS_AT,
        "passive",
        "employs staff team",
        r"(?:its\s+|the\s+)?(?:employs|staff\s+(?:includes?|are)|team\s+(?:includes?|is))",
    ),
    _Verb(
        FOUNDED,
        "passive",
        "founder founders",
        r"(?:its\s+|the\s+)?(?:co-?)?founders?\s+(?:is|are|was|were|include|includes)",
    ),
    _Verb(
        WORKED_AT,
        "active",
        _PAST_WORDS,
        rf"(?:no\s+longer\s+(?:works?|working|employed)\s+(?:at|for|by)|used\s+to\s+work\s+(?:at|"
        rf"for)|worked\s+(?:at|for|here|there)|(?:left|quit|resigned\s+from|departed(?:\s+from)?)(?=\s+(?:t"
        rf"he\s+)?(?:{MARK}|it\b|us\b|them\b|here\b|there\b|in\s+\d{{4}}))|(?:former|previous|"
        rf"ex-?|past|one-time|then-)\s*-?\s*{_TITLE}\s+(?:of|at|for)|previously\s+(?:{_TITLE}\s+)?(?:of|"
        rf"at|with)|formerly\s+(?:{_TITLE}\s+)?(?:of|at|with)|spent\s+[^.;,]{{1,40}}?\s+(?:years?|"
        rf"months?)\s+at|(?:was|were)\s+{_THE}{_TITLE}\s+(?:of|at|for)|stint\s+(?:at|with)|"
        rf"alum(?:nus|na|ni)?\s+of|ex-(?={MARK}))",
    ),
    _Verb(
        FOUNDED,
        "active",
        "founder cofounder founded cofounded founds founding "
        "cofounding incorporated established started set created launched",
        r"(?:co-?)?founder(?:\s*(?:,|and|&|/)\s*(?:[\w-]+\s*){1,4}?)?\s+(?:of|at)|(?:co-?)?(?:founded|"
        r"founds|founding)|incorporated|(?:established|started|set\s+up|created|launched)\s+(?:the\s+)?(?:"
        r"company|startup|fund|firm|business|studio)|(?:started|established|set\s+up)(?=\s+(?:MARK|"
        r"it\b))".replace("MARK", MARK),
    ),
    _Verb(
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
    _Verb(
        ADVISES,
        "active",
        "advises advised advising advisor adviser advisory consults",
        r"advis(?:es|ed|ing)(?!\s+by)|(?:an?\s+|the\s+|its\s+)?(?:[a-z]+\s+)?advis[eo]r(?:\s+(?:to|"
        r"at|for|of))?|(?:sits|serves|served|joined)\s+(?:on\s+)?the\s+advisory\s+board\s+(?:of|"
        r"at)|advisory\s+(?:role|position|board)\s+(?:at|with|of)|consults\s+for",
    ),
    _Verb(
        WORKS_AT,
        "active",
        _WORK_WORDS,
        rf"works?\s+(?:at|for|here)|working\s+(?:at|for)|(?:employed|hired)\s+(?:at|by)|(?:is|"
        rf"are|as|,|and|^|still)?\s*{_THE}{_TITLE}\s+(?:of|at|for)|joined(?:\s+(?!forces|us\b|"
        rf"the\s+(?:call|meeting|dinner|lunch))(?:as\s+[^.;,]{{1,40}}?\s+at|the\s+team\s+(?:at|"
        rf"of)))?|(?:runs|leads|manages|heads)\s+[\w-]+(?:\s+[\w-]+)?\s+at|(?:role|position|"
        rf"job)\s+at|at(?=\s+{MARK}\s*,?\s*(?:since|as)\b)",
    ),
    _Verb(
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
_TRIGGER_WORDS = frozenset(_TRIGGERS)
_LATIN_WORD = re.compile("[a-z]+")
_FOLDED_LETTERS = (("\u0130", "i"), ("\u0131", "i"), ("\u017f", "s"))
"""Letters that are equal to an ASCII letter but for case, and would not become one."""
_REACH_BACK, _REACH_ON = 64, 120
"""How far before and after its word a verb's pattern may reach, in characters."""

_SEPARATOR = re.compile(
    rf"\s*(?:\([^(){MARK}]{{0,80}}\)|as\s+[\w-]+(?:\s+[\w-]+)?)?(?:\s*(?:,|;|/|&|\band\b|"
    rf"\bor\b|\bthen\b|\bas\s+well\s+as\b|\balso\b|\bfinally\b))+"
    rf"(?:\s+(?:the|since|in|its|later|from|also)\b[^,.;{MARK}]{{0,40}}?,?)?\s*[\"“]?{MARK}",
    re.IGNORECASE,
)
_SUBJECT_LINKS = re.compile(
    rf"{MARK}(?:\s*\([^(){MARK}]{{0,80}}\))?(?:\s*+,)?+(?:\s++{_ADVERB}\b)*+\s*+(?:,\s*+)?+\Z", re.IGNORECASE
)
_LATER_SUBJECT_LINKS = re.compile(
    rf"(?:[,;:]|\b(?:and|while|but|when|where|because|as)\b)\s*+(?:{MARK}(?:,|\s|and\b)*+)*+(?<={MARK}|"
    rf"\s)(?:{_ADVERB}\b\s*+)*+\Z",
    re.IGNORECASE,
)
"""A later verb has links for its subject only when they begin a clause; else it shares that of the verb before."""
_ADVERBS = re.compile(rf"(?:\b{_ADVERB}\b[\s,]*+)++\Z")
_ADVERB_ENDS = (
    *"has have had is are was were been being be 's also later then once previously formerly originally".split(),
    *"recently first both each all jointly together already now still currently since briefly subsequently".split(),
    *"eventually soon himself herself themselves who so again just early only personally therefore actively".split(),
    *"reportedly a an the that days time 0 1 2 3 4 5 6 7 8 9".split(),
)
"""How the last of some adverbs ends; most texts end in none, and `_ADVERBS` is not tried at each of their letters."""
_CLAUSE = re.compile(
    r"[,;:.!?—–()|]|\b(?:and|but|then|who|which|that|where|while|because|when|though|although|so)\b|\s-\s"
)
_STOP = re.compile(
    r"[.;:—–|]|,|\b(?:who|which|that|where|when|while|because|but|after|before|until|"
    r"since|with|alongside|against|from|by|"
    r"via|through|like|unlike|about|than|near|over|under|without|near|and|or|not|never)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:not|never|cannot|n't|nobody|no\s+one|none|neither|declin\w+|refus\w+|considers?|"
    r"considered|considering|might|(?-i:may)|"
    r"could|would|should|will|plan(?:s|ned|ning)?\s+to|hop(?:es?|ed|ing)\s+to|want(?:s|ed)?\s+to|tr(?:y|ies|ied)\s+to|"
    r"almost|nearly|rumou?r\w*|without|if|whether|instead\s+of|rather\s+than|den(?:y|ies|ied)|going\s+to|about\s+to|"
    r"passed\s+on|turned\s+down|thinks?\s+of|thought\s+(?:of|about)|asked\s+to|invited\s+to|like\s+to|allegedly|absent|"
    r"regrets|apologi[sz]ed|didn't|doesn't|don't|isn't|wasn't|weren't|hasn't|haven't|"
    r"won't|couldn't|wouldn't)\b[^.;,]{0,40}\Z",
    re.IGNORECASE,
)
_NEGATING = re.compile(
    r"n|not|never|cannot|nobody|no|none|neither|declin.*|refus.*|considers?|considered|considering|might|may|could|would|"
    r"should|will|plan(?:s|ned|ning)?|hop(?:es?|ed|ing)|want(?:s|ed)?|tr(?:y|ies|ied)|almost|nearly|rumou?r.*|without|if|"
    r"whether|instead|rather|den(?:y|ies|ied)|going|about|passed|turned|thinks?|thought|asked|invited|like|allegedly|"
    r"absent|regrets|apologi[sz]ed|didn|doesn|don|isn|wasn|weren|hasn|haven|won|couldn|wouldn"
)
"""The first word of what `_NEGATION` finds; most sentences hold none, and nothing in them is negated."""
_HOLLOW = re.compile(  # What may follow a verb whose object is the page, unsaid or as a pronoun.
    r"\s*(?:(?:in|into|at|for|to|of)\s+)?(?:\Z|[.,;:!?)(|—–]|\d|[£$€]|(?:it|us|them|here|"
    r"there|both)\b|(?:the|this|our|its|their|a|an|his|her|borrowed)\b|"
    r"(?:in|on|since|until|from|as|at|with|early|before|after|and|for|during|through|"
    r"too|by|again|over|plus|last|this|remotely|online|until|via|together|alone|twice|"
    r"again)\b)",
    re.IGNORECASE,
)
_FOREIGN = re.compile(r"\s*(?:the\s+|a\s+)?(?:in\s+|into\s+|at\s+|of\s+|for\s+|to\s+)?([A-Z][\w-]*(?:\s+[A-Z][\w-]*)*)")
_PRONOUNS = {
    Role.PERSON: frozenset({"he", "she", "they", "i"}),
    Role.ORGANIZATION: frozenset(
        {"it", "they", "we", "company", "fund", "firm", "startup", "studio", "business", "team", "lab"}
    ),
    Role.GATHERING: frozenset({"it", "meeting", "call", "dinner", "lunch", "workshop", "session", "event"}),
}
_OBJECT_PRONOUNS = {
    Role.PERSON: re.compile(r"\s*(?:her|him|them|me)\b", re.IGNORECASE),
    Role.ORGANIZATION: re.compile(
        r"\s*(?:it|us|them|here|there|(?:the|this|our)\s+(?:company|fund|firm|startup|business|"
        r"team))\b",
        re.IGNORECASE,
    ),
    Role.GATHERING: re.compile(
        (r"\s*(?:it|(?:the|this)\s+(?:meeting|call|dinner|lunch|workshop|session|event))\b"), re.IGNORECASE
    ),
}
_BANNED_IN_GAP = {
    FOUNDED: re.compile(r"\b(?:in|at|of|for|to|on)\b", re.IGNORECASE),
    ATTENDED: re.compile(r"\b(?:in|of|for|to|on)\b", re.IGNORECASE),
}
_IS_ROLE = re.compile(
    rf"{MARK}(?:\s*\([^(){MARK}]{{0,60}}\))?\s*(?:,|\bis\b|\bserves\s+as\b|\bis\s+still\b)\s*{_THE}"
    rf"(?P<founder>(?:co-?)?founder)?"
    rf"(?:\s*(?:and|,|&|/)\s*)?(?P<advisor>(?:[a-z]+\s+)?advis[eo]r)?(?P<title>{_TITLE})?(?=\s*(?:"
    rf"[.,;:)]|\Z|and\b|since\b|on\b|with\b|in\b))",
    re.IGNORECASE,
)
_POSSESSIVE = re.compile(
    rf"{MARK}(?:'s|’s)\s+(?:(?P<former>former|ex-|previous)\s*)?(?:[a-z]+\s+)?(?:(?P<founder>(?:co-?)?f"
    rf"ounder)|(?P<advisor>advis[eo]r)|(?P<title>{_TITLE}))\b",
    re.IGNORECASE,
)
_ROLE_LABEL = re.compile(
    rf"\b(?:(?P<founder>(?:co-?)?founders?)|(?P<investor>(?:lead\s+)?investors?|backers?)|"
    rf"(?P<advisor>advis[eo]rs?)|(?P<title>CEO|CTO|COO|CFO|chief\s+executive))\s*:?\s*(?={MARK})",
    re.IGNORECASE,
)
_ROLE_WORDS = frozenset(
    f"founder founders cofounder cofounders investor investors backer backers advisor adviser advisors advisers "
    f"{_TITLE_WORDS}".split()
)
_UNTIL = re.compile(rf"[^.;{MARK}]{{0,60}}?\buntil\b", re.IGNORECASE)


def english(sentence: str, setting: Setting) -> Iterator[Stated]:
    """The relations an English sentence states; none when it asks."""
    if sentence.rstrip(" \t\n\"'”)").endswith("?"):
        return
    text = _English(sentence)
    carried: Party = PAGE
    verbs = _verbs(text)
    for number, (verb, match) in enumerate(verbs):
        subject = _subject(text, match.start(), setting, carried, first=number == 0)
        carried = subject
        if _negated(text, match.start()) and not match[0].startswith("no longer"):
            continue
        end = verbs[number + 1][1].start() if number + 1 < len(verbs) else len(sentence)
        target = _target(sentence, match.end(), end, verb, setting, subject)
        link_type = verb.link_type
        if link_type == WORKS_AT and _UNTIL.match(sentence, match.end() + 1):
            link_type = WORKED_AT
        if link_type == WORKED_AT and match[0].startswith("worked") and _is_ongoing(sentence, match):
            link_type = WORKS_AT
        if setting.role is Role.GATHERING and match[0].startswith("joined"):
            link_type = ATTENDED
        if verb.frame == "active":
            yield Stated(link_type=link_type, subject=subject, object=target)
        else:
            yield Stated(link_type=link_type, subject=target, object=subject)
    if not _ROLE_WORDS.isdisjoint(text.words):
        yield from _roles(text, setting)


class _English:
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


def _verbs(text: _English) -> list[tuple[_Verb, re.Match[str]]]:
    """The verbs of a sentence in order, none inside another; of two at one place the first of the table."""
    triggers = _TRIGGER_WORDS.intersection(text.words)
    if not triggers:
        return []
    reach: dict[int, tuple[int, int]] = {}
    for word in triggers:
        first, last = text.places(word)
        for order in _TRIGGERS[word]:
            begin, end = reach.get(order, (len(text.folded), 0))
            reach[order] = min(begin, max(0, first - _REACH_BACK)), max(end, last + _REACH_ON)
    found = sorted(
        (
            (match.start(), order, match)
            for order, (begin, end) in reach.items()
            for match in _PATTERNS[order].finditer(text.folded, begin, end)
        ),
        key=lambda entry: entry[:2],
    )
    kept: list[tuple[_Verb, re.Match[str]]] = []
    for start, order, match in found:
        if not kept or start >= kept[-1][1].end():
            kept.append((_VERBS[order], match))
    return kept[:VERBS_MAX]


def _negated(text: _English, position: int) -> bool:
    if text.negating is None:
        text.negating = any(map(_negates, text.words))
    return text.negating and _NEGATION.search(text.sentence, max(0, position - 80), position) is not None


@lru_cache(maxsize=4096)  # The words of some hundred pages; sentences repeat few others.
def _negates(word: str) -> bool:
    return _NEGATING.fullmatch(word) is not None


def _roles(text: _English, setting: Setting) -> Iterator[Stated]:
    """Relations stated by nouns alone: `X is head of data`, `X's founder`, `CEO X`."""
    sentence = text.sentence
    for pattern in (_IS_ROLE, _POSSESSIVE, _ROLE_LABEL):
        for match in pattern.finditer(sentence):
            at = match.start() if pattern is not _ROLE_LABEL else sentence.index(MARK, match.end())
            links = run_after(sentence, at, _SEPARATOR) if pattern is _ROLE_LABEL else (sentence.count(MARK, 0, at),)
            if _negated(text, match.start()):
                continue
            groups = match.groupdict()
            for group, link_type in (
                ("founder", FOUNDED),
                ("advisor", ADVISES),
                ("title", WORKS_AT),
                ("investor", INVESTED_IN),
            ):
                if not groups.get(group):
                    continue
                if pattern is _POSSESSIVE:
                    owner = _subject(text, at, setting, PAGE, first=True)
                    former = link_type == WORKS_AT and groups.get("former")
                    yield Stated(link_type=WORKED_AT if former else link_type, subject=owner, object=links)
                else:
                    yield Stated(link_type=link_type, subject=links, object=PAGE)


def _subject(text: _English, verb: int, setting: Setting, carried: Party, *, first: bool) -> Party:
    """Who a verb is said of: the words right before it, else the subject carried over a conjunction."""
    sentence = text.sentence
    shift = max(0, verb - 400)
    before = sentence[shift:verb]
    if MARK in before:
        links = (_SUBJECT_LINKS if first else _LATER_SUBJECT_LINKS).search(before)
        if links and MARK in links[0]:
            return run_before(sentence, shift + before.rindex(MARK) + 1, _SEPARATOR)
    bare = before.rstrip()
    folded = text.folded[shift : shift + len(bare)]
    if _without_comma(folded).endswith(_ADVERB_ENDS) and (adverbs := _ADVERBS.search(folded)):
        bare, folded = bare[: adverbs.start()], folded[: adverbs.start()]
    stops = list(_CLAUSE.finditer(folded))
    clause = bare[stops[-1].end() :].strip() if stops else bare.strip()
    if not clause:
        offset = marks_before(sentence, shift)
        return _before_clause(bare, stops, setting, carried, first=first, offset=offset)
    clause = clause.strip("*_~#>-+•[]()\"'“” \t\n")
    words = clause.split()
    if not words:
        return carried if not first else PAGE
    if words[-1].casefold() in _PRONOUNS.get(setting.role, frozenset()):
        return PAGE
    for count in (1, 2, 3, 4):
        if len(words) >= count and setting.is_page(" ".join(words[-count:])):
            return PAGE
    return None


def _without_comma(text: str) -> str:
    while text.endswith(","):
        text = text.rstrip(",").rstrip()
    return text


def _before_clause(
    bare: str, stops: list[re.Match[str]], setting: Setting, carried: Party, *, first: bool, offset: int
) -> Party:
    """The subject of a clause without one: of the verb before, of the page, or of what the clause hangs on."""
    if not first or not stops or stops[-1][0] not in ",(":
        return carried
    head = bare[: stops[-1].start()].rstrip()
    if head.endswith(MARK):
        return (offset + head.count(MARK) - 1,)
    last = head.split()[-2:]
    if (
        last
        and last[-1][:1].isupper()
        and len(head.split()) > 1
        and not any(setting.is_page(w) for w in (last[-1], " ".join(last)))
    ):
        # `…, a rival of Foo, founded by …` is about Foo; `fund in Ghent, founded by …` is about the page.
        return PAGE if last[0].casefold() in ("in", "at", "from", "near", "of", "based", "and") else None
    return PAGE


def _target(sentence: str, begin: int, end: int, verb: _Verb, setting: Setting, subject: Party) -> Party:
    """What a verb is said about: the links after it, or the page when links are the subject and nothing follows."""
    mark = sentence.find(MARK, begin, end)
    gap = sentence[begin:mark] if mark >= 0 else ""
    banned = _BANNED_IN_GAP.get(verb.link_type)
    if (
        mark >= 0
        and len(gap.split()) <= 8
        and not _STOP.search(gap.rstrip(' :"“'))
        and not (banned and banned.search(gap))
    ):
        return run_after(sentence, mark, _SEPARATOR)
    if not isinstance(subject, tuple):
        return None
    rest = sentence[begin:]
    pronoun = _OBJECT_PRONOUNS.get(setting.role)
    if pronoun and pronoun.match(rest):
        return PAGE
    if verb.frame == "passive" or _FOREIGN.match(rest):
        return PAGE if _names_page(rest, setting) else None
    return PAGE if _HOLLOW.match(rest) else None


def _names_page(rest: str, setting: Setting) -> bool:
    """Whether the words after a verb begin with a name of the page."""
    match = _FOREIGN.match(rest)
    words = match[1].split() if match else []
    return any(setting.is_page(" ".join(words[:count])) for count in range(1, min(len(words), 5) + 1))


def _is_ongoing(sentence: str, match: re.Match[str]) -> bool:
    """Whether `has worked at X since …` says that it lasts."""
    return (
        re.search(r"\b(?:has|have)\s*\Z", sentence[: match.start()], re.IGNORECASE) is not None and "since" in sentence
    )
