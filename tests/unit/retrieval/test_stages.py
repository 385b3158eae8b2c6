"""Boosts, variety, first time, identity: each stage alone."""

from __future__ import annotations

from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.retrieval.boosts import (
    PRODUCT_MAX,
    PRODUCT_MIN,
    apply_factors,
    backlink_boost,
    earliest_day,
    factors,
    recency_boost,
    source_tier_boost,
    title_phrase_boost,
)
from gateway.retrieval.dedupe import diverse_types, falling, larger_pool, near_duplicates_last
from gateway.retrieval.first_time import earliest_first
from gateway.retrieval.identity import asked_names, in_tiers, name_key, only_bearer, with_identities
from gateway.retrieval.intent import classify
from gateway.retrieval.model import Arm, Candidate, NameKind, NameMatch, Stage
from gateway.retrieval.terms import question_terms
from tests.unit.retrieval.builders import candidate, chunks, ids, page, passage

TEXTS = [
    "the harbour wall was rebuilt after the storm of that winter by the men of the village and their sons together",
    "a queue that is never empty tells you nothing about the people who left it before they were served at all",
    "筷子的长度决定了一桌人能坐多远，这是一个关于分享和距离的故事，也是关于餐桌礼仪的故事",
    "short",
]
POOLS = st.lists(
    st.tuples(
        st.sampled_from(["note", "person", "company"]), st.floats(min_value=0, max_value=1), st.sampled_from(TEXTS)
    ),
    max_size=30,
).map(
    lambda rows: sorted(
        (candidate(page(f"p{i}", kind=kind), score, text) for i, (kind, score, text) in enumerate(rows)),
        key=lambda item: (-item.score, item.page.page_id),
    )
)


def factor_of(found: Candidate, question: str) -> float:
    return title_phrase_boost(question_terms(question))(found)


@pytest.mark.parametrize(
    ("question", "title", "lifted"),
    [
        ("apple pie", "Apple Pie Recipe", True),
        ("pie apple", "Apple Pie", False),
        ("apple", "Apple Pie", False),
        ("Apple", "Apple", True),
        ("what is apple pie", "Apple Pie", True),
        ("the apple", "The Apple Cart", False),
        ("筷子的长度为什么重要", "筷子的长度", True),
        ("长度", "筷子的长度", True),
        ("我想谈谈水", "水", False),
        ("pineapple pie", "Apple Pie", False),
    ],
)
def test_a_title_lifts_its_page_only_as_a_phrase(question: str, title: str, lifted: bool) -> None:
    """The peer's case 57 with its two improvements."""
    assert (factor_of(candidate(page("a", title=title), 1), question) > 1) is lifted


def test_archives_and_chats_step_back_and_chats_stay_when_they_are_asked_for() -> None:
    archive, chat, note = (candidate(page(slug, slug=f"{slug}/x"), 1) for slug in ("archive", "chat", "notes"))

    plain = factors([archive, chat, note], source_tier_boost(asks_for_chat=False))
    asked = factors([archive, chat, note], source_tier_boost(asks_for_chat=True))

    assert plain[0] < plain[1] < plain[2] == 1
    assert asked[1] == asked[2] == 1
    assert factors([candidate(page("g", slug="归档/旧事"), 1)], source_tier_boost(asks_for_chat=False))[0] < 1


@given(st.integers(min_value=-5, max_value=10**9), st.integers(min_value=0, max_value=10**9))
def test_backlinks_lift_monotonically_and_within_their_bound(fewer: int, more: int) -> None:
    fewer, more = sorted((fewer, more))
    low, high = factors([candidate(page("a"), 1), candidate(page("b"), 1)], backlink_boost({"a": fewer, "b": more}))

    assert 1 <= low <= high <= 1.12


def test_newer_pages_gain_more_and_a_page_without_a_date_gains_nothing() -> None:
    pages = [page("new", date="2026-03-01"), page("old", date="2025-03"), page("none"), page("ahead", date="2027")]

    new, old, none, ahead = factors([candidate(about, 1) for about in pages], recency_boost(date(2026, 3, 2)))

    assert ahead > new > old > none == 1


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026", date(2026, 1, 1)),
        ("2026-03", date(2026, 3, 1)),
        ("2026-03-09", date(2026, 3, 9)),
        ("2026-03-09T10:00:00Z", date(2026, 3, 9)),
        ("2026-02-30", None),
        ("soon", None),
        ("", None),
    ],
)
def test_a_date_of_any_precision_has_a_first_day_and_an_impossible_one_has_none(text: str, day: date | None) -> None:
    assert earliest_day(text) == day


