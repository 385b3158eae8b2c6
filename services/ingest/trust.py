"""What a remote caller may see and set: pure predicates over parsed pages. See DESIGN section 6."""

from __future__ import annotations

from services.domain.context import OperationContext
from services.domain.errors import InvalidArgument
from services.domain.frontmatter import RESERVED_KEYS
from services.domain.page import ParsedPage, Visibility


def may_see(ctx: OperationContext, page: ParsedPage) -> bool:
    """Whether the page exists for this caller."""
    return ctx.sees_private or page.visibility is not Visibility.PRIVATE


def check_reserved_keys(ctx: OperationContext, page: ParsedPage, current: ParsedPage | None) -> None:
    """Refuses a remote caller's text that sets a reserved key; one that stands there already may stay as it is.

    Raises:
        InvalidArgument: `FIELD_INVALID`, naming the key.
    """
    if not ctx.remote:
        return
    there = current.frontmatter if current is not None else {}
    for key in sorted(RESERVED_KEYS & page.frontmatter.keys()):
        if key not in there or there[key] != page.frontmatter[key]:
            raise InvalidArgument(
                "FIELD_INVALID",
                f"the frontmatter key {key!r} is reserved: a remote caller cannot set it",
                field=f"body.frontmatter.{key}",
                value=page.frontmatter[key],
                next_step=f"Leave {key!r} out of the frontmatter, or as it is in the current revision.",
            )
