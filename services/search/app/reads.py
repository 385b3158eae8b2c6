"""What the reads have in common: who may see what, and how fresh it must be."""

from __future__ import annotations

from datetime import datetime

from services.domain.context import OperationContext
from services.domain.errors import InvalidArgument, NotReady
from services.search.ports import LexicalHolder, Projection
from services.search.values import PageFilter, date_code, last_date_code

FILTER_VALUES_MAX = 32
"""Types or tags a filter may have."""

WAIT_SECONDS_MAX = 30.0
"""How long a read waits for a revision when its caller set no deadline."""

ANSWER_SECONDS = 0.05
"""Kept of the deadline to answer in."""


async def reached(lexical: Projection[LexicalHolder], min_revision: int, remaining_seconds: float | None) -> None:
    """Waits until the lexical projection holds a revision.

    Raises:
        NotReady: `INDEX_BEHIND` when it does not in time.
    """
    if min_revision <= lexical.indexed_revision:
        return
    seconds = WAIT_SECONDS_MAX if remaining_seconds is None else max(0.0, remaining_seconds - ANSWER_SECONDS)
    if not await lexical.wait_for(min_revision, seconds):
        raise NotReady(
            "INDEX_BEHIND",
            f"{lexical.name} has not reached revision {min_revision}; it is at {lexical.indexed_revision}",
            field="min_revision",
            value=min_revision,
            next_step="Ask again in a moment, or leave min_revision out to read what is there.",
            metadata={"indexed_revision": str(lexical.indexed_revision)},
            retry_after_seconds=1.0,
        )


def page_filter(
    caller: OperationContext,
    *,
    source: str = "",
    types: tuple[str, ...] = (),
    tags: tuple[str, ...] = (),
    slug_prefix: str = "",
    updated_after: datetime | None = None,
    since: str = "",
    until: str = "",
) -> PageFilter:
    """A filter within what the caller may see: the one predicate that every engine gets.

    Raises:
        PermissionDenied: The caller may not read the source.
        InvalidArgument: `FIELD_INVALID` for too many values, or for a date that is none.
    """
    for name, values in (("types", types), ("tags", tags)):
        if len(values) > FILTER_VALUES_MAX:
            raise invalid(f"filter.{name}", len(values), f"has more than {FILTER_VALUES_MAX} values", "Use fewer.")
    codes = {"since": date_code(since), "until": last_date_code(until)}
    for name, text in (("since", since), ("until", until)):
        if text and not codes[name]:
            raise invalid(f"filter.{name}", text, "is no date", "Use 2026, 2026-03 or 2026-03-01.")
    return PageFilter(
        sources=caller.readable(source or None),
        private=caller.sees_private,
        types=types,
        tags=tags,
        slug_prefix=slug_prefix,
        updated_after=updated_after,
        since=codes["since"],
        until=codes["until"],
    )


def invalid(field: str, value: object, why: str, next_step: str) -> InvalidArgument:
    """A field with a value that is never allowed."""
    return InvalidArgument("FIELD_INVALID", f"{field} {why}", field=field, value=value, next_step=next_step)
