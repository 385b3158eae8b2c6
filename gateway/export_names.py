"""Where an export puts each page, and the list that says so where a slug cannot be a file's name.

Most slugs are paths. Some are not: a part longer than a file system takes, a hidden name that an import passes over,
characters that an import would clean away. Such a page gets a file of another name, and the list beside the files
gives it its slug back when the folder is imported.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import orjson

from gateway.folder import CONFLICT, PAGES, read
from services.domain.errors import InvalidArgument
from services.domain.languages import code_language
from services.domain.slugs import slug_from_path, slug_or_none

LIST_FILE = ".fleetbrain-export.json"
LIST_FORMAT = 1
FOLDER = "_named-otherwise"
PART_BYTES_MAX = 240
"""Most file systems take 255 bytes; a little is kept for what is written beside a file."""


def file_of(slug: str) -> str:
    """The relative path of a page's file: its slug and `.md` where an import makes the same slug of it."""
    # A code file has its extension in the slug; every other page is Markdown.
    plain = slug if code_language(slug) else f"{slug}.md"
    return plain if _comes_back(plain, slug) else f"{FOLDER}/{hashlib.sha256(slug.encode()).hexdigest()[:16]}.md"


def _comes_back(path: str, slug: str) -> bool:
    parts = PurePosixPath(path).parts
    folders, name = parts[:-1], parts[-1]
    return (
        all(not part.startswith(".") and len(os.fsencode(part)) <= PART_BYTES_MAX for part in parts)
        and name.rpartition(".")[2].lower() in PAGES
        and not CONFLICT.search(name)
        # `a.md` may be a page's file already, and `a.md/b` would want it as a folder.
        and not any(folder.rpartition(".")[2].lower() in PAGES for folder in folders)
        and parts[0] != FOLDER
        and slug_from_path(path) == slug
    )


def write_list(target: Path, slugs: Mapping[str, str]) -> None:
    """Writes the list of files whose name is not their slug, path to slug; nothing when there is none."""
    if slugs:
        body = {"format": LIST_FORMAT, "slugs": dict(sorted(slugs.items()))}
        (target / LIST_FILE).write_bytes(orjson.dumps(body, option=orjson.OPT_INDENT_2))


def read_list(root: Path) -> dict[str, str]:
    """The list of an exported folder, path to slug; empty for every other folder.

    Raises:
        InvalidArgument: There is a list that cannot be read: to pass over it would give its pages other slugs.
    """
    if not (root / LIST_FILE).exists():
        return {}
    body = read(root, LIST_FILE)
    try:
        loaded = orjson.loads(body if isinstance(body, bytes) else b"")
        slugs = {str(path): str(slug) for path, slug in loaded["slugs"].items()}
        if loaded["format"] != LIST_FORMAT or any(slug_or_none(slug) != slug for slug in slugs.values()):
            raise ValueError
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidArgument(
            "FILE_INVALID",
            f"{root / LIST_FILE} is not a list that this version's export writes",
            field="folder",
            value=str(root),
            next_step="Export again, or remove it: its pages then get slugs by their file names.",
        ) from error
    return slugs
