"""What every `LexicalIndex` promises about replacing: whatever reaches it, in whatever order, the newest is held."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from services.domain.records import PageId, PageRecord
from services.search.documents import slug_state
from services.search.ports import LexicalIndex
from services.search.values import PageOrder, Retriever
from tests.contract.search.engines import OpenLexical
from tests.contract.search.histories import (
    AFTER_EVERYTHING,
    SLUGS,
    Held,
    History,
    as_page_record,
    deliver,
    expected,
    histories,
)
from tests.contract.search.pages import EVERYTHING, PARSER, state
from tests.engines.selection import examples


async def held(index: LexicalIndex) -> Held:
    return {(page.key.slug, page.page_id, page.revision) async for page in index.held()}


async def contents(index: LexicalIndex) -> dict[str, object]:
    """All that can be read of an index."""
    listed = await index.list_pages(EVERYTHING, PageOrder.SLUG, after=None, offset=0, limit=500)
    ids = [row.page_id for row in listed.rows]
    passages = [
        (hit.row, hit.passage)
        for term in ("alpha", "beta", "gamma", "数据")
        for hit in await index.search(Retriever.LEXICAL_CHUNKS, [term], EVERYTHING, 50)
    ]
    return {"rows": listed.rows, "pages": await index.pages(ids, EVERYTHING), "passages": passages}


@pytest.fixture
async def rebuilt(open_lexical: OpenLexical, tmp_path: Path) -> AsyncIterator[LexicalIndex]:
    """An index of the same engine that is given the newest record of each slug, once."""
    async with open_lexical(tmp_path / "rebuilt") as index:
        yield index


@settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=histories(16, 50))
async def test_any_order_of_deliveries_ends_in_what_a_rebuild_holds(
    lexical: LexicalIndex, rebuilt: LexicalIndex, history: History
) -> None:
    async def apply(records: list[PageRecord]) -> None:
        await lexical.apply([slug_state(record, PARSER) for record in records])

    log = await deliver(history, apply)
    assert await held(lexical) == expected(log)
    newest = [log.newest(slug) for slug in sorted(log.kept)]
    await rebuilt.apply([slug_state(as_page_record(one), PARSER) for one in newest if one])
    assert await contents(lexical) == await contents(rebuilt)
    for index in (lexical, rebuilt):
        await index.apply([state(slug, None, AFTER_EVERYTHING) for slug in SLUGS])
        assert await held(index) == set()


async def test_a_second_put_replaces_every_passage_of_the_first(lexical: LexicalIndex) -> None:
    await lexical.apply([state("a", "# A\n\nalpha\n\n```\nbeta = 1\n```\n\ngamma", 1)])
    await lexical.apply([state("a", "# A\n\nbeta", 2)])
    assert await lexical.search(Retriever.LEXICAL_CHUNKS, ["alpha"], EVERYTHING, 9) == []
    [hit] = await lexical.search(Retriever.LEXICAL_CHUNKS, ["beta"], EVERYTHING, 9)
    assert hit.row.revision == 2
    assert (await lexical.counts(EVERYTHING)).chunks == 1


async def test_an_older_revision_that_comes_late_changes_nothing(lexical: LexicalIndex) -> None:
    await lexical.apply([state("a", "beta", 5)])
    await lexical.apply([state("a", "alpha", 3)])
    assert await lexical.search(Retriever.LEXICAL_PAGES, ["alpha"], EVERYTHING, 9) == []
    assert len(await lexical.search(Retriever.LEXICAL_PAGES, ["beta"], EVERYTHING, 9)) == 1


async def test_a_delete_removes_exactly_its_page(lexical: LexicalIndex) -> None:
    await lexical.apply([state("a", "alpha", 1), state("ab", "alpha", 2), state("a", "alpha", 3, source="team")])
    await lexical.apply([state("a", None, 4)])
    hits = await lexical.search(Retriever.LEXICAL_CHUNKS, ["alpha"], EVERYTHING, 9)
    assert {(hit.row.source, hit.row.slug) for hit in hits} == {("default", "ab"), ("team", "a")}


async def test_a_delete_that_comes_late_does_not_remove_the_page_written_after_it(lexical: LexicalIndex) -> None:
    await lexical.apply([state("a", "alpha", 7, page_id="second")])
    await lexical.apply([state("a", None, 6, page_id="first")])
    assert await held(lexical) == {("a", "second", 7)}


async def test_a_page_that_moves_is_held_once_whichever_message_comes_first(lexical: LexicalIndex) -> None:
    moved, redirect = state("new", "alpha", 9, page_id="p"), state("old", None, 8, page_id="p")
    for first, second in ((moved, redirect), (redirect, moved)):
        await lexical.apply([state("old", "alpha", 3, page_id="p")])
        await lexical.apply([first])
        await lexical.apply([second])
        assert await held(lexical) == {("new", "p", 9)}
        await lexical.apply([state("new", None, 10, page_id="p")])
        assert await held(lexical) == set()


async def test_a_batch_with_both_messages_of_a_move_is_one_step(lexical: LexicalIndex) -> None:
    await lexical.apply([state("old", "alpha", 3, page_id="p")])
    await lexical.apply([state("old", None, 8, page_id="p"), state("new", "alpha", 9, page_id="p")])
    assert await held(lexical) == {("new", "p", 9)}


async def test_what_was_applied_is_there_after_closing_and_opening(open_lexical: OpenLexical, tmp_path: Path) -> None:
    async with open_lexical(tmp_path / "index") as index:
        await index.apply([state("a", "alpha", 1)])
    async with open_lexical(tmp_path / "index") as index:
        assert await held(index) == {("a", "id-default-a", 1)}
        assert list(await index.pages([PageId("id-default-a")], EVERYTHING)) == ["id-default-a"]
