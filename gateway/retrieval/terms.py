"""What a question's words are, for judging hits: content words, names, language. Engines do their own analysis.

Judging needs less than searching: no word segmentation, only whether a text holds what was asked. Latin and other
spaced scripts are compared by light stems, Han by pairs of characters, so both languages cost the same.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.retrieval.model import Language, PageRef

QUESTION_CHARACTERS_MAX = 512
"""A longer question is judged by its end, where pasted text has its question (BC-101)."""
UNITS_MAX = 64
"""More units than this tell nothing new about a hit, and every unit is looked up in every judged hit."""
TEXT_CHARACTERS_MAX = 4_000
"""A passage is judged by so much of it: chunks are shorter, and whole pages must not cost a query its time."""

HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HAN_RUN = re.compile(f"[{HAN}]+")
_WORD = re.compile(f"[^\\W_{HAN}]+")
_NAME_TOKEN = re.compile(f'[^\\s{HAN},;:?!()\\[\\]"“”‘’「」『』《》、，。；：？！（）]+')
_QUOTED = re.compile('["“「『《]([^"“”「」『』《》]{1,80})["”」』》]')

STOP_ENGLISH = frozenset(
    """a about above after again all am an and any anyone anything are aren as at be because been before being
    between both but by came can come could d describe did didn do does doesn doing don done during each else ever
    every find first for from further get give go going had has have having he hear heard her here hers him his
    how i idea ideas if in into is isn it its itself just know last latest let like list ll m many may me might
    mine more most much must my no nor not notes now of off on once one only or other our ours out over own please
    re recently remember s said same say says shall she should show so some someone something start started such t
    tell than that the their theirs them then there these they thing things think this those thought thoughts
    through time to too under until up upon us used ve very want was wasn we were weren what when where whether
    which while who whom whose why will with would write written wrote yet you your yours""".split()
)
"""Words that ask, bind or speak of having a thought, and name nothing. `first` and `latest` steer the order, so they
need not be found."""

STOP_CHINESE = tuple(
    sorted(
        """哪一天 哪一年 哪个月 念头 想法 关注 琢磨 记下 想到 什么时候 什么 怎么样 怎么 怎样 如何 为什么 为何
        哪里 哪儿 哪些 哪个 哪家 哪位 哪一个 哪年 哪天 哪次 多少 几个 是谁 谁是 是否 是不是 有没有 有哪些
        有关 关于 告诉我 请问 介绍一下 介绍 一下 我们 你们 他们 她们 它们 我的 你的 他的 她的 自己 咱们 大家
        这个 那个 这些 那些 这里 那里 这样 那样 一个 一些 可以 能够 能不能 可不可以 应该 知道 记得 觉得 认为
        第一次 最早 最近 最新 最后 上次 开始 目前 现在 当时 曾经 之前 以后 以前 之后 时候 东西 事情 情况
        内容 笔记 记录 相关 所有 全部 每个 以及 或者 并且 而且 但是 因为 所以 如果 还有 没有 不是 就是 都有
        都是 里面 一直 已经 正在 到底 究竟 提到 说过 写过 谈过 聊过 讨论过 提过 想要 需要""".split(),
        key=len,
        reverse=True,
    )
)
STOP_CHINESE_SINGLE = frozenset(
    "的了吗呢吧啊呀是在我你他她它们谁哪和与或及就都也还很把被让给对从到向由于为以之其这那有没不个里上中下去来过着得地说请问"
)
_STOP_CHINESE = re.compile("|".join(map(re.escape, STOP_CHINESE)))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionTerms:
    """What a text must hold to speak of what was asked."""

    language: Language
    content: tuple[str, ...]
    """Stems of words, pairs of Han characters; no repeats, in the order of the question, at most UNITS_MAX."""
    spellings: Mapping[str, str]
    """Unit of content to the word as the question has it, for people."""
    names: tuple[str, ...]
    """Folded names that the question spells as such: capitals inside a sentence, identifiers, quotes."""
    words: tuple[str, ...]
    """All words and Han characters in order, folded, stop words included: for phrases."""

    @property
    def stopwords_only(self) -> bool:
        """Whether the question has words but none that names anything (BC-100)."""
        return not self.content and bool(self.words)


def fold(text: str) -> str:
    """The text in compatibility form and without case: what two spellings of a name share."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", text).casefold()


def detect_language(text: str) -> Language:
    """Chinese when the text has Han and asks in it; a Han name inside an English question leaves it English."""
    han = sum(map(len, _HAN_RUN.findall(text)))
    if not han:
        return Language.ENGLISH
    asks_in_english = any(word in STOP_ENGLISH for word in _WORD.findall(fold(text)) if len(word) > 1)
    return Language.ENGLISH if asks_in_english and not _asks_in_chinese(text) else Language.CHINESE


