"""The Chinese rules for what a sentence states about its links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

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

_TITLE = (
    r"(?:首席[^，。、；\s]{1,4}官|CEO|CTO|COO|CFO|CMO|总裁|总经理|董事长|董事|合伙人|"
    r"管理合伙人|员工|工程师|总监|经理|主管|负责人|"
    r"研究员|科学家|设计师|分析师|产品经理|技术负责人|组长|主任|店长|编辑|记者|教授|老师|法务|会计|实习生)"
)
_FOUNDER = r"(?:联合|共同)?(?:创始人|创办人|创立者|创始)"
_FOUND = r"(?:创立|创办|创建|成立|发起|开创)"
_INVEST = r"(?:投资|领投|跟投|参投|入股|注资|出资|投)"
_WORK = r"(?:任职|工作|上班|就职|供职|负责|担任|做事|带队|当)"
_HERE = r"在(?:这里|这儿|公司|此)"
_ENDED = r"(?:过|到(?!现在|今|如今)|至(?!今))"


class _Verb(NamedTuple):
    link_type: str
    pattern: re.Pattern[str]


_VERBS = (
    _Verb(FOUNDED, re.compile(rf"(?:共同|联合|参与|一起|一同)?{_FOUND}(?:了|过|的是)?(?!的|以来|于|时|初)")),
    _Verb(
        INVESTED_IN,
        re.compile(rf"(?:天使轮?|共同|参与)?{_INVEST}(?:了|过|的是|于|到)?(?!人|方|的人|的公司|者|逻辑|项目|机构)"),
    ),
    _Verb(WORKS_AT, re.compile(r"(?:任职|就职|供职|效力|受雇|服务)于|加入了?|入职了?")),
    _Verb(WORKED_AT, re.compile(r"离开了?|(?:曾|曾经|此前|之前|以前|过去)(?:任职|就职|供职|效力|受雇)于")),
    _Verb(ATTENDED, re.compile(r"(?:参加|出席|列席|参与)了?(?!的|人|者)|到场|主持|做东")),
)
_OBJECT_FIRST = (  # 在 X 工作, X 的创始人, 担任 X 的顾问: the object comes before the word that says what it is.
    (WORKED_AT, re.compile(rf"(?:从|自){MARK}(?:离职|离开|辞职|退休|跳槽)")),
    (
        WORKED_AT,
        re.compile(
            rf"(?:曾|曾经|此前|之前|以前|过去|原来|原先|早年)[^，。；{MARK}]{{0,8}}?"
            rf"在{MARK}[^，。；{MARK}]{{0,6}}?{_WORK}"
        ),
    ),
    (WORKED_AT, re.compile(rf"在{MARK}[^，。；{MARK}]{{0,6}}?{_WORK}{_ENDED}")),
    (WORKS_AT, re.compile(rf"在{MARK}[^，。；{MARK}]{{0,6}}?{_WORK}")),
    (
        ADVISES,
        re.compile(
            rf"(?:担任|出任|受聘为|是|任|做|当|为|给){MARK}[^，。；{MARK}]{{0,6}}?(?:当|做|担任|提供)?(?:顾问|咨询)"
        ),
    ),
    (ADVISES, re.compile(rf"{MARK}的?[^，。；担是任为做当{MARK}]{{0,4}}?顾问")),
    (FOUNDED, re.compile(rf"{MARK}的?{_FOUNDER}")),
    (INVESTED_IN, re.compile(rf"{MARK}的?(?:早期|天使|主要|首个|第一个)?(?:投资人|投资方|投资者|股东)")),
    (INVESTED_IN, re.compile(rf"(?:对|向|给){MARK}(?:进行|做)?(?:了|过)?{_INVEST}")),
    (WORKED_AT, re.compile(rf"(?:前|原){MARK}的?{_TITLE}|{MARK}的?(?:前|原)(?:任)?{_TITLE}")),
    (WORKS_AT, re.compile(rf"{MARK}的?[^，。；的{MARK}]{{0,4}}?{_TITLE}")),
)
_AGENTS = (  # 由 X 创立, 创始人是 X, 获 X 投资: the link is the subject and the page the object.
    (FOUNDED, re.compile(rf"由(?={MARK})"), re.compile(rf"[^，。；{MARK}]{{0,12}}?{_FOUND}")),
    (INVESTED_IN, re.compile(rf"(?:由|被)(?={MARK})"), re.compile(rf"[^，。；{MARK}]{{0,12}}?{_INVEST}")),
    (FOUNDED, re.compile(rf"{_FOUNDER}(?:是|为|有|包括|叫|：|:)?\s?(?={MARK})"), None),
    (
        INVESTED_IN,
        re.compile(
            rf"(?:投资人|投资方|投资者|股东|投资机构|领投方|天使投资|投资|融资|资金|钱)(?:是|"
            rf"为|有|包括|来自|：|:)\s?(?={MARK})"
        ),
        None,
    ),
    (
        INVESTED_IN,
        re.compile(rf"(?:获|获得|拿到|拿了|得到|接受|来自)了?(?={MARK})"),
        re.compile(rf"的?[^，。；{MARK}]{{0,10}}?(?:投资|融资|领投|注资|支票)"),
    ),
    (ADVISES, re.compile(rf"顾问(?:是|为|有|包括|：|:)?\s?(?={MARK})"), None),
    (WORKS_AT, re.compile(rf"(?:{_TITLE}|成员|团队)(?:是|为|有|包括|：|:)\s?(?={MARK})"), None),
    (
        WORKS_AT,
        re.compile(rf"(?:首席[^，。、；\s]{{1,4}}官|CEO|CTO|COO|CFO|总裁|总经理|董事长|合伙人)\s?(?={MARK})"),
        None,
    ),
    (
        ATTENDED,
        re.compile(
            rf"(?:参加|参会|出席|与会|到场|到会)(?:[^，。；{MARK}]{{0,4}}?的)?(?:人员?|者|会议)?(?:有|"
            rf"是|包括|为|：|:)\s?(?={MARK})"
        ),
        None,
    ),
)
_SUBJECT_ROLE = (  # X 担任顾问, X 是创始人: on the page of the organization.
    (ADVISES, re.compile(rf"{MARK}(?:是|担任|任|为|做|当)[^，。；{MARK}]{{0,6}}?顾问")),
    (FOUNDED, re.compile(rf"{MARK}(?:是|为)[^，。；{MARK}]{{0,6}}?{_FOUNDER}")),
    (INVESTED_IN, re.compile(rf"{MARK}(?:是|为)[^，。；{MARK}]{{0,8}}?投资(?:的人|人|方|者)")),
    (WORKED_AT, re.compile(rf"{MARK}(?:曾|曾经|此前|之前|以前)?{_HERE}[^，。；{MARK}]{{0,6}}?{_WORK}{_ENDED}")),
    (WORKS_AT, re.compile(rf"{MARK}(?:现在|目前|仍)?{_HERE}[^，。；{MARK}]{{0,6}}?{_WORK}")),
    (WORKS_AT, re.compile(rf"{MARK}(?:是|担任|任|出任)[^，。；{MARK}顾问创始]{{0,8}}?{_TITLE}")),
)
_SEPARATOR = re.compile(
    rf"(?:[（(][^（）(){MARK}]{{0,40}}[)）])?\s?(?:、|和|与|及|以及|跟|还有|，和|,|，及|"
    rf"，以及|\s)+(?:[^，。；、和与{MARK}]{{1,4}})?\s?{MARK}"
)
_NEGATION = re.compile(
    r"(?:没有?|未(?!来)|从未|不(?!久|但|仅|过|止)|拒绝|放弃|考虑|打算|计划|想要?|可能|"
    r"也许|拟|差点|是否|希望|准备|将(?!军)要?|会不会|要不要|如果|倘若|假如|传闻|据传|"
    rf"邀请|婉拒|本想|原定|本来要|有意|谢绝)[^，。；、{MARK}]{{0,8}}\Z"
)
_PAST = re.compile(r"(?:曾|曾经|此前|之前|以前|过去|早年|原来|原先)[^，。；]{0,12}\Z")
_TIME = (
    r"(?:\d{2,4}\s?年(?:初|底|末|春|夏|秋|冬)?(?:\s?\d{1,2}\s?月)?(?:\s?\d{1,2}\s?[日号])?|"
    r"[去今前同当次]年|\d{1,2}\s?月)"
)
_ADVERB = re.compile(
    rf"(?:{_TIME}|后来|随后|之后|此后|此前|之前|先后|相继|曾经?|同时|目前|现在|现|如今|"
    rf"仍然?|还|也|又|再|并且?|而且?|且|都|就|便|已经?|正式|最早|"
    r"早年|毕业后|期间|一起|一同|共同|联合|参与|亲自|独自|作为[^，。；]{1,10}|(?:在|"
    r"于|从|自|以|用|靠|为|因)[^，。；在于从]{1,12}|时|后|前|\s)"
)
_PATIENT = re.compile(rf"{MARK}(?:就|便)?是?由([^，。；{MARK}]{{1,16}})\Z")
_COMPANION = re.compile(r"[和与跟同].{1,12}\Z")
_CLAUSE = re.compile(r"[，,：:。；;！？!?（(）)]")
_PRONOUNS = {
    Role.PERSON: ("他", "她", "TA", "ta", "本人", "我"),
    Role.ORGANIZATION: ("公司", "该公司", "这家公司", "它", "他们", "我们", "基金", "该基金", "这家基金", "团队"),
    Role.GATHERING: ("会议", "本次会议", "这次会"),
}
_HOLLOW = re.compile(
    r"\s?(?:了|过)?\s?(?:\Z|[，。；、！,.;:：)）\d]|第?[一二三四五六七八九十两]|天使轮|"
    r"种子轮|[A-F]\s?轮|这家|该|公司|"
    r"本|此次|会议|讨论|复盘|进来|进去|到|至|于\s?\d|到场|自)"
)


_TRIGGERS = {
    FOUNDED: ("创", "成立", "发起"),
    INVESTED_IN: ("投", "股", "资", "支票", "钱"),
    ADVISES: ("顾问", "咨询"),
    ATTENDED: ("参", "席", "与会", "到场", "到会", "主持", "做东"),
    WORKS_AT: (
        *(
            "职",
            "工作",
            "上班",
            "负责",
            "担任",
            "做",
            "当",
            "带队",
            "加入",
            "离",
            "效力",
            "受雇",
            "服务于",
            "退休",
            "跳槽",
        ),
        *(
            "CEO",
            "CTO",
            "COO",
            "CFO",
            "CMO",
            "官",
            "总裁",
            "经理",
            "董事",
            "合伙人",
            "员",
            "师",
            "总监",
            "主管",
            "负责人",
        ),
        *("科学家", "组长", "主任", "店长", "编辑", "记者", "教授", "法务", "会计", "实习生", "成员", "团队"),
    ),
}
"""Of each relation the words of which one is in every sentence that states it."""
_TRIGGERING = tuple((link_type, re.compile("|".join(words))) for link_type, words in _TRIGGERS.items())


def chinese(sentence: str, setting: Setting) -> Iterator[Stated]:
    """The relations a Chinese sentence states; none when it asks."""
    if sentence.rstrip(" \t\n”’」』）)").endswith(("？", "?")):
        return
    types = {link_type for link_type, pattern in _TRIGGERING if pattern.search(sentence)}
    if not types:
        return
    if WORKS_AT in types:
        types.add(WORKED_AT)
    taken: set[int] = set()
    for link_type, pattern in _OBJECT_FIRST:
        for match in pattern.finditer(sentence) if link_type in types else ():
            number = marks_before(sentence, sentence.index(MARK, match.start()))
            if number in taken or _negated(sentence, match.start(), setting):
                continue
            subject = _subject(sentence, match.start(), setting)
            if subject is not None:
                taken.add(number)
                past = link_type == WORKS_AT and _PAST.search(sentence, 0, match.start())
                yield Stated(link_type=WORKED_AT if past else link_type, subject=subject, object=(number,))
    yield from _agents(sentence, setting, types)
    for link_type, pattern in _SUBJECT_ROLE:
        for match in pattern.finditer(sentence) if link_type in types else ():
            links = run_before(sentence, match.start() + 1, _SEPARATOR)
            if not taken.intersection(links):
                taken.update(links)
                yield Stated(link_type=link_type, subject=links, object=PAGE)
    yield from _verbs(sentence, setting, types)


def _verbs(sentence: str, setting: Setting, types: set[str]) -> Iterator[Stated]:
    verbs = [verb for verb in _VERBS if verb.link_type in types]
    found = sorted(
        ((match.start(), match.end(), verb) for verb in verbs for match in verb.pattern.finditer(sentence)),
        key=lambda entry: entry[:2],
    )[:VERBS_MAX]
    for index, (begin, end, verb) in enumerate(found):
        if _negated(sentence, begin, setting):
            continue
        stop = found[index + 1][0] if index + 1 < len(found) else len(sentence)
        patient = _PATIENT.search(sentence, max(0, begin - 40), begin)
        if patient and _is_page(patient[1], setting):
            number = marks_before(sentence, patient.start())
            yield Stated(link_type=verb.link_type, subject=PAGE, object=(number,))
            continue
        subject = _subject(sentence, begin, setting)
        target = _target(sentence, end, stop, subject, setting)
        past = verb.link_type == WORKS_AT and _PAST.search(sentence, 0, begin)
        yield Stated(link_type=WORKED_AT if past else verb.link_type, subject=subject, object=target)


def _agents(sentence: str, setting: Setting, types: set[str]) -> Iterator[Stated]:
    for link_type, opening, closing in _AGENTS:
        for match in opening.finditer(sentence) if link_type in types else ():
            at = sentence.index(MARK, match.end())
            links = run_after(sentence, at, _SEPARATOR)
            last = at
            for _ in links[1:]:
                last = sentence.index(MARK, last + 1)
            if (closing is None or closing.match(sentence, last + 1)) and not _negated(
                sentence, match.start(), setting
            ):
                patient = _subject(sentence, match.start(), setting)
                if patient is PAGE or closing is None:
                    yield Stated(link_type=link_type, subject=links, object=PAGE)


def _negated(sentence: str, position: int, setting: Setting) -> bool:
    """Whether what stands before a position in its clause denies it or leaves it open; names are not read for that."""
    before = sentence[max(0, position - 24) : position]
    for name in setting.names:
        before = before.replace(name, "")
    return _NEGATION.search(before) is not None


def _subject(sentence: str, verb: int, setting: Setting) -> Party:
    """Who a verb is said of: what stands before it in its clause, or the page when nothing does."""
    begin = max((match.end() for match in _CLAUSE.finditer(sentence, max(0, verb - 120), verb)), default=0)
    clause = sentence[begin:verb].strip(" \t*_~#>-+•“”\"'|")
    rest = clause
    if MARK in clause:
        tail = _ADVERB.sub("", clause[clause.rindex(MARK) + 1 :])
        if not tail.strip():
            end = begin + sentence[begin:verb].rindex(MARK) + 1
            lead = _ADVERB.sub("", clause[: clause.index(MARK)]).strip()
            if not lead or not lead.endswith(("和", "与", "跟", "同")):
                return run_before(sentence, end, _SEPARATOR)
            rest = lead[:-1]
    for name in _PRONOUNS.get(setting.role, ()):
        if rest.startswith(name) and not rest[len(name) :].startswith(("的", "们")):
            return PAGE if _plain(rest[len(name) :]) else None
    stripped = _ADVERB.sub("", _COMPANION.sub("", rest)).strip()
    if not stripped or setting.is_page(stripped):
        return PAGE
    if any(rest.casefold().startswith(name) and not rest[len(name) :].startswith("的") for name in setting.names):
        return PAGE
    if any(stripped == name for name in _PRONOUNS.get(setting.role, ())):
        return PAGE
    return None


def _is_page(words: str, setting: Setting) -> bool:
    """Whether some words are a pronoun or name of the page, and maybe when."""
    words = _ADVERB.sub("", words).strip()
    return words in _PRONOUNS.get(setting.role, ()) or setting.is_page(words)


def _plain(rest: str) -> bool:
    return not _ADVERB.sub("", _COMPANION.sub("", rest)).strip()


def _target(sentence: str, begin: int, stop: int, subject: Party, setting: Setting) -> Party:
    mark = sentence.find(MARK, begin, stop)
    gap = sentence[begin:mark] if mark >= 0 else ""
    if (
        mark >= 0
        and len(gap) <= 12
        and not _CLAUSE.search(gap.rstrip("：: "))
        and not gap.rstrip().endswith(("和", "与", "跟"))
    ):
        return run_after(sentence, mark, _SEPARATOR)
    if not isinstance(subject, tuple):
        return None
    rest = sentence[begin:stop]
    named = any(rest.strip().casefold().startswith(name) for name in setting.names)
    return PAGE if named or _HOLLOW.match(rest) else None
