"""The Chinese grammar of relational questions: 谁-questions, passives, role nouns, and phrases inside phrases.

As in English, a question is a frame around a noun phrase, and a phrase bound by 的 to a class or role word is a hop:
"X投资的公司的创始人" needs no pattern of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from gateway.retrieval.plan import (
    ADVISES,
    ATTENDED,
    FOUNDED,
    IN,
    INVESTED_IN,
    OUT,
    PARTNER_OF,
    SEED_CHARACTERS_MAX,
    SEEDS_MAX,
    WORKED_AT,
    WORKS_AT,
    WORKS_OR_WORKED_AT,
    NounPhrase,
)

_Build = Callable[[re.Match[str]], NounPhrase | None]

_VERBS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"(?:联合|共同|合伙|一手|参与)?(?:创立|创办|创建|开创|创始|成立)", FOUNDED),
    (r"(?:领|跟|参)?投(?:资|给)?(?![稿票诉入递影案射])|注资|入股", INVESTED_IN),
    (r"参加|出席|参与", ATTENDED),
)
_ROLES: tuple[tuple[str, tuple[str, ...], bool], ...] = (
    # role word, link types, whether it means the named page's link sources (True) or its targets
    (r"(?:联合|共同)?(?:创始人|创办人|创立者|创建者|创办者)|创始团队", FOUNDED, True),
    (r"(?:天使|早期|领投|主要|现有)?(?:投资人|投资方|投资者|投资机构)|股东|金主", INVESTED_IN, True),
    (r"(?:前|离职|以前的|之前的|过去的|曾经的|老)(?:员工|雇员|成员|同事|职员)们?|离职(?:的人|人员)", WORKED_AT, True),
    (r"(?:现任|在职|现在的|目前的)?(?:员工|雇员|职员|团队成员|成员)们?", WORKS_AT, True),
    (r"(?:外部|独立|技术)?顾问(?:团)?", ADVISES, True),
    (r"参会者|参会人员|参会人|与会者|与会人员|出席者|出席人员|参加者|参与者", ATTENDED, True),
    (r"(?:管理|普通)?合伙人", PARTNER_OF, True),
    (r"(?:前|以前的|之前的|过去的)(?:雇主|东家|公司)", WORKED_AT, False),
    (r"雇主|东家|所在公司|就职公司|任职公司|工作单位|单位", WORKS_AT, False),
    (r"投资组合|被投(?:公司|企业|项目)|投资项目|所投(?:公司|企业|项目)", INVESTED_IN, False),
)
_ROLE = "(?:" + "|".join(f"(?P<r{i}>{words})" for i, (words, _, _) in enumerate(_ROLES)) + ")"
_VERB = "(?:" + "|".join(f"(?P<v{i}>{words})" for i, (words, _) in enumerate(_VERBS)) + ")"

_CLASS = (
    r"(?:那些|这些|那几家|那家|所有|全部)?(?:(?:初创|创业|科技|被投)?(?:公司|企业)|机构|投资机构|基金|项目|会议|会|活动|"
    r"人们?|团队|同事|投资人|单位|组织|地方)"
)
_WHICH = rf"(?:哪(?:几|一|些|个|家|位|场|次)*(?:个|家|位|场|次)?{_CLASS}?|什么{_CLASS}?|多少(?:个|家|位)?{_CLASS}?)"
_WHO = rf"(?:(?:有|都有|还有)?(?:谁|{_WHICH}))"
_ADVERB = r"(?:都|一起|共同|也|还|曾经|曾|目前|现在|最早|最初|当初|正在|正|先后|一共|总共|是|有)*"
_WORK = r"(?:工作|上班|任职|就职|供职|做事|干活|打工)"
_JOINED = r"(?:任职于|就职于|供职于|受雇于|效力于|加入)"
_WHERE = rf"(?:哪里|哪儿|何处|什么地方|哪个地方|哪|{_WHICH})"
_FORMER = r"(?:曾经|曾|以前|之前|过去|原来|从前)"
_ASPECT = r"(?:了|过)?"
_END = r"(?:呢|吗|呀|啊|的)?"

_LEAD = re.compile(
    r"^(?:请问|请|麻烦|帮我|给我|我想知道|我想问|想知道|你知道|知道|告诉我|查一下|查查|列出|列举|找出|找一下|看看|说说|一下"
    r"|所有|全部|[,:、\s])+"
)
_BESIDE_HAN = re.compile("(?<=[\u3400-\u9fff]) +| +(?=[\u3400-\u9fff])")
_NEGATED = re.compile(r"没有(?!谁)|没(?:参加|投|出席|加入|在)|未曾|从未|并非|不是|不在|除了|拒绝|放弃")
_DATED = re.compile(r"(?:(?:19|20)\d\d年?(?:\d{1,2}月)?|去年|今年|上个月|上周|这个月|最近)")
_PRONOUN = re.compile(
    r"^(?:[他她它其]们?|[你我].*|这|那|[这那][个家位些次场].*|大家|自己|别人|公司|会议|本公司|咱们.*)$"
)
_ASKS = re.compile(r"谁|什么|哪|怎么|多少|为何|几时|吗|[?,。;!]")
_CLASS_HEAD = re.compile(r"^(?:这家|那家|这个|那个|一家)?(?:公司|企业|机构|基金|会议)(?=.)")
_CLASS_TAIL = re.compile(r"(?:这家公司|这家企业|这个会议|这次会议|这场会|公司|会议|基金|先生|女士|老师)$")
_JOIN = re.compile("和|与|跟|、|以及|及")


def parse(question: str) -> tuple[str, NounPhrase] | None:
    """The rule that reads a cleaned question, with the phrase that answers it; None when no rule does."""
    if not re.search("[\u3400-\u9fff]", question):
        return None
    # "X 投资了哪些公司" and "X投资了哪些公司" ask the same.
    question = _LEAD.sub("", _BESIDE_HAN.sub("", question), count=1).replace(",", "")
    if _NEGATED.search(question):
        return None
    timeless = _DATED.sub("", question)
    for rule, pattern, build in _FRAMES:
        if (match := pattern.match(timeless)) and (phrase := build(match)) is not None:
            # A number is asked for, or a time: the list is evidence for it, not the answer.
            return rule, phrase if timeless == question and "多少" not in question else _unsure(phrase)
    return None


def noun_phrase(text: str) -> NounPhrase | None:
    """What a phrase means: a bound class or role, else a name."""
    for pattern, build in _PHRASES:
        if (match := pattern.match(text)) and (phrase := build(match)) is not None:
            return phrase
    return _seed(text)


def _unsure(phrase: NounPhrase) -> NounPhrase:
    return NounPhrase(readings=phrase.readings, hops=phrase.hops, sure=False)


def _seed(text: str) -> NounPhrase | None:
    """A name as it may be meant: whole, without its class word, or as several names."""
    text = text.strip(" \"'“”‘’「」『』《》,的")
    if not 1 <= len(text) <= SEED_CHARACTERS_MAX or _PRONOUN.match(text) or _ASKS.search(text):
        return None
    readings: list[tuple[str, ...]] = [(text,)]
    for variant in (_CLASS_HEAD.sub("", text), _CLASS_TAIL.sub("", text)):
        variant = variant.strip(" \"'“”‘’「」『』《》")
        if variant and (variant,) not in readings:
            readings.append((variant,))
    parts = tuple(part.strip() for part in _JOIN.split(text) if part.strip())
    if 1 < len(parts) <= SEEDS_MAX:
        readings.append(parts)
    return NounPhrase(readings=tuple(readings))


def _then(match: re.Match[str], link_types: tuple[str, ...], inward: bool) -> NounPhrase | None:
    inner = noun_phrase(match["np"])
    return inner and inner.then(link_types, IN if inward else OUT)


def _verb(match: re.Match[str]) -> tuple[str, ...]:
    return next(link_types for i, (_, link_types) in enumerate(_VERBS) if match[f"v{i}"] is not None)


def _active(match: re.Match[str]) -> NounPhrase | None:
    return _then(match, _verb(match), True)


def _object(match: re.Match[str]) -> NounPhrase | None:
    return _then(match, _verb(match), False)


def _role_of(match: re.Match[str]) -> tuple[tuple[str, ...], bool]:
    return next((link_types, inward) for i, (_, link_types, inward) in enumerate(_ROLES) if match[f"r{i}"] is not None)


def _role(match: re.Match[str]) -> NounPhrase | None:
    link_types, inward = _role_of(match)
    return _then(match, link_types, inward)


def _held_role(match: re.Match[str]) -> NounPhrase | None:
    """For "X是哪些公司的创始人": the role's links the other way round."""
    link_types, inward = _role_of(match)
    return _then(match, link_types, not inward)


