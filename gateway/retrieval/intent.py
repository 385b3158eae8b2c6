"""What kind of question is asked, by English and Chinese rules, and what follows from it. No model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from gateway.retrieval.model import Language
from gateway.retrieval.plan import RelationalPlan, clean_question
from gateway.retrieval.relational import parse_relational
from gateway.retrieval.terms import detect_language, question_terms

LOOKUP_WORDS_MAX = 6
"""A text of at most so many words that asks nothing is looked up as a name. Source: the peer system's lookup shape."""
LOOKUP_CHARACTERS_MAX = 16
"""The same for Han characters: titles of notes are seldom longer."""


class IntentKind(StrEnum):
    """What the caller wants to know."""

    RELATIONAL = "relational"
    """Pages that stand in a relation to a named one."""
    FIRST_TIME = "first_time"
    """The earliest page on something."""
    MOST_RECENT = "most_recent"
    """The newest page on something."""
    TEMPORAL = "temporal"
    """When something was, or what was lately."""
    ENTITY = "entity"
    """Who or what a named thing is."""
    EXACT_NAME = "exact_name"
    """Nothing but a name, a title, a slug or an identifier."""
    GENERAL = "general"


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """The kind of a question with what the rules read out of it."""

    kind: IntentKind
    language: Language
    subject: str = ""
    """The thing an entity question is about, or the name that is looked up; empty otherwise."""
    person: bool = False
    """Whether the question asks who the subject is: then the subject is a name, in whatever script."""
    plan: RelationalPlan | None = None
    """Set for relational questions only."""
    recency: bool = False
    """Whether the question wants newer pages."""
    asks_for_chat: bool = False
    """Whether conversations are what is asked for; they are not ranked down then."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names to resolve in graph's table for the identity tier; those of the plan are resolved with it."""
        return (self.subject,) if self.subject else ()


def classify(text: str, *, relational: bool = True) -> Intent:
    """The intent of a question. The first kind that fits wins, in the order of IntentKind.

    Args:
        text: The question as asked.
        relational: Whether relational questions are read as such; the relational arm may be off.
    """
    question = clean_question(text)
    language = detect_language(question or text)
    recency = bool(_RECENT.search(question))
    asks_for_chat = bool(_CHAT.search(question))
    plan = parse_relational(text) if relational else None
    if plan is not None:
        return Intent(kind=IntentKind.RELATIONAL, language=plan.language, plan=plan)
    if _FIRST.search(question):
        return Intent(kind=IntentKind.FIRST_TIME, language=language, asks_for_chat=asks_for_chat)
    if _MOST_RECENT.search(question):
        return Intent(kind=IntentKind.MOST_RECENT, language=language, recency=True, asks_for_chat=asks_for_chat)
    subject = _entity_subject(_RECENT.sub("", question).strip())
    if recency or _TEMPORAL.search(question):
        return Intent(
            kind=IntentKind.TEMPORAL, language=language, subject=subject, recency=recency, asks_for_chat=asks_for_chat
        )
    if subject:
        person = bool(_PERSON.search(question))
        return Intent(kind=IntentKind.ENTITY, language=language, subject=subject, person=person)
    if _looks_like_a_name(question):
        return Intent(kind=IntentKind.EXACT_NAME, language=language, subject=text.strip())
    return Intent(kind=IntentKind.GENERAL, language=language, asks_for_chat=asks_for_chat)


def _entity_subject(question: str) -> str:
    """The X of "who is X" and its like, in the spelling of the question; empty for other questions."""
    for pattern in _ENTITY:
        match = pattern.match(question)
        if match:
            subject = match["subject"].strip(" \"'“”「」『』《》")
            subject = _BUSY.sub("", re.sub(r"^(?:the|an?) (?=[A-Z])", "", subject))
            if subject and subject.lower() not in _PRONOUNS and not _ASKS.search(subject):
                return subject
    return ""


def _looks_like_a_name(question: str) -> bool:
    if not question or _ASKS.search(question):
        return False
    terms = question_terms(question)
    han = sum(1 for word in terms.words if len(word) == 1 and not word.isascii())
    spaced = len(terms.words) - han
    return bool(terms.words) and spaced <= LOOKUP_WORDS_MAX and han <= LOOKUP_CHARACTERS_MAX