def question_terms(text: str) -> QuestionTerms:
    """The terms of a question, from its last QUESTION_CHARACTERS_MAX characters."""
    text = unicodedata.normalize("NFKC", text[-QUESTION_CHARACTERS_MAX:])
    folded = text.casefold()
    content: dict[str, str] = {}
    for word in _WORD.findall(folded):
        if word not in STOP_ENGLISH:
            content.setdefault(stem(word), word)
    for run in _HAN_RUN.findall(_STOP_CHINESE.sub(" ", folded)):
        content.update({unit: unit for unit in _han_units(run)})
    return QuestionTerms(
        language=detect_language(text),
        content=tuple(content)[-UNITS_MAX:],
        spellings=content,
        names=_names(text),
        words=words_of(folded),
    )


def words_of(folded: str) -> tuple[str, ...]:
    """The words of a folded text, each Han character its own, in order."""
    return tuple(_WORDS_AND_HAN.findall(folded))


def stem(word: str) -> str:
    """A light stem of a folded word: what its plural, past and participle share. Equal stems mean one word here."""
    if len(word) <= 3 or not word.isascii():
        return word
    for ending, replacement in (("ies", "i"), ("ied", "i"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)] + replacement
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiols":
        word = word[:-1]
    if word.endswith("e") and len(word) > 3:
        return word[:-1]
    return word[:-1] + "i" if word.endswith("y") and len(word) > 3 else word


def holds_phrase(words: tuple[str, ...], run: tuple[str, ...]) -> bool:
    """Whether the run stands in the words, unbroken; an empty run stands nowhere."""
    length = len(run)
    if not 0 < length <= len(words):
        return False
    first = run[0]
    return any(
        words[start] == first and words[start : start + length] == run for start in range(len(words) - length + 1)
    )


class TextUnits:
    """A text made ready for asking whether it holds units and names; made once per judged hit.

    It is searched for the few units of a question, because taking all of its own words apart costs ten times as much.
    """

    __slots__ = ("_folded",)

    def __init__(self, *parts: str) -> None:
        self._folded = fold("\n".join([part[:TEXT_CHARACTERS_MAX] for part in parts if part]))

    def holds(self, unit: str) -> bool:
        """Whether the text has a word of this stem, or the pair of characters."""
        text = self._folded
        # Stems end in i where words end in y; what comes before is in every form of the word.
        prefix = unit[:-1] if unit.endswith("i") and len(unit) > 3 else unit
        start = text.find(prefix)
        if start < 0 or is_han(unit):
            return start >= 0
        while start >= 0:
            if start == 0 or not _WORD.match(text, start - 1):
                word = _WORD.match(text, start)
                if word is not None and (word[0] == unit or stem(word[0]) == unit):
                    return True
            start = text.find(prefix, start + 1)
        return False

    def names(self, name: str) -> bool:
        """Whether the text has every word of the name, in whatever order."""
        if name in self._folded:
            return True
        words = _WORD.findall(name)
        return bool(words) and all(self.holds(stem(word)) for word in words)


def page_units(page: PageRef, text: str, heading: str = "", matched_tokens: Sequence[str] = ()) -> TextUnits:
    """The units of a hit: its passage, everything its page is called, and what the engine found in the rest of it."""
    return TextUnits(
        page.title, page.slug.replace("/", " "), " ".join(page.aliases), heading, text, "\n".join(matched_tokens)
    )


def coverage(terms: QuestionTerms, units: TextUnits) -> float:
    """The share of the question's content that the text holds, 0..1; 0 when the question has none."""
    if not terms.content:
        return 0.0
    return sum(map(units.holds, terms.content)) / len(terms.content)


def is_han(text: str) -> bool:
    """Whether the text begins with a Han character."""
    return _HAN_RUN.match(text) is not None


_WORDS_AND_HAN = re.compile(f"[^\\W_{HAN}]+|[{HAN}]")


def _han_units(run: str) -> list[str]:
    """Pairs of neighbours without the pairs that only bind; a lone character stands for itself."""
    if len(run) == 1:
        return [] if run in STOP_CHINESE_SINGLE else [run]
    pairs = [run[i : i + 2] for i in range(len(run) - 1)]
    return [pair for pair in pairs if not STOP_CHINESE_SINGLE.intersection(pair)] or [
        character for character in run if character not in STOP_CHINESE_SINGLE
    ]


def _asks_in_chinese(text: str) -> bool:
    return _STOP_CHINESE.search(text) is not None or any(c in "谁吗呢的了" for c in text)


def _names(text: str) -> tuple[str, ...]:
    """Names as the question spells them; the first word counts only when more than its position speaks for it."""
    names: dict[str, None] = {fold(quoted.strip()): None for quoted in _QUOTED.findall(text)}
    run: list[str] = []
    for position, token in enumerate(_NAME_TOKEN.findall(text)):
        token = token.strip("'.-*").removesuffix("'s").removesuffix("’s")
        plain = fold(token)
        capital = token[:1].isupper() and (position > 0 or any(c.isupper() for c in token[1:]))
        identifier = any(c.isdigit() for c in token) and any(c.isalpha() for c in token)
        if (capital or identifier) and plain not in STOP_ENGLISH:
            run.append(plain)
            continue
        if run:
            names[" ".join(run)] = None
        run = []
    if run:
        names[" ".join(run)] = None
    return tuple(name for name in names if name)
