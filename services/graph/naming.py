"""Which pages a name leads to: the one rule, pure, that every engine applies and every link and question follows.

1. The exact slug, live or former; then a slug that differs in case or width only, live before former.
2. For names that are not written as paths: of the pages with this title, alias or last part of a slug, those in the
   folder of the page that writes it, else all; of these the strongest kind: title, alias, slug tail, former slug tail.

   A question, but no link, also reaches a page by the last part of its slug without the date in front.

One page left is the answer. Several are ambiguous: all are shown and none is picked. Nearly equal is not equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

from services.domain.dates import without_date
from services.domain.names import name_key
from services.domain.slugs import fold_slug

CANDIDATES_MAX = 20
"""Pages shown for an ambiguous name: more help nobody to choose."""

_FOLDED = re.compile(r"[a-z0-9_]+(?:[-/][a-z0-9_]+)*")
"""What every folding leaves as it is: most slugs, without the price of finding that out."""

P = TypeVar("P")


class NameKind(IntEnum):
    """How a page has a name, strongest first."""

    SLUG = 1
    REDIRECT = 2
    TITLE = 3
    ALIAS = 4
    SLUG_TAIL = 5
    FORMER_TAIL = 6
    """The last part of a slug it had: a link by file name outlives a move into another name."""
    UNDATED_TAIL = 7
    """The last part of its slug without the date it begins with. For questions alone: people ask for "the customs
    workshop", but who links spells the page."""


ADDRESSES = (NameKind.SLUG, NameKind.REDIRECT)


@lru_cache(maxsize=32_768)  # An import asks for the same few thousand names again and again; about 6 MB when full.
def key_of(name: str) -> str:
    """What two spellings of one name have in common, be they slug or title; empty when nothing is left to compare."""
    return name if _FOLDED.fullmatch(name) else fold_slug(name_key(name))


@lru_cache(maxsize=32_768)
def spelled_slug(name: str) -> str:
    """The name as the slug it would be, whether or not it can be one."""
    return name if _FOLDED.fullmatch(name) else fold_slug(name)


def folder_of(slug: str) -> str:
    """All parts but the last; empty at the root."""
    return slug.rpartition("/")[0]


def slug_names(slug: str, *, redirect: bool) -> list[tuple[NameKind, str]]:
    """The kinds and keys of the names that a slug gives to the page it leads to."""
    names = [(NameKind.REDIRECT if redirect else NameKind.SLUG, key_of(slug))]
    if "/" in slug:
        tail = NameKind.FORMER_TAIL if redirect else NameKind.SLUG_TAIL
        names.append((tail, key_of(slug.rpartition("/")[2])))
    last = slug.rpartition("/")[2]
    if not redirect and (undated := without_date(last)) != last:
        names.append((NameKind.UNDATED_TAIL, key_of(undated)))
    return [(kind, key) for kind, key in names if key]


def page_names(title: str, aliases: Iterable[str]) -> list[tuple[NameKind, str, str]]:
    """Kind, key and spelling of the names that a page gives itself; each kind and key once."""
    names = {(NameKind.TITLE, key_of(title)): title}
    for alias in aliases:
        names.setdefault((NameKind.ALIAS, key_of(alias)), alias)
    return [(kind, key, name) for (kind, key), name in names.items() if key]


class Candidate(NamedTuple, Generic[P]):
    """A page that has a name equal to the one asked for, up to case and width."""

    page: P
    kind: NameKind
    name: str
    """The name as the page writes it; the whole slug for every kind made from one."""
    folder: str
    """The folder of the page's present slug."""
    private: bool


def choose(
    candidates: Sequence[Candidate[P]], *, name: str, titled: bool, folder: str | None
) -> Sequence[Candidate[P]]:
    """The candidates the name leads to, one per page: none, one, or several when it is ambiguous.

    Leaving out a candidate that was not chosen never changes the choice.

    Args:
        candidates: Those of one source with the name's key, visible to who asks.
        name: As written.
        titled: Whether it may be a title, an alias or the last part of a slug; False for paths.
        folder: The folder of the page that writes the name; None when no page of the same source does.
    """
    if not candidates:
        return ()
    slug = spelled_slug(name)
    exact = [c for c in candidates if c.kind in ADDRESSES and c.name == slug]
    if exact:
        return exact
    for kind in ADDRESSES:
        spelled = [c for c in candidates if c.kind is kind]
        if spelled:
            return once_per_page(spelled)
    if not titled:
        return ()
    near = [c for c in candidates if c.folder == folder] if folder is not None else []
    return once_per_page(strongest(near or candidates))


def strongest(candidates: Sequence[Candidate[P]]) -> list[Candidate[P]]:
    """The candidates of the strongest kind among them."""
    best = min(candidate.kind for candidate in candidates)
    return [candidate for candidate in candidates if candidate.kind is best]


def once_per_page(candidates: Sequence[Candidate[P]]) -> list[Candidate[P]]:
    """The first candidate of each page."""
    first: dict[P, Candidate[P]] = {}
    for candidate in candidates:
        first.setdefault(candidate.page, candidate)
    return list(first.values())
