"""The English grammar of relational questions: who-questions, passives, role nouns, and phrases inside phrases.

A question is a frame around a noun phrase; a noun phrase is a name, or a class or role word bound by a verb to another
noun phrase. So two hops need no patterns of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from gateway.retrieval.plan import (
    ADVISES,
    ATTENDED,
    FOUNDED,
    IN,
    INVESTED_IN,
    OUT,
    PARTNER_OF,
    SEED_CHARACTERS_MAX,
    SEED_WORDS_MAX,
    SEEDS_MAX,
    WORKED_AT,
    WORKS_AT,
    WORKS_OR_WORKED_AT,
    NounPhrase,
)

_ROUND = r"(?:the |an? )?(?:[\w-]+ ){0,3}?(?:round|seed|investment|financing|series \w)(?: round)?"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verb:
    link_types: tuple[str, ...]
    finite: str
    """After its subject: "founded", "works at"."""
    base: str
    """After do, does, did."""
    gerund: str
    """After is, are: "investing in"."""
    passive: str = ""
    """Before "by"."""


_VERBS = (
    _Verb(
        link_types=FOUNDED,
        finite=r"(?:co-?)?found(?:ed|s)|start(?:ed|s)|creat(?:ed|es)|sets? up|establish(?:ed|es)|launch(?:ed|es)",
        base=r"(?:co-?)?found|start|create|set up|establish|launch",
        gerund=r"founding|starting",
        passive=r"(?:co-?)?founded|started|created|set up|established|launched",
    ),
    _Verb(
        link_types=INVESTED_IN,
        finite=rf"invest(?:ed|s) (?:money )?in(?:to)?|back(?:ed|s)|fund(?:ed|s)|financ(?:ed|es)|put money in(?:to)?"
        rf"|led {_ROUND} (?:in|of|for|at)",
        base=r"invest (?:money )?in(?:to)?|back|fund|finance|put money in(?:to)?",
        gerund=r"investing in(?:to)?|backing|funding|financing",
        passive=r"backed|funded|financed|invested in",
    ),
    _Verb(
        link_types=WORKED_AT,
        finite=r"used to work (?:at|for|in|with)|left|quit|no longer works? (?:at|for)|formerly worked (?:at|for)",
        base=r"(?:formerly|previously|used to) work (?:at|for)|leave|quit|work (?:at|for|with) (?:before|previously)",
        gerund=r"leaving",
    ),
    _Verb(
        link_types=WORKS_OR_WORKED_AT,
        finite=r"worked (?:at|for|with)|joined",
        base=r"join",
        gerund=r"joining",
    ),
    _Verb(
        link_types=WORKS_AT,
        finite=r"works? (?:at|for)|(?:is|are) employed (?:at|by)",
        base=r"work (?:at|for)",
        gerund=r"working (?:at|for)|employed (?:at|by)",
    ),
    _Verb(link_types=ADVISES, finite=r"advis(?:ed|es|e)", base=r"advise", gerund=r"advising", passive=r"advised"),
    _Verb(
        link_types=ATTENDED,
        finite=r"attend(?:ed|s)?|took part in|participated in|(?:was|were|been) (?:present )?at|(?:been|came|went) to"
        r"|showed up at",
        base=r"attend|take part in|participate in|go to|come to|show up at",
        gerund=r"attending",
        passive=r"attended",
    ),
)

_ROLES: tuple[tuple[str, tuple[str, ...], bool], ...] = (
    # role word, link types, whether it means the named page's link sources (True) or its targets
    (r"(?:co-?)?founders?|founding team|creators?", FOUNDED, True),
    (r"(?:lead |seed |angel |current |early )?investors?|backers?|shareholders?|funders?", INVESTED_IN, True),
    (
        (
            r"(?:former|ex-?|past|previous|old) ?(?:employees?|staff|members?|colleagues|people|workers?)"
            r"|alumn(?:i|us|a)|ex-?staff(?:ers?)?"
        ),
        WORKED_AT,
        True,
    ),
    (r"(?:current )?(?:employees?|staff|team members?|team|workers?)", WORKS_AT, True),
    (r"advis[oe]rs?|advisory board", ADVISES, True),
    (r"attendees|participants|attendance", ATTENDED, True),
    (r"(?:general |managing )?partners?", PARTNER_OF, True),
    (r"(?:former|ex-?|past|previous|old) ?employers?", WORKED_AT, False),
    (r"(?:current )?employers?", WORKS_AT, False),
    (r"portfolio(?: compan(?:y|ies))?|investments|portfolio startups", INVESTED_IN, False),
)
_ROLE_WORDS = "|".join(f"(?P<r{i}>{words})" for i, (words, _, _) in enumerate(_ROLES))

_CLASS = (
    r"(?:compan(?:y|ies)|start-?ups?|firms?|business(?:es)?|organi[sz]ations?|funds?|vcs?|people|persons?|men|women|"
    r"meetings?|gatherings?|sessions?|dinners?|workshops?|events?|conferences?|projects?|teams?|investors?|founders?|employees?|ones|everyone|those|anyone|folks)"
)
_ADVERB = r"(?:(?:has|have|had|also|ever|currently|now|originally|first|all|else|actually|recently|together|both) )*"
_WHO = rf"(?:who(?: all| else)?|which(?: of the)? {_CLASS}|what {_CLASS}|which|what|how many {_CLASS})"
_LEAD = re.compile(
    r"^(?:(?:please|so|and|ok|hey|hi)[, ]+)*(?:(?:can|could|would) you (?:please )?)?(?:please )?"
    r"(?:(?:tell|show|give|remind) me(?: again)?|list|find(?: me| out)?|do (?:you|we) know|i want to know|"
    r"i(?:'d| would) like to know|what do we know about)[, :]+(?:all |about )?(?=\S)",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\b(?:not|never|neither|nor|without|except|besides|cannot|\w+n't)\b", re.IGNORECASE)
_WHEN = re.compile(
    r"(?: (?:in|since|before|after|during|by|until|around) (?:early |late |mid-?)?(?:\w+ )?(?:19|20)\d\d"
    r"| (?:last|this) (?:week|month|quarter|year|spring|summer|autumn|fall|winter)| recently| so far| (?:right )?now"
    r"| today| currently| at the moment| these days| yet)$",
    re.IGNORECASE,
)
_TIMELESS = re.compile(r"(?:now|today|currently|moment|days|so far|yet)$", re.IGNORECASE)
_GENERIC = frozenset(
    """it that this them these those here there everyone everybody everything anyone anybody anything someone somebody
    something people things us me him her you we i they he she who whom what which where when why how one ones companies
    company startup startups money meeting meetings my our your their his its""".split()
)
_CLAUSE = re.compile(
    r"\b(?:who|whom|what|which|that|where|when|why|how|is|are|was|were|does|did|do|has|have)\b", re.IGNORECASE
)
_HEAD = re.compile(
    r"^(?:the )?(?:company|startup|start-up|firm|fund|organi[sz]ation|meeting|event|project|person|page)"
    r"(?: called| named)? (?=\S)",
    re.IGNORECASE,
)
_JOIN = re.compile(r",? and |,? or | & |, ")


def parse(question: str) -> tuple[str, NounPhrase] | None:
    """The rule that reads a cleaned question, with the phrase that answers it; None when no rule does."""
    question = _LEAD.sub("", question, count=1)
    if _NEGATED.search(question):
        return None
    stripped = _WHEN.sub("", question)
    # A number is asked for, or a time: the list is evidence for it, not the answer.
    dated = (stripped != question and not _TIMELESS.search(question)) or question.lower().startswith("how many")
    for rule, pattern, build in _FRAMES:
        if (match := pattern.match(stripped)) and (phrase := build(match)) is not None:
            return rule, replace(phrase, sure=phrase.sure and not dated)
    return None


def noun_phrase(text: str) -> NounPhrase | None:
    """What a phrase means: a bound class or role, else a name."""
    text = text.strip()
    for pattern, build in _PHRASES:
        if (match := pattern.match(text)) and (phrase := build(match)) is not None:
            return phrase
    return _seed(text)


def _seed(text: str) -> NounPhrase | None:
    """A name as it may be meant: whole, without its article or class word, or as several names."""
    text = text.strip(" \"'“”‘’`,")
    if not 1 <= len(text) <= SEED_CHARACTERS_MAX or len(text.split()) > SEED_WORDS_MAX:
        return None
    bare = re.sub(r"^(?:the|an?) ", "", text, flags=re.IGNORECASE)
    if bare.lower() in _GENERIC or _CLAUSE.search(bare) or bare.lower().split()[0] in {"my", "our", "your", "their"}:
        return None
    readings: list[tuple[str, ...]] = [(text,)]
    for variant in (bare, _HEAD.sub("", text), re.sub(r" (?:meeting|event|company)$", "", bare, flags=re.IGNORECASE)):
        variant = variant.strip(" \"'“”‘’`")
        if variant and (variant,) not in readings:
            readings.append((variant,))
    parts = tuple(part.strip() for part in _JOIN.split(bare) if part.strip())
    if 1 < len(parts) <= SEEDS_MAX:
        readings.append(parts)
    return NounPhrase(readings=tuple(readings))


def _alternatives(group: str, form: Callable[[_Verb], str]) -> str:
    """All verbs in one form; the group that took part tells which verb it was."""
    return "(?:" + "|".join(f"(?P<{group}{i}>{form(verb)})" for i, verb in enumerate(_VERBS) if form(verb)) + ")"


def _matched_verb(match: re.Match[str]) -> _Verb:
    for name, value in match.groupdict().items():
        if value is not None and name[0] in "fbgp" and name[1:].isdigit():
            return _VERBS[int(name[1:])]
    raise AssertionError(f"pattern {match.re.pattern!r} matched without a verb")


def _then(match: re.Match[str], link_types: tuple[str, ...], inward: bool, *, sure: bool = True) -> NounPhrase | None:
    inner = noun_phrase(match["np"])
    return inner and inner.then(link_types, IN if inward else OUT, sure=sure)


def _active(match: re.Match[str]) -> NounPhrase | None:
    return _then(match, _matched_verb(match).link_types, True)


def _object(match: re.Match[str]) -> NounPhrase | None:
    return _then(match, _matched_verb(match).link_types, False)


def _matched_role(match: re.Match[str]) -> tuple[tuple[str, ...], bool]:
    return next((link_types, inward) for i, (_, link_types, inward) in enumerate(_ROLES) if match[f"r{i}"] is not None)


def _role(match: re.Match[str]) -> NounPhrase | None:
    link_types, inward = _matched_role(match)
    return _then(match, link_types, inward)


def _held_role(match: re.Match[str]) -> NounPhrase | None:
    """For "what is X a founder of": the role's links the other way round."""
    link_types, inward = _matched_role(match)
    return _then(match, link_types, not inward)


