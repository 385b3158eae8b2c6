"""A folder of files: slugs of their own, bad files told, nobody's page replaced."""

from __future__ import annotations

import pytest

from services.domain.context import OperationContext, Scope
from services.domain.errors import InvalidArgument, PermissionDenied
from services.ingest.app.imports import ImportFile, begin_import
from services.ingest.requests import WriteStatus
from tests.unit.ingest.parts import LOCAL, REMOTE, Ingest

CREATED, UPDATED, UNCHANGED = WriteStatus.CREATED, WriteStatus.UPDATED, WriteStatus.UNCHANGED


async def test_names_in_every_script_are_pages_of_their_own() -> None:
    """BC-001."""
    ingest = Ingest()
    files: dict[str, str | bytes] = {
        "notes/רשימה.md": "MARK-A",
        "notes/משימות.md": "MARK-B",
        "notes/Заметка.md": "MARK-C",
    }
    first = await ingest.import_files(files)
    assert len({result.slug for result in first.values()}) == 3
    for path, text in files.items():
        assert await ingest.text(first[path].slug) == text
    again = await ingest.import_files(files)
    assert {result.status for result in again.values()} == {UNCHANGED}
    assert await ingest.log.last_revision() == 3


async def test_clashing_names_both_get_a_page_and_a_word_about_it() -> None:
    """BC-002."""
    ingest = Ingest()
    files: dict[str, str | bytes] = {
        "notes/Plan B.md": "MARK-A",
        "notes/plan-b.md": "MARK-B",
        "notes/zz-bystander.md": "MARK-Z",
    }
    first = await ingest.import_files(files)
    assert first["notes/plan-b.md"].slug == "notes/plan-b"
    assert first["notes/Plan B.md"].slug.startswith("notes/plan-b-")
    assert [f.code for f in first["notes/Plan B.md"].findings] == ["SLUG_CLASH"]
    assert first["notes/zz-bystander.md"].status is CREATED
    again = await ingest.import_files(dict(reversed(files.items())))
    assert {path: result.slug for path, result in again.items()} == {path: r.slug for path, r in first.items()}
    assert {result.status for result in again.values()} == {UNCHANGED}


async def test_a_page_keeps_its_slug_when_the_other_file_is_gone() -> None:
    ingest = Ingest()
    first = await ingest.import_files({"notes/Plan B.md": "A", "notes/plan-b.md": "B"})
    alone = await ingest.import_files({"notes/Plan B.md": "A2"})
    assert alone["notes/Plan B.md"].slug == first["notes/Plan B.md"].slug
    assert alone["notes/Plan B.md"].status is UPDATED


async def test_an_exported_page_comes_back_as_the_page_it_was() -> None:
    ingest = Ingest()
    first = await ingest.import_files({"notes/Plan B.md": "A", "🚀.md": "B"})
    exported: dict[str, str | bytes] = {
        f"{first['notes/Plan B.md'].slug}.md": "A",
        f"{first['🚀.md'].slug}.md": "B",
    }
    again = await ingest.import_files(exported)
    assert {result.status for result in again.values()} == {UNCHANGED}
    assert [result.slug for result in again.values()] == [result.slug for result in first.values()]
    assert not any(result.findings for result in again.values())
    assert await ingest.log.last_revision() == 2


async def test_equal_files_of_one_folder_stay_apart() -> None:
    ingest = Ingest()
    files: dict[str, str | bytes] = {"notes/Plan B.md": "same", "notes/plan-b.md": "same"}
    first = await ingest.import_files(files)
    again = await ingest.import_files(files)
    assert len({result.slug for result in first.values()}) == len({result.slug for result in again.values()}) == 2


async def test_a_declared_slug_may_differ_in_case_and_names_what_the_path_cannot() -> None:
    """BC-005 and BC-014."""
    results = await Ingest().import_files(
        {
            "projects/README.md": "---\nslug: projects/README\n---\nhello",
            "🚀.md": "---\nslug: launches/rocket\n---\nup",
            "🎉.md": "party",
        }
    )
    assert results["projects/README.md"].slug == "projects/readme"
    assert not results["projects/README.md"].findings
    assert results["🚀.md"].slug == "launches/rocket"
    assert results["🎉.md"].slug.startswith("page-")
    assert [f.code for f in results["🚀.md"].findings] == ["SLUG_DECLARED"]
    assert [f.code for f in results["🎉.md"].findings] == ["SLUG_GENERATED"]


async def test_two_files_that_declare_one_slug_stay_apart() -> None:
    ingest = Ingest()
    declared = "---\nslug: launches/rocket\n---\n"
    results = await ingest.import_files({"🚀.md": declared + "a", "🛸.md": declared + "b"})
    assert results["🚀.md"].slug == "launches/rocket"
    assert results["🛸.md"].slug.startswith("page-")
    again = await ingest.import_files({"🛸.md": declared + "b"})
    assert again["🛸.md"].status is not UPDATED, "the page of another file is not replaced"
    assert await ingest.text("launches/rocket") == declared + "a"


