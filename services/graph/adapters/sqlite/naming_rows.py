"""The table of names as rows: who has a name, which target a link gets, and how a name is searched by parts of it."""
# ruff: noqa: S608  (statements are put together from our own words; every value is a parameter)

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from services.domain.records import PageId
from services.graph.adapters.sqlite.schema import AMBIGUOUS, GHOST
from services.graph.naming import Candidate, NameKind, choose, key_of

VALUES_MAX = 500
"""Values listed in one statement: beyond, making its text costs more than another statement."""

_IDEOGRAPH = re.compile(r"[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]")


class NameRow(NamedTuple):
    """A row of the table of names."""

    mark: int
    kind: int
    page_id: PageId
    name: str
    source: str
    key: str


def name_row(source: str, key: str, kind: NameKind, page_id: PageId, name: str) -> NameRow:
    """A page's name as a row."""
    return NameRow(mark_of(source, key), kind, page_id, name, source, key)


@lru_cache(maxsize=32_768)  # As `key_of`: the names of an import repeat.
def mark_of(source: str, key: str) -> int:
    """A source and a key in 64 bits. Equal names have equal marks; whoever finds a mark compares the names."""
    return int.from_bytes(blake2b(f"{source}\n{key}".encode("utf-8", "replace"), digest_size=8).digest(), signed=True)


def searchable(key: str) -> str:
    """A key as the trigram index stores and is asked for it.

    The index knows runs of three characters, but a Chinese name may have two, and one may be all that is remembered.
    With a mark around each ideograph every part of a name, of any length, has three.
    """
    return key if key.isascii() else _IDEOGRAPH.sub("\x01\\g<0>\x01", key).replace("\x01\x01", "\x01")


class Choices:
    """Where names lead, worked out once per name, spelling and folder; good while the table of names stays as it is."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._candidates: dict[tuple[str, str], list[Candidate[int]]] = {}
        self._targets: dict[tuple[str, str, bool, str | None], tuple[int, int | None]] = {}

    def load(self, marks: Collection[int]) -> None:
        """Reads everything that `targets` needs for links with these marks."""
        for listed in in_lists(marks):
            rows = self._connection.execute(
                "SELECT n.source, n.key, n.kind, n.name, p.id, p.folder, p.private"
                " FROM names n JOIN pages p ON p.page_id = n.page_id"
                f" WHERE n.mark IN ({listed}) AND n.kind <> {int(NameKind.UNDATED_TAIL)}"
            )
            for source, key, kind, name, page, folder, private in rows:
                candidate = Candidate(page, NameKind(kind), name, folder, bool(private))
                self._candidates.setdefault((source, key), []).append(candidate)

    def targets(self, source: str, name: str, *, titled: bool, folder: str | None) -> tuple[int, int | None]:
        """The target for those who see every page, and the one for those who see no private page, if it differs."""
        asked = (source, name, titled, folder)
        found = self._targets.get(asked)
        if found is None:
            candidates = self._candidates.get((source, key_of(name)), [])
            target = target_of(candidates, name, titled=titled, folder=folder)
            world: int | None = None
            if any(candidate.private for candidate in candidates):
                shown = [candidate for candidate in candidates if not candidate.private]
                world = target_of(shown, name, titled=titled, folder=folder)
            found = self._targets[asked] = (target, None if world == target else world)
        return found


def target_of(candidates: list[Candidate[int]], name: str, *, titled: bool, folder: str | None) -> int:
    """The page a name leads to as a link's target."""
    chosen = choose(candidates, name=name, titled=titled, folder=folder)
    if len(chosen) == 1:
        return chosen[0].page
    return AMBIGUOUS if chosen else GHOST


def in_lists(marks: Iterable[int]) -> Iterable[str]:
    """The marks as texts for `IN (…)`, a bounded number in each: integers of our own need no parameters."""
    ordered = sorted(marks)
    for start in range(0, len(ordered), VALUES_MAX):
        yield ", ".join(map(str, ordered[start : start + VALUES_MAX]))
