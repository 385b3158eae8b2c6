"""What a link in running text means: the relation its sentence states between the page and the page it names.

A sentence arrives with every link replaced by one mark. The rules of each language find the relations it states, as
verb with subject and object; a relation is kept when the page is one side of it and a link the other. A mere mention,
a negated, planned or asked thing, and a relation between two others type nothing: a wrong edge is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from services.domain.relations import Role, allows

MARK = "\ue000"
"""Stands for a link in a sentence; text that holds it has it taken out first."""

SENTENCE_CHARACTERS_MAX = 1_000
"""Longer sentences are lists or data and state nothing that rules could read."""


STATING_ROLES = frozenset({Role.PERSON, Role.ORGANIZATION, Role.GATHERING})
"""Pages whose sentences are about the page. A note's sentences are about others, and a link from it says nothing."""


VERBS_MAX = 16
"""Verbs of one sentence that are looked at; a sentence with more is made of them."""


class Page:
    """The subject of most sentences: the page itself. Compared by identity."""


PAGE = Page()

Party = Page | tuple[int, ...] | None
"""One side of a relation: the page, some links of the sentence by number, or somebody else."""


class Stated(NamedTuple):
    """A relation that a sentence states."""

    link_type: str
    subject: Party
    object: Party


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the rules know about the page a sentence stands on."""

    role: Role
    names: frozenset[str] = field(default_factory=frozenset)
    """Its title and aliases, and the first and last words of those of a person, folded."""

    def is_page(self, text: str) -> bool:
        """Whether some words are a name of the page."""
        return text.strip(" \t\n'\"“”‘’").casefold() in self.names


class TypedLink(NamedTuple):
    """What one link of a sentence means."""

    number: int
    link_type: str
    inward: bool


Rules = Callable[[str, Setting], Iterable[Stated]]


def setting_of(role: Role, names: Sequence[str]) -> Setting:
    """What the rules need of a page: its role, and every name a sentence may call it by."""
    known = {name.casefold() for name in names}
    if role is Role.PERSON:
        for name in names:
            words = name.casefold().split()
            known.update((words[0], words[-1]) if len(words) > 1 and name.isascii() else ())
            # A Chinese full name of three characters is called by its last two.
            known.update((name[1:],) if len(name) == 3 and not name.isascii() and len(words) == 1 else ())
    return Setting(role=role, names=frozenset(name for name in known if name))


def typed_links(
    sentence: str, roles: Sequence[Role | None], setting: Setting, rules: Iterable[Rules]
) -> Iterator[TypedLink]:
    """The meaning of the links of a sentence that have one, by the given languages' rules.

    Args:
        sentence: Its text with MARK in place of each link.
        roles: What each link's target is, in order, None when its name does not say.
        setting: The page it stands on.
        rules: One function a language.
    """
    if len(sentence) > SENTENCE_CHARACTERS_MAX or setting.role not in STATING_ROLES:
        return
    for language in rules:
        for stated in language(sentence, setting):
            if stated.subject is PAGE and isinstance(stated.object, tuple):
                for number in stated.object:
                    if allows(stated.link_type, setting.role, roles[number]):
                        yield TypedLink(number=number, link_type=stated.link_type, inward=False)
            elif stated.object is PAGE and isinstance(stated.subject, tuple):
                for number in stated.subject:
                    if allows(stated.link_type, roles[number], setting.role):
                        yield TypedLink(number=number, link_type=stated.link_type, inward=True)


def marks_before(sentence: str, position: int) -> int:
    """How many links stand before a position."""
    return sentence.count(MARK, 0, position)


def run_after(sentence: str, position: int, separator: re.Pattern[str]) -> tuple[int, ...]:
    """The numbers of the links of a list that begins at the mark at a position: `A (2019), B and C`."""
    number = marks_before(sentence, position)
    numbers = [number]
    while found := separator.match(sentence, position + 1):
        position = found.end() - 1
        numbers.append(numbers[-1] + 1)
    return tuple(numbers)


def run_before(sentence: str, end: int, separator: re.Pattern[str]) -> tuple[int, ...]:
    """The numbers of the links of a list that ends with the mark before `end`."""
    last = marks_before(sentence, end) - 1
    position = sentence.rindex(MARK, 0, end)
    numbers = [last]
    while True:
        previous = sentence.rfind(MARK, 0, position)
        if previous < 0 or not separator.fullmatch(sentence, previous + 1, position + 1):
            return tuple(reversed(numbers))
        numbers.append(numbers[-1] - 1)
        position = previous
