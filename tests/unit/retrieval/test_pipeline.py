"""The pipeline as a whole: promises to callers, switches, trace."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.retrieval.confidence import UNCALIBRATED, calibration
from gateway.retrieval.model import (
    Answer,
    Arm,
    ArmResults,
    CreateSafety,
    Evidence,
    MissingArm,
    NameKind,
    NameMatch,
    PathStep,
    Query,
    RelationalAnswer,
    Stage,
)
from gateway.retrieval.pipeline import SEARCH_OFF, run_pipeline
from services.domain.page import ChunkKind
from tests.unit.retrieval.builders import chunks, page, passage, whole


def ticks() -> Iterator[float]:
    return itertools.count(0.0, 0.001)


def ask(text: str, arms: ArmResults, *, limit: int = 10, **more: object) -> Answer:
    query = replace(Query(text=text, limit=limit), **more)  # type: ignore[arg-type]
    return run_pipeline(query, arms, clock=ticks().__next__)


def slugs(answer: Answer) -> list[str]:
    return [hit.slug for hit in answer.hits]


NORTHWIND = page("nw", title="Northwind", slug="companies/northwind", kind="company")
FUND = page("fund", title="Tallow Street", slug="companies/tallow-street", kind="company")
BLOG = page("blog", title="Thoughts", slug="notes/thoughts")
INVESTED = RelationalAnswer(
    page=FUND,
    path=(PathStep(from_slug=FUND.slug, link_type="invested_in", to_slug=NORTHWIND.slug),),
    text="A fund of two partners.",
)


def test_one_dense_page_leaves_room_for_ten() -> None:
    """BC-110."""
    crowd = [passage(page("crowd"), f"atlas and atlas again {i}", ordinal=i) for i in range(400)]
    others = [passage(page(f"p{i:02}"), f"atlas seen from side {i}") for i in range(20)]

    answer = ask("what about atlas", chunks([*crowd, *others]))

    assert len({hit.page_id for hit in answer.hits}) == len(answer.hits) == 10


def test_the_page_titled_exactly_so_is_first_and_scores_fall() -> None:
    """BC-109."""
    chatter = [passage(page(f"c{i:04}"), f"atlas atlas chatter {i}") for i in range(1_000)]
    right = page("right", title="Atlas budget")

    answer = ask(
        "Atlas budget",
        replace(chunks(chatter), names=(NameMatch(name="Atlas budget", kind=NameKind.TITLE, page=right),)),
        limit=5,
    )

    assert answer.hits[0].page_id == "right"
    assert answer.hits[0].evidence is Evidence.EXACT_TITLE_MATCH
    assert answer.hits[0].create_safety is CreateSafety.EXISTS
    scores = [hit.score for hit in answer.hits]
    assert all(a > b for a, b in pairwise(scores))
    assert [hit.rank for hit in answer.hits] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("who invested in Northwind", "The graph says: companies/tallow-street invested in companies/northwind."),
        ("谁投资了Northwind", "图谱关系：companies/tallow-street 投资了 companies/northwind。"),
    ],
)
def test_graph_answers_stand_before_pages_that_only_share_the_words(question: str, says: str) -> None:
    """BC-107: the fund's page does not name the company."""
    arms = replace(
        chunks([passage(NORTHWIND, "Northwind invested in batteries"), passage(BLOG, "who invested in Northwind?")]),
        answers=(INVESTED,),
        names=(NameMatch(name="Northwind", kind=NameKind.TITLE, page=NORTHWIND),),
    )

    answer = ask(question, arms)

    first = answer.hits[0]
    assert (first.slug, first.evidence, first.path) == (FUND.slug, Evidence.RELATIONAL, INVESTED.path)
    assert first.evidence_sentence == says
    assert first.snippet == "A fund of two partners."
    assert not answer.abstained


