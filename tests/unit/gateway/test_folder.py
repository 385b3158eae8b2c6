"""Which files of a folder are imported."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.folder import Refused, read, walk
from services.domain.errors import InvalidArgument


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_markdown_and_code_are_pages_and_the_rest_is_counted(tmp_path: Path) -> None:
    write(
        tmp_path,
        **{"a.md": "", "B.Markdown": "", "笔记/想法.md": "", "src/x.py": "", "p.json": "", "i.PNG": "", "x": ""},
    )

    found = walk(tmp_path)

    assert found.paths == ["B.Markdown", "a.md", "src/x.py", "笔记/想法.md"]
    assert found.passed_over == {".json": 1, ".png": 1, "no extension": 1}


def test_symlinks_are_refused_and_named(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    write(outside, **{"secret.md": "secret"})
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "file.md").symlink_to(outside / "secret.md")
    (vault / "folder").symlink_to(outside)

    found = walk(vault)

    assert found.paths == []
    assert [(r.path, r.reason) for r in found.refused] == [("file.md", "FILE_INVALID"), ("folder", "FILE_INVALID")]


def test_a_symlink_that_comes_after_the_walk_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path, **{"secret.md": "secret"})
    (tmp_path / "link.md").symlink_to(tmp_path / "secret.md")

    assert isinstance(read(tmp_path, "link.md"), Refused)


def test_hidden_files_and_folders_are_not_looked_at(tmp_path: Path) -> None:
    write(tmp_path, **{".git/x.md": "", ".obsidian/y.md": "", ".hidden.md": "", "a.md": ""})

    assert walk(tmp_path).paths == ["a.md"]


def test_ignore_files_hold_for_their_own_folder_and_the_nearest_rule_wins(tmp_path: Path) -> None:
    write(
        tmp_path,
        **{
            ".gitignore": "drafts/\n*.tmp.md\n/only-here.md\n",
            ".fleetbrainignore": "private*.md\n",
            "drafts/a.md": "", "b.tmp.md": "", "only-here.md": "", "private-1.md": "", "keep.md": "",
            "sub/only-here.md": "", "sub/.gitignore": "!b.tmp.md\n", "sub/b.tmp.md": "", "sub/drafts/c.md": "",
        },
    )  # fmt: skip

    assert walk(tmp_path).paths == ["keep.md", "sub/b.tmp.md", "sub/only-here.md"]


def test_copies_that_the_vault_writer_left_are_no_pages(tmp_path: Path) -> None:
    write(tmp_path, **{"a.md": "", "a.md.conflict-17.md": ""})

    assert walk(tmp_path).paths == ["a.md"]


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.md")).write_text("")

    found = walk(tmp_path)

    assert found.paths == []
    assert "UTF-8" in found.refused[0].message


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")

    assert [r.path for r in walk(tmp_path).refused] == ["pipe.md"]
    assert isinstance(read(tmp_path, "pipe.md"), Refused)


def test_a_file_over_the_size_of_a_page_is_refused(tmp_path: Path) -> None:
    (tmp_path / "big.md").write_bytes(b"x" * 5_000_001)

    result = read(tmp_path, "big.md")

    assert isinstance(result, Refused)
    assert result.reason == "PAGE_TOO_LARGE"


def test_what_is_no_folder_is_a_typed_error(tmp_path: Path) -> None:
    write(tmp_path, **{"a.md": ""})

    with pytest.raises(InvalidArgument, match="not a folder"):
        walk(tmp_path / "a.md")
