"""Passages as points of Qdrant Edge: ids, payloads, and filters over them."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from qdrant_edge import (
    FieldCondition,
    Filter,
    HasIdCondition,
    HasVectorCondition,
    IsEmptyCondition,
    IsNullCondition,
    MatchAny,
    MatchPrefix,
    MatchValue,
    NestedCondition,
    RangeFloat,
)

from services.domain.page import Visibility
from services.domain.records import PageId, PageKey
from services.search.values import (
    HeldPage,
    PageFilter,
    PageRow,
    PassageKey,
    VectorHit,
    VectorPassage,
    VectorState,
    date_code,
    microseconds,
)

NAMESPACE = uuid.UUID("5f0a3c0e-8f0b-4f43-9d0c-6a2d1e7b4c11")
"""Of our point ids: any fixed value does."""

Condition = (
    FieldCondition | IsEmptyCondition | IsNullCondition | HasIdCondition | HasVectorCondition | NestedCondition | Filter
)
"""What the engine takes as a condition; we use the first kind."""


def conditions(within: PageFilter) -> list[Condition] | None:
    """What a point must be; None when nothing can be visible.

    Who may see what is one condition on one field: each more costs a scan of 50,000 points two milliseconds.
    """
    must: list[Condition] = []
    if within.sources is not None:
        if not within.sources:
            return None
        kinds = list(Visibility) if within.private else [Visibility.WORLD]
        access = [f"{source}:{kind.value}" for source in sorted(within.sources) for kind in kinds]
        must.append(any_of("access", access))
    elif not within.private:
        must.append(any_of("visibility", [Visibility.WORLD.value]))
    if within.types:
        must.append(any_of("type", within.types))
    must += [any_of("tag", [tag]) for tag in within.tags]
    if within.slug_prefix:
        must.append(FieldCondition(key="slug", match=MatchPrefix(within.slug_prefix)))
    if within.updated_after is not None:
        must.append(FieldCondition(key="updated", range=RangeFloat(gte=float(microseconds(within.updated_after)))))
    if within.since or within.until:
        high = float(within.until) if within.until else None
        must.append(FieldCondition(key="date", range=RangeFloat(gte=float(within.since or 1), lte=high)))
    return must


def point_id(page_id: str, chunk_hash: str, number: int) -> str:
    """The id of the n-th passage of a page with this hash."""
    return str(uuid.uuid5(NAMESPACE, f"{page_id}\n{chunk_hash}\n{number}"))


def any_of(field: str, values: Sequence[str]) -> Condition:
    """A field has any of these values."""
    if len(values) == 1:
        return FieldCondition(key=field, match=MatchValue(values[0]))
    return FieldCondition(key=field, match=MatchAny(list(values)))


def points_of(state: VectorState) -> list[tuple[str, VectorPassage]]:
    """The points of a page's passages, in order; none for a slug without a page."""
    if state.page is None:
        return []
    numbers: Counter[str] = Counter()
    points = []
    for passage in state.passages:
        points.append((point_id(state.page.page_id, passage.hash, numbers[passage.hash]), passage))
        numbers[passage.hash] += 1
    return points


def payload_of(page: PageRow, passage: VectorPassage) -> dict[str, Any]:
    """What is kept with a passage's vector: what filters look at, and where it belongs."""
    return {
        "page_id": page.page_id,
        "address": address(PageKey(page.source, page.slug)),
        "access": f"{page.source}:{page.visibility.value}",
        "visibility": page.visibility.value,
        "type": page.type,
        "tag": list(page.tags),
        "slug": page.slug,
        "updated": page.updated,
        "date": date_code(page.date),
        "revision": page.revision,
        "ordinal": passage.ordinal,
        "hash": passage.hash,
    }


def address(key: PageKey) -> str:
    """The one name of a slug in the collection."""
    return f"{key.source}:{key.slug}"


def held_page(payload: Mapping[str, Any] | None) -> HeldPage:
    """What a point says of who holds which slug."""
    assert payload is not None
    source, _, slug = payload["address"].partition(":")
    return HeldPage(key=PageKey(source, slug), page_id=PageId(payload["page_id"]), revision=payload["revision"])


def hit_of(payload: Mapping[str, Any] | None, score: float) -> VectorHit:
    """A point as a hit."""
    assert payload is not None
    key = PassageKey(PageId(payload["page_id"]), payload["ordinal"])
    # The engine's arithmetic may end a hair above 1.
    return VectorHit(key=key, revision=payload["revision"], hash=payload["hash"], score=max(-1.0, min(1.0, score)))