def test_a_known_name_without_such_a_link_is_an_abstention() -> None:
    arms = replace(
        chunks([passage(NORTHWIND, "Northwind makes batteries.")]),
        names=(NameMatch(name="Northwind", kind=NameKind.TITLE, page=NORTHWIND),),
    )

    english, chinese = ask("who advises Northwind", arms), ask("谁是Northwind的顾问", arms)

    assert english.abstained
    assert english.abstained_because.startswith("The graph has no such link")
    assert chinese.abstained
    assert chinese.abstained_because.startswith("图谱中没有")


@pytest.mark.parametrize(
    ("question", "text", "abstained"),
    [
        ("what did Zorblatt say about batteries", "batteries and what people say about them", True),
        ("what did Dana say about batteries", "Dana on batteries: they are heavy.", False),
        ("Is there a plan for the cellar flood", "the garden has roses", True),
        ("筷子的长度为什么重要", "筷子的长度决定了一桌人能坐多远", False),
        ("潜水艇的声呐怎么校准", "筷子的长度决定了一桌人能坐多远", True),
    ],
)
def test_an_answer_that_holds_nothing_asked_for_says_so(question: str, text: str, abstained: bool) -> None:
    answer = ask(question, chunks([passage(page("a", title="Untitled"), text)]))

    assert answer.abstained is abstained
    assert bool(answer.abstained_because) is abstained


@pytest.mark.parametrize(
    ("question", "text", "abstained"),
    [
        ("When is Ana Ferro's birthday?", "Ana Ferro founded a company.", True),
        ("What company did Ana Ferro found?", "Ana Ferro founded a company.", False),
        ("董娜的生日是哪天", "董娜创立了一家公司", True),
        ("董娜的公司叫什么", "董娜创立了一家公司", False),
    ],
)
def test_a_page_on_a_known_name_that_is_silent_on_the_rest_is_an_abstention(
    question: str, text: str, abstained: bool
) -> None:
    about = page("a", title="董娜" if "董娜" in question else "Ana Ferro")

    assert ask(question, chunks([passage(about, text)]), off=frozenset({Arm.RELATIONAL})).abstained is abstained


def test_half_remembered_words_that_name_nothing_keep_their_nearest_pages() -> None:
    row = passage(page("a", title="Ana Ferrow"), "She restored church organs before she wrote customs software.")

    assert not ask("someone whose instrument was an organ before she did paperwork", chunks([row])).abstained


def test_graph_that_did_not_answer_is_not_taken_for_a_graph_without_the_link() -> None:
    arms = replace(
        chunks([passage(NORTHWIND, "Northwind makes batteries.")]),
        names=(NameMatch(name="Northwind", kind=NameKind.TITLE, page=NORTHWIND),),
        missing=(MissingArm(arm=Arm.RELATIONAL, reason="deadline"),),
    )

    assert not ask("who advises Northwind", arms).abstained


def test_vectors_alone_can_answer_across_languages_when_their_scale_is_known() -> None:
    rows = (passage(page("a", title="城市热岛"), "城市比郊区热", score=0.6),)
    known = ArmResults(rows={Arm.DENSE: rows}, embedder="local:use/512")
    unknown = replace(known, embedder="somebody/else")

    assert not ask("why are cities warmer than fields", known).abstained
    assert ask("why are cities warmer than fields", unknown).abstained


def test_a_very_close_vector_is_probable_and_a_weak_one_unknown() -> None:
    rows = (
        passage(page("a", title="Untitled"), "A place by the sea, hot all summer.", score=0.95),
        passage(page("b", title="Untitled"), "Looms and their shuttles.", score=0.2),
    )

    close, weak = ask("warm towns in July", ArmResults(rows={Arm.DENSE: rows}, embedder="local:use/512")).hits

    assert (close.evidence, close.create_safety) == (Evidence.HIGH_VECTOR_MATCH, CreateSafety.PROBABLE)
    assert (weak.evidence, weak.create_safety) == (Evidence.WEAK_SEMANTIC, CreateSafety.UNKNOWN)