def _works(match: re.Match[str]) -> NounPhrase | None:
    if re.search(r"before|previous|former|use to|used to", match[0], re.IGNORECASE):
        return _then(match, WORKED_AT, False)
    return _then(match, WORKS_OR_WORKED_AT if match["aux"].lower() in {"did", "had"} else WORKS_AT, False)


def _works_with_topic(match: re.Match[str]) -> NounPhrase | None:
    return _then(match, WORKS_AT, True, sure=False)


def _employs(match: re.Match[str]) -> NounPhrase | None:
    return _then(match, WORKS_AT, False)


def _class_where(match: re.Match[str]) -> NounPhrase | None:
    return _then(match, WORKS_OR_WORKED_AT if match["aux"].lower() == "worked" else WORKS_AT, False)


def _class_at(match: re.Match[str]) -> NounPhrase | None:
    return _then(match, WORKS_AT, True)


def _composite(match: re.Match[str]) -> NounPhrase | None:
    """A noun phrase alone asks its question only when it binds something: a bare name is no relational question."""
    inner = noun_phrase(match["np"])
    return inner if inner is not None and inner.hops else None


def _compiled(
    *rules: tuple[str, str, Callable[[re.Match[str]], NounPhrase | None]],
) -> tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], NounPhrase | None]], ...]:
    return tuple((name, re.compile(f"^{pattern}$", re.IGNORECASE), build) for name, pattern, build in rules)


