"""What every `LexicalIndex` promises about finding: order, filters, literal words, bounds."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta

import pytest

from services.domain.records import PageId
from services.domain.text import analyze_query
from services.search.ports import LexicalIndex
from services.search.values import (
    PASSAGES_PER_PAGE_MAX,
    LexicalHit,
    PageFilter,
    PageOrder,
    PagePosition,
    PassageKey,
    Retriever,
    SlugState,
    date_code,
    last_date_code,
    microseconds,
)
from tests.contract.search.pages import EVERYTHING, NOON, state, within

LEXICAL = (Retriever.LEXICAL_PAGES, Retriever.LEXICAL_CHUNKS, Retriever.TITLE)


async def search(
    index: LexicalIndex,
    query: str,
    retriever: Retriever = Retriever.LEXICAL_PAGES,
    where: PageFilter = EVERYTHING,
    limit: int = 50,
) -> list[LexicalHit]:
    return await index.search(retriever, analyze_query(query).terms, where, limit)


async def slugs(
    index: LexicalIndex,
    query: str,
    retriever: Retriever = Retriever.LEXICAL_PAGES,
    where: PageFilter = EVERYTHING,
) -> list[str]:
    return [hit.row.slug for hit in await search(index, query, retriever, where)]


async def test_the_page_that_fits_best_comes_first_and_scores_fall(lexical: LexicalIndex) -> None:
    await lexical.apply(
        [
            state("a", "solar power and some other words about gardens", 1),
            state("b", "solar solar solar", 2),
            state("c", "nothing of that", 3),
        ]
    )
    for retriever in (Retriever.LEXICAL_PAGES, Retriever.LEXICAL_CHUNKS):
        hits = await search(lexical, "solar", retriever)
        assert [hit.row.slug for hit in hits] == ["b", "a"]
        assert hits[0].score > hits[1].score


async def test_equal_scores_are_ordered_by_page_id(lexical: LexicalIndex) -> None:
    await lexical.apply([state(f"p{n}", "the same words", 10 - n, page_id=f"id{n}") for n in range(9)])
    assert [hit.row.page_id for hit in await search(lexical, "words")] == [f"id{n}" for n in range(9)]


async def test_chinese_and_english_forms_find_each_other(lexical: LexicalIndex) -> None:
    await lexical.apply(
        [
            state("zh", "# 知识图谱\n\n我们在北京讨论了数据库的设计。", 1),
            state("en", "# Running\n\nShe runs a database company.", 2),
        ]
    )
    assert await slugs(lexical, "数据库设计") == ["zh"]
    assert await slugs(lexical, "知识图谱", Retriever.TITLE) == ["zh"]
    assert await slugs(lexical, "running companies") == ["en"]


async def test_a_hit_names_the_terms_it_holds_in_the_order_of_the_query(lexical: LexicalIndex) -> None:
    words = [f"word{n}" for n in range(40)]
    await lexical.apply([state("all", " ".join(words), 1), state("one", "word39 alone", 2)])
    for retriever in (Retriever.LEXICAL_PAGES, Retriever.LEXICAL_CHUNKS):
        found = {hit.row.slug: hit.matched for hit in await lexical.search(retriever, words, EVERYTHING, 10)}
        assert found == {"all": tuple(words), "one": ("word39",)}


async def test_a_title_or_alias_is_found_and_the_exact_title_wins(lexical: LexicalIndex) -> None:
    """BC-109: a page titled exactly as asked is first among a thousand chatty ones."""
    chatty = [state(f"chat/{n}", f"# Atlas chat {n}\n\natlas atlas atlas budget talk", n + 1) for n in range(200)]
    await lexical.apply(chatty)
    await lexical.apply(
        [
            state("plans/atlas-budget", "# Atlas budget\n\nNumbers.", 2_000),
            state("people/ana", "---\naliases: [Ana of Porto]\n---\n# Ana Ferro\n", 2_001),
        ]
    )
    assert (await slugs(lexical, "Atlas budget", Retriever.TITLE))[0] == "plans/atlas-budget"
    assert await slugs(lexical, "Ana of Porto", Retriever.TITLE) == ["people/ana"]
    hits = await search(lexical, "Atlas budget", Retriever.TITLE)
    assert all(one.score >= other.score for one, other in itertools.pairwise(hits))


@pytest.mark.parametrize(
    "query",
    ["ORD-4471", "don't", "a/b", "user:/x", "foo(bar", '"unclosed', "C++", "*", "((", "x AND", "-only", "a OR b", "\\"],
)
async def test_query_operators_are_plain_words(lexical: LexicalIndex, query: str) -> None:
    """BC-095: never an error, never a syntax."""
    text = f"we spoke of {query} today"
    await lexical.apply([state("hit", text, 1), state("miss", "entirely different matter", 2)])
    for retriever in LEXICAL:
        assert "miss" not in await slugs(lexical, query, retriever)
    if analyze_query(query).terms:
        assert await slugs(lexical, query) == ["hit"]


async def test_wildcards_match_only_themselves(lexical: LexicalIndex) -> None:
    """BC-097: `%` and `_` are no wildcards, in words and in slug prefixes."""
    await lexical.apply(
        [
            state("t/done", "100% done", 1),
            state("t/x", "100x done", 2),
            state("a_b/one", "a_b", 3),
            state("axb/one", "axb", 4),
            state("a.b/one", "dotted", 5),
            state("项目/(一)", "x", 6),
        ]
    )
    assert await slugs(lexical, "a_b") == ["a_b/one"]
    assert (await slugs(lexical, "100%"))[0] == "t/done"
    for prefix, found in {"a_b/": ["a_b/one"], "a.b": ["a.b/one"], "a%": [], "项目/(": ["项目/(一)"], ".*": []}.items():
        listed = await lexical.list_pages(within(slug_prefix=prefix), PageOrder.SLUG, after=None, offset=0, limit=9)
        assert [row.slug for row in listed.rows] == found


async def test_a_very_long_slug_prefix_is_a_prefix_like_any_other(lexical: LexicalIndex) -> None:
    folder = "/".join(["verylongname" * 4] * 20)
    await lexical.apply([state(f"{folder}/a", "x", 1), state(f"{folder}/b", "x", 2), state("c", "x", 3)])
    where = within(slug_prefix=folder)
    assert sorted(await slugs(lexical, "x", where=where)) == [f"{folder}/a", f"{folder}/b"]
    assert await slugs(lexical, "x", where=within(slug_prefix=folder + "/z")) == []


async def test_sources_and_private_pages_are_invisible_in_every_read(lexical: LexicalIndex) -> None:
    await lexical.apply(
        [
            state("open", "secret solar plan", 1),
            state("hidden", "---\nvisibility: private\ntags: [hush]\ntype: diary\n---\nsecret solar plan", 2),
            state("other", "secret solar plan", 3, source="team"),
        ]
    )
    ids = [PageId("id-default-open"), PageId("id-default-hidden"), PageId("id-team-other")]
    remote = PageFilter(sources=frozenset({"default"}), private=False)
    nobody = PageFilter(sources=frozenset(), private=True)
    for where, seen in ((remote, {"open"}), (nobody, set()), (EVERYTHING, {"open", "hidden", "other"})):
        for retriever in (Retriever.LEXICAL_PAGES, Retriever.LEXICAL_CHUNKS):
            assert set(await slugs(lexical, "solar", retriever, where)) == seen
        assert {hit.row.slug for hit in (await lexical.pages(ids, where)).values()} == seen
        assert {hit.row.slug for hit in (await lexical.best_passages(ids, ["solar"], where)).values()} == seen
        keys = [PassageKey(page_id, 0) for page_id in ids]
        assert {hit.row.slug for hit in (await lexical.passages(keys, where)).values()} == seen
        listed = await lexical.list_pages(where, PageOrder.SLUG, after=None, offset=0, limit=10)
        assert {row.slug for row in listed.rows} == seen
        counts = await lexical.counts(where)
        assert (counts.pages, counts.chunks) == (len(seen), len(seen))
        assert ("diary" in dict(counts.types)) == ("hidden" in seen)
        assert counts.tags == ("hidden" in seen)


async def test_types_tags_dates_and_update_times_narrow(lexical: LexicalIndex) -> None:
    await lexical.apply(
        [
            state("p/1", "---\ntype: person\ntags: [a, b]\ndate: 2025-12-31\n---\nx", 1),
            state("p/2", "---\ntype: company\ntags: [a]\ndate: 2026-03\n---\nx", 2),
            state("p/3", "---\ntype: meeting\ntags: [b]\ndate: 2026-03-15\n---\nx", 3),
            state("p/4", "---\ntype: person\n---\nx", 4),
        ]
    )

    async def found(**narrowed: object) -> list[str]:
        return sorted(slug[2:] for slug in await slugs(lexical, "x", Retriever.LEXICAL_CHUNKS, within(**narrowed)))

    assert await found(types=("person", "company")) == ["1", "2", "4"]
    assert await found(tags=("a",)) == ["1", "2"]
    assert await found(tags=("a", "b")) == ["1"]
    assert await found(since=date_code("2026")) == ["2", "3"]
    assert await found(until=last_date_code("2025")) == ["1"]
    assert await found(until=last_date_code("2026-03")) == ["1", "2", "3"]
    assert await found(since=date_code("2026-03-10"), until=last_date_code("2026-03-15")) == ["3"]
    assert await found(updated_after=NOON + timedelta(seconds=3)) == ["3", "4"]


# A page of a megabyte is one document: there the HTTP client of a server engine warns that it hands over bytes.
@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_one_page_of_many_like_passages_leaves_room_for_others(lexical: LexicalIndex) -> None:
    """BC-110: 400 near-identical chunks of one page and 20 others that fit; the others are in the list."""
    block = "solar solar solar note about panels. " * 60
    await lexical.apply([state("dense", "\n\n".join(f"## Part {n}\n\n{block}" for n in range(400)), 1)])
    await lexical.apply(
        [state(f"other/{n}", f"A solar remark, number {n}, among other words.", n + 2) for n in range(20)]
    )
    hits = await search(lexical, "solar", Retriever.LEXICAL_CHUNKS, limit=20)
    assert len({hit.row.slug for hit in hits}) >= 10
    assert sum(hit.row.slug == "dense" for hit in hits) <= PASSAGES_PER_PAGE_MAX


async def test_the_best_passage_of_each_page_is_found(lexical: LexicalIndex) -> None:
    filler = "Unrelated prose about gardens and rivers. " * 40
    await lexical.apply([state("long", f"# Long\n\n{filler}\n\n## Money\n\nThe zebra fund invested.\n\n{filler}", 1)])
    page_id = PageId("id-default-long")
    best = (await lexical.best_passages([page_id], ["zebra"], EVERYTHING))[page_id]
    assert best.passage is not None
    assert "zebra" in best.passage.text
    first = (await lexical.best_passages([page_id], [], EVERYTHING))[page_id]
    assert first.passage is not None
    assert first.passage.ordinal == 0


async def test_pages_are_listed_in_four_orders_with_ties_by_slug(lexical: LexicalIndex) -> None:
    times = {"b": 1, "a": 2, "d": 2, "c": 2, "e": 3}
    await lexical.apply(
        [_timed(state(slug, "x", number + 1), seconds) for number, (slug, seconds) in enumerate(times.items())]
    )

    async def listed(order: PageOrder, size: int) -> list[str]:
        seen: list[str] = []
        after: PagePosition | None = None
        while True:
            part = await lexical.list_pages(EVERYTHING, order, after=after, offset=0, limit=size)
            seen += [row.slug for row in part.rows]
            if part.next is None:
                return seen
            after = part.next

    for size in (1, 2, 3, 50):
        assert await listed(PageOrder.SLUG, size) == ["a", "b", "c", "d", "e"]
        assert await listed(PageOrder.UPDATED_DESC, size) == ["e", "a", "c", "d", "b"]
        assert await listed(PageOrder.UPDATED_ASC, size) == ["b", "a", "c", "d", "e"]
        assert await listed(PageOrder.CREATED_DESC, size) == ["a", "b", "c", "d", "e"]
    for offset in range(6):
        part = await lexical.list_pages(EVERYTHING, PageOrder.UPDATED_DESC, after=None, offset=offset, limit=2)
        assert [row.slug for row in part.rows] == ["e", "a", "c", "d", "b"][offset : offset + 2]


def _timed(one: SlugState, seconds: int) -> SlugState:
    assert one.page is not None
    row = one.page.row._replace(updated=microseconds(NOON + timedelta(seconds=seconds)))
    return replace(one, page=replace(one.page, row=row))
