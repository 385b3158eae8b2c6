"""The rule of every projection as a pure plan: what to remove and what to write."""

from __future__ import annotations

from services.domain.records import PageId, PageKey
from services.search.adapters.tantivy import plan
from services.search.values import HeldPage
from tests.contract.search.pages import state


def held(slug: str, page_id: str, revision: int) -> HeldPage:
    return HeldPage(PageKey("default", slug), PageId(page_id), revision)


def test_a_page_replaces_itself_and_whoever_had_its_slug() -> None:
    removed, written = plan([state("a", "x", 5, page_id="new")], [held("a", "old", 3), held("b", "other", 2)])
    assert removed == ["old"]
    assert [one.revision for one in written] == [5]


def test_a_newer_page_is_neither_replaced_nor_removed() -> None:
    removed, written = plan([state("a", "x", 5, page_id="p")], [held("a", "p", 7)])
    assert (removed, written) == ([], [])
    removed, written = plan([state("a", None, 5)], [held("a", "p", 7)])
    assert (removed, written) == ([], [])


def test_the_same_revision_is_written_again() -> None:
    removed, written = plan([state("a", "x", 5, page_id="p")], [held("a", "p", 5)])
    assert (removed, len(written)) == (["p"], 1)


def test_a_page_written_and_removed_in_one_batch_is_not_written() -> None:
    removed, written = plan([state("a", "x", 5, page_id="p"), state("a", None, 6)], [])
    assert (removed, written) == ([], [])


def test_of_two_slugs_of_one_page_in_a_batch_the_newer_wins() -> None:
    removed, written = plan([state("a", "x", 5, page_id="p"), state("b", "x", 9, page_id="p")], [held("a", "p", 4)])
    assert removed == ["p"]
    assert [one.key.slug for one in written] == ["b"]
