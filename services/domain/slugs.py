"""Slugs: the address of a page, its subject in the log, and the slugs of imported files in any script."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from services.domain.errors import InvalidArgument
from services.domain.names import INVISIBLE
from services.domain.page import Finding
from services.domain.records import PageKey

PARTS_MAX = 32
"""Parts of a slug; a folder deeper than this is an accident, and every part is a token of a subject."""

SUBJECT_BYTES_MAX = 3072
"""Of an encoded subject: NATS closes the connection under everyone at 4,096, and requests add their own words."""

SOURCE_CHARACTERS_MAX = 64
SUBJECT_PREFIX = "brain.pages."

SLUG_INPUT_CHARACTERS_MAX = 4 * SUBJECT_BYTES_MAX
"""Longer text is refused unread: no spelling of a legal slug is this long."""

STEM_BYTES_MAX = 512
"""Encoded bytes kept of the name of a file whose path is too long: some 56 Chinese characters, enough to know it by."""

_PLAIN = re.compile(r"[a-z0-9_-]+(?:/[a-z0-9_-]+)*")
_PAGE_EXTENSION = re.compile(r"(?:\.(?:md|mdx|markdown))+\Z", re.IGNORECASE)
_REFUSED = re.compile(rf"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\\{INVISIBLE}]")
_ENCODED_SEPARATOR = re.compile(r"%(?:25)*(?:2e|2f|5c|[01][0-9a-f]|7f)", re.IGNORECASE)
_SPACE = re.compile(r"[\s-]+")
_SOURCE = re.compile(r"[a-z0-9_-]{1,64}")
_UNSAFE = re.compile(r"[^A-Za-z0-9_/-]+")
_TOKEN = re.compile(r"(?:[A-Za-z0-9_-]|=[0-9A-F]{2})+")
_ESCAPE = re.compile(r"(?:=[0-9A-F]{2})+")
_SEPARATOR = re.compile(r"[\\/]+")
_DROPPED = re.compile(rf"[{INVISIBLE}]")
_QUOTE = re.compile("['’‘]")
_SYMBOL = re.compile(r"[^\w.+-]+")


def canonical_slug(text: str, *, field: str = "slug") -> str:
    """The one spelling of a slug: NFC, lower case, spaces as `-`, no trailing `.md`. Idempotent.

    Writes answer with it and reads pass through it, so every spelling of an address finds the page.

    Raises:
        InvalidArgument: `SLUG_INVALID` when a part is empty or only dots, a character is one that hides or separates,
            or it is too long; the message names the character or the limit.
    """
    if len(text) > SLUG_INPUT_CHARACTERS_MAX:
        raise _invalid(field, text, f"encoded it is longer than {SUBJECT_BYTES_MAX} bytes", "Use shorter names.")
    if _PLAIN.fullmatch(text) and subject_fits(text):
        return text
    text = text.strip()
    refused = _REFUSED.search(text)
    if refused:
        raise _invalid(field, text, f"it contains {code_point(refused[0])}", "Leave that character out.")
    encoded = _ENCODED_SEPARATOR.search(text)
    if encoded:
        why = f"it contains {code_point('%')} in {encoded[0]!r}, an encoded separator"
        raise _invalid(field, text, why, "Write the slug decoded.")
    slug = fold_slug(text)
    for part in slug.split("/"):
        if not part.strip("."):
            why = f"it has the part {part!r}" if part else "it has an empty part"
            raise _invalid(field, text, why, "Join non-empty parts by single slashes, as in `notes/plan`.")
    if slug.count("/") >= PARTS_MAX:
        raise _invalid(field, text, f"it has more than {PARTS_MAX} parts", "Use fewer folders.")
    if not subject_fits(slug):
        raise _invalid(field, text, f"encoded it is longer than {SUBJECT_BYTES_MAX} bytes", "Use shorter names.")
    return slug


def fold_slug(text: str) -> str:
    """The text in the form of a slug without judging it; `canonical_slug` is this, checked. Idempotent."""
    if "." not in text and text.split() == [text] and text == text.lower() and unicodedata.is_normalized("NFC", text):
        return text
    previous = None
    # Lower case can bring forth what composes, and a cut extension what ends in a space: repeat to the fixed point.
    for _ in range(6):
        if text == previous:
            break
        previous = text
        text = _PAGE_EXTENSION.sub("", unicodedata.normalize("NFC", text))
        text = unicodedata.normalize("NFC", "/".join(map(_fold_spaces, text.split("/"))).lower())
    return text


def slug_or_none(text: str) -> str | None:
    """The canonical slug of a name somebody wrote in a text, or None when it cannot be one."""
    try:
        return canonical_slug(text)
    except InvalidArgument:
        return None


def check_source(name: str, *, field: str = "source") -> str:
    """The name of a source, when it is one.

    Raises:
        InvalidArgument: `SOURCE_INVALID` unless it is 1 to 64 of `a-z`, `0-9`, `-` and `_`.
    """
    if _SOURCE.fullmatch(name):
        return name
    raise InvalidArgument(
        "SOURCE_INVALID",
        f"the source {name[:80]!r} is not 1 to {SOURCE_CHARACTERS_MAX} of a-z, 0-9, '-' and '_'",
        field=field,
        value=name,
        next_step="Use a name such as `default` or `team-notes`.",
    )


@lru_cache(maxsize=4096)  # The newest slugs of an import are asked for several times each: appended, read, applied.
def subject_of(key: PageKey) -> str:
    """The subject of the page log that holds a page: one token a part, so that a folder is a wildcard.

    The source and slug must be canonical; every canonical slug has exactly one subject, and every subject one slug.
    """
    return f"{SUBJECT_PREFIX}{key.source}.{encode_slug(key.slug)}"


def encode_slug(slug: str) -> str:
    """The slug as subject tokens: `/` as `.`, everything outside `[A-Za-z0-9_-]` as `=XX` per UTF-8 byte."""
    return _UNSAFE.sub(_escape, slug).replace("/", ".")


def subject_fits(slug: str) -> bool:
    """Whether the slug has few enough parts, and its subject few enough bytes, under a source of any length."""
    if len(slug) > SUBJECT_BYTES_MAX or slug.count("/") >= PARTS_MAX:
        return False
    return len(SUBJECT_PREFIX) + SOURCE_CHARACTERS_MAX + 1 + len(encode_slug(slug)) <= SUBJECT_BYTES_MAX


def key_of_subject(subject: str) -> PageKey:
    """The page that a subject of the log is about: the exact inverse of `subject_of`.

    Raises:
        InvalidArgument: `SLUG_INVALID` when it is no subject of a page.
    """
    source, _, encoded = subject.removeprefix(SUBJECT_PREFIX).partition(".")
    if subject.startswith(SUBJECT_PREFIX) and _SOURCE.fullmatch(source):
        tokens = encoded.split(".")
        if all(_TOKEN.fullmatch(token) for token in tokens):
            try:
                slug = "/".join(_ESCAPE.sub(_unescape, token) for token in tokens)
            except UnicodeDecodeError:
                slug = ""
            key = PageKey(source, slug)
            if slug and subject_of(key) == subject:
                return key
    raise InvalidArgument("SLUG_INVALID", f"{subject[:80]!r} is no subject of a page", field="subject", value=subject)


def code_point(character: str) -> str:
    """A character as people look it up: `U+202E RIGHT-TO-LEFT OVERRIDE`."""
    return f"U+{ord(character):04X} {unicodedata.name(character, 'CONTROL CHARACTER')}"


class PlannedSlug(NamedTuple):
    """Where one imported file goes, and what its author should know about that."""

    path: str
    slug: str
    finding: Finding | None


def slug_from_path(path: str) -> str:
    """The slug of a file by its relative path alone. Never empty, always canonical, the same for NFC and NFD.

    Letters, marks and digits of every script, `.`, `_`, `-` and `+` stay; other symbols go and spaces become `-`;
    `.md` goes, the extension of other files stays. What leaves no letter or digit, or is too long for a subject,
    becomes `<stem>-<8 hex of SHA-256 of the NFC path>`.
    """
    slug = _cleaned(path)
    return slug if slug is not None else suffixed_slug(path)


def suffixed_slug(path: str, *, exact: bool = False, digits: int = 8) -> str:
    """The slug that keeps a path apart from every other: `<folder>/<stem>-<hex of SHA-256 of the NFC path>`.

    Args:
        path: As `slug_from_path` takes it.
        exact: Hash the path as it is spelled, to keep even two spellings of one path apart.
        digits: Of the hash.
    """
    normal = unicodedata.normalize("NFC", path)
    tail = hashlib.sha256((path if exact else normal).encode("utf-8", "surrogatepass")).hexdigest()[:digits]
    parts = [part for part in map(_part, _SEPARATOR.split(_PAGE_EXTENSION.sub("", normal))) if part]
    last = _part(_SEPARATOR.split(_PAGE_EXTENSION.sub("", normal))[-1])
    folders, stem = (parts[:-1], last) if last else (parts, "page")
    slug = fold_slug("/".join([*folders, f"{stem}-{tail}"]))
    if subject_fits(slug):
        return slug
    # Too deep or too long: the first folders say most about where it was, the hash says the rest.
    folders = folders[: PARTS_MAX // 4]
    slug = fold_slug("/".join([*(_cut(folder, STEM_BYTES_MAX // 4) for folder in folders), f"{_cut(stem)}-{tail}"]))
    return slug if subject_fits(slug) else f"page-{tail}"


def wanted_slugs(path: str, declared: str | None = None) -> tuple[str, ...]:
    """Every slug that `plan_slugs` may give a path: what to look up before the call."""
    plain, _ = _wanted(path, declared)
    return tuple(dict.fromkeys((plain, suffixed_slug(path), suffixed_slug(path, exact=True))))


def plan_slugs(paths: Sequence[tuple[str, str | None]], taken: Mapping[str, str]) -> list[PlannedSlug]:
    """Give every file of an import its slug, in the order given; no two get the same.

    The outcome depends on the set of paths, not on their order. Of the paths that want one slug, the one whose page
    has it already keeps it; else the one spelled exactly like the slug gets it, else the first in code point order;
    the others get a suffix. The path is the authority: a slug declared in frontmatter counts when it is another
    spelling of the path's own, or when the path has no letter or digit to make one from.

    Args:
        paths: Relative path of each file, and the `slug` its frontmatter declares or None.
        taken: The slugs of `wanted_slugs` that live pages have, with the path each page was imported from; a page that
            was put has the path "" and is taken to be the same page, so that a put and an export meet again.
    """
    groups: defaultdict[str, list[int]] = defaultdict(list)
    findings: list[Finding | None] = []
    slugs: list[str] = [""] * len(paths)
    used: set[str] = set()
    for index, (path, declared) in enumerate(paths):
        slug, finding = _wanted(path, declared)
        findings.append(finding)
        own = suffixed_slug(path)
        if own != slug and taken.get(own) == unicodedata.normalize("NFC", path) and own not in used:
            # It lost a clash before: its page keeps that slug though the plain one may be free by now.
            slugs[index] = own
            used.add(own)
        else:
            groups[slug].append(index)
    for slug, indices in sorted(groups.items()):
        winner = _winner(slug, [(index, paths[index][0]) for index in indices], taken.get(slug))
        if winner is not None and slug not in used:
            slugs[winner] = slug
            used.add(slug)
        for index in sorted(indices, key=lambda index: paths[index][0]):
            if not slugs[index]:
                slugs[index] = _apart(paths[index][0], used, taken)
                used.add(slugs[index])
                findings[index] = _clash(slug, slugs[index])
    return [PlannedSlug(path, slugs[i], findings[i]) for i, (path, _) in enumerate(paths)]


def _fold_spaces(part: str) -> str:
    """One part with every run of spaces and hyphens that holds a space as one hyphen, or as nothing at its ends."""
    if part.isalnum():
        return part
    return _SPACE.sub(
        lambda run: run[0] if run[0].count("-") == len(run[0]) else "-" * (run.start() > 0 and run.end() < len(part)),
        part,
    )


def _escape(match: re.Match[str]) -> str:
    return "".join(f"={byte:02X}" for byte in match[0].encode())


def _unescape(match: re.Match[str]) -> str:
    return bytes.fromhex(match[0].replace("=", "")).decode()


def _invalid(field: str, value: str, why: str, next_step: str) -> InvalidArgument:
    return InvalidArgument(
        "SLUG_INVALID", f"{value[:80]!r} cannot be a slug: {why}", field=field, value=value, next_step=next_step
    )


def _wanted(path: str, declared: str | None) -> tuple[str, Finding | None]:
    plain = _cleaned(path)
    wish = slug_or_none(declared) if declared and declared.strip() else None
    if plain is not None:
        if wish is None or wish == plain or slug_from_path(wish) == plain:
            return plain, None
        return plain, _finding(
            "SLUG_DECLARED_UNUSED",
            f"the file declares the slug {wish!r}, but its path makes it {plain!r}",
            "Rename the file if the page should move; the declared slug finds it as an alias.",
        )
    if wish is not None:
        return wish, _finding(
            "SLUG_DECLARED", f"the path makes no slug, so the declared {wish!r} is used", "Nothing needs to be done."
        )
    slug = suffixed_slug(path)
    return slug, _finding(
        "SLUG_GENERATED",
        f"the path is too long or has no letter or digit, so the slug is {slug!r}",
        "Declare `slug:` in the frontmatter or rename the file to choose another.",
    )


def _winner(slug: str, group: Sequence[tuple[int, str]], holder: str | None) -> int | None:
    """Which of the paths that want a slug gets it; None when a page of another path has it."""
    spelled = sorted((unicodedata.normalize("NFC", path), path, index) for index, path in group)
    if holder:
        return next((index for normal, _, index in spelled if normal == holder), None)
    exact = (index for normal, _, index in spelled if _PAGE_EXTENSION.sub("", normal) == slug)
    return next(exact, spelled[0][2])


def _apart(path: str, used: set[str], taken: Mapping[str, str]) -> str:
    normal = unicodedata.normalize("NFC", path)
    candidates = [suffixed_slug(path), suffixed_slug(path, exact=True), suffixed_slug(path, exact=True, digits=64)]
    free = (slug for slug in candidates if slug not in used and taken.get(slug, normal) in (normal, ""))
    return next(free, candidates[-1])


def _clash(slug: str, given: str) -> Finding:
    return _finding(
        "SLUG_CLASH",
        f"another file has the slug {slug!r}, so this one is {given!r}",
        "Rename one of the two files to choose another slug.",
    )


def _finding(code: str, message: str, next_step: str) -> Finding:
    return Finding(code=code, line=0, message=message, next_step=next_step)


def _cleaned(path: str) -> str | None:
    """The slug of a path, or None when its name leaves nothing or it is too long."""
    parts = [_part(part) for part in _SEPARATOR.split(_PAGE_EXTENSION.sub("", unicodedata.normalize("NFC", path)))]
    if not parts[-1]:
        return None
    slug = fold_slug("/".join(part for part in parts if part))
    return slug if subject_fits(slug) else None


def _part(part: str) -> str:
    """One folder or file name with only what a slug made from a path keeps; empty without a letter or digit."""
    part = _QUOTE.sub("", _DROPPED.sub("", part))
    if part.isascii():
        part = _SYMBOL.sub(" ", part)
    else:
        # Combining marks carry the vowels of many scripts, and `\\w` knows none of them.
        part = "".join(c if c in "._+-" or unicodedata.category(c)[0] in "LMN" else " " for c in part)
    part = fold_slug(part)
    return part if any(map(str.isalnum, part)) else ""


def _cut(part: str, limit: int = STEM_BYTES_MAX) -> str:
    kept = part[:limit]
    while len(encode_slug(kept)) > limit:
        kept = kept[: len(kept) * 3 // 4]
    return kept.strip("-. ") or "page"
