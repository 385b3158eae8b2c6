"""Text analysis: the one way from text to terms, for index and query, for every engine, in English, Chinese and code.

Terms are NFKC and case folded. An English word gives itself and its stem; an identifier itself and its pieces; a run
of Chinese or Japanese its words and its pairs of characters; scripts without spaces their pairs. No input is an error.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from operator import add

import rjieba
import Stemmer

from services.domain.stop_words import CHINESE_STOP_CHARACTERS, STOP_WORDS

TERM_CHARACTERS_MAX = 64
"""Longer runs are cut to it: they are encoded data, and an engine has a limit of its own."""

QUERY_TERMS_MAX = 64
"""Each term costs every engine a posting list; beyond some dozens they change no ranking."""

QUERY_CHARACTERS_MAX = 4096
"""The tail of an overlong query is read: a pasted conversation ends with what is asked."""

CACHED_WORDS_MAX = 1 << 16
"""Distinct words remembered: some 10 MB, and nearly every word of a vault hits."""

SNIPPET_TEXT_CHARACTERS_MAX = 1 << 16
"""Of the text a snippet is cut from: passages are far shorter, and the snippet of a whole book is its beginning."""

LEAD_CHARACTERS_MAX = 60
"""How far a snippet starts before its first match to begin with a sentence."""

_IDEOGRAPHS = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\uac00-\ud7af"
"""Thai, Lao, Burmese, Khmer; and Hangul, whose words carry their particles."""
_NO_WORD = (
    "\\s\x00-\x2f\x3a-\x40\x5b-\x60\x7b-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf\xd7\xf7\u02c2-\u02df\u037e\u0387\u055a-\u055f"
    "\u0589\u05be\u05c0\u05c3\u060c\u061b\u061f\u066a-\u066d\u06d4\u0964\u0965\u2000-\u206f\u20a0-\u20cf\u2190-\u27ff"
    "\u2900-\u2bff\u2e00-\u2e7f\u2ff0-\u3004\u3008-\u303f\u30fb\ud800-\udfff\ue000-\uf8ff\ufe00-\ufe1f\ufe30-\ufe6f"
    "\ufeff\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\ufff0-\uffff\U0001f000-\U0001faff\U000e0000-\U0010ffff"
)
"""Spaces, punctuation and symbols. What remains is a word character, combining marks of every script included."""

_WORD = f"[^{_NO_WORD}{_IDEOGRAPHS}{_UNSPACED}]"
_NO_TOKEN = _NO_WORD.replace("\u30fb", "")
"""The middle dot of Japanese is no word, but part of a run."""
_TOKEN = re.compile(
    # The class comes first so that `re` runs over what begins no token; then most words of English, which need no more.
    rf"[^{_NO_TOKEN}](?:(?<=[A-Za-z0-9])[A-Za-z0-9]*+(?=[ \n,]|[.:]\s)"
    rf"|(?<={_WORD}){_WORD}*+(?:[._'’/@&:+#~-]{_WORD}++)*+(?:\+\+|#)?"
    rf"|(?<=[{_IDEOGRAPHS}])[{_IDEOGRAPHS}]*+|(?<=[{_UNSPACED}])[{_UNSPACED}]*+)"
)
_ASCII_TOKEN = re.compile(r"[A-Za-z0-9]++(?:[._'/@&:+#~-]++[A-Za-z0-9]++)*+(?:\+\+|#)?")
_IDEOGRAPH_RUN = re.compile(f"[{_IDEOGRAPHS}]")
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]")
_FULL_WIDTH = tuple(zip("，：（）！？；", ",:()!?;", strict=True))
_JOINT = re.compile(r"[._/@&:+#~-]+")
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9]+")
_BREAK = re.compile(r"(?<=[.!?;:\n])\s+|(?<=[。！？；：\n])")
_SPACE = re.compile(r"\s+")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_POSSESSIVE = re.compile(r"['’]s\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTerms:
    """What a query looks for, as `analyze` would index it."""

    terms: tuple[str, ...]
    """Each once, in order of first occurrence, at most QUERY_TERMS_MAX; content words only, unless there is none."""
    stop_words_only: bool = False
    """Whether it has terms, but no content word among them."""
    cut: bool = False
    """Whether only the tail of an overlong query was read."""


class _Words(dict[str, tuple[str, ...]]):
    """The terms of single words by word, remembered. One a thread, because a stemmer must not be shared by threads."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = Stemmer.Stemmer("english").stemWord

    def __missing__(self, word: str) -> tuple[str, ...]:
        """The terms of a token that is no run of ideographs; remembered for the next time."""
        if len(self) >= CACHED_WORDS_MAX:
            self.clear()
        if len(word) > TERM_CHARACTERS_MAX:
            return self._long(word)
        found = self[word] = tuple(dict.fromkeys(self._terms(word)))
        return found

    def _terms(self, word: str) -> list[str]:
        if word.isascii() and word.isalpha() and (word.islower() or word[1:].islower()):
            return self._stemmed(word.lower())
        word = _POSSESSIVE.sub("", word.replace("’", "'"))
        whole = word.casefold()
        terms = self._stemmed(whole)
        if "'" in whole:
            terms += self._stemmed(whole.replace("'", ""))
        pieces = [piece for piece in _JOINT.split(word) if piece]
        for piece in pieces:
            if len(pieces) > 1:
                terms += self._stemmed(piece.casefold())
            humps = _HUMP.findall(piece)
            if 1 < len(humps) <= 8 and piece.isascii() and piece.isalnum():
                for hump in humps:
                    terms += self._stemmed(hump.casefold())
        return terms

    def _stemmed(self, word: str) -> list[str]:
        if word.isascii():
            return [word, self.stem(word)] if word.isalpha() and len(word) > 2 else [word]
        bare = "".join(c for c in unicodedata.normalize("NFD", word) if not "\u0300" <= c <= "\u036f")
        return [word, bare, self.stem(bare)] if bare.isascii() and bare.isalpha() else [word]

    def _long(self, word: str) -> tuple[str, ...]:
        """A token too long to be a word: its pieces, if it has any that are words, else its beginning."""
        pieces = [piece for piece in _JOINT.split(word) if 0 < len(piece) <= TERM_CHARACTERS_MAX]
        if not pieces:
            return (word[:TERM_CHARACTERS_MAX].casefold(),)
        return tuple(term for piece in pieces for term in self[piece])


