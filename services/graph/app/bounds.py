"""What a caller may ask for: every bound of graph's requests, and the refusals that name them."""

from __future__ import annotations

from collections.abc import Sequence

from services.domain.errors import InvalidArgument

LINKS_DEFAULT, LINKS_MAX = 100, 1_000
UNRESOLVED_DEFAULT, UNRESOLVED_MAX = 100, 1_000
"""Rows of a list: a thousand with their sentences are about half a megabyte."""

COUNTED_MAX = 1_000
"""Pages counted in one call: every candidate of a recall several times over."""

TYPES_MAX = 32
TYPE_CHARACTERS_MAX = 128

DEPTH_DEFAULT, DEPTH_MAX = 5, 10
EDGES_DEFAULT, EDGES_MAX = 500, 5_000
"""Of a walk: beyond ten hops everything is near everything, and nobody reads five thousand edges."""

NAMES_MAX, NAME_CHARACTERS_MAX = 100, 512
FOUND_DEFAULT, FOUND_MAX = 20, 100

SEEDS_MAX, HOPS_MAX = 8, 4
ANSWERS_DEFAULT, ANSWERS_MAX = 50, 500


def field_invalid(field: str, value: object, why: str, next_step: str) -> InvalidArgument:
    """The refusal of a value that a field may never have."""
    return InvalidArgument("FIELD_INVALID", f"{field} {why}", field=field, value=value, next_step=next_step)


def field_required(field: str, next_step: str) -> InvalidArgument:
    """The refusal of a request that leaves out what it needs."""
    return InvalidArgument("FIELD_REQUIRED", f"{field} is required", field=field, next_step=next_step)


def within(field: str, value: int, *, default: int, maximum: int) -> int:
    """A number that is refused outside its bounds; 0 is the default.

    Raises:
        InvalidArgument: It is negative or above the maximum.
    """
    if not 0 <= value <= maximum:
        raise field_invalid(field, value, f"is not in 0 to {maximum}", f"Give 1 to {maximum}, or 0 for {default}.")
    return value or default


def page_size(value: int, *, default: int, maximum: int) -> int:
    """The rows of one page of a list: 0 is the default, what is above the maximum is the maximum.

    Raises:
        InvalidArgument: It is negative.
    """
    if value < 0:
        raise field_invalid("page_size", value, "is negative", f"Give 1 to {maximum}, or 0 for {default}.")
    return min(value or default, maximum)


def at_most(field: str, values: Sequence[object], maximum: int) -> None:
    """Raises InvalidArgument when there are more values than a field takes."""
    if len(values) > maximum:
        raise field_invalid(
            field, len(values), f"has more than {maximum} values", f"Ask for at most {maximum} at once."
        )


def types(field: str, values: Sequence[str]) -> tuple[str, ...]:
    """Link types or page types.

    Raises:
        InvalidArgument: There are too many, or one is empty or too long to be one.
    """
    at_most(field, values, TYPES_MAX)
    for value in values:
        if not 0 < len(value) <= TYPE_CHARACTERS_MAX:
            why = f"has a type that is not 1 to {TYPE_CHARACTERS_MAX} characters"
            raise field_invalid(field, value, why, "Use types such as `founded` or `works_at`.")
    return tuple(values)


def names(field: str, values: Sequence[str], maximum: int) -> tuple[str, ...]:
    """Names as people write them.

    Raises:
        InvalidArgument: There are too many, or one is empty or too long to be one.
    """
    at_most(field, values, maximum)
    for value in values:
        if not value.strip() or len(value) > NAME_CHARACTERS_MAX:
            why = f"has a name that is not 1 to {NAME_CHARACTERS_MAX} characters"
            raise field_invalid(field, value, why, "Give names of pages, as they are written.")
    return tuple(values)
