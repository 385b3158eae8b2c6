"""The part of a passage that matched best, found fast: an answer has two hundred hits.

`services.domain.text.snippet` is the careful one, for a text of any length. This one is for passages, which are short:
it looks terms up as they are and costs some ten microseconds.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

BEFORE_CHARACTERS = 60
"""How much is shown before the first term, at most: a sentence that began there is still understood."""

SENTENCE_ENDS = (". ", "! ", "? ", "\n", "。", "！", "？")

JOINERS = "\u200d\ufe0e\ufe0f"
"""Characters that belong to the one before them or bind two."""

PLACES_MAX = 4
"""Places of one term that are looked at."""

TERMS_MAX = 16
"""Terms that are looked for: the longest, which say most."""


def excerpt(text: str, terms: Sequence[str], limit: int) -> str:
    """At most `limit` characters of a text, around where most of its terms stand together; else its beginning."""
    if len(text) <= limit:
        return beginning(text, limit)
    start = _start(text, terms, limit)
    if not start:
        return beginning(text, limit)
    return "…" + beginning(text[start:], limit - 1)


def beginning(text: str, limit: int) -> str:
    """At most `limit` characters from the beginning, on one line; never cut between a character and its marks."""
    if len(text) <= limit:
        return " ".join(text.split())
    end = limit - 1
    while end and _bound(text[end - 1], text[end]):
        end -= 1
    line = " ".join(text[:end].split())
    space = line.rfind(" ", len(line) // 2)
    return (line[:space] if space > 0 and line[-1:].isascii() and not text[end].isspace() else line) + "…"


def _start(text: str, terms: Sequence[str], limit: int) -> int:
    """Where to begin; 0 for the beginning."""
    folded = text.lower()
    if len(folded) != len(text):  # a few characters grow when folded; places in one text are not places in the other
        folded = text
    places: list[tuple[int, str]] = []
    for term in sorted(terms, key=len, reverse=True)[:TERMS_MAX]:
        place = folded.find(term)
        for _ in range(PLACES_MAX):
            if place < 0:
                break
            places.append((place, term))
            place = folded.find(term, place + len(term))
    if not places:
        return 0
    places.sort()
    return _begin_before(text, _densest(places, max(limit - BEFORE_CHARACTERS, limit // 2, 1)), len(text) - limit)


def _densest(places: Sequence[tuple[int, str]], room: int) -> int:
    """The first place of the window that holds the most distinct terms, longer ones counting more."""
    counts: dict[str, int] = {}
    best, best_place, weight, first = 0, 0, 0, 0
    for place, term in places:
        while place - places[first][0] >= room:
            left = places[first][1]
            counts[left] -= 1
            if not counts[left]:
                weight -= len(left)
            first += 1
        if not counts.get(term):
            weight += len(term)
        counts[term] = counts.get(term, 0) + 1
        if weight > best:
            best, best_place = weight, places[first][0]
    return best_place


def _begin_before(text: str, place: int, latest: int) -> int:
    """The sentence's begin, else a word's, a little before a place; never so late that room is left unused."""
    low = max(0, place - BEFORE_CHARACTERS)
    if low == 0:
        return 0
    before = text[low:place]
    sentences = [found + len(end) for end in SENTENCE_ENDS if (found := before.rfind(end)) >= 0]
    within = max(sentences) if sentences else before.find(" ") + 1
    return min(low + within, latest)


def _bound(before: str, after: str) -> bool:
    """Whether two characters are one to the reader."""
    return bool(unicodedata.combining(after)) or after in JOINERS or before == JOINERS[0]
