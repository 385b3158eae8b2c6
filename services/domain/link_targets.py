"""What a link names: the name, source, fragment and display in each way of writing a link."""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple
from urllib.parse import unquote

from services.domain.inference import FOLDER_TYPES
from services.domain.names import identity
from services.domain.slugs import slug_from_path

NAME_CHARACTERS_MAX = 512

_QUALIFIED = re.compile(r"([a-z0-9_-]{1,64}):(?![/\s])(.+)")
_PLAIN = re.compile(r"[\w-][\w/ -]*")
"""A name with nothing around it, and no dot that could begin an extension: most links."""
_SCHEME = re.compile(r"(?:[a-z][a-z0-9+.-]*:|//|\\\\)", re.IGNORECASE)
_URL_SCHEMES = frozenset(
    {"http", "https", "mailto", "file", "ftp", "tel", "data", "javascript", "obsidian", "urn", "doi"}
)
_BLOCK = re.compile(r"\^[A-Za-z0-9-]+\Z")
_PAGE_EXTENSION = re.compile(r"\.(?:md|mdx|markdown)\Z", re.IGNORECASE)
_MEDIA = re.compile(
    r"\.(?:png|jpe?g|gif|webp|svg|bmp|heic|heif|avif|tiff?|ico|mp3|wav|m4a|ogg|flac|mp4|mov|webm|mkv|avi|pdf|zip|gz|tar|"
    r"7z|rar|docx?|xlsx?|pptx?|csv|tsv|epub|exe|dmg|canvas|base|excalidraw)\Z",
    re.IGNORECASE,
)


class Target(NamedTuple):
    """A page as a link names it."""

    name: str
    source: str
    titled: bool
    display: str = ""
    fragment: str = ""


def wikilink_target(inner: str, *, source: str, folder: str) -> Target | None:
    """The page between `[[` and `]]`; None for a place on the same page, an attachment, or nothing.

    Args:
        inner: As written: `name`, `name#heading|display`, `name^block`, `source:name`; in a table with an escaped pipe.
        source: Of the page the link stands on.
        folder: Of that page, for names that begin with `./` or `../`.
    """
    if _PLAIN.fullmatch(inner):
        name = identity(inner).strip("/").strip()[:NAME_CHARACTERS_MAX]
        return Target(name=name, source=source, titled="/" not in name) if name else None
    name, _, display = inner.replace("\\|", "|").partition("|")
    name, mark, fragment = name.partition("#")
    if not mark and (block := _BLOCK.search(name)):
        name, fragment = name[: block.start()], block[0]
    qualified = _QUALIFIED.fullmatch(name.strip())
    if qualified and qualified[1] not in _URL_SCHEMES:
        source, name = qualified[1], qualified[2]
    elif _SCHEME.match(name.strip()) and (not qualified or qualified[1] in _URL_SCHEMES) and " " not in name.strip():
        return None
    name = identity(name.rstrip("\\ ")).strip()
    if _MEDIA.search(name):
        return None
    relative = name.startswith(("./", "../"))
    if relative:
        name = _resolved(name, folder)
    name = _PAGE_EXTENSION.sub("", name).lstrip("/").rstrip("/").strip()[:NAME_CHARACTERS_MAX]
    if not name:
        return None
    return Target(
        name=slug_from_path(name) if relative else name,
        source=source,
        titled="/" not in name,
        display=identity(display.rstrip("\\")),
        fragment=identity(fragment),
    )


def markdown_target(destination: str, label: str, *, source: str, folder: str) -> Target | None:
    """The page a Markdown link leads to, as a slug; None for URLs, attachments, and places on the same page.

    A relative path is resolved against the folder of the page. One that begins with a folder of our own at the root,
    as agents write it, is meant from the root when the page stands in such a folder itself.
    """
    destination = destination.strip("<>").strip()
    path, _, fragment = destination.partition("#")
    path = path.partition("?")[0]
    if not path or _SCHEME.match(path):
        return None
    path = identity(unquote(path).replace("\\", "/"))
    if not path or _MEDIA.search(path) or "\0" in path:
        return None
    first = path.partition("/")[0]
    rooted = path.startswith("/") or (
        "/" in path and first.casefold() in FOLDER_TYPES and "/" not in folder and folder.casefold() in FOLDER_TYPES
    )
    resolved = _resolved(path, "" if rooted else folder)
    if not resolved:
        return None
    return Target(
        name=slug_from_path(resolved),
        source=source,
        titled=False,
        display=identity(label),
        fragment=identity(unquote(fragment)),
    )


def _resolved(path: str, folder: str) -> str:
    """A relative path from the root, not above it."""
    joined = posixpath.normpath(posixpath.join("/", folder, path.lstrip("/")))
    return joined.lstrip("/") if joined != "/" else ""
