"""The address of a page: canonical slugs, subjects of the log, and slugs of imported files."""

from __future__ import annotations

import itertools
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.errors import InvalidArgument
from services.domain.names import identity, name_key
from services.domain.records import PageKey
from services.domain.slugs import (
    PARTS_MAX,
    SUBJECT_BYTES_MAX,
    canonical_slug,
    check_source,
    key_of_subject,
    plan_slugs,
    slug_from_path,
    slug_or_none,
    subject_of,
    suffixed_slug,
    wanted_slugs,
)

PATHS = st.lists(st.text(max_size=20), min_size=1, max_size=6).map("/".join)


@given(st.text(max_size=80))
def test_a_canonical_slug_is_its_own_canonical_form(text: str) -> None:
    slug = slug_or_none(text)

    if slug is not None:
        assert canonical_slug(slug) == slug
        assert unicodedata.is_normalized("NFC", slug)
        assert all(part.strip(".") for part in slug.split("/"))


@given(st.text(max_size=80), st.sampled_from(["default", "team-notes", "a" * 64]))
def test_a_subject_gives_back_the_page_it_was_made_of(text: str, source: str) -> None:
    slug = slug_or_none(text)

    if slug is not None:
        subject = subject_of(PageKey(source, slug))
        assert key_of_subject(subject) == (source, slug)
        assert re.fullmatch(r"[A-Za-z0-9_.=-]+", subject)
        assert len(subject) <= SUBJECT_BYTES_MAX


@given(st.text(alphabet=st.characters(codec="ascii"), max_size=40))
def test_a_subject_that_is_accepted_is_the_only_one_of_its_page(text: str) -> None:
    try:
        key = key_of_subject("brain.pages." + text)
    except InvalidArgument:
        return

    assert subject_of(key) == "brain.pages." + text


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("media/clip/aB3dEf9", "media/clip/ab3def9"),
        ("Media/Clip/aB3dEf9", "media/clip/ab3def9"),
        ("People/Jane Doe.md", "people/jane-doe"),
        ("notes/a - b", "notes/a-b"),
        ("notes/a--b", "notes/a--b"),
        ("人物/王 伟", "人物/王-伟"),
        ("notes/re\u0301sume\u0301.md", "notes/r\u00e9sum\u00e9"),
        ("notes/x.md.md", "notes/x"),
        ("notes/v2.1", "notes/v2.1"),
        ("  notes/x ", "notes/x"),
    ],
)
def test_every_spelling_of_a_slug_has_one_canonical_form(text: str, slug: str) -> None:
    """BC-004: lookups by either spelling find the page. BC-007: NFD and NFC are one."""
    assert canonical_slug(text) == slug


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("notes/safe\u202egnp.md", "U+202E"),
        ("notes/a%2f..%2fb", "%2f"),
        ("notes/a%252Fb", "%252F"),
        ("notes\\win\\path", "U+005C"),
        ("notes/bell\u0007", "U+0007"),
        ("notes/unit\u001fx", "U+001F"),
        ("notes/zero\u200bwidth", "U+200B"),
        ("notes/lone\ud800", "U+D800"),
    ],
)
def test_a_character_that_hides_or_separates_is_refused_by_name(text: str, named: str) -> None:
    """BC-011: refused at the write boundary with the code point named. BC-164: control bytes are refused in slugs."""
    with pytest.raises(InvalidArgument) as refusal:
        canonical_slug(text)

    assert named in refusal.value.message
    assert (refusal.value.reason, refusal.value.field) == ("SLUG_INVALID", "slug")
    assert refusal.value.next_step


@pytest.mark.parametrize(
    "text", ["", "  ", "/x", "x/", "a//b", "../x", "a/..", "a/./b", ".md", "a/...", "a/" * PARTS_MAX + "b", "中" * 400]
)
def test_a_slug_without_a_proper_place_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        canonical_slug(text)


def test_a_megabyte_of_hyphens_and_spaces_is_refused_unread() -> None:
    with pytest.raises(InvalidArgument):
        canonical_slug("- " * 500_000)


@pytest.mark.parametrize("name", ["", "Team", "a b", "a.b", "名", "a" * 65])
def test_a_source_is_a_short_plain_word(name: str) -> None:
    assert check_source("team_notes-2") == "team_notes-2"
    with pytest.raises(InvalidArgument) as refusal:
        check_source(name)

    assert refusal.value.reason == "SOURCE_INVALID"


@given(PATHS)
def test_every_path_makes_a_canonical_slug(path: str) -> None:
    slug = slug_from_path(path)

    assert canonical_slug(slug) == slug
    assert slug_from_path(unicodedata.normalize("NFD", path)) == slug_from_path(unicodedata.normalize("NFC", path))
    for wanted in wanted_slugs(path):
        assert canonical_slug(wanted) == wanted


@pytest.mark.parametrize(
    ("path", "slug"),
    [
        ("README.md", "readme"),
        ("projects/README.md", "projects/readme"),
        ("People/José Ñuñez.md", "people/josé-ñuñez"),
        ("notes/v2.1 (draft).mdx", "notes/v2.1-draft"),
        ("src\\a b\\C.md", "src/a-b/c"),
        ("src/core/My.File.ts", "src/core/my.file.ts"),
        ("notes/Don't panic!.md", "notes/dont-panic"),
        ("हिन्दी/नमस्ते.md", "हिन्दी/नमस्ते"),
        ("人物/王 伟.md", "人物/王-伟"),
        ("notes/tab\there.md", "notes/tab-here"),
    ],
)
def test_a_path_becomes_the_slug_people_expect(path: str, slug: str) -> None:
    assert slug_from_path(path) == slug


