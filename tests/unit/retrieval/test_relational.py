"""Relational questions, English and Chinese."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.retrieval.model import Direction, Language
from gateway.retrieval.plan import Hop
from gateway.retrieval.prototypes import PROTOTYPES, masked_question, name_candidates, prototype_match
from gateway.retrieval.relational import parse_relational


def read(question: str) -> tuple[str, list[str]] | None:
    """The first reading and the hops as `type:direction`."""
    plan = parse_relational(question)
    if plan is None:
        return None
    return " + ".join(plan.readings[0]), [f"{hop.link_types[0]}:{hop.direction.value}" for hop in plan.hops]


@pytest.mark.parametrize(
    ("question", "seed", "hops"),
    [
        ("who invested in Northwind Labs?", "Northwind Labs", ["invested_in:in"]),
        ('Who led the round in "Northwind"', "Northwind", ["invested_in:in"]),
        ("show me who invested in Northwind", "Northwind", ["invested_in:in"]),
        ("Northwind investors", "Northwind", ["invested_in:in"]),
        ("who are Northwind's investors?", "Northwind", ["invested_in:in"]),
        ("what companies has Acme Ventures invested in", "Acme Ventures", ["invested_in:out"]),
        ("Which startups did Acme back?", "Acme", ["invested_in:out"]),
        ("which companies were founded by Ana Ferro", "Ana Ferro", ["founded:out"]),
        ("who was Northwind founded by?", "Northwind", ["founded:in"]),
        ("Who founded Northwind?", "Northwind", ["founded:in"]),
        ("where does Ana work", "Ana", ["works_at:out"]),
        ("Where did Ana work before?", "Ana", ["worked_at:out"]),
        ("who does Ana Ferro work for", "Ana Ferro", ["works_at:out"]),
        ("who used to work at Northwind", "Northwind", ["worked_at:in"]),
        ("former employees of Northwind", "Northwind", ["worked_at:in"]),
        ("who advises Northwind", "Northwind", ["advises:in"]),
        ("Which meetings did Ana Ferro attend?", "Ana Ferro", ["attended:out"]),
        ("who attended the March review", "the March review", ["attended:in"]),
        ("founders of companies Acme invested in", "Acme", ["invested_in:out", "founded:in"]),
        ("who invested in the companies founded by Ana Ferro", "Ana Ferro", ["founded:out", "invested_in:in"]),
        ("where do the founders of Northwind work", "Northwind", ["founded:in", "works_at:out"]),
        ("谁投资了 北风", "北风", ["invested_in:in"]),
        ("北风 投资了哪些公司？", "北风", ["invested_in:out"]),
        ("北风有哪些投资人", "北风", ["invested_in:in"]),
        ("北风是谁创立的？", "北风", ["founded:in"]),
        ("哪些公司是董娜创立的", "董娜", ["founded:out"]),
        ("董娜在哪里工作", "董娜", ["works_at:out"]),
        ("董娜以前在哪工作？", "董娜", ["worked_at:out"]),
        ("谁曾在北风工作", "北风", ["worked_at:in"]),
        ("北风的前员工有哪些", "北风", ["worked_at:in"]),
        ("谁是北风的顾问", "北风", ["advises:in"]),
        ("董娜是哪些公司的顾问", "董娜", ["advises:out"]),
        ("谁参加了三月评审会", "三月评审会", ["attended:in"]),
        ("北桐投资的公司的创始人是谁", "北桐", ["invested_in:out", "founded:in"]),
        ("北风的创始人投资了哪些公司", "北风", ["founded:in", "invested_in:out"]),
        ("被北桐投资的公司有哪些", "北桐", ["invested_in:out"]),
    ],
)
def test_a_relational_question_becomes_its_seed_and_hops(question: str, seed: str, hops: list[str]) -> None:
    assert read(question) == (seed, hops)


@pytest.mark.parametrize(
    "question",
    [
        "who founded it",
        "who funded people",
        "who did not invest in Northwind",
        "哪些机构没有投资北风",
        "what is Northwind",
        "how do I start a company",
        "what did I write about founders",
        "投资人会议的记录",
        "创始人的焦虑",
        "谁投资了它",
        "我什么时候开始关注投资",
        "",
        "?",
        "founders of companies founded by people who work at Northwind",
    ],
)
def test_no_plan_is_made_of_a_question_that_names_nothing_or_asks_something_else(question: str) -> None:
    assert parse_relational(question) is None


def test_names_joined_by_and_are_read_whole_first_and_apart_when_the_whole_is_no_page() -> None:
    plan = parse_relational("who advises Northwind and Acme")

    assert plan is not None
    assert plan.seeds({"Northwind and Acme", "Northwind", "Acme"}) == ("Northwind and Acme",)
    assert plan.seeds({"Northwind", "Acme"}) == ("Northwind", "Acme")
    assert plan.seeds({"Northwind"}) == ()


def test_a_class_word_beside_a_name_may_be_part_of_it_or_not() -> None:
    plan = parse_relational("谁投资了北风公司")

    assert plan is not None
    assert plan.seeds({"北风公司", "北风"}) == ("北风公司",)
    assert plan.seeds({"北风"}) == ("北风",)


def test_a_year_or_a_topic_that_the_plan_cannot_hold_makes_it_unsure() -> None:
    dated, topic, plain = map(
        parse_relational,
        ("who backed Northwind in 2024", "who at Northwind works on batteries", "who backed Northwind so far"),
    )

    assert dated is not None
    assert not dated.sure
    assert topic is not None
    assert not topic.sure
    assert plain is not None
    assert plain.sure


@given(st.text(alphabet="谁的投资了公司创始人在工作 whofundedbyX's,?", max_size=320))
def test_every_text_is_read_or_refused_without_an_error(text: str) -> None:
    plan = parse_relational(text)

    assert plan is None or (1 <= len(plan.hops) <= 2 and plan.names)


@given(st.sampled_from(["Loomwick", "Ana Ferro", "Vellum & Sons", "青禾", "石榴籽数据", "C++ Guild", "ORD-4471"]))
def test_any_name_comes_out_as_it_was_written(name: str) -> None:
    english, chinese = parse_relational(f"Who invested in {name}?"), parse_relational(f"谁投资了{name}？")

    assert english is not None
    assert chinese is not None
    assert english.readings[0] == chinese.readings[0] == (name,)
    assert (english.language, chinese.language) == (Language.ENGLISH, Language.CHINESE)


def unit(position: int, size: int) -> list[float]:
    return [1.0 if i == position else 0.0 for i in range(size)]


def test_a_prototype_decides_only_with_a_floor_and_a_lead() -> None:
    relations = list(dict.fromkeys(prototype.hops for prototype in PROTOTYPES))
    vectors = [unit(relations.index(prototype.hops), len(relations)) for prototype in PROTOTYPES]
    investors = (Hop(link_types=("invested_in", "led_round"), direction=Direction.IN),)
    asked = unit(relations.index(investors), len(relations))
    torn = [1.0 if i < 2 else 0.0 for i in range(len(relations))]
    weak = [0.3] * len(relations)

    plan = prototype_match(asked, vectors, name="北风", language=Language.CHINESE)

    assert plan is not None
    assert plan.hops == investors
    assert not plan.sure
    assert prototype_match(torn, vectors, name="北风", language=Language.CHINESE) is None
    assert prototype_match(weak, vectors, name="北风", language=Language.CHINESE) is None


def test_name_candidates_are_bounded_and_hold_the_names_of_both_scripts() -> None:
    assert "Ana Ferro" in name_candidates("whose money went into Ana Ferro and her plan")
    assert "北风能源" in name_candidates("北风能源的钱是谁给的")
    assert len(name_candidates("北风能源的钱是谁给的" * 50)) <= 64
    assert masked_question("whose money is in Northwind?", "northwind") == "whose money is in X?"
