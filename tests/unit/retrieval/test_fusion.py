"""Fusion: order, invariance, ties, and pages before passages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.retrieval.fusion import POOL_MIN, fuse, page_ranking, reciprocal_rank_fusion
from gateway.retrieval.model import Arm, ArmResults, PathStep, RelationalAnswer
from tests.unit.retrieval.builders import chunks, ids, page, passage, whole

KEYS = st.lists(st.sampled_from("abcdefghij"), unique=True, max_size=10)
RANKINGS = st.dictionaries(st.sampled_from(list(Arm)), KEYS, max_size=5)
WEIGHTS = st.dictionaries(st.sampled_from(list(Arm)), st.floats(min_value=0.1, max_value=3), max_size=5)


def test_an_id_in_two_lists_beats_the_first_of_one() -> None:
    """The peer's case 47: [A, B] and [B, C] give B, then A, then C."""
    fused = reciprocal_rank_fusion({Arm.DENSE: ["a", "b"], Arm.TITLE: ["b", "c"]}, weights={}, rank_constant=60)

    assert [key for key, _ in fused] == ["b", "a", "c"]


def test_equal_scores_are_ordered_by_id() -> None:
    fused = reciprocal_rank_fusion({Arm.TITLE: ["z"], Arm.DENSE: ["a"]}, weights={})

    assert [key for key, _ in fused] == ["a", "z"]


@given(RANKINGS, WEIGHTS)
def test_the_order_in_which_arms_are_handed_in_changes_nothing(
    rankings: dict[Arm, list[str]], weights: dict[Arm, float]
) -> None:
    backwards = dict(reversed(list(rankings.items())))

    assert reciprocal_rank_fusion(rankings, weights=weights) == reciprocal_rank_fusion(backwards, weights=weights)


@given(RANKINGS, WEIGHTS)
def test_fused_scores_fall_and_every_id_is_there_once(
    rankings: dict[Arm, list[str]], weights: dict[Arm, float]
) -> None:
    fused = reciprocal_rank_fusion(rankings, weights=weights)
    scores = [score for _, score in fused]

    assert scores == sorted(scores, reverse=True)
    assert sorted(key for key, _ in fused) == sorted({key for keys in rankings.values() for key in keys})


@given(KEYS.filter(lambda keys: len(keys) > 1), st.integers(min_value=1, max_value=9))
def test_a_better_rank_in_one_list_never_lowers_a_score(keys: list[str], position: int) -> None:
    position = min(position, len(keys) - 1)
    raised = keys.copy()
    raised[position - 1], raised[position] = raised[position], raised[position - 1]

    before = dict(reciprocal_rank_fusion({Arm.DENSE: keys}, weights={}))
    after = dict(reciprocal_rank_fusion({Arm.DENSE: raised}, weights={}))

    assert after[keys[position]] > before[keys[position]]


def test_many_passages_of_a_page_are_one_vote() -> None:
    crowd, other = page("crowd"), page("other")
    rows = [passage(crowd, f"part {i}", ordinal=i) for i in range(50)] + [passage(other, "one")]

    assert list(page_ranking(rows)) == ["crowd", "other"]
    assert ids(fuse(chunks(rows), weights={}, limit=10)) == ["crowd", "other"]


def test_the_passage_that_two_arms_like_speaks_for_its_page() -> None:
    about = page("a")
    first, agreed, near = (passage(about, text, ordinal=i) for i, text in enumerate(("first", "agreed", "near")))
    results = chunks([first, agreed], dense=(agreed, near))

    (found,) = fuse(results, weights={}, limit=10)

    assert found.text == "agreed"
    assert found.matched_by == {Arm.LEXICAL_CHUNKS: 1, Arm.DENSE: 1}


def test_a_page_found_as_a_whole_shows_a_passage_when_any_arm_has_one() -> None:
    about = page("a")
    results = chunks([passage(about, "the passage")], lexical_pages=(whole(about, "the page"),))

    assert fuse(results, weights={}, limit=10)[0].text == "the passage"


def test_the_pool_is_bounded_but_keeps_every_answer_of_graph() -> None:
    rows = [passage(page(f"p{i:03}")) for i in range(300)]
    late = page("p299")
    answer = RelationalAnswer(page=late, path=(PathStep(from_slug="a", link_type="founded", to_slug="b"),))

    found = fuse(
        ArmResults(rows={Arm.LEXICAL_CHUNKS: tuple(rows)}, answers=(answer,)),
        weights={Arm.RELATIONAL: 0.001},
        limit=10,
    )

    assert len(found) == POOL_MIN + 1
    assert found[-1].page.page_id == "p299"
    assert found[-1].path == answer.path
