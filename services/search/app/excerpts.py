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
    line = " ".join(text[: 2 * limit].split())
    if len(line) <= limit and len(text) <= 2 * limit:
        return line
    end = min(limit - 1, len(line))
    space = line.rfind(" ", end // 2, end + 1)
    if space > 0 and line[end - 1].isascii():
        end = space
    while (
        end
        and end < len(line)
        and (unicodedata.combining(line[end]) or line[end] in JOINERS or line[end - 1] in JOINERS)
    ):
        end -= 1
    return line[:end].rstrip() + "…"


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
    room = limit - BEFORE_CHARACTERS
    best, best_place = 0, 0
    for index, (place, term) in enumerate(places):
        weight, seen = len(term), {term}
        for other, another in places[index + 1 :]:
            if other >= place + room:
                break
            if another not in seen:
                seen.add(another)
                weight += len(another)
        if weight > best:
            best, best_place = weight, place
    return _begin_before(text, best_place, len(text) - limit)


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
