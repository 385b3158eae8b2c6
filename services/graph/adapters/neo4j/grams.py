"""Names as words of a full-text index that knows only whitespace: every run of one, two and three characters.

The words are hexadecimal, so that no character of a name or of a question is ever query syntax, and begin with a letter
that says what they are: `g` a run of characters, `s` a store, `t` a source (tenant), `p` whether the page is private.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

GRAM_MAX = 3
"""Runs this long tell names apart; the shorter ones are there for texts of one or two characters, Chinese or not."""

NAME_CHARACTERS_MAX = 400
"""Of a name: a longer title is found by its beginning."""


def grams_of(keys: Iterable[str]) -> list[str]:
    """The runs of characters of all names, each once, the short ones first."""
    cut = [key[:NAME_CHARACTERS_MAX] for key in keys]
    runs = [
        key[at : at + length] for length in range(1, GRAM_MAX + 1) for key in cut for at in range(len(key) - length + 1)
    ]
    return list(dict.fromkeys(runs))


def gram(run: str) -> str:
    """A run of characters as a word of the index."""
    return "g" + run.encode("utf-8", "replace").hex()


def store_gram(store: str) -> str:
    """The word of every page of a store."""
    return "s" + store.encode().hex()


def source_gram(source: str) -> str:
    """The word of every page of a source."""
    return "t" + source.encode("utf-8", "replace").hex()


def private_gram(private: bool) -> str:
    """The word of every private page, or of every other."""
    return f"p{int(private)}"


def text_of(store: str, source: str, private: bool, keys: Iterable[str]) -> str:
    """What the index holds of a page."""
    return " ".join([store_gram(store), source_gram(source), private_gram(private), *map(gram, grams_of(keys))])


def query_of(*, must: Sequence[Sequence[str]], any_of: Sequence[str]) -> str:
    """A query of our words: one of each group, and one of some runs at least, the more the better."""
    groups = [*must, any_of] if any_of else must
    return " AND ".join(f"({' OR '.join(group)})" for group in groups)