def test_names_in_any_script_keep_their_letters() -> None:
    """BC-001: three files, three slugs."""
    paths = ["notes/רשימה.md", "notes/משימות.md", "notes/Заметка.md"]

    slugs = [planned.slug for planned in plan_slugs([(path, None) for path in paths], {})]

    assert slugs == ["notes/רשימה", "notes/משימות", "notes/заметка"]


def test_clashing_names_are_kept_apart_and_told_once() -> None:
    """BC-002: the second gets a stable suffix, the clash is reported once, the bystander is untouched."""
    paths = [("notes/Plan B.md", None), ("notes/plan-b.md", None), ("notes/zz-bystander.md", None)]

    planned = plan_slugs(paths, {})

    assert [entry.slug for entry in planned] == [
        suffixed_slug("notes/Plan B.md"),
        "notes/plan-b",
        "notes/zz-bystander",
    ]
    assert re.fullmatch(r"notes/plan-b-[0-9a-f]{8}", planned[0].slug)
    assert [entry.finding.code for entry in planned if entry.finding] == ["SLUG_CLASH"]


def test_the_order_of_an_import_changes_no_slug() -> None:
    paths: list[tuple[str, str | None]] = [
        ("a/Plan B.md", None), ("a/plan-b.md", None), ("a/Plan  b.md", None), ("a/🎉.md", None), ("🚀.md", "a/plan-b"),
    ]  # fmt: skip
    outcomes = {
        frozenset((entry.path, entry.slug) for entry in plan_slugs(order, {}))
        for order in itertools.permutations(paths)
    }

    assert len(outcomes) == 1


@given(st.lists(PATHS, min_size=1, max_size=8, unique=True), st.randoms(use_true_random=False))
def test_no_two_files_of_an_import_share_a_slug(paths: list[str], random: object) -> None:
    planned = plan_slugs([(path, None) for path in paths], {})

    assert [entry.path for entry in planned] == paths
    assert len({entry.slug for entry in planned}) == len(paths)
    for entry in planned:
        assert canonical_slug(entry.slug) == entry.slug


@given(st.lists(PATHS.map(lambda path: unicodedata.normalize("NFC", path)), min_size=1, max_size=8, unique=True))
def test_a_second_import_of_the_same_files_gives_the_same_slugs(paths: list[str]) -> None:
    """BC-001: a second import of unchanged files changes nothing."""
    first = plan_slugs([(path, None) for path in paths], {})
    again = plan_slugs([(path, None) for path in paths], {entry.slug: entry.path for entry in first})

    assert [entry.slug for entry in again] == [entry.slug for entry in first]


def test_a_page_that_is_there_keeps_its_slug() -> None:
    taken = {"notes/plan-b": "notes/Plan B.md"}

    planned = plan_slugs([("notes/plan-b.md", None), ("notes/Plan B.md", None)], taken)

    assert [entry.slug for entry in planned] == [suffixed_slug("notes/plan-b.md"), "notes/plan-b"]


def test_a_file_that_lost_a_clash_keeps_its_slug_when_the_winner_is_gone() -> None:
    own = suffixed_slug("notes/Plan B.md")

    assert plan_slugs([("notes/Plan B.md", None)], {own: "notes/Plan B.md"})[0].slug == own


def test_a_page_that_was_put_is_the_same_page_as_the_file_of_its_slug() -> None:
    assert plan_slugs([("notes/a.md", None)], {"notes/a": ""})[0] == ("notes/a.md", "notes/a", None)


def test_a_declared_slug_that_is_another_spelling_of_the_path_is_accepted() -> None:
    """BC-005: accepted after normalising."""
    planned = plan_slugs([("projects/README.md", "projects/README")], {})

    assert planned == [("projects/README.md", "projects/readme", None)]


def test_a_declared_slug_cannot_take_another_page() -> None:
    planned = plan_slugs([("notes/a.md", "people/other")], {})[0]

    assert planned.slug == "notes/a"
    assert planned.finding is not None
    assert planned.finding.code == "SLUG_DECLARED_UNUSED"


def test_a_path_of_symbols_uses_its_declared_slug_or_gets_a_stable_one() -> None:
    """BC-014: the first uses the declared slug, the second a generated one, both are reported."""
    planned = plan_slugs([("🚀.md", "launches/Rocket"), ("🎉.md", None)], {})

    assert planned[0].slug == "launches/rocket"
    assert re.fullmatch(r"page-[0-9a-f]{8}", planned[1].slug)
    assert [entry.finding.code for entry in planned if entry.finding] == ["SLUG_DECLARED", "SLUG_GENERATED"]


def test_two_spellings_of_one_path_on_disk_are_both_kept() -> None:
    planned = plan_slugs([("n/e\u0301.md", None), ("n/\u00e9.md", None)], {})

    assert len({entry.slug for entry in planned}) == 2


@pytest.mark.parametrize("path", ["d/" * 40 + "name.md", "很长" * 900 + ".md", ("很长" * 90 + "/") * 20 + "x.md"])
def test_a_path_that_is_too_long_gets_a_short_slug_of_its_own(path: str) -> None:
    assert re.search(r"-[0-9a-f]{8}\Z", slug_from_path(path))


@given(st.text(max_size=60))
def test_names_are_compared_by_a_key_that_is_its_own_key(text: str) -> None:
    assert name_key(name_key(text)) == name_key(text)
    assert identity(identity(text)) == identity(text)


def test_invisible_characters_make_no_second_name() -> None:
    """BC-010: identity strings drop zero-width and BOM characters before compare."""
    assert identity("Road\u200bmap") == "Roadmap"
    assert identity("\u200b") == ""
    assert name_key("ops\ufeff") == name_key("OPS") == "ops"
    assert name_key("Ｒｏａｄ　Map") == "road map"
