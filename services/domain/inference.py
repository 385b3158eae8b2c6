"""What a page says about itself: title, type, tags, aliases, date and visibility, and where it does not, its path."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from services.domain.dates import path_date, typed_date, without_date
from services.domain.frontmatter import OPEN_WORDS, VISIBILITY_KEYS, Frontmatter
from services.domain.languages import code_language
from services.domain.markdown import Layout
from services.domain.names import identity, name_key
from services.domain.page import Finding, FrontmatterValue, Visibility
from services.domain.slugs import fold_slug

TITLE_CHARACTERS_MAX = 300
TAGS_MAX = 256
ALIASES_MAX = 256
"""Far above any real page; what a page sets costs every index."""

FOLDER_TYPES = {
    "people": "person", "person": "person", "contacts": "person", "人物": "person", "人": "person", "联系人": "person",
    "companies": "company", "company": "company", "orgs": "company", "organizations": "company", "公司": "company",
    "企业": "company", "机构": "company", "组织": "company", "funds": "company", "基金": "company",
    "meetings": "meeting", "meeting": "meeting", "会议": "meeting", "会议纪要": "meeting", "会议记录": "meeting",
    "concepts": "concept", "concept": "concept", "ideas": "concept", "概念": "concept", "想法": "concept",
    "notes": "note", "note": "note", "笔记": "note", "随笔": "note", "journal": "note", "daily": "note", "日记": "note",
    "projects": "project", "project": "project", "项目": "project",
    "reading": "reading", "books": "reading", "articles": "reading", "papers": "reading", "阅读": "reading",
    "读书": "reading", "书籍": "reading", "chat": "chat", "chats": "chat", "conversations": "chat", "聊天": "chat",
    "对话": "chat", "bookmarks": "bookmark", "bookmark": "bookmark", "收藏": "bookmark", "书签": "bookmark",
    "writing": "writing", "essays": "writing", "drafts": "writing", "写作": "writing", "文章": "writing",
    "deals": "deal", "deal": "deal", "交易": "deal", "media": "media", "媒体": "media", "sources": "source",
    "source": "source", "来源": "source", "资料": "source", "places": "place", "地点": "place", "events": "event",
    "活动": "event", "archive": "archive", "归档": "archive", "存档": "archive", "code": "code", "代码": "code",
    "emails": "email", "email": "email", "邮件": "email", "products": "product", "产品": "product",
}  # fmt: skip
"""The type of pages in a folder of this name, wherever it stands; of several the innermost says it."""

TYPE_WORDS = {
    "people": "person", "人物": "person", "人": "person", "个人": "person", "companies": "company", "公司": "company",
    "企业": "company", "meetings": "meeting", "会议": "meeting", "concepts": "concept", "概念": "concept",
    "notes": "note", "笔记": "note", "projects": "project", "项目": "project", "writings": "writing", "写作": "writing",
    "bookmarks": "bookmark", "书签": "bookmark", "收藏": "bookmark", "阅读": "reading", "交易": "deal",
    "产品": "product", "活动": "event", "事件": "event",
}  # fmt: skip
"""Plurals and Chinese words for the types we know; every other word is kept as written."""

_LIST = re.compile(r"[,，、;；\n]")
_PAGE_EXTENSION = re.compile(r"\.(?:md|mdx|markdown)\Z", re.IGNORECASE)
_WORD_JOINT = re.compile(r"[-_]+")


class About(NamedTuple):
    """What was found out about a page."""

    title: str
    type: str
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    date: str
    date_source: str
    visibility: Visibility
    findings: tuple[Finding, ...]


def infer(slug: str, path: str, front: Frontmatter, layout: Layout) -> About:
    """Read what a page says about itself; the path it was imported from, else its slug, says the rest."""
    where = path or slug
    findings: list[Finding] = []
    date, date_source = _date(where, front, findings)
    kind = _type(where, slug, front)
    title = _title(where, front, layout, findings)
    return About(
        title=title,
        type=kind,
        tags=_tags(front),
        aliases=_aliases(front, title, slug, path),
        date=date,
        date_source=date_source,
        visibility=_visibility(front, findings),
        findings=tuple(findings),
    )


def texts(value: FrontmatterValue) -> Iterator[str]:
    """The strings of a field that holds one or several, however they are nested; numbers as typed, no null."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, (int, float)):
        yield str(value)
    elif isinstance(value, tuple):
        for item in value:
            yield from texts(item)


def listed(value: FrontmatterValue) -> list[str]:
    """The items of a list field: a list, a list somebody turned into a string, or words between commas."""
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("[") and text.endswith("]") and not text.startswith("[["):
            return _unlisted(text)
        return _LIST.split(value)
    return [text for item in texts(value) for text in ([item] if not item.strip().startswith("[") else listed(item))]


def readable_name(path: str) -> str:
    """A file name as a title: without extension and leading date, spaces for `-` and `_`, capitals when it has none."""
    name = path.rpartition("/")[2]
    stem, dot, extension = name.rpartition(".")
    if dot and stem and extension.lower() in ("md", "mdx", "markdown"):
        name = stem
    elif code_language(path):
        return identity(name) or name
    words = identity(_WORD_JOINT.sub(" ", without_date(name)))
    if not words:
        return identity(name) or "Untitled"
    if words[0].isdigit():
        return words if without_date(name) != name else identity(name)
    return words.title() if words.islower() and words.isascii() and "'" not in words else words