_I = re.IGNORECASE
_FIRST = re.compile(
    r"\b(?:when|where|what|which)\b.*\b(?:first|earliest|originally)\b"
    r"|\bwhen (?:did|have|had) (?:i|we)\b.*\b(?:begin|begun|start|started|get into|get interested|become interested)\b"
    r"|\b(?:first|earliest) (?:time|note|mention|page|entry|thought|trace|record)s?\b"
    r"|\b(?:how long (?:ago )?(?:have|had|did) (?:i|we)|since when|origins? of (?:my|our))\b"
    r"|(?:我|咱)们?.{0,12}(?:什么时候|何时|哪天|哪年|哪个?月|哪一[天年]).{0,6}(?:开始|起)|从(?:什么时候|何时).{0,2}(?:开始|起)"
    r"|\bwhere did (?:my|our) .{1,60}\b(?:start|begin|come from)\b"
    r"|第一次|首次|最早|最初|最开始|一开始",
    _I,
)
_MOST_RECENT = re.compile(
    r"\b(?:latest|newest|most recent(?:ly)?|last (?:time|met|meeting|call|conversation|chat|talk(?:ed)?|spoke|saw|seen|"
    r"heard|note|update))\b"
    r"|\bwhen did .+ last\b|最近一次|上一次|上次|最后一次|最新|最近的一",
    _I,
)
_RECENT = re.compile(
    r"\b(?:recent(?:ly)?|lately|today|right now|just now|this (?:week|month|quarter)|last (?:week|month|few days)|"
    r"past (?:week|month|few days)|these days|what(?:'s| is) (?:new|going on|happening|up with)|currently|"
    r"catch (?:me )?up|status of|updates? (?:on|from|about))\b"
    r"|最近|近来|近期|这几天|这两天|今天|昨天|本周|这周|上周|这个月|上个月|近况|进展|目前|现状",
    _I,
)
_TEMPORAL = re.compile(
    r"\b(?:when|what (?:date|day|year|month|time)|which (?:day|year|month)|how long|timeline|history of|deadline|since|"
    r"before|after)\b"
    r"|什么时候|何时|哪天|哪年|哪一年|哪一天|几月|几号|多久|时间线|历史|日期|期限|截止|之前|之后|以来",
    _I,
)
_CHAT = re.compile(
    r"\b(?:chat(?:s|ted)?|talk(?:ed|s)?|conversations?|discuss(?:ed|ion)?|messages?)\b|聊|对话|谈|群里|消息", _I
)
_ENTITY = (
    re.compile(
        r"^(?:so )?(?:who|what)(?:'s| is| are| was| were) (?:an? |the )?"
        r"(?P<subject>(?!.*\b(?:of|by|doing|for|about)\b).{1,80})$",
        _I,
    ),
    re.compile(
        r"^(?:please )?(?:tell me (?:more |everything )?about|describe|introduce|summari[sz]e|explain|profile of|"
        r"background (?:of|on)|overview of|what do (?:i|we|you) know about|everything about|all about|what does) "
        r"(?P<subject>.{1,80}?)(?: mean| do)?$",
        _I,
    ),
    re.compile(
        r"^(?:请)?(?:介绍一下|介绍下|介绍|说说|讲讲|谈谈|描述一下|总结一下|解释一下|解释|告诉我关于|关于)"
        r"(?P<subject>.{1,40}?)(?:的(?:情况|信息|资料|背景|一切))?$"
    ),
    re.compile(
        r"^(?P<subject>.{1,40}?)(?:到底|究竟)?"
        r"(?:是谁|是什么人|是什么意思|是什么|是啥|是干什么的|是做什么的|是哪位)$"
    ),
    re.compile(r"^(?:谁是|什么是|什么叫|何为|何谓|啥是)(?P<subject>.{1,40})$"),
)
_PERSON = re.compile(r"^(?:so )?who\b|谁|哪位|什么人", _I)
_BUSY = re.compile(r" (?:working on|up to|doing|saying|talking about|focused on)$", _I)
_PRONOUNS = frozenset(
    "it this that he she they me you us him her them there here 他 她 它 这 那 他们 我 你 这个 那个".split()
)
_ASKS = re.compile(
    r"\b(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|can|could|should|would|tell|show|find)\b"
    r"|谁|什么|哪|怎么|怎样|如何|为什么|为何|多少|几个|吗|呢$|是不是|有没有|请问",
    _I,
)
