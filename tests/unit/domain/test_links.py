"""Links: every way of writing one, what it names, and what never is one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.links import LINKS_MAX
from services.domain.page import LinkProvenance, LinkReference
from services.domain.parser import parse_page
from services.domain.slugs import canonical_slug


def links(text: str, slug: str = "notes/today", path: str = "") -> list[LinkReference]:
    return list(parse_page("default", slug, text.encode(), path=path).links)


def names(text: str, slug: str = "notes/today", path: str = "") -> list[str]:
    return [link.name for link in links(text, slug, path)]


def test_a_pipe_escaped_for_a_table_ends_the_name() -> None:
    """BC-032: edge to people/ana-example, display `Ana`."""
    [link] = links("| Who | Note |\n|---|---|\n| [[people/ana-example\\|Ana]] | x |\n")

    assert (link.name, link.display, link.titled) == ("people/ana-example", "Ana", False)


def test_code_and_comments_yield_no_links() -> None:
    """BC-034: exactly one edge."""
    text = (
        "```\n[[people/fake-one]]\n```\n`[[people/fake-two]]`\n<!-- [[people/fake-three]] -->\n"
        "%% [[people/fake-four]] %%\n"
        "[[people/ana-example]]\n\n    [[people/fake-five]]\n\n~~~md\n[x](people/fake-six.md)\n~~~\n"
        "``[[people/fake`seven]]``\n\n"
        "<pre>\n[[people/fake-eight]]\n</pre>\n\n> ```\n> people/fake-nine\n> ```\n\n<!-- open [[people/fake-ten]]"
    )

    assert names(text) == ["people/ana-example"]


def test_a_list_that_is_indented_is_no_code() -> None:
    assert names("- item\n\n    more of it, see [[people/ana]]\n    - inner [[people/bo]]\n") == [
        "people/ana",
        "people/bo",
    ]


def test_a_stray_backtick_or_percent_hides_nothing() -> None:
    assert names("It's 5` long, 100%% sure, see [[people/ana]].\n\nAnd `code` too: [[people/bo]]") == [
        "people/ana",
        "people/bo",
    ]


def test_anchors_and_blocks_are_kept_beside_the_name() -> None:
    """BC-035: edges to notes/b with fragment and embed, self-references ignored."""
    found = links("[[#Local heading]] [[#^abc123]] [[notes/b#Part 2|P2]] ![[notes/c#^abc123]] [[notes/d^abc123]]")

    assert [(link.name, link.fragment, link.display, link.embed) for link in found] == [
        ("notes/b", "Part 2", "P2", False),
        ("notes/c", "^abc123", "", True),
        ("notes/d", "^abc123", "", False),
    ]


def test_a_name_without_a_path_may_be_a_title() -> None:
    """BC-038: the name is kept as written, for the title index."""
    found = links("[[Ana Example]] and [[Ana Exampel]] and [[people/ana-example]]")

    assert [(link.name, link.titled) for link in found] == [
        ("Ana Example", True), ("Ana Exampel", True), ("people/ana-example", False),
    ]  # fmt: skip


def test_nothing_is_read_inside_another_link() -> None:
    """BC-040: one edge only, to projects/atlas/notes."""
    assert names("[[projects/atlas/notes]]") == ["projects/atlas/notes"]
    assert names("[see [[acme]] there](companies/acme.md)", "a/b") == ["a/companies/acme"]
    assert names("[people/ana](https://example.org/people/bo)") == []


def test_a_relative_path_is_read_from_the_folder_of_its_page() -> None:
    """BC-041: edges to areas/shared/b and areas/ops/c."""
    text = (
        "[b](../shared/b.md)  and [c](c.md) and [d](<My File.md>) and [e](%E4%BA%BA/%E7%8E%8B.md#x) and [f](/top/f.md)"
    )

    found = links(text, "areas/ops/a")

    assert [link.name for link in found] == [
        "areas/shared/b",
        "areas/ops/c",
        "areas/ops/my-file",
        "areas/ops/人/王",
        "top/f",
    ]
    assert all(canonical_slug(link.name) == link.name for link in found)
    assert names("[x](../../../../up.md)", "a/b") == ["up"]


def test_agents_write_paths_from_the_root_and_are_understood() -> None:
    assert names("[Ana](people/ana-ferro.md)", "meetings/m1") == ["people/ana-ferro"]
    assert names("[Ana](../people/ana-ferro.md)", "meetings/m1") == ["people/ana-ferro"]


@pytest.mark.parametrize(
    "text",
    [
        "[x](https://example.org/a.md)", "[x](mailto:a@b.c)", "[x](#part)", "![x](img.png)", "[[scan.pdf]]", "[[]]",
        "[[ ]]",
        "[[https://example.org/x]]", "see https://example.org/people/ana-ferro?x=1", "mail ana@people/x.org",
        "and/or, km/h",
        "[x]()", "[[a\nb]]", "\\[[", "http://x/people/ana", "[[notes/today]]", "[[Today]]", "[me](today.md)",
    ],
)  # fmt: skip
def test_what_leads_nowhere_else_is_no_link(text: str) -> None:
    assert names(text) == []


def test_a_source_before_the_name_crosses_to_it() -> None:
    found = links("[[work:topics/ai|AI]] and [[Note: a title]] and [[wiki:atlas]]")

    assert [(link.source, link.name) for link in found] == [
        ("work", "topics/ai"),
        ("default", "Note: a title"),
        ("wiki", "atlas"),
    ]


def test_slugs_in_running_text_are_links() -> None:
    text = "Met people/ana-ferro and 人物/王伟 there; ops/run-book applies, see companies/acme. Not and/or TCP/IP."

    assert names(text) == ["people/ana-ferro", "人物/王伟", "ops/run-book", "companies/acme"]


def test_reference_definitions_are_links() -> None:
    assert names("See [the plan][p].\n\n[p]: ../projects/atlas.md\n[q]: https://example.org\n", "notes/a") == [
        "projects/atlas"
    ]


def test_a_link_keeps_its_sentence_and_line() -> None:
    found = links("First.\n\nWe met [[people/ana|Ana]] (Dr. Ferro) in 2019. Then **left**.\n\n- [[people/bo]] came\n")

    assert [(link.context, link.line) for link in found] == [
        ("We met Ana (Dr. Ferro) in 2019.", 3), ("- people/bo came", 5),
    ]  # fmt: skip


def test_a_link_said_twice_is_one() -> None:
    assert names("[[a/b]] [[a/b|again]] and a/b-c") == ["a/b", "a/b-c"]


def test_a_list_of_links_is_bounded_and_told() -> None:
    page = parse_page("default", "notes/x", "".join(f"[[n/p{n}]]\n" for n in range(LINKS_MAX + 50)).encode())

    assert len(page.links) == LINKS_MAX
    assert "LINKS_LIMIT" in [finding.code for finding in page.findings]


@given(st.text(alphabet="[]()|#^\\!` ab/:.中%<>-\n\ue000", max_size=120))
def test_no_text_is_an_error_and_every_link_has_a_name(text: str) -> None:
    for link in links(text, "people/x"):
        assert link.name.strip()
        assert link.source
        assert 1 <= link.line <= text.count("\n") + 1
        assert len(link.context) <= 240
        assert "\ue000" not in link.name + link.context or "\ue000" in text


def test_frontmatter_fields_name_pages_with_direction() -> None:
    text = """---
