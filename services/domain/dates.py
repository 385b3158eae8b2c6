"""Dates as people write them, with the precision they give: `2026`, `2026-03` or `2026-03-01`."""

from __future__ import annotations

import calendar
import re

YEAR_MIN, YEAR_MAX = 1000, 2199
"""Years a page may be dated to; anything else is a number that looks like one."""

_MONTHS = {name: number for number, name in enumerate(
    "jan feb mar apr may jun jul aug sep oct nov dec".split(), start=1)}  # fmt: skip
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_TYPED = (
    re.compile(r"(\d{4})-(\d{1,2})(?:-(\d{1,2}))?(?:[T ].*)?"),
    re.compile(r"(\d{4})[/.](\d{1,2})(?:[/.](\d{1,2}))?(?:[T ].*)?"),
    re.compile(r"(\d{4})(\d{2})(\d{2})"),
    re.compile(r"(\d{4})\s*年(?:\s*(\d{1,2})\s*月(?:\s*(\d{1,2})\s*[日号]?)?)?.*"),
    re.compile(r"(\d{4})"),
)
_DAY_FIRST = re.compile(rf"(\d{{1,2}})(?:st|nd|rd|th)?\s+{_MONTH},?\s+(\d{{4}})", re.IGNORECASE)
_MONTH_FIRST = re.compile(rf"{_MONTH}\s+(?:(\d{{1,2}})(?:st|nd|rd|th)?,?\s+)?(\d{{4}})", re.IGNORECASE)
_IN_PATH = (
    re.compile(r"(?<!\d)(\d{4})\s*年\s*(\d{1,2})\s*月(?:\s*(\d{1,2})\s*[日号]?)?"),
    re.compile(r"(?<![\d.])(\d{4})[-_ ./](\d{1,2})[-_ ./](\d{1,2})(?!\d)"),
    re.compile(r"(?<!\d)((?:19|20)\d\d)(\d{2})(\d{2})(?!\d)"),
    re.compile(r"(?<![\d.])((?:19|20)\d\d)[-_/](\d{2})(?![\d.])"),
    re.compile(r"(?<!\d)(\d{4})\s*年"),
    re.compile(r"(?:\A|/)((?:19|20)\d\d)(?=[-_ ]|/|\Z)"),
)
_LEADING = re.compile(
    r"(?:\d{4}[-_ .]\d{1,2}[-_ .]\d{1,2}|\d{4}\s*年\s*\d{1,2}\s*月(?:\s*\d{1,2}\s*[日号])?|(?:19|20)\d{6}"
    r"|(?:19|20)\d\d[-_](?:0[1-9]|1[0-2]))(?=[-_ \s]|[^\d\s._-]|\Z)[-_ .,、:：]*"
)


def typed_date(text: str) -> str:
    """The date a field holds, ISO 8601 with the precision it was typed in; empty when it is none that exists."""
    text = text.strip()[:64]
    for pattern in _TYPED:
        if match := pattern.fullmatch(text):
            return iso_date(*match.groups())
    if match := _DAY_FIRST.fullmatch(text):
        return iso_date(match[3], str(_MONTHS[match[2].lower()]), match[1])
    if match := _MONTH_FIRST.fullmatch(text):
        return iso_date(match[3], str(_MONTHS[match[1].lower()]), match[2])
    return ""


def path_date(path: str) -> str:
    """The date a path holds in a file name or its folders, the most precise form first; empty when there is none."""
    path = path[-512:]
    for pattern in _IN_PATH:
        for match in pattern.finditer(path):
            if date := iso_date(*match.groups()):
                return date
    return ""


def without_date(name: str) -> str:
    """A file name without the date it begins with; the name itself when it is nothing else."""
    leading = _LEADING.match(name)
    if not leading:
        return name
    date = leading[0].rstrip("-_ .,、:：")
    exists = typed_date(date if "年" in date else re.sub("[ _.]", "-", date))
    rest = name[leading.end() :] if exists else name
    return rest if rest.strip() else name


def iso_date(year: str, month: str | None = None, day: str | None = None) -> str:
    """The ISO form of a date given in parts, empty unless it is in the calendar."""
    if not YEAR_MIN <= int(year) <= YEAR_MAX:
        return ""
    if not month:
        return year
    if not 1 <= int(month) <= 12:
        return ""
    if not day:
        return f"{year}-{int(month):02}"
    if not 1 <= int(day) <= calendar.monthrange(int(year), int(month))[1]:
        return ""
    return f"{year}-{int(month):02}-{int(day):02}"
