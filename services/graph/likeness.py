"""How much a name is what somebody asked for: pure, and the same on every engine."""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import pairwise

LIKENESS_MIN = 0.65
"""Of `SequenceMatcher`: one wrong character in three of a Chinese name passes, one in two does not."""

PAIRS_SHARED_MIN = 0.35
"""Of the runs of two characters of both, what names that are alike share at least."""


def pairs_of(text: str) -> frozenset[str]:
    """The runs of two characters of a text."""
    return frozenset(map("".join, pairwise(text)))


def likeness(matcher: SequenceMatcher[str], asked: str, pairs: frozenset[str], key: str) -> float:
    """How much a name is what was asked: 4 the same, 3 to 4 begins with it, 2 to 3 a word begins, 1 to 2 contains it.

    Below 1 it is only similar. Within each, the more of the name was asked for, the more.
    """
    share = len(asked) / max(len(key), 1)
    if key == asked:
        return 4.0
    at = key.find(asked)
    if at >= 0:
        word_begins = at == 0 or not key[at - 1].isalnum() or not key[at].isascii()
        return (3.0 if at == 0 else 2.0 if word_begins else 1.0) + min(share, 0.99)
    others = pairs_of(key)
    if len(pairs & others) < PAIRS_SHARED_MIN * (len(pairs) + len(others)) / 2:
        return 0.0  # Much cheaper to see than how much they are alike.
    matcher.set_seq1(key)
    return min(matcher.ratio(), 0.99)