@given(POOLS, st.lists(st.floats(min_value=0.01, max_value=100), min_size=90, max_size=90))
def test_all_boosts_of_a_page_together_stay_within_their_bounds(pool: list[Candidate], values: list[float]) -> None:
    columns = [
        (stage, values[start : start + len(pool)]) for start, stage in ((0, Stage.RECENCY), (30, Stage.BACKLINKS))
    ]
    before = {item.page.page_id: item.score for item in pool}

    boosted = apply_factors(pool, columns)

    assert sorted(ids(boosted)) == sorted(ids(pool))
    for item in boosted:
        low, high = before[item.page.page_id] * PRODUCT_MIN, before[item.page.page_id] * PRODUCT_MAX
        assert low * 0.999999 <= item.score <= high * 1.000001
    assert [item.score for item in boosted] == sorted((item.score for item in boosted), reverse=True)


@given(POOLS, st.integers(min_value=1, max_value=12))
def test_variety_loses_nothing_and_is_idempotent(pool: list[Candidate], limit: int) -> None:
    once = near_duplicates_last(pool, limit=limit)
    shared = diverse_types(pool, limit=limit)

    assert sorted(ids(once)) == sorted(ids(shared)) == sorted(ids(pool))
    assert ids(diverse_types(shared, limit=limit)) == ids(shared)
    if len(pool) <= limit * 3:
        assert ids(near_duplicates_last(once, limit=limit)) == ids(once)


@pytest.mark.parametrize("text", TEXTS[:3])
def test_a_near_copy_of_a_better_page_stands_behind_all_others(text: str) -> None:
    other = TEXTS[1] if text != TEXTS[1] else TEXTS[0]
    pool = [
        candidate(page(key), 1 - i / 10, body)
        for i, (key, body) in enumerate((("a", text), ("b", text + "!"), ("c", other)))
    ]

    assert ids(near_duplicates_last(pool, limit=3)) == ["a", "c", "b"]


def test_short_lines_are_never_near_copies() -> None:
    pool = [candidate(page(key), 1, "2026-03-01") for key in "abc"]

    assert ids(near_duplicates_last(pool, limit=3)) == ["a", "b", "c"]


def test_a_crowd_of_one_type_makes_room_only_for_pages_that_are_nearly_as_good() -> None:
    notes = [candidate(page(f"n{i}"), 1 - i / 100) for i in range(8)]
    near, far = candidate(page("near", kind="person"), 0.91), candidate(page("far", kind="person"), 0.2)

    assert "near" in ids(diverse_types([*notes, near], limit=8)[:6])
    assert ids(diverse_types([*notes, far], limit=8)) == [*ids(notes), "far"]
    assert ids(diverse_types(notes, limit=8)) == ids(notes)


@given(POOLS.flatmap(st.permutations))
def test_scores_fall_strictly_in_whatever_order_stages_left_the_pages(pool: list[Candidate]) -> None:
    """BC-109."""
    scores = [item.score for item in falling(pool)]

    assert all(higher > lower for higher, lower in pairwise(scores))
    assert all(0 <= score <= 1 for score in scores)


def test_the_pool_grows_only_while_pages_lack_and_never_past_its_bound() -> None:
    """BC-110."""
    crowd = chunks(passage(page("crowd"), ordinal=i) for i in range(50))
    enough = chunks(passage(page(f"p{i}")) for i in range(50))

    assert larger_pool(crowd, rows=50, limit=10) == 200
    assert larger_pool(crowd, rows=500, limit=10) is None
    assert larger_pool(crowd, rows=51, limit=10) is None
    assert larger_pool(enough, rows=50, limit=10) is None


def test_the_earliest_page_that_speaks_of_the_subject_comes_first() -> None:
    question = "when did I first write about urban heat islands"
    rows = [
        ("writing", "writing/heat", "2026-03-01", "Urban heat islands, the essay.", 0.9),
        ("concept", "concepts/heat", "2026-01-10", "Urban heat islands explained.", 0.8),
        ("seed", "reading/city", "2025-09-02", "A chapter on urban heat islands.", 0.5),
        ("noise", "chat/misc", "2025-01-01", "The heat today!", 0.5),
        ("archive", "archive/old", "2024-01-01", "Urban heat islands, clipped.", 0.6),
        ("undated", "notes/x", "", "Urban heat islands again.", 0.7),
        ("far", "notes/y", "2020-01-01", "Urban heat islands.", 0.1),
    ]
    pool = sorted(
        (candidate(page(key, slug=slug, date=day, title=key), score, text) for key, slug, day, text, score in rows),
        key=lambda item: -item.score,
    )

    found = earliest_first(pool, question_terms(question))

    assert ids(found)[:3] == ["seed", "concept", "writing"]
    assert sorted(ids(found)) == sorted(ids(pool))