_FINITE = _alternatives("f", lambda verb: verb.finite)
_BASE = _alternatives("b", lambda verb: verb.base)
_GERUND = _alternatives("g", lambda verb: verb.gerund)
_PASSIVE = _alternatives("p", lambda verb: verb.passive)
_BE = r"(?:is|are|was|were|has been|have been|had been|got)"

_PHRASES = tuple(
    (pattern, build)
    for _, pattern, build in _compiled(
        ("role of", rf"(?:the |all |any )?(?:{_ROLE_WORDS}) (?:of|in|at|to|for|behind|from) (?P<np>.+)", _role),
        ("possessive", rf"(?P<np>.+?)(?:'s|(?<=s)') (?:{_ROLE_WORDS})", _role),
        (
            "class passive",
            rf"(?:the |all |any )?{_CLASS} (?:(?:that|which|who) )?(?:{_BE} )?{_ADVERB}{_PASSIVE} by (?P<np>.+)",
            _object,
        ),
        (
            "class where",
            rf"(?:the )?{_CLASS} (?:where|at which) (?P<np>.+?) (?P<aux>works?|worked)",
            _class_where,
        ),
        ("class active", rf"(?:the |all |any )?{_CLASS} (?:that|which|who) {_ADVERB}{_FINITE} (?P<np>.+)", _active),
        ("class gerund", rf"(?:the |all |any )?{_CLASS} (?:who are |that are )?{_GERUND} (?P<np>.+)", _active),
        (
            "class object",
            rf"(?:the |all |any )?{_CLASS} (?:(?:that|which|whom|who) )?(?P<np>.+?) {_ADVERB}{_FINITE}",
            _object,
        ),
        (
            "class at",
            r"(?:the |all )?(?:people|staff|everyone|folks|team) (?:at|of|from) (?P<np>.+)",
            _class_at,
        ),
    )
)