class _PerThread(threading.local):
    def __init__(self) -> None:
        self.words = _Words()


_THREADS = _PerThread()
"""A memory of a pure function, so it cannot be seen; made when a thread first analyses."""


def analyze(text: str) -> list[str]:
    """The terms of a text in its order; the terms of one word follow each other. Never fails, never holds a space."""
    words = _THREADS.words
    if text.isascii():
        return list(chain.from_iterable(map(words.__getitem__, _ASCII_TOKEN.findall(text))))
    known = words.get
    terms: list[Iterable[str]] = []
    runs: list[str] = []
    words_of_runs: list[list[str]] = []
    for token in _TOKEN.findall(_normal(text)):
        found = known(token)
        if found is not None:
            terms.append(found)
        elif _IDEOGRAPH_RUN.match(token):
            if len(token) > 2:
                # Its words, which are filled in below, and its pairs.
                runs.append(token)
                words_of_runs.append([])
                terms += words_of_runs[-1], map(add, token, token[1:])
            else:
                terms.append((token,))
        elif _UNSPACED_RUN.match(token):
            terms.append(map(add, token, token[1:]) if len(token) > 1 else (token,))
        else:
            terms.append(words[token])
    if runs:
        _cut(runs, words_of_runs)
    return list(chain.from_iterable(terms))


def analyze_query(text: str) -> QueryTerms:
    """The terms a query looks for: each once, bounded, without stop words unless it consists of them."""
    tail = text[-QUERY_CHARACTERS_MAX:]
    found = list(dict.fromkeys(analyze(tail)))
    content = [term for term in found if not stop_term(term)]
    kept = (content or found)[-QUERY_TERMS_MAX:]
    return QueryTerms(
        terms=tuple(kept),
        stop_words_only=bool(found) and not content,
        cut=len(tail) < len(text) or len(kept) < len(content or found),
    )


