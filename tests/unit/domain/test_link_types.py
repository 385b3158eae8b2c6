"""What a link means: typed only where the sentence says so of the page, in English and Chinese."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.parser import parse_page
from services.domain.relations import FIELDS, RELATIONS, Role, allows, field_link, role_of_name

Edge = tuple[str, str, str]


def edges(text: str, slug: str, title: str, aliases: str = "") -> set[Edge]:
    """The typed links of a page, as (arrow, type, name)."""
    body = f"---\ntitle: {title}\naliases: [{aliases}]\n---\n{text}\n"
    page = parse_page("default", slug, body.encode())
    return {
        ("<-" if link.inward else "->", link.link_type, link.name)
        for link in page.links
        if link.link_type != "mentions"
    }


def out(link_type: str, *names: str) -> set[Edge]:
    return {("->", link_type, name) for name in names}


def into(link_type: str, *names: str) -> set[Edge]:
    return {("<-", link_type, name) for name in names}


A, B, F = "companies/acme", "companies/beta", "companies/fund"
ANA, BO, CY = "people/ana", "people/bo", "people/cy"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"Ana founded [[{A}]] in 2019 and later invested in [[{B}]].", out("founded", A) | out("invested_in", B)),
        (f"She founded [[{A}]] and [[{B}]].", out("founded", A, B)),
        (f"She invested in [[{A}]] (2019), [[{B}]] and [[{F}]].", out("invested_in", A, B, F)),
        (f"Founder of [[{A}]].", out("founded", A)),
        (f"Co-founder and CEO of [[{A}]].", out("founded", A)),
        (f"Ana is the CTO of [[{A}]].", out("works_at", A)),
        (f"Ana works at [[{A}]].", out("works_at", A)),
        (f"She joined [[{A}]] in 2020.", out("works_at", A)),
        (f"Senior engineer at [[{A}]] since 2020.", out("works_at", A)),
        (f"She worked at [[{A}]] until 2020, and now works for [[{B}]].", out("worked_at", A) | out("works_at", B)),
        (f"Former CTO of [[{A}]].", out("worked_at", A)),
        (f"She used to work at [[{A}]].", out("worked_at", A)),
        (f"Ana no longer works at [[{A}]].", out("worked_at", A)),
        (f"She left [[{A}]] last year.", out("worked_at", A)),
        (f"Ana advises [[{A}]] and is an advisor to [[{B}]].", out("advises", A, B)),
        ("Ana attended [[meetings/m1]].", out("attended", "meetings/m1")),
        (f"[[{A}]] was founded by Ana.", out("founded", A)),
        (f"[[{A}]] was founded by her in 2019.", out("founded", A)),
        (f"- Investments: [[{A}]], [[{B}]]", out("invested_in", A, B)),
        (f"## Portfolio\n\n- [[{A}]]\n- [[{B}]]", out("invested_in", A, B)),
        (f"[[{A}]]'s founder.", out("founded", A)),
        # Not said of her, denied, asked, planned or only mentioned.
        (f"[[{BO}]] founded [[{A}]].", set()),
        (f"Her brother Tom founded [[{A}]].", set()),
        (f"Bob Jones invested in [[{A}]].", set()),
        (f"Ana never invested in [[{A}]].", set()),
        (f"She did not invest in [[{A}]] but wrote about [[{B}]].", set()),
        (f"She considered investing in [[{A}]].", set()),
        (f"Did Ana invest in [[{A}]]?", set()),
        (f"She will join [[{A}]] next year.", set()),
        (f"She founded a company with [[{BO}]].", set()),
        (f"She likes [[{A}]] and reads about [[{B}]].", set()),
        (f"She founded [[{A}]], which competes with [[{B}]].", out("founded", A)),
        (f"[[{A}]] was founded by [[{BO}]].", set()),
        ("Ana founded [[concepts/idea]].", set()),
        ("Ana works at [[people/bo]].", set()),
    ],
)  # fmt: skip
def test_an_english_page_of_a_person(text: str, expected: set[Edge]) -> None:
    assert edges(text, ANA, "Ana Ferro") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"Acme was founded by [[{ANA}]] and [[{BO}]].", into("founded", ANA, BO)),
        (f"A small shop in Ghent, founded by [[{ANA}]].", into("founded", ANA)),
        (f"[[{ANA}]] founded Acme in 2019.", into("founded", ANA)),
        (f"[[{ANA}]] founded it.", into("founded", ANA)),
        (f"Backed by [[{F}]] and [[{BO}]].", into("invested_in", F, BO)),
        (f"[[{F}]] invested in Acme.", into("invested_in", F)),
        (f"[[{F}]] led the seed round, and [[{B}]] invested in 2025.", into("invested_in", F, B)),
        (f"Raised 5 million from [[{F}]].", into("invested_in", F)),
        (f"Acme invested in [[{B}]].", out("invested_in", B)),
        (f"It invested in [[{B}]] in May 2020.", out("invested_in", B)),
        (f"[[{ANA}]] is the CTO; [[{BO}]] advises on chemistry.", into("works_at", ANA) | into("advises", BO)),
        (f"[[{ANA}]] and [[{BO}]] worked here until 2024.", into("worked_at", ANA, BO)),
        (f"[[{ANA}]] joined as head of data.", into("works_at", ANA)),
        (f"**Founders:** [[{ANA}]], [[{BO}]]", into("founded", ANA, BO)),
        (f"| Investors | [[{F}]] |", into("invested_in", F)),
        (f"## Team\n\n- [[{ANA}]]: data", into("works_at", ANA)),
        (f"CEO: [[{ANA}]]", into("works_at", ANA)),
        (f"[[{F}]] invested in Beta.", set()),
        (f"[[{F}]] invested in [[{B}]].", set()),
        (f"[[{F}]] looked at the round and passed.", set()),
        (f"[[{F}]] did not invest in Acme.", set()),
        (f"It competes with Foo, founded by [[{BO}]].", set()),
        (f"[[{ANA}]] wrote the long article about them.", set()),
    ],
)  # fmt: skip
def test_an_english_page_of_a_company(text: str, expected: set[Edge]) -> None:
    assert edges(text, A, "Acme", "Acme Labs") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"他创立了[[{A}]]，并投资了[[{B}]]。", out("founded", A) | out("invested_in", B)),
        (f"王伟2019年创办了[[{A}]]。", out("founded", A)),
        (f"[[{A}]]的联合创始人。", out("founded", A)),
        (f"[[{A}]]由他创立。", out("founded", A)),
        (f"王伟任职于[[{A}]]。", out("works_at", A)),
        (f"现在就职于[[{A}]]，此前在[[{B}]]工作。", out("works_at", A) | out("worked_at", B)),
        (f"他在[[{A}]]担任工程师。", out("works_at", A)),
        (f"2020 年加入[[{A}]]。", out("works_at", A)),
        (f"[[{A}]]的首席技术官。", out("works_at", A)),
        (f"他在[[{A}]]工作到 2024 年。", out("worked_at", A)),
        (f"[[{A}]]前员工。", out("worked_at", A)),
        (f"曾任职于[[{A}]]。", out("worked_at", A)),
        (f"他离开了[[{A}]]。", out("worked_at", A)),
        (f"他还担任[[{A}]]的顾问。", out("advises", A)),
        (f"领投了[[{A}]]的种子轮，跟投[[{B}]]。", out("invested_in", A, B)),
        (f"投资过[[{A}]]、[[{B}]]和[[{F}]]。", out("invested_in", A, B, F)),
        (f"和李雷一起创立了[[{A}]]。", out("founded", A)),
        ("王伟参加了[[会议/季度会]]。", out("attended", "会议/季度会")),
        (f"没有投资[[{A}]]。", set()),
        (f"考虑投资[[{A}]]。", set()),
        (f"王伟投资了[[{A}]]吗？", set()),
        (f"李雷创立了[[{A}]]。", set()),
        (f"他的妻子创立了[[{A}]]。", set()),
        (f"[[{BO}]]投资了[[{A}]]。", set()),
        (f"写过[[{A}]]两次，也提到过[[{B}]]。", set()),
    ],
)  # fmt: skip
def test_a_chinese_page_of_a_person(text: str, expected: set[Edge]) -> None:
    assert edges(text, "人物/王伟", "王伟") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"由[[{ANA}]]和[[{BO}]]于2019年创立。", into("founded", ANA, BO)),
        (f"[[{ANA}]]与[[{BO}]]2022 年创立。", into("founded", ANA, BO)),
        (f"创始人是[[{ANA}]]。", into("founded", ANA)),
        (f"获得[[{F}]]的投资。", into("invested_in", F)),
        (f"[[{F}]]领投了天使轮，[[{B}]]跟投。", into("invested_in", F, B)),
        (f"[[{F}]]也投资了这家公司。", into("invested_in", F)),
        (f"[[{F}]]投资了星海。", into("invested_in", F)),
        (f"天使投资来自[[{BO}]]。", into("invested_in", BO)),
        (f"投资方：[[{F}]]、[[{B}]]", into("invested_in", F, B)),
        (f"[[{ANA}]]担任顾问。", into("advises", ANA)),
        (f"[[{ANA}]]和[[{BO}]]在这里工作到 2024 年。", into("worked_at", ANA, BO)),
        (f"公司投资了[[{B}]]。", out("invested_in", B)),
        (f"[[{F}]]没有投资。", set()),
        (f"[[{F}]]投资了[[{B}]]。", set()),
        (f"记者[[{ANA}]]写过他们两次。", set()),
        (f"[[{F}]]来看过仓库，觉得太重。", set()),
    ],
)  # fmt: skip
def test_a_chinese_page_of_a_company(text: str, expected: set[Edge]) -> None:
    assert edges(text, "公司/星海科技", "星海科技", "星海") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"[[{ANA}]], [[{BO}]] and [[{CY}|Cy]] attended; [[people/dee]] stayed home.", into("attended", ANA, BO, CY)),
        (f"Attended by [[{ANA}]] (chair), [[{BO}]] as observer, and [[{CY}]].", into("attended", ANA, BO, CY)),
        (f"Attendees: [[{ANA}]], [[{BO}]]", into("attended", ANA, BO)),
        (f"参会人：[[{ANA}]]、[[{BO}]]", into("attended", ANA, BO)),
        (f"[[{ANA}]]主持，[[{BO}]]参加。", into("attended", ANA, BO)),
        (f"参加讨论的有[[{ANA}]]和[[{BO}]]。", into("attended", ANA, BO)),
        (f"[[{ANA}]] was invited and did not attend.", set()),
        (f"We talked about [[{ANA}]] and [[{A}]].", set()),
    ],
)  # fmt: skip
def test_a_page_of_a_meeting(text: str, expected: set[Edge]) -> None:
    assert edges(text, "meetings/m1", "Quarterly") == expected


def test_a_note_about_others_states_nothing_of_itself() -> None:
    assert edges(f"[[{ANA}]] founded [[{A}]] and [[{F}]] invested in it.", "notes/n", "Note") == set()


def test_a_typed_link_stands_for_its_mentions() -> None:
    page = parse_page("default", ANA, f"Ana founded [[{A}]]. More about [[{A}]].".encode())

    assert [link.link_type for link in page.links] == ["founded"]


PARTS = st.sampled_from(
    [
        *("Ana", "she", " founded ", " invested in ", "[[companies/a]]", "[[people/b]]", ", ", " and ", " by ", "was "),
        *(". ", "has ", "him who ", "(", ")", "CEO of ", "在", "投资了", "创立", "和", "，", "由", "2019年", "担任"),
        *("的顾问", "\n", "- ", "Investors: "),
    ]
)


@given(st.lists(PARTS, max_size=60).map("".join), st.sampled_from(["people/x", "companies/x", "meetings/x", "notes/x"]))
def test_every_type_is_of_the_table_and_fits_its_sides(text: str, slug: str) -> None:
    page = parse_page("default", slug, text.encode())

    for link in page.links:
        assert link.link_type in RELATIONS
        own, other = role_of_name(slug), role_of_name(link.name)
        assert allows(link.link_type, *((other, own) if link.inward else (own, other)))


def test_the_table_is_closed_under_its_own_words() -> None:
    assert {rule.link_type for rule in FIELDS.values()} <= set(RELATIONS)
    assert len({relation.inverse for relation in RELATIONS.values()}) == len(RELATIONS)
    assert field_link("Key People") == FIELDS["key_people"]
    assert field_link("投资方") is not None
    assert role_of_name("clients/people/ana") is Role.PERSON
    assert role_of_name("ana") is None
