"""The two halves of a page's body: the compiled truth, what is held true now, and the timeline, what happened when."""

from __future__ import annotations

import re
from dataclasses import dataclass

from services.domain.markdown import Heading, Layout

_WORDS = r"timeline|时间线|时间轴|時間線|時間軸"
_SENTINEL = re.compile(
    rf"^[ \t]*(?:<!--[ \t]*(?:{_WORDS})[ \t]*-->|-{{3,}}[ \t]*(?:{_WORDS})[ \t]*-{{3,}})[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_HEADING = re.compile(
    rf"(?:{_WORDS}|history|events|changelog|历史|历程|大事记|大事年表|年表|事件|沿革|動態|动态)\b", re.IGNORECASE
)
_RULE = re.compile(r"(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}")
_DATE = r"(?:\*\*|__|\[|`)?(?:1[5-9]|20|21)\d\d(?:[-/.年]|\b)"
_DATED_BULLET = re.compile(rf"[ \t]*[-*+][ \t]+{_DATE}")
_DATED_HEADING = re.compile(rf"\#{{3,6}}[ \t]+{_DATE}")


@dataclass(frozen=True, slots=True)
class Halves:
    """The spans of the page's text that make each half, in order; marks that only divide belong to neither."""

    truth: tuple[tuple[int, int], ...]
    timeline: tuple[tuple[int, int], ...] = ()


def split_body(layout: Layout) -> Halves:
    """Find the timeline of a page, if it says that it has one.

    A line `<!-- timeline -->` or `--- timeline ---` begins it; else a rule with a Timeline or History heading below; in
    both cases it goes to the end. Else a section under such a heading that holds only dated entries is the timeline,
    and what comes after it is compiled truth again. Any other rule is a rule.
    """
    text, start, end = layout.text, layout.start, len(layout.text)
    if text.find("<!--", start) >= 0 or text.find("---", start) >= 0:
        for mark in _SENTINEL.finditer(text, start):
            if not layout.fenced(mark.start()):
                return Halves(((start, mark.start()),), ((mark.end(), end),))
    named = [(n, h) for n, h in enumerate(layout.headings) if h.level <= 2 and _HEADING.match(h.text)]
    for _, heading in named:
        rule = _rule_above(text, start, heading)
        if rule is not None:
            return Halves(((start, rule),), ((heading.start, end),))
    for number, heading in named:
        following = (h.start for h in layout.headings[number + 1 :] if h.level <= 2)
        section_end = next(following, end)
        if _only_dated(text[heading.end : section_end]):
            rest = ((section_end, end),) if section_end < end else ()
            return Halves(((start, heading.start), *rest), ((heading.start, section_end),))
    return Halves(((start, end),))


def joined(text: str, spans: tuple[tuple[int, int], ...]) -> str:
    """The text of some spans, a blank line between two."""
    return "\n\n".join(part for begin, end in spans if (part := text[begin:end].strip("\n").rstrip()))


def _rule_above(text: str, start: int, heading: Heading) -> int | None:
    """Where the rule begins that is the last line above a heading, when something stands above it."""
    above = text[start : heading.start].rstrip()
    line_start = above.rfind("\n") + 1
    return start + line_start if line_start and _RULE.fullmatch(above[line_start:].strip()) else None


def _only_dated(section: str) -> bool:
    """Whether a section holds dated entries, with their details, and nothing else."""
    entries, under_heading = 0, False
    for line in section.split("\n"):
        if _DATED_HEADING.match(line):
            entries, under_heading = entries + 1, True
        elif _DATED_BULLET.match(line):
            entries += 1
        elif (
            line.strip() and not (entries and line.startswith(("  ", "\t"))) and not (under_heading and line[0] != "#")
        ):
            return False
    return entries > 0