def _fixed(link_types: tuple[str, ...], inward: bool) -> _Build:
    return lambda match: _then(match, link_types, inward)


def _composite(match: re.Match[str]) -> NounPhrase | None:
    """A phrase alone asks its question only when it binds something: a bare name is no relational question."""
    inner = noun_phrase(match["np"])
    return inner if inner is not None and inner.hops else None


def _compiled(*rules: tuple[str, str, _Build]) -> tuple[tuple[str, re.Pattern[str], _Build], ...]:
    return tuple((name, re.compile(f"^{pattern}$"), build) for name, pattern, build in rules)


_NP = r"(?P<np>.+?)"

_PHRASES = tuple(
    (pattern, build)
    for _, pattern, build in _compiled(
        ("X的创始人", rf"{_NP}的(?:那些|所有|全部)?{_ROLE}", _role),
        ("在X工作的人", rf"{_FORMER}在{_NP}{_WORK}过?的{_CLASS}", _fixed(WORKED_AT, True)),
        ("在X工作过的人", rf"在{_NP}{_WORK}过的{_CLASS}", _fixed(WORKED_AT, True)),
        ("在X工作的人", rf"在{_NP}{_WORK}的{_CLASS}", _fixed(WORKS_AT, True)),
        ("从X离职的人", rf"(?:从{_NP}(?:离职|离开)|(?:离开)(?P<np2>.+?))的{_CLASS}", lambda m: _departed(m)),
        ("X工作的公司", rf"{_NP}{_FORMER}(?:所)?(?:在)?{_WORK}过?的{_CLASS}", _fixed(WORKED_AT, False)),
        ("X工作过的公司", rf"{_NP}(?:所)?(?:在)?{_WORK}过的{_CLASS}", _fixed(WORKS_OR_WORKED_AT, False)),
        ("X工作的公司", rf"{_NP}(?:现在|目前)?(?:所)?(?:在)?(?:{_WORK}|加入)的{_CLASS}", _fixed(WORKS_AT, False)),
        ("X所在的公司", rf"{_NP}所在的?(?:公司|企业|机构|单位|团队)", _fixed(WORKS_AT, False)),
        ("投资X的机构", rf"{_ADVERB}{_VERB}{_ASPECT}{_NP}的{_CLASS}", _active),
        ("X投资的公司", rf"(?:由|被)?{_NP}{_ADVERB}(?:所)?{_VERB}{_ASPECT}的{_CLASS}", _object),
    )
)


