"""What a page says about itself, and where it does not, what its path says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.dates import path_date, typed_date, without_date
from services.domain.page import ParsedPage, Visibility
from services.domain.parser import parse_page


def page(text: str, slug: str = "notes/a", path: str = "") -> ParsedPage:
    return parse_page("default", slug, text.encode(), path=path)


@pytest.mark.parametrize(
    ("text", "slug", "path", "title"),
    [
        ("---\ntitle: No\n---\n# Other", "notes/a", "", "No"),
        ("---\ntitle: 2024-06-01\n---\n", "notes/a", "", "2024-06-01"),
        ("# Hello ##\n", "people/bob", "", "Hello"),
        ("Intro\n\n# [[people/x|Hello]] *there* `x`\n", "people/bob", "", "Hello there x"),
        ("```\n# not this\n```\n# This\n", "notes/a", "", "This"),
        ("Title\n=====\n", "notes/a", "", "Title"),
        ("## First\n\ntext", "notes/a", "", "First"),
        ("text\n\n## Later\n", "notes/plan-b", "", "Plan B"),
        ("text", "notes/2026-03-01-plan-b", "", "Plan B"),
        ("text", "notes/2026-03-01", "", "2026-03-01"),
        ("text", "notes/plan-b", "notes/iOS Plan_B.md", "iOS Plan B"),
        ("text", "人物/王伟", "人物/王伟.md", "王伟"),
        ("text", "notes/x", "notes/2026年3月1日 随笔.md", "随笔"),
        ("---\ntitle:\n---\n", "notes/a", "", "A"),
    ],
)
def test_a_page_has_a_title(text: str, slug: str, path: str, title: str) -> None:
    assert page(text, slug, path).title == title


@given(st.text(max_size=120), st.text(alphabet="ab/-_ .1中", min_size=1, max_size=20))
def test_no_title_is_empty_or_long(text: str, path: str) -> None:
    title = page(text, "notes/a", path + "x.md").title

    assert title.strip() == title != ""
    assert len(title) <= 300


def test_an_invisible_title_is_told_and_replaced() -> None:
    """BC-010: an empty result is rejected; body text is untouched."""
    found = page('---\ntitle: "\\u200b"\ntags: ["ops\\ufeff", ops]\n---\nRoad\u200bmap')

    assert found.title == "A"
    assert found.tags == ("ops",)
    assert "TITLE_EMPTY" in [finding.code for finding in found.findings]
    assert found.compiled_truth == "Road\u200bmap"
    assert page("---\ntitle: Road\u200bmap\n---\n").title == "Roadmap"


@pytest.mark.parametrize(
    ("slug", "kind"),
    [
        ("people/x", "person"), ("人物/x", "person"), ("companies/x", "company"), ("公司/x", "company"), ("会议/x",
        "meeting"),
        ("meetings/x", "meeting"), ("concepts/x", "concept"), ("概念/x", "concept"), ("notes/x", "note"), ("笔记/x",
        "note"),
        ("projects/x", "project"), ("reading/x", "reading"), ("chat/x", "chat"), ("bookmarks/x", "bookmark"),
        ("writing/x", "writing"), ("clients/people/x", "person"), ("projects/atlas/meetings/x", "meeting"),
        ("archive/people/x", "person"), ("archive/x", "note"), ("x", "note"), ("mypeople/x", "note"), ("code/x.py",
        "code"),
    ],
)  # fmt: skip
def test_the_folder_says_what_a_page_is(slug: str, kind: str) -> None:
    assert page("text", slug).type == kind


def test_a_declared_type_counts_more() -> None:
    assert page("---\ntype: Person\n---\n").type == "person"
    assert page("---\ntype: 公司\n---\n").type == "company"
    assert page("---\ntype: Star System\n---\n").type == "Star System"


@pytest.mark.parametrize(
    ("value", "tags"),
    [
        ("""'["security","fix"]'""", ("security", "fix")),
        ("[security, fix]", ("security", "fix")),
        ("'#ops, #Dev'", ("ops", "Dev")),
        ("创业，投资、农业", ("创业", "投资", "农业")),
        ("[1, true, null, x, X, '']", ("1", "x")),
        ("single", ("single",)),
    ],
)
def test_tags_are_read_however_they_are_listed(value: str, tags: tuple[str, ...]) -> None:
    """BC-029: no added characters."""
    assert page(f"---\ntags: {value}\n---\n").tags == tags


def test_broken_tags_keep_their_words() -> None:
    found = page("---\ntags:\n\t- alpha\n---\nbody")

    assert found.tags == ("alpha",)
    assert found.compiled_truth == "body"


def test_aliases_are_names_and_none_is_the_title() -> None:
    """BC-016: aliases such as `on` are words."""
    found = page("---\ntitle: Ana\naliases: [on, y, Off, ana, Ána]\n别名: 安娜\n---\n", "people/ana")

    assert found.aliases == ("on", "y", "Off", "Ána", "安娜")


def test_a_declared_slug_that_lost_to_the_path_is_an_alias() -> None:
    assert page("---\nslug: people/other\n---\n", "notes/a", "notes/a.md").aliases == ("people/other",)


def test_a_file_name_that_the_slug_could_not_keep_is_an_alias() -> None:
    kept = page("# Draft\n", "notes/v2.1-draft", "notes/v2.1 (draft).md")
    suffixed = page("# Another\n", "notes/plan-b-1a2b3c4d", "notes/Plan B.md")

    assert kept.aliases == ("v2.1 (draft)",)
    assert suffixed.aliases == ("Plan B",)
    assert page("# X\n", "notes/plan-b", "notes/Plan B.md").aliases == ()


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2026-03-01", "2026-03-01"), ("2026-3-1", "2026-03-01"), ("2026-03", "2026-03"), ("2026", "2026"),
        ("2026-03-01T10:00:00Z", "2026-03-01"), ("2026/03/01", "2026-03-01"), ("20260301", "2026-03-01"),
        ("2026年3月1日", "2026-03-01"), ("2026年3月", "2026-03"), ("2026 年", "2026"), ("March 1, 2026", "2026-03-01"),
        ("1st March 2026", "2026-03-01"), ("Mar 2026", "2026-03"), ("2026-02-30", ""), ("2026-13-01", ""),
        ("0026-01-01", ""),
        ("soon", ""), ("", ""), ("12345678", ""),
    ],
)  # fmt: skip
def test_a_typed_date_keeps_its_precision(text: str, date: str) -> None:
    assert typed_date(text) == date


@pytest.mark.parametrize(
    ("path", "date", "rest"),
    [
        ("notes/2026-03-01-plan.md", "2026-03-01", "plan"), ("notes/2026-03-plan", "2026-03", "plan"),
        ("notes/20260301 plan", "2026-03-01", "plan"), ("notes/2026 03 01 plan", "2026-03-01", "plan"),
        ("notes/2026年3月1日随笔.md", "2026-03-01", "随笔"), ("daily/2026/03/01.md", "2026-03-01", "01"),
        ("notes/meeting on 2026-03-01", "2026-03-01", "meeting on 2026-03-01"), ("notes/2026-plan", "2026",
        "2026-plan"),
        ("notes/2024-99-99-x", "2024", "2024-99-99-x"), ("notes/v1.2026.3", "", "v1.2026.3"), ("notes/plan", "",
        "plan"),
        ("notes/3200-rpm", "", "3200-rpm"),
    ],
)  # fmt: skip
def test_a_path_tells_the_date(path: str, date: str, rest: str) -> None:
    assert path_date(path) == date
    assert without_date(path.rpartition("/")[2].removesuffix(".md")) == rest


@given(st.text(max_size=40))
def test_no_text_is_an_error_as_a_date(text: str) -> None:
    for date in (typed_date(text), path_date(text)):
        assert date == "" or typed_date(date) == date


def test_the_date_in_the_frontmatter_counts_more_than_the_path() -> None:
    found = page("---\ndate: 2020-01\n---\n", "meetings/2024-03-15-x")

    assert (found.date, found.date_source) == ("2020-01", "frontmatter")
    assert page("x", "meetings/2024-03-15-x").date_source == "path"


def test_an_impossible_date_is_told_and_the_next_is_taken() -> None:
    found = page("---\ndate: 2021-02-30\npublished: 2021-02-03\n---\n")

    assert found.date == "2021-02-03"
    assert [(finding.code, finding.line) for finding in found.findings] == [("DATE_INVALID", 2)]


@pytest.mark.parametrize(
    ("value", "visibility"),
    [
        ("world", Visibility.WORLD), ("Public", Visibility.WORLD), ("公开", Visibility.WORLD),
        ("private", Visibility.PRIVATE),
        ("私密", Visibility.PRIVATE), ("Private # hide", Visibility.PRIVATE), ("*private", Visibility.PRIVATE),
        ("secret", Visibility.PRIVATE), ("[world, private]", Visibility.PRIVATE), ("", Visibility.WORLD),
        ("false", Visibility.PRIVATE),
    ],
)  # fmt: skip
def test_what_is_not_clearly_for_the_world_is_private(value: str, visibility: Visibility) -> None:
    assert page(f"---\nvisibility: {value}\n---\n").visibility is visibility


@pytest.mark.parametrize(
    "front",
    [
        "visibility: private\nvisibility: public",
        "visibility: public\nvisibility: private",
        "visibility: 公开\n可见性: 私密",
        "可见性: 私密\nvisibility: world",
    ],
)
def test_of_several_visibility_keys_the_strictest_holds(front: str) -> None:
    assert page(f"---\n{front}\n---\n").visibility is Visibility.PRIVATE