async def test_one_bad_file_does_not_stop_the_others() -> None:
    """BC-019 and BC-164."""
    results = await Ingest().import_files(
        {
            "latin.md": "caf\xe9".encode("latin-1"),
            "nul.md": b"one\ntwo \0",
            "utf16.md": "text".encode("utf-16"),
            "empty.md": b"",
            "huge.md": b"x" * 5_000_001,
            "../outside.md": "text",
            "frontmatter.md": "---\ntitle: T\npath: `C:\\x`\n---\nok",
            "good.md": "MARK",
        }
    )
    reasons = {path: result.error.reason for path, result in results.items() if result.error is not None}
    assert reasons == {
        "latin.md": "ENCODING_INVALID",
        "nul.md": "ENCODING_INVALID",
        "utf16.md": "ENCODING_INVALID",
        "empty.md": "PAGE_EMPTY",
        "huge.md": "PAGE_TOO_LARGE",
        "../outside.md": "FILE_INVALID",
    }
    nul = results["nul.md"].error
    assert nul is not None
    assert nul.metadata["line"] == "2"
    assert results["good.md"].status is CREATED
    assert [finding.line for finding in results["frontmatter.md"].findings] == [3]


async def test_an_edited_file_replaces_only_what_came_from_it() -> None:
    ingest = Ingest()
    await ingest.import_files({"notes/a.md": "one", "notes/b.md": "one"})
    await ingest.put("notes/b", "by an agent", overwrite=True)
    await ingest.put("notes/c", "never a file")
    results = await ingest.import_files({"notes/a.md": "two", "notes/b.md": "two", "notes/c.md": "two"})
    assert results["notes/a.md"].status is UPDATED
    for path, slug, text in (("notes/b.md", "notes/b", "by an agent"), ("notes/c.md", "notes/c", "never a file")):
        error = results[path].error
        assert error is not None
        assert (error.reason, error.field) == ("REVISION_CONFLICT", "path")
        assert "not from a file" in error.message
        assert await ingest.text(slug) == text


async def test_a_put_and_its_export_meet_again() -> None:
    ingest = Ingest()
    await ingest.put("notes/c", "the same")
    results = await ingest.import_files({"notes/c.md": "the same"})
    assert results["notes/c.md"].status is UNCHANGED


async def test_a_revert_is_not_undone_by_the_next_import() -> None:
    ingest = Ingest()
    await ingest.import_files({"a.md": "one"})
    await ingest.import_files({"a.md": "two"})
    await ingest.revert("a", 1)
    results = await ingest.import_files({"a.md": "two"})
    assert results["a.md"].error is not None
    assert await ingest.text("a") == "one"


async def test_a_file_finds_its_page_after_a_move() -> None:
    ingest = Ingest()
    await ingest.import_files({"notes/a.md": "one"})
    await ingest.move("notes/a", "archive/a")
    results = await ingest.import_files({"notes/a.md": "two"})
    assert (results["notes/a.md"].slug, results["notes/a.md"].status) == ("archive/a", UPDATED)


async def test_an_import_sent_again_gets_its_results_again() -> None:
    ingest = Ingest()
    first = await ingest.import_files({"a.md": "one", "b.md": "one"}, import_id="i1")
    await ingest.put("a", "newer", overwrite=True)
    assert await ingest.import_files({"a.md": "one", "b.md": "one"}, import_id="i1") == first


async def test_a_deleted_page_comes_back_as_a_new_one() -> None:
    ingest = Ingest()
    await ingest.import_files({"a.md": "one"})
    await ingest.delete("a")
    assert (await ingest.import_files({"a.md": "one"}))["a.md"].status is CREATED


async def test_a_file_comes_once_and_as_announced() -> None:
    ingest = Ingest()
    run = await begin_import(LOCAL, ingest.writes, source="default", import_id="i", paths=["a.md"])
    file = ImportFile(path="a.md", body=b"one")
    results = await run.add([file, file, ImportFile(path="b.md", body=b"two")])
    assert [result.error.reason if result.error else "" for result in results] == ["", "FILE_INVALID", "FILE_INVALID"]


async def test_a_remote_import_is_held_to_the_callers_rights() -> None:
    ingest = Ingest()
    await ingest.put("secret", "---\nvisibility: private\n---\nhidden")
    prefixed = OperationContext(
        principal="p", scopes=frozenset({Scope.WRITE}), write_sources=None, write_prefixes=("team/",)
    )
    results = await ingest.import_files({"team/a.md": "ok", "other/a.md": "no"}, ctx=prefixed)
    assert results["team/a.md"].status is CREATED
    assert results["other/a.md"].error is not None
    assert results["other/a.md"].error.reason == "SLUG_DENIED"
    results = await ingest.import_files({"secret.md": "mine", "q.md": "---\nquarantine: x\n---\nt"}, ctx=REMOTE)
    assert [result.error.reason if result.error else "" for result in results.values()] == [
        "SLUG_DENIED",
        "FIELD_INVALID",
    ]
    with pytest.raises(PermissionDenied):
        await begin_import(REMOTE, ingest.writes, source="team", import_id="i", paths=[])


@pytest.mark.parametrize("import_id", ["", "x" * 25, "编号"])
async def test_an_import_needs_a_name_that_request_ids_can_begin_with(import_id: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        await begin_import(LOCAL, Ingest().writes, source="default", import_id=import_id, paths=[])
    assert caught.value.field == "header.import_id"