def test_an_exact_title_that_no_arm_found_stands_first() -> None:
    """BC-109."""
    intent = classify("Atlas budget")
    crowd = [candidate(page(f"p{i}", title="Atlas chatter"), 1 - i / 100) for i in range(60)]
    match = NameMatch(name="Atlas budget", kind=NameKind.TITLE, page=page("budget", title="Atlas budget"))

    found = in_tiers(with_identities(crowd, [match], asked_names("Atlas budget", intent)), intent, limit=5)

    assert found[0].page.page_id == "budget"
    assert found[0].identity is NameKind.TITLE


@pytest.mark.parametrize(
    ("question", "title"),
    [("who is Dana Ruiz?", "Dana Ruiz"), ("董娜是谁", "董娜"), ("「董娜」", "董娜"), ("ＤＡＮＡ　ruiz", "Dana Ruiz")],
)
def test_the_subject_of_a_question_is_known_by_its_row_when_graph_is_away(question: str, title: str) -> None:
    intent = classify(question)
    pool = [candidate(page("other"), 1), candidate(page("right", title=title), 0.1)]

    found = in_tiers(with_identities(pool, [], asked_names(question, intent)), intent, limit=5)

    assert ids(found) == ["right", "other"]


def test_the_seed_of_a_relational_question_is_no_identity() -> None:
    intent = classify("谁投资了北风")

    assert asked_names("谁投资了北风", intent) == ("谁投资了北风",)


def test_graph_keeps_the_last_place_when_its_plan_was_not_sure() -> None:
    """BC-107."""
    intent = classify("who at Northwind works on batteries")
    pool = [candidate(page(f"p{i}"), 1 - i / 100) for i in range(20)]
    pool.append(candidate(page("answer"), 0.01, arm=Arm.RELATIONAL))

    assert ids(in_tiers(pool, intent, limit=5))[4] == "answer"


@pytest.mark.parametrize("name", ['  "Dana  Ruiz" ', "Ｄａｎａ Ruiz", "「dana ruiz」", "(DANA RUIZ)"])
def test_spellings_of_a_name_share_their_key(name: str) -> None:
    """The peer's case 40, with CJK brackets."""
    assert name_key(name) == "dana ruiz"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Desmond", "desmond"),
        ("the customs workshop", "workshop"),
        ("June 2025 Loomwick board", "board"),
        ("半山渡", "fund"),
        ("渡山半", None),
        ("Ana", None),
        ("Anna Farrow", None),
        ("the", None),
        ("", None),
    ],
)
def test_a_part_of_a_name_leads_to_its_only_bearer_and_to_nobody_when_two_bear_it(name: str, found: str | None) -> None:
    titles = {
        "desmond": "Desmond Achterberg",
        "workshop": "Customs workshop, 2025-09-18",
        "board": "Loomwick board, June 2025",
        "december": "Loomwick board, December 2025",
        "fund": "半山渡创投",
        "ana": "Ana Ferro",
        "other": "Ana Ferrow",
    }

    bearer = only_bearer(name, [page(key, title=title) for key, title in titles.items()])

    assert (bearer.page_id if bearer else None) == found


@pytest.mark.parametrize(
    ("question", "title", "first"),
    [
        ("Desmond", "Desmond Achterberg", "right"),
        ("who is Desmond?", "Desmond Achterberg", "right"),
        ("山田", "山田花子", "right"),
        ("山田是谁", "山田花子", "right"),
    ],
)
def test_a_part_of_a_name_puts_its_only_bearer_first(question: str, title: str, first: str) -> None:
    intent = classify(question)
    pool = [candidate(page("other", title="Looms 织机"), 1), candidate(page("right", title=title), 0.1)]
    names = asked_names(question, intent)

    found = in_tiers(with_identities(pool, [], names), intent, limit=5)
    assert ids(found)[0] == first

    pool.append(candidate(page("namesake", title=f"{title[:7]} Two {title[:2]}二"), 0.05))
    assert ids(in_tiers(with_identities(pool, [], names), intent, limit=5))[0] == "other"