_FRAMES = _compiled(
    ("by whom", rf"by whom {_BE} (?P<np>.+?) {_PASSIVE}", _active),
    ("who was X founded by", rf"(?:{_WHO}|whom) {_BE} (?P<np>.+?) {_PASSIVE} by", _active),
    ("which were founded by X", rf"{_WHO} (?:{_BE} )?{_ADVERB}{_PASSIVE} by (?P<np>.+)", _object),
    ("who used to", rf"{_WHO} {_ADVERB}(?P<f2>{_VERBS[2].finite}) (?P<np>.+)", _active),
    (
        "who at X",
        r"who (?:at|from|in) (?P<np>.+?) (?:works?|leads?|runs?|builds?|owns?|handles?|manages?)\b.*",
        _works_with_topic,
    ),
    ("who founded X", rf"{_WHO} {_ADVERB}{_FINITE} (?P<np>.+)", _active),
    ("who is advising X", rf"{_WHO} (?:is|are|was|were|has been|have been) {_ADVERB}{_GERUND} (?P<np>.+)", _active),
    ("who employs X", rf"{_WHO} {_ADVERB}(?:employs?|employed|hired) (?P<np>.+)", _employs),
    (
        "where does X work",
        (
            r"(?:where|in which company|at which company) (?P<aux>does|did|do|has|had|is) (?P<np>.+?) "
            r"(?:(?:currently|now|previously|formerly|used? to) )*(?:working|worked|work|employed)(?: at| for)?"
            r"(?: before| previously| now)?"
        ),
        _works,
    ),
    (
        "who does X work for",
        (
            rf"(?:{_WHO}|whom) (?P<aux>does|did|do) (?P<np>.+?) (?:currently |now |previously |used? to )?"
            r"work (?:at|for)(?: before| previously| now)?"
        ),
        _works,
    ),
    ("what did X found", rf"(?:{_WHO}|whom) (?:do|does|did) (?P<np>.+?) {_ADVERB}{_BASE}", _object),
    ("what has X invested in", rf"(?:{_WHO}|whom) (?:has|have|had) (?P<np>.+?) {_ADVERB}{_FINITE}", _object),
    ("what is X backing", rf"(?:{_WHO}|whom) (?:is|are|was|were) (?P<np>.+?) {_ADVERB}{_GERUND}", _object),
    (
        "founder of what",
        rf"(?:of )?{_WHO} (?:is|was) (?P<np>.+?) (?:an? |the |one of the )?(?:{_ROLE_WORDS})(?: of| in| to| at)?",
        _held_role,
    ),
    ("who are the founders of X", rf"(?:{_WHO}|whose) (?:is|are|was|were|has been) (?P<np>.+)", _composite),
    ("who are X's investors", r"(?:what|which|who) (?:is|are|was|were) (?:an? |one of )?(?P<np>.+)", _composite),
    ("role of", rf"(?P<np>.+ (?:of|in|at|to|for|behind|by) .+|.+'s? .+|(?:the |all )?{_CLASS} .+)", _composite),
    ("X investors", rf"(?P<np>\S.*?) (?:{_ROLE_WORDS})", _role),
)