type: company
founders: [people/ana, Bo Lee]
investors:
  - {name: Copper Fund, role: lead}
  - "[[companies/tallow|Tallow]]"
advisors: [[people/cy]]
related: projects/atlas
投资人: 贺兰舟、北桐资本
website: https://example.org
founded: 2019-03
source: slack
owner: "[[Dora]]"
---
"""
    found = links(text, "companies/acme")

    assert [(link.name, link.link_type, link.inward, link.titled) for link in found] == [
        ("people/ana", "founded", True, False),
        ("Bo Lee", "founded", True, True),
        ("Copper Fund", "invested_in", True, True),
        ("companies/tallow", "invested_in", True, False),
        ("people/cy", "advises", True, False),
        ("projects/atlas", "related_to", False, False),
        ("贺兰舟", "invested_in", True, True),
        ("北桐资本", "invested_in", True, True),
        ("Dora", "mentions", False, True),
    ]
    assert {link.provenance for link in found} == {LinkProvenance.FRONTMATTER}
    assert found[2].context == "investors: Copper Fund (lead)"
    assert found[0].line == 3


def test_a_person_has_employers_and_a_meeting_attendees() -> None:
    person = links(
        "---\ntype: person\ncompany: Acme\nworked_at: [[companies/old]]\n任职: companies/new\n---\n", "people/a"
    )
    meeting = links('---\ntype: meeting\nattendees: ["[[people/a]]"]\n参会人: [王伟]\n---\n', "meetings/m")

    assert [(link.name, link.link_type, link.inward) for link in person] == [
        ("Acme", "works_at", False), ("companies/old", "worked_at", False), ("companies/new", "works_at", False),
    ]  # fmt: skip
    assert [(link.name, link.link_type, link.inward) for link in meeting] == [
        ("people/a", "attended", True), ("王伟", "attended", True),
    ]  # fmt: skip


def test_a_field_on_a_page_it_says_nothing_about_only_mentions() -> None:
    [link] = links("---\ntype: note\ncompany: companies/acme\n---\n")

    assert link.link_type == "mentions"