def test_every_word_found_is_keyword_exact_and_the_sentence_names_what_is_missing() -> None:
    full = passage(page("a", title="Untitled"), "batteries freeze in winter")
    part = passage(page("b", title="Untitled"), "batteries in a drawer")

    first, second = ask("how do batteries freeze in winter", chunks([full, part])).hits

    assert first.evidence is Evidence.KEYWORD_EXACT
    assert second.evidence is Evidence.WEAK_SEMANTIC
    assert second.evidence_sentence == "Has 1 of 3 words of the question: batteries; not: freeze, winter."


def test_nothing_found_is_an_empty_abstention() -> None:
    answer = ask("什么都没有的问题", ArmResults())

    assert answer.hits == ()
    assert answer.abstained
    assert answer.abstained_because == "没有找到任何页面。"


def test_a_question_of_stop_words_is_answered_and_says_how() -> None:
    """BC-100."""
    arms = ArmResults(rows={Arm.TITLE: (whole(page("who", title="The Who Example")),)})

    answer = ask("the who", arms)

    assert slugs(answer) == ["notes/who"]
    assert [note.code for note in answer.degraded] == ["stopwords_only"]
    assert not answer.abstained


def test_missing_arms_are_named_and_switched_off_arms_are_not() -> None:
    arms = replace(
        chunks([passage(BLOG, "x")]),
        missing=(MissingArm(arm=Arm.DENSE, reason="deadline"), MissingArm(arm=Arm.RELATIONAL, reason="deadline")),
    )

    answer = ask("anything", arms, off=frozenset({Arm.RELATIONAL}))

    assert [missing.arm for missing in answer.missing] == [Arm.DENSE]


def test_the_second_fact_is_not_cut_off_below_the_limit() -> None:
    """BC-106: no trimming at a cliff of scores."""
    rows = [passage(page("a"), "harbour session one", score=40.0), passage(page("b"), "harbour session two", score=0.1)]

    assert len(ask("harbour sessions", chunks(rows), limit=5).hits) == 2


def test_the_trace_names_every_stage_with_its_time_and_what_was_switched_off() -> None:
    arms = replace(chunks([passage(BLOG, "atlas")]), backlinks={"blog": 3})

    trace = ask("what about atlas", arms, off=frozenset({Stage.BACKLINKS}), today=date(2026, 3, 1)).trace

    stages = {stage.stage: stage for stage in trace.stages}
    assert list(stages)[:3] == [Stage.INTENT, Stage.CONFIDENCE, Stage.FUSION]
    assert stages[Stage.BACKLINKS].skipped
    assert stages[Stage.FUSION].milliseconds > 0
    assert stages[Stage.LIMIT].count_out == 1
    assert trace.arms == {Arm.LEXICAL_CHUNKS: 1}


def test_search_reads_no_intent_and_asks_no_graph() -> None:
    arms = replace(chunks([passage(NORTHWIND, "Northwind")]), answers=(INVESTED,))

    answer = ask("who invested in Northwind", arms, off=SEARCH_OFF)

    assert answer.intent == "general"
    assert slugs(answer) == [NORTHWIND.slug]


def test_a_hit_carries_what_the_index_knows_of_its_passage() -> None:
    row = replace(passage(BLOG, "fenced", kind=ChunkKind.FENCED_CODE), heading="Setup")

    (hit,) = ask("fenced setup", chunks([row])).hits

    assert (hit.chunk_kind, hit.heading, hit.snippet) == (ChunkKind.FENCED_CODE, "Setup", "fenced")
    assert hit.matched_by == {Arm.LEXICAL_CHUNKS: 1}


SWITCHES = st.frozensets(st.sampled_from([*Arm, *Stage]))
QUESTIONS = st.sampled_from(
    [
        "who invested in Northwind",
        "谁投资了北风",
        "when did I first write about atlas",
        "我什么时候开始关注城市热岛",
        "最近 atlas 有什么进展",
        "Atlas budget",
        "((",
        "it",
        "",
    ]
)
ROWS = st.lists(
    st.builds(
        lambda key, ordinal, text, score, kind: passage(
            page(f"p{key}", kind=kind, date="2026-01-0" + str(key % 9 + 1)), text, ordinal=ordinal, score=score
        ),
        st.integers(0, 12),
        st.integers(0, 3),
        st.sampled_from(["atlas", "城市热岛", "Northwind invested", ""]),
        st.floats(-1, 1),
        st.sampled_from(["note", "person"]),
    ),
    max_size=25,
).map(tuple)