def _departed(match: re.Match[str]) -> NounPhrase | None:
    inner = noun_phrase(match["np"] or match["np2"])
    return inner and inner.then(WORKED_AT, IN)


_ARE = r"(?:分别)?(?:是|有|都有|都是|包括)?(?:谁|哪些|哪几个|哪几家|哪家|哪个|哪一家|哪位|什么|多少)?"

_ARE_ASKING = r"(?:分别)?(?:是|有|都有|都是|包括)(?:谁|哪些|哪几个|哪几家|哪家|哪个|哪一家|哪位|什么|多少)"

_FRAMES = _compiled(
    ("谁曾在X工作", rf"{_WHO}{_FORMER}在{_NP}{_WORK}过?{_END}", _fixed(WORKED_AT, True)),
    ("谁在X工作过", rf"{_WHO}{_ADVERB}在{_NP}{_WORK}过{_END}", _fixed(WORKS_OR_WORKED_AT, True)),
    ("谁在X工作", rf"{_ADVERB}{_WHO}{_ADVERB}在{_NP}{_WORK}{_END}", _fixed(WORKS_AT, True)),
    ("X里有谁", rf"{_NP}(?:里面|里头|里|那边|内部){_ADVERB}{_WHO}(?:在{_WORK})?{_END}", _fixed(WORKS_AT, True)),
    ("以前谁在X工作", rf"{_FORMER}{_WHO}{_ADVERB}在{_NP}{_WORK}过?{_END}", _fixed(WORKED_AT, True)),
    ("谁曾任职于X", rf"{_WHO}{_FORMER}{_JOINED}过?{_NP}{_END}", _fixed(WORKED_AT, True)),
    ("谁任职于X", rf"{_WHO}{_ADVERB}{_JOINED}{_ASPECT}{_NP}{_END}", _fixed(WORKS_AT, True)),
    ("谁从X离职", rf"{_WHO}{_ADVERB}从{_NP}(?:离职|离开|辞职|跳槽){_ASPECT}{_END}", _fixed(WORKED_AT, True)),
    ("谁离开了X", rf"{_WHO}{_ADVERB}离开{_ASPECT}{_NP}", _fixed(WORKED_AT, True)),
    ("X曾在哪里工作", rf"{_NP}{_FORMER}(?:在|于)?{_WHERE}{_WORK}?过?{_END}", _fixed(WORKED_AT, False)),
    ("X在哪里工作过", rf"{_NP}{_ADVERB}在{_WHERE}{_WORK}过{_END}", _fixed(WORKS_OR_WORKED_AT, False)),
    ("X在哪里工作", rf"{_NP}{_ADVERB}在{_WHERE}{_WORK}{_END}", _fixed(WORKS_AT, False)),
    ("X在哪家公司", rf"{_NP}{_ADVERB}在哪(?:一)?(?:个|家)(?:公司|企业|机构|单位){_END}", _fixed(WORKS_AT, False)),
    ("X曾任职于哪里", rf"{_NP}{_FORMER}{_JOINED}过?{_WHERE}{_END}", _fixed(WORKED_AT, False)),
    ("X任职于哪里", rf"{_NP}{_ADVERB}{_JOINED}{_ASPECT}{_WHERE}{_END}", _fixed(WORKS_AT, False)),
    ("谁给X当顾问", rf"{_WHO}{_ADVERB}(?:给|为){_NP}(?:当|做|担任){_ASPECT}{_ROLE}", _role),
    ("X给谁当顾问", rf"{_NP}{_ADVERB}(?:给|为){_WHO}(?:当|做|担任){_ASPECT}{_ROLE}", _held_role),
    ("谁是X的顾问", rf"{_WHO}{_ADVERB}(?:是|担任|当|做)?{_ASPECT}{_NP}的?{_ROLE}{_END}", _role),
    (
        "X是哪些公司的顾问",
        rf"{_NP}(?:还|也|曾|曾经|目前|现在)*(?:是|担任|当|做){_ASPECT}{_WHICH}的?{_ROLE}",
        _held_role,
    ),
    (
        "X获得了谁的投资",
        rf"{_NP}{_ADVERB}(?:获得|得到|拿到|接受|收到|拿){_ASPECT}{_WHO}的(?:投资|注资|钱)",
        _fixed(INVESTED_IN, True),
    ),
    (
        "哪些公司获得了X的投资",
        rf"{_WHO}{_ADVERB}(?:获得|得到|拿到|接受|收到|拿){_ASPECT}{_NP}的(?:投资|注资|钱)",
        _fixed(INVESTED_IN, False),
    ),
    ("哪些公司是X创立的", rf"{_WHICH}(?:都)?(?:是由|是|由|被){_NP}{_ADVERB}(?:所)?{_VERB}{_ASPECT}{_END}", _object),
    ("谁投资了X", rf"{_WHO}{_ADVERB}{_VERB}(?:了|过|的)?{_NP}", _active),
    ("X是谁创立的", rf"{_NP}{_ADVERB}(?:是由|是|由|被)?{_WHO}{_ADVERB}(?:所)?{_VERB}{_ASPECT}{_END}", _active),
    ("X投资了哪些公司", rf"{_NP}{_ADVERB}{_VERB}(?:了|过|的)?(?:是|有)?{_WHO}", _object),
    ("X有哪些投资人", rf"{_NP}(?:都)?(?:有|请了|雇了)(?:哪些|谁|什么|哪几个|哪几位|多少)(?:个|位|名)?{_ROLE}", _role),
    ("X的创始人是谁", rf"{_NP}的{_ROLE}{_ARE}", _role),
    ("X创始人是谁", rf"{_NP}{_ROLE}{_ARE_ASKING}", _role),
    ("X投资的公司有哪些", rf"(?:哪些|所有|全部)?(?P<np>.+的.+?){_ARE}", _composite),
)
