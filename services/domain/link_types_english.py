"""The English rules for what a sentence states about its links: who does what its verbs say, and to whom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from services.domain.link_types import (
    MARK,
    PAGE,
    Party,
    Setting,
    Stated,
    marks_before,
    run_after,
    run_before,
)
from services.domain.link_verbs_english import THE, TITLE, TITLE_WORDS, EnglishSentence, Verb, verbs_of
from services.domain.relations import ADVISES, ATTENDED, FOUNDED, INVESTED_IN, WORKED_AT, WORKS_AT, Role

_ADVERB = (
    r"(?:has|have|had|is|are|was|were|been|being|be|'s|also|later|then|once|previously|formerly|originally|recently|"
    r"first|both|each|all|jointly|together|already|now|still|currently|since|briefly|subsequently|eventually|soon|"
    r"himself|herself|themselves|who|so|again|just|early|only|personally|therefore|actively|reportedly|"
    r"(?:in|since|from|until|by|during)\s+(?:early\s+|late\s+|mid-?)?(?:\w{3,9}\s+)?(?:19|20)\d\d|"
    r"(?:19|20)\d\d|an?|the|one\s+of\s+the|after\s+that|before\s+that|at\s+first|for\s+now|"
    r"these\s+days|at\s+the\s+time)"
)
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
_CLAUSE_MARKS = ",;:.!?—–()|"
_CLAUSE_WORDS = "and but then who which that where while because when though although so".split()
_CLAUSE = re.compile(rf"[{_CLAUSE_MARKS}]|\b(?:{'|'.join(_CLAUSE_WORDS)})\b|\s-\s")
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
    rf"{MARK}(?:\s*\([^(){MARK}]{{0,60}}\))?\s*(?:,|\bis\b|\bserves\s+as\b|\bis\s+still\b)\s*{THE}"
    rf"(?P<founder>(?:co-?)?founder)?"
    rf"(?:\s*(?:and|,|&|/)\s*)?(?P<advisor>(?:[a-z]+\s+)?advis[eo]r)?(?P<title>{TITLE})?(?=\s*(?:"
    rf"[.,;:)]|\Z|and\b|since\b|on\b|with\b|in\b))",
    re.IGNORECASE,
)
_POSSESSIVE = re.compile(
    rf"{MARK}(?:'s|’s)\s+(?:(?P<former>former|ex-|previous)\s*)?(?:[a-z]+\s+)?(?:(?P<founder>(?:co-?)?f"
    rf"ounder)|(?P<advisor>advis[eo]r)|(?P<title>{TITLE}))\b",
    re.IGNORECASE,
)
_ROLE_LABEL = re.compile(
    rf"\b(?:(?P<founder>(?:co-?)?founders?)|(?P<investor>(?:lead\s+)?investors?|backers?)|"
    rf"(?P<advisor>advis[eo]rs?)|(?P<title>CEO|CTO|COO|CFO|chief\s+executive))\s*:?\s*(?={MARK})",
    re.IGNORECASE,
)
_ROLE_WORDS = frozenset(
    f"founder founders cofounder cofounders investor investors backer backers advisor adviser advisors advisers "
    f"{TITLE_WORDS}".split()
)
_UNTIL = re.compile(rf"[^.;{MARK}]{{0,60}}?\buntil\b", re.IGNORECASE)


def english(sentence: str, setting: Setting) -> Iterator[Stated]:
    """The relations an English sentence states; none when it asks."""
    if sentence.rstrip(" \t\n\"'”)").endswith("?"):
        return
    text = EnglishSentence(sentence)
    carried: Party = PAGE
    verbs = verbs_of(text)
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


def _negated(text: EnglishSentence, position: int) -> bool:
    if text.negating is None:
        text.negating = any(map(_negates, text.words))
    return text.negating and _NEGATION.search(text.sentence, max(0, position - 80), position) is not None


@lru_cache(maxsize=4096)  # The words of some hundred pages; sentences repeat few others.
def _negates(word: str) -> bool:
    return _NEGATING.fullmatch(word) is not None


def _roles(text: EnglishSentence, setting: Setting) -> Iterator[Stated]:
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


def _subject(text: EnglishSentence, verb: int, setting: Setting, carried: Party, *, first: bool) -> Party:
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
    stop = _last_stop(folded)
    clause = bare[stop[1] :].strip() if stop else bare.strip()
    if not clause:
        offset = marks_before(sentence, shift)
        return _before_clause(bare, stop, setting, carried, first=first, offset=offset)
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


def _last_stop(folded: str) -> tuple[int, int] | None:
    """Where the last mark or word stands that divides clauses: mostly at the end, where the verb's clause begins."""
    size = len(folded)
    if folded and folded[-1] in _CLAUSE_MARKS:
        return size - 1, size
    last = folded.rfind(" ") + 1
    if folded[last:] in _CLAUSE_WORDS:
        return last, size
    stops = list(_CLAUSE.finditer(folded))
    return stops[-1].span() if stops else None


def _before_clause(
    bare: str, stop: tuple[int, int] | None, setting: Setting, carried: Party, *, first: bool, offset: int
) -> Party:
    """The subject of a clause without one: of the verb before, of the page, or of what the clause hangs on."""
    if not first or not stop or bare[stop[0]] not in ",(":
        return carried
    head = bare[: stop[0]].rstrip()
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


def _target(sentence: str, begin: int, end: int, verb: Verb, setting: Setting, subject: Party) -> Party:
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