@given(QUESTIONS, ROWS, ROWS, SWITCHES, st.integers(1, 12))
def test_whatever_is_switched_off_an_answer_keeps_its_promises(
    question: str,
    lexical: tuple[object, ...],
    dense: tuple[object, ...],
    off: frozenset[Arm | Stage],
    limit: int,
) -> None:
    arms = ArmResults(
        rows={Arm.LEXICAL_CHUNKS: lexical, Arm.DENSE: dense},  # type: ignore[dict-item]
        answers=(INVESTED,),
        names=(NameMatch(name="Northwind", kind=NameKind.TITLE, page=NORTHWIND),),
        backlinks={"p1": 4},
        embedder="use",
    )

    answer = ask(question, arms, limit=limit, off=off, today=date(2026, 3, 1))
    again = ask(question, arms, limit=limit, off=off, today=date(2026, 3, 1))

    assert answer == again
    assert len(answer.hits) <= limit
    assert len({hit.page_id for hit in answer.hits}) == len(answer.hits)
    assert [hit.rank for hit in answer.hits] == list(range(1, len(answer.hits) + 1))
    scores = [hit.score for hit in answer.hits]
    assert all(a > b for a, b in pairwise(scores))
    assert all(hit.evidence_sentence for hit in answer.hits)
    assert bool(answer.abstained_because) is answer.abstained


@pytest.mark.parametrize(("question", "words"), [("hushtog xylo", ("hushtog", "xylo")), ("龙卷水母", ("龙卷", "水母"))])
def test_a_page_that_says_nothing_is_near_to_nothing_and_all_missing_words_are_named(
    question: str, words: tuple[str, ...]
) -> None:
    rows = (passage(page("junk", title="🚀"), "x", score=0.72),)

    answer = ask(question, ArmResults(rows={Arm.DENSE: rows}, embedder="local:use/512"))

    assert answer.abstained
    assert all(word in answer.abstained_because for word in words)
    assert answer.hits[0].evidence is Evidence.WEAK_SEMANTIC


def test_a_close_passage_that_shares_no_word_is_relevant_and_one_just_above_chance_is_not() -> None:
    def abstained(cosine: float) -> bool:
        rows = (passage(page("a", title="Harbour"), "A place by the sea, hot all summer.", score=cosine),)
        return ask("warm towns", ArmResults(rows={Arm.DENSE: rows}, embedder="local:use/512")).abstained

    assert not abstained(0.5)
    assert abstained(0.35)


def test_every_unknown_name_is_named() -> None:
    rows = (passage(page("a", title="Harbour"), "A place by the sea, hot all summer.", score=0.1),)

    answer = ask('what joins "Hushtog" and "Xylo"?', ArmResults(rows={Arm.LEXICAL_CHUNKS: rows}))

    assert answer.abstained
    assert "hushtog" in answer.abstained_because.lower()
    assert "xylo" in answer.abstained_because.lower()


def test_a_remote_model_with_a_local_ones_name_in_its_own_is_not_judged_by_its_scale() -> None:
    assert calibration("openai:house-e5/512") is UNCALIBRATED
    assert calibration("local:use/512/1") is not UNCALIBRATED


def test_a_title_that_holds_the_words_is_not_the_page_of_a_question_for_the_earliest() -> None:
    question = "when did the blank calendar idea first come up"
    idea = page("idea", title="How the blank calendar idea did first come up", date="2025-06-01")
    note = page("note", title="A walk", date="2024-01-05")
    rows = [passage(note, "The blank calendar idea did first come up on a walk."), passage(idea, "The calendar.")]

    assert slugs(ask(question, chunks(rows)))[0] == note.slug
