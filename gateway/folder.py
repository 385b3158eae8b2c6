"""Which files of a folder are pages: the walk of an import, with what it refuses and what it passes over.

Markdown and code are pages. Data (JSON, YAML, XML …), style sheets and everything else are passed over and counted, so
that nothing is left out unseen. Symlinks are refused: they lead out of the folder. Hidden files, `.git` and whatever
`.gitignore` or `.fleetbrainignore` name are not looked at, each with the rules of its own folder, as git reads them.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pathspec import GitIgnoreSpec

from services.domain.errors import InvalidArgument
from services.domain.languages import CODE_LANGUAGES

MARKDOWN = frozenset({"md", "markdown", "mdx"})
DATA = frozenset("json yaml yml toml xml html css scss less tfvars".split())
"""Extensions that the parser reads as code but that hold data or looks: in a vault they are lock files and exports."""
PAGES = MARKDOWN | (CODE_LANGUAGES.keys() - DATA)

IGNORE_FILES = (".gitignore", ".fleetbrainignore")
IGNORE_BYTES_MAX = 1_000_000
CONFLICT = re.compile(r"\.conflict-\d+\.md$")
"""What the vault writer puts beside a file that two sides changed: a copy for people, never a page."""
FILES_MAX = 1_000_000
"""What one import may announce."""
PAGE_BYTES_MAX = 5_000_000
DEPTH_MAX = 64
"""Deeper is a mistake, such as a copy of a folder in itself; a slug has at most 32 parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A file that cannot be a page, in the words of an error."""

    path: str
    reason: str
    message: str
    next_step: str
    line: int = 0


@dataclass(slots=True, kw_only=True)
class Found:
    """What a walk found, in the order of the paths."""

    root: Path
    paths: list[str] = field(default_factory=list)
    """Relative POSIX paths, spelled as on disk."""
    refused: list[Refused] = field(default_factory=list)
    passed_over: Counter[str] = field(default_factory=Counter)
    """Other files by extension."""
    slugs: dict[str, str] = field(default_factory=dict)
    """Slugs of files that an export could not name by them, by path."""


def walk(root: Path) -> Found:
    """Looks through a folder without opening a page.

    Raises:
        InvalidArgument: It is no folder, or has too many files.
    """
    if not root.is_dir():
        raise InvalidArgument(
            "FILE_INVALID",
            f"{root} is not a folder",
            field="folder",
            value=str(root),
            next_step="Name a folder with Markdown files.",
        )
    found = Found(root=root)
    for entry, path in _entries(found, root, "", ()):
        _sort_in(found, entry, path)
        if len(found.paths) > FILES_MAX:
            raise InvalidArgument(
                "LIMIT_REACHED",
                f"{root} has more than {FILES_MAX} pages",
                field="folder",
                value=str(root),
                next_step="Import its parts one after the other.",
            )
    return found


Rules = tuple[tuple[str, GitIgnoreSpec], ...]


def _entries(found: Found, folder: Path, prefix: str, rules: Rules) -> Iterator[tuple[os.DirEntry[str], str]]:
    """Every file below a folder that no rule ignores; symlinks of any kind count as files."""
    rules = (*rules, *_rules(folder, prefix))
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        found.refused.append(_refused(prefix.rstrip("/") or ".", f"the folder cannot be read: {error.strerror}"))
        return
    for entry in entries:
        path = prefix + entry.name
        directory = entry.is_dir(follow_symlinks=False)
        if entry.name.startswith(".") or _ignored(path, rules, directory=directory):
            continue
        if not directory:
            yield entry, path
        elif path.count("/") >= DEPTH_MAX:
            found.refused.append(_refused(path, f"the folder is more than {DEPTH_MAX} levels deep"))
        else:
            yield from _entries(found, folder / entry.name, path + "/", rules)


def _sort_in(found: Found, entry: os.DirEntry[str], path: str) -> None:
    extension = entry.name.rpartition(".")[2].lower() if "." in entry.name else ""
    if entry.is_symlink():
        found.refused.append(
            _refused(path, "a symlink may lead out of the folder", "Copy the file, or link to its page.")
        )
    elif extension not in PAGES or CONFLICT.search(entry.name):
        found.passed_over[f".{extension}" if extension else "no extension"] += 1
    elif not entry.is_file(follow_symlinks=False):
        found.refused.append(_refused(path, "it is not a regular file"))
    elif not _is_text(path):
        found.refused.append(_refused(path, "its name is not UTF-8", "Rename it."))
    else:
        found.paths.append(path)


def read(root: Path, path: str) -> bytes | Refused:
    """The bytes of a file, or why it cannot be a page. Never follows a symlink, also one that has come since."""
    try:
        descriptor = os.open(root / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        return _refused(path, f"it cannot be read: {error.strerror}")
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return _refused(path, "it is not a regular file")
        try:
            body = file.read(PAGE_BYTES_MAX + 1)
        except OSError as error:
            return _refused(path, f"it cannot be read: {error.strerror}")
    if len(body) > PAGE_BYTES_MAX:
        return Refused(
            path=path,
            reason="PAGE_TOO_LARGE",
            message=f"it has {status.st_size} bytes, at most {PAGE_BYTES_MAX} are a page",
            next_step="Split it, and link the parts.",
        )
    return body


def _rules(folder: Path, prefix: str) -> Rules:
    rules = []
    for name in IGNORE_FILES:
        body = read(folder, name) if (folder / name).is_file() else b""
        if isinstance(body, bytes) and body:
            lines = body[:IGNORE_BYTES_MAX].decode("utf-8", "replace").splitlines()
            rules.append((prefix, GitIgnoreSpec.from_lines(lines)))
    return tuple(rules)


def _ignored(path: str, rules: Rules, *, directory: bool) -> bool:
    """Whether the nearest rule that speaks of the path ignores it."""
    for prefix, spec in reversed(rules):
        include = spec.check_file(path[len(prefix) :] + ("/" if directory else "")).include
        if include is not None:
            return include
    return False


def _is_text(path: str) -> bool:
    return not any("\udc80" <= character <= "\udcff" for character in path)


def _refused(path: str, message: str, next_step: str = "Check the file.") -> Refused:
    return Refused(path=path, reason="FILE_INVALID", message=message, next_step=next_step)