def snippet(text: str, query_tokens: Iterable[str], limit: int = 240) -> str:
    """At most `limit` characters of the text, around the place where most of the query's terms stand together.

    On one line, with an ellipsis where it is cut. Begins at a sentence or word where there is one near, and never cuts
    between a character and its combining marks or joined characters. The beginning of the text when no term matches.
    """
    text = _SPACE.sub(" ", text[:SNIPPET_TEXT_CHARACTERS_MAX]).strip()
    if len(text) <= limit:
        return text
    if limit < 3:
        return "…"[:limit]
    room = limit - 2
    start = _lead(text, _densest(text, query_tokens, room))
    start = _boundary(text, min(start, len(text) - room)) if start else 0
    end = _boundary(text, min(len(text), start + room))
    if end < len(text):
        space = text.rfind(" ", start + room // 2, end)
        if space > start and not _CJK.match(text[end - 1]):
            end = space
    return ("…" if start else "") + text[start:end].strip() + ("…" if end < len(text) else "")


def stop_term(term: str) -> bool:
    """Whether a term says nothing about the content: a stop word, or a pair of characters with one in it."""
    return term in STOP_WORDS or (len(term) == 2 and not CHINESE_STOP_CHARACTERS.isdisjoint(term))


def _normal(text: str) -> str:
    """The text in NFKC. Chinese punctuation comes first: without it, most text is seen to be in NFKC already."""
    for mark, normal in _FULL_WIDTH:
        text = text.replace(mark, normal)
    return unicodedata.normalize("NFKC", text)


def _cut(runs: list[str], words_of_runs: list[list[str]]) -> None:
    """Give each run its words that are no pairs: a word of two characters is a pair already.

    All are cut at once, because a call costs more than a word.
    """
    filled = iter(words_of_runs)
    words = next(filled)
    for word in rjieba.cut("\n".join(runs)):
        if word == "\n":
            words = next(filled)
        elif len(word) != 2:
            words.append(word)


def _densest(text: str, query_tokens: Iterable[str], room: int) -> int:
    """Where the window begins that holds the most distinct terms, longer terms counting more; 0 when none is there."""
    terms = sorted({t for t in query_tokens if t}, key=lambda term: (-len(term), term))[:QUERY_TERMS_MAX]
    if not terms:
        return 0
    pattern = re.compile("|".join(map(re.escape, terms)), re.IGNORECASE)
    matches = [(match.start(), match[0].casefold()) for match in pattern.finditer(text)]
    counts: dict[str, int] = {}
    best, best_start, weight, first = 0, 0, 0, 0
    for position, term in matches:
        if not counts.get(term):
            weight += len(term) + 1
        counts[term] = counts.get(term, 0) + 1
        while position + len(term) - matches[first][0] > room:
            left = matches[first][1]
            counts[left] -= 1
            if not counts[left]:
                weight -= len(left) + 1
            first += 1
            if first >= len(matches) or matches[first][0] > position:
                break
        if weight > best and first < len(matches):
            best, best_start = weight, matches[first][0]
    return best_start


def _lead(text: str, position: int) -> int:
    """A better place to begin than right at the match: the sentence's begin, else a word's, a little before it."""
    if position <= LEAD_CHARACTERS_MAX:
        return 0
    low = position - LEAD_CHARACTERS_MAX
    breaks = [match.end() for match in _BREAK.finditer(text, low, position)]
    if breaks:
        return breaks[-1]
    space = text.find(" ", low, position)
    return space + 1 if space >= 0 else low


def _boundary(text: str, position: int) -> int:
    """The position, moved back to where no combining sequence is cut; forward never, so that limits hold."""
    while 0 < position < len(text) and (
        unicodedata.combining(text[position])
        or unicodedata.category(text[position])[0] == "M"
        or text[position] in "\u200d\ufe0e\ufe0f"
        or text[position - 1] == "\u200d"
        or "\U0001f3fb" <= text[position] <= "\U0001f3ff"
    ):
        position -= 1
    return position
