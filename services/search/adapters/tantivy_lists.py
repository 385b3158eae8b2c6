"""Lists of pages in an order: pages of equal time are ordered by slug, whatever the engine does with ties."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from tantivy import FieldType, Order, Query, Searcher

from services.search.adapters.tantivy_queries import Clause, must, range_query
from services.search.adapters.tantivy_rows import order_key, page_hit
from services.search.adapters.tantivy_table import Table, stored
from services.search.values import PageOrder, PagePosition, PageRow

_FIELDS = {
    PageOrder.UPDATED_DESC: ("updated", Order.Desc),
    PageOrder.UPDATED_ASC: ("updated", Order.Asc),
    PageOrder.CREATED_DESC: ("created", Order.Desc),
}

STEP = 512
"""Pages looked at in one go."""


def listed(
    table: Table,
    searcher: Searcher,
    clauses: Sequence[Clause],
    order: PageOrder,
    after: PagePosition | None,
    wanted: int,
) -> list[PageRow]:
    """The first `wanted` pages behind a position."""
    if order is PageOrder.SLUG:
        behind = order_key(after.slug, after.source) if after else ""
        return list(_by_slug(table, searcher, clauses, behind, wanted))
    rows: list[PageRow] = []
    for row in _by_time(table, searcher, clauses, order, after, wanted):
        rows.append(row)
        if len(rows) == wanted:
            break
    return rows


def position_of(row: PageRow, order: PageOrder) -> PagePosition:
    """Where a list in this order goes on behind a page."""
    time = row.created if order is PageOrder.CREATED_DESC else row.updated
    return PagePosition(value=0 if order is PageOrder.SLUG else time, slug=row.slug, source=row.source)


def _by_time(
    table: Table,
    searcher: Searcher,
    clauses: Sequence[Clause],
    order: PageOrder,
    after: PagePosition | None,
    wanted: int,
) -> Iterator[PageRow]:
    """Group by group of equal times, each group in order of slug."""
    field, direction = _FIELDS[order]
    step = min(wanted, STEP) + 1
    reached: int | None = None
    if after is not None:
        reached = after.value
        yield from _group(table, searcher, clauses, field, reached, order_key(after.slug, after.source), wanted)
    while True:
        bounds = _beyond(table, field, direction, reached)
        query = Query.boolean_query([(must(Query.all_query())), *clauses, *bounds])
        hits = searcher.search(query, step, count=False, order_by_field=field, order=direction).hits
        if not hits:
            return
        values = [int(value) for value, _ in hits]
        full = len(hits) == step
        for value in dict.fromkeys(values):
            if values.count(value) == 1 and not (full and value == values[-1]):
                address = hits[values.index(value)][1]
                yield page_hit(stored(searcher, address)).row
            else:
                yield from _group(table, searcher, clauses, field, value, "", wanted)
        reached = values[-1]
        if not full:
            return


def _beyond(table: Table, field: str, direction: Order, reached: int | None) -> list[Clause]:
    if reached is None:
        return []
    if direction == Order.Desc:
        return [must(range_query(table.schema, field, FieldType.Integer, high=reached - 1))]
    return [must(range_query(table.schema, field, FieldType.Integer, low=reached + 1))]


def _group(
    table: Table, searcher: Searcher, clauses: Sequence[Clause], field: str, value: int, behind: str, wanted: int
) -> Iterator[PageRow]:
    same = must(range_query(table.schema, field, FieldType.Integer, low=value, high=value))
    return _by_slug(table, searcher, [*clauses, same], behind, wanted)


def _by_slug(
    table: Table, searcher: Searcher, clauses: Sequence[Clause], behind: str, wanted: int
) -> Iterator[PageRow]:
    """Pages in order of their order key, behind one. The engine lists terms in order, but only from the first."""
    query = Query.boolean_query([must(Query.all_query()), *clauses])
    keys = [key for key, _ in searcher.terms_with_prefix("order", "", query, None if behind else wanted)]
    start = bisect_right(keys, behind) if behind else 0
    chosen = keys[start : start + wanted]
    for begin in range(0, len(chosen), STEP):
        part = chosen[begin : begin + STEP]
        hits = searcher.search(Query.term_set_query(table.schema, "order", part), len(part), count=False).hits
        rows = [page_hit(stored(searcher, address)).row for _, address in hits]
        yield from sorted(rows, key=lambda row: order_key(row.slug, row.source))