def _title(where: str, front: Frontmatter, layout: Layout, findings: list[Finding]) -> str:
    declared = front.get("title", "标题", "name", "名称")
    if declared is not None:
        title = identity(" ".join(texts(declared)))
        if title:
            return title[:TITLE_CHARACTERS_MAX]
        line = front.lines.get("title", 0)
        message = "the title has no visible character"
        findings.append(
            Finding(code="TITLE_EMPTY", line=line, message=message, next_step="Write a title or remove it.")
        )
    for heading in layout.headings:
        if heading.level == 1 and identity(heading.text):
            return identity(heading.text)[:TITLE_CHARACTERS_MAX]
    if layout.headings and not layout.text[layout.start : layout.headings[0].start].strip():
        first = identity(layout.headings[0].text)
        if first:
            return first[:TITLE_CHARACTERS_MAX]
    return readable_name(where)[:TITLE_CHARACTERS_MAX]


def _type(where: str, slug: str, front: Frontmatter) -> str:
    declared = identity(" ".join(texts(front.get("type", "类型"))))
    if declared:
        word = declared.casefold()
        return TYPE_WORDS.get(word) or (word if word in _KNOWN_TYPES else declared)
    for place in (where, slug):
        for folder in reversed(place.split("/")[:-1]):
            found = FOLDER_TYPES.get(folder.casefold())
            if found and found != "archive":
                return found
    return "note"


def _tags(front: Frontmatter) -> tuple[str, ...]:
    tags = (tag.strip().lstrip("#") for name in ("tags", "tag", "标签") for tag in listed(front.get(name)))
    return tuple(_distinct(tags, TAGS_MAX))


def _aliases(front: Frontmatter, title: str, slug: str, path: str) -> tuple[str, ...]:
    names = [name for key in ("aliases", "alias", "别名", "又名", "曾用名") for name in listed(front.get(key))]
    # A slug that the path overruled still leads here.
    names += [name for name in texts(front.get("slug")) if name_key(name) != name_key(slug)]
    # Vaults link by file name; where the slug could not keep it whole, the name itself leads here.
    stem = _PAGE_EXTENSION.sub("", path.rpartition("/")[2])
    if stem and fold_slug(stem) != slug.rpartition("/")[2]:
        names.append(stem)
    return tuple(_distinct(names, ALIASES_MAX, known=(title,)))


def _distinct(names: Iterable[str], limit: int, known: tuple[str, ...] = ()) -> list[str]:
    seen = {name_key(name) for name in known}
    kept: list[str] = []
    for name in names:
        name = identity(name).strip("\"'`“”‘’ ")
        key = name_key(name)
        if key and key not in seen and len(kept) < limit:
            seen.add(key)
            kept.append(name)
    return kept


def _unlisted(text: str) -> list[str]:
    """The items of `["a","b"]` or `[a, b]` that came as a string."""
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        return [item.strip().strip("\"'") for item in _LIST.split(text[1:-1])]
    return [str(item) for item in items if isinstance(item, (str, int, float))]


def _date(where: str, front: Frontmatter, findings: list[Finding]) -> tuple[str, str]:
    for key in ("event_date", "date", "日期", "published", "发布日期", "created", "创建日期"):
        for text in texts(front.get(key)):
            date = typed_date(text)
            if date:
                return date, "frontmatter"
            message = f"{key} {text[:40]!r} is no date that exists"
            step = "Write it as YYYY-MM-DD, YYYY-MM or YYYY."
            findings.append(Finding(code="DATE_INVALID", line=front.lines.get(key, 0), message=message, next_step=step))
    date = path_date(where)
    return (date, "path") if date else ("", "")


def _visibility(front: Frontmatter, findings: list[Finding]) -> Visibility:
    """The strictest of what the page's visibility keys say."""
    said = [_said(front, key, value, findings) for key in VISIBILITY_KEYS if (value := front.get(key)) is not None]
    return Visibility.PRIVATE if Visibility.PRIVATE in said else Visibility.WORLD


def _said(front: Frontmatter, key: str, value: FrontmatterValue, findings: list[Finding]) -> Visibility:
    word = identity(" ".join(texts(value))).casefold().strip("\"'`")
    if word in OPEN_WORDS:
        return Visibility.WORLD
    if word not in ("private", "私密", "私有", "仅自己"):
        # What the author meant is unknown, so the page is shown to fewer rather than to more.
        message = f"{key} {word[:40]!r} is neither world nor private, so the page is private"
        step = "Write `visibility: world` or `visibility: private`."
        line = front.lines.get(key, 0)
        findings.append(Finding(code="VISIBILITY_UNKNOWN", line=line, message=message, next_step=step))
    return Visibility.PRIVATE


_KNOWN_TYPES = frozenset(FOLDER_TYPES.values()) | {
    "conversation",
    "analysis",
    "guide",
    "diary",
    "team",
    "fund",
    "media",
}
