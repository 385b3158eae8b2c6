"""The links of a page: those in its text, those in its frontmatter, and what each of them means."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from services.domain.frontmatter import Frontmatter
from services.domain.inference import FOLDER_TYPES, About
from services.domain.link_fields import field_links
from services.domain.link_targets import Target, markdown_target, wikilink_target
from services.domain.link_types import MARK, STATING_ROLES, Setting, TypedLink, setting_of, typed_links
from services.domain.link_types_chinese import chinese
from services.domain.link_types_english import english
from services.domain.markdown import Layout, plain_words
from services.domain.names import name_key
from services.domain.page import Finding, LinkProvenance, LinkReference
from services.domain.relations import MENTIONS, FieldLink, allows, field_link, role_of_name, role_of_type
from services.domain.slugs import fold_slug

LINKS_MAX = 2_000
"""Links of one page: an index page of a large vault stays below; a generated list must not flood the graph."""

SENTENCES_MAX = 400
"""Sentences of one page that are read for relations; a page about one thing has far fewer with links in them."""

CONTEXT_CHARACTERS_MAX = 240

FOLDER_CHARACTERS_MAX = 64
"""Of the first part of a slug in running text."""

_WIKILINK = re.compile(r"\[\[([^\[\]\n]{1,512})\]\]")
_MARKDOWN = re.compile(
    r"\[((?:[^\[\]\\\n]|\\.|\[\[[^\[\]\n]{0,256}\]\]|\[[^\[\]\n]{0,256}\]){0,512}+)\]"
    r"\((<[^<>\n]{1,1024}>|[^\s()<>]{1,1024}(?:\([^\s()]{0,256}\)[^\s()]{0,512}){0,3})(?:[ \t]+(?:\""
    r"[^\"\n]{0,256}\"|'[^'\n]{0,256}'))?[ \t]*\)"
)
_DEFINITION = re.compile(r"^ {0,3}\[([^\[\]\n^]{1,256})\]:[ \t]+(\S{1,1024})", re.MULTILINE)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s<>\])}]+|[\w.+-]+@[\w-]+\.[\w.-]+")
_BARE = re.compile(r"(?<![\w/.\\@#:~%=&+\-])[^\W\d_][\w-]*+(?:/[\w-]++(?:\.[\w-]++)*+)++(?!/)")
_SLUGGISH = re.compile(r"[a-z][a-z0-9_-]*(?:/[a-z0-9_]+)*/[a-z0-9]+(?:-[a-z0-9]+)+")
_SENTENCE_END = re.compile(  # The class comes first so that `re` runs over everything else at once.
    r"[.!?。！？\n](?:(?<=[.!?])(?<!\bMr\.)(?<!\bDr\.)(?<!\bMs\.)(?<!\bSt\.)(?<!\bNo\.)(?<!\bCo\.)(?<!\bvs\.)"
    r"(?<!\bMrs\.)(?<!\bInc\.)(?<!\bLtd\.)(?<!\be\.g\.)(?<!\bi\.e\.)[\"'”’)\]]*(?=\s|\Z)"
    r"|(?<=[。！？])[”’」』）)]*"
    r"|(?<=\n)(?=[ \t]*\n|[ \t>]*(?:[-*+|#]|\d{1,3}[.)]\s|[^\n:：\ue000]{1,40}[:：])))"
)
_SENTENCE_MARK = re.compile(r"[.!?。！？\n]")
"""What each match of _SENTENCE_END begins with."""
_LABEL = re.compile(
    rf"[ \t>|]*(?:[-*+][ \t]+|\d{{1,3}}[.)][ \t]+)?(?:\*\*|__|\*|_)?([^\n:：*_|{MARK}]{{1,40}}?)(?:\*\*|"
    rf"__|\*|_)?[ \t]*(?:[:：]|\|)(?:\*\*|__)?"
)
_CJK = re.compile("[\u3400-\u9fff]")
_RULES = (english, chinese)
_LISTED = re.compile(rf"[ \t>]*(?:[-*+]|\d{{1,3}}[.)])[ \t]+[^{MARK}\n]{{0,3}}{MARK}")


_MENTIONED = ((MENTIONS, False),)
"""The meaning of a link whose sentence states none."""


class _Found(NamedTuple):
    """A link in the text: where it stands and what it names."""

    start: int
    end: int
    target: Target
    embed: bool


def extract_links(
    *, source: str, slug: str, path: str, about: About, front: Frontmatter, layout: Layout
) -> tuple[tuple[LinkReference, ...], tuple[Finding, ...]]:
    """All links of a page, text before frontmatter, each meaning once; and a finding when there are too many.

    Links to the page itself are left out. A link that states a relation stands for its mere mentions.
    """
    folder = (path or slug).rpartition("/")[0]
    own = {name_key(name) for name in (about.title, *about.aliases)}
    found = [link for link in _found(layout, source, folder) if not _self(link.target, source, slug, own)]
    links = list(_typed(found[:LINKS_MAX], about, layout)) if found else []
    fields = field_links(front, source=source, folder=folder, role=role_of_type(about.type))
    links += [link for link in fields if not (link.source == source and _named(link.name, slug, own, link.titled))]
    findings: tuple[Finding, ...] = ()
    if len(found) > LINKS_MAX or len(links) > LINKS_MAX:
        message = f"only the first {LINKS_MAX} links are kept"
        findings = (Finding(code="LINKS_LIMIT", line=0, message=message, next_step="Split the page."),)
    return _distinct(links)[:LINKS_MAX], findings


def _self(target: Target, source: str, slug: str, own: set[str]) -> bool:
    return target.source == source and _named(target.name, slug, own, target.titled)


def _named(name: str, slug: str, own: set[str], titled: bool) -> bool:
    return fold_slug(name) == slug or (titled and name_key(name) in own)


def _distinct(links: list[LinkReference]) -> tuple[LinkReference, ...]:
    stated = {
        (link.source, link.name)
        for link in links
        if link.link_type != MENTIONS and link.provenance is LinkProvenance.TEXT
    }
    kept: dict[tuple[str, str, str, bool, bool], LinkReference] = {}
    for link in links:
        text = link.provenance is LinkProvenance.TEXT
        if text and link.link_type == MENTIONS and (link.source, link.name) in stated:
            continue
        kept.setdefault((link.source, link.name, link.link_type, text, link.inward), link)
    return tuple(kept.values())


def _found(layout: Layout, source: str, folder: str) -> list[_Found]:
    """The links in the text in order; where one stands inside another, the outer one alone."""
    prose = layout.prose
    found: list[_Found] = []
    spans: list[tuple[int, int]] = []
    if "](" in prose:
        for match in _MARKDOWN.finditer(prose):
            spans.append(match.span())
            target = markdown_target(match[2], plain_words(match[1]), source=source, folder=folder)
            if target:
                embed = prose.startswith("!", max(0, match.start() - 1))
                found.append(_Found(match.start() - embed, match.end(), target, embed))
    if "[[" in prose:
        outer = sorted(spans)
        for match in _WIKILINK.finditer(prose):
            if outer and _inside(outer, match.start()):
                continue
            spans.append(match.span())
            target = wikilink_target(match[1], source=source, folder=folder)
            if target:
                embed = prose.startswith("!", max(0, match.start() - 1))
                found.append(_Found(match.start() - embed, match.end(), target, embed))
    if "]:" in prose:
        for match in _DEFINITION.finditer(prose):
            spans.append(match.span())
            target = markdown_target(match[2], match[1], source=source, folder=folder)
            if target:
                found.append(_Found(match.start(), match.end(), target, False))
    if "/" in prose:
        found += _bare(prose, sorted(spans), source, folder)
    found.sort(key=lambda link: link.start)
    return found


def _bare(prose: str, spans: list[tuple[int, int]], source: str, folder: str) -> Iterator[_Found]:
    """Slugs that stand in the text without brackets, when their first part is a folder we know or they look like it."""
    if "://" in prose or "@" in prose:
        spans = sorted(spans + [match.span() for match in _URL.finditer(prose)])
    own_root = folder.partition("/")[0].casefold()
    after_all = len(prose) + 1
    position = prose.find("/")
    while position >= 0:
        index = bisect_right(spans, (position, after_all))
        if index and position < spans[index - 1][1]:
            # The next span may lie within this one, and what follows it there has always been looked at.
            skipped = spans[index - 1][1] if index == len(spans) else min(spans[index - 1][1], spans[index][0])
            position = prose.find("/", skipped)
            continue
        begin = position
        low = max(0, position - FOLDER_CHARACTERS_MAX)
        while begin > low and (prose[begin - 1].isalnum() or prose[begin - 1] in "-_"):
            begin -= 1
        match = _BARE.match(prose, begin)
        if not match or match.end() <= position:
            position = prose.find("/", position + 1)
            continue
        name = match[0]
        root = name.partition("/")[0].casefold()
        known = root in FOLDER_TYPES or (own_root and root == own_root) or _SLUGGISH.fullmatch(name)
        if known:
            target = wikilink_target(name, source=source, folder=folder)
            if target:
                yield _Found(begin, match.end(), target, False)
        position = prose.find("/", match.end())


def _inside(spans: list[tuple[int, int]], position: int) -> bool:
    index = bisect_right(spans, (position, len(spans) and spans[-1][1]))
    return index > 0 and spans[index - 1][0] <= position < spans[index - 1][1]


def _typed(found: list[_Found], about: About, layout: Layout) -> Iterator[LinkReference]:
    """Each link with the meanings its sentence or its label gives it."""
    role = role_of_type(about.type)
    setting = setting_of(role, (about.title, *about.aliases))
    text, starts = _marked(layout.prose, found)
    line, position = 1, 0
    for sentences, (first, last, begin, end) in enumerate(_sentences(text, starts)):
        begin = max(layout.start, begin)
        group = found[first:last]
        meanings: list[TypedLink] = []
        if setting.role in STATING_ROLES and sentences < SENTENCES_MAX:
            meanings = _meanings(text[begin:end], group, setting, layout)
        shown = max(0, begin - starts[first] + group[0].start), group[-1].end + max(0, end - starts[last - 1] - 1)
        words = _reading(layout.text, *shown) if shown[1] - shown[0] <= 4 * CONTEXT_CHARACTERS_MAX else ""
        for number, link in enumerate(group):
            line += layout.text.count("\n", position, link.start)
            position = link.start
            target = link.target
            context = _context(words or _reading(layout.text, *_near(link, *shown)), target)
            stated = [(m.link_type, m.inward) for m in meanings if m.number == number] if meanings else ()
            for link_type, inward in stated or _MENTIONED:
                yield LinkReference(
                    name=target.name,
                    source=target.source,
                    link_type=link_type,
                    provenance=LinkProvenance.TEXT,
                    inward=inward,
                    titled=target.titled,
                    display=target.display,
                    fragment=target.fragment,
                    embed=link.embed,
                    context=context,
                    line=line,
                )


def _sentences(text: str, starts: list[int]) -> Iterator[tuple[int, int, int, int]]:
    """The sentences with marks: number of the first mark and of the first after it, begin and end in the text.

    Only what stands around marks is looked at: most of a page is in no sentence with a link.
    """
    backwards = text[::-1]
    after = first = low = 0
    while first < len(starts):
        start = starts[first]
        if start >= after:
            low = max(after, text.rfind("\n\n", after, start))
            found = text.find("\n\n", start)
            after = found if found >= 0 else len(text)
        begin = low = _sentence_begin(text, backwards, low, start)
        match = _SENTENCE_END.search(text, start, after)
        end = match.end() if match else after
        last = max(bisect_left(starts, end, first), first + 1)
        yield first, last, begin, end
        first, low = last, end


def _sentence_begin(text: str, backwards: str, low: int, start: int) -> int:
    """The last sentence end at or before the mark at `start`, but not before `low`."""
    size = len(text)
    high = start
    while mark := _SENTENCE_MARK.search(backwards, size - high, size - low):
        high = size - mark.end()
        # The mark of the link is let in, so that what stands before it does not look like the end of the text.
        match = _SENTENCE_END.match(text, high, start + 1)
        if match:
            return match.end()
    return low


def _marked(prose: str, found: list[_Found]) -> tuple[str, list[int]]:
    """The text with MARK in place of each link, and where the marks are."""
    if MARK in prose:
        prose = prose.replace(MARK, " ")
    pieces: list[str] = []
    starts: list[int] = []
    position = length = 0
    for link in found:
        piece = prose[position : max(position, link.start)]
        pieces += (piece, MARK)
        starts.append(length + len(piece))
        length += len(piece) + 1
        position = max(position, link.end)
    pieces.append(prose[position:])
    return "".join(pieces), starts


def _meanings(sentence: str, group: list[_Found], setting: Setting, layout: Layout) -> list[TypedLink]:
    roles = [role_of_name(link.target.name) for link in group]
    label = _label(sentence, layout, group[0].start)
    if label and setting.role in label.roles:
        sides = [(role, setting.role) if label.inward else (setting.role, role) for role in roles]
        return [
            TypedLink(number=number, link_type=label.link_type, inward=label.inward)
            for number, (subject, target) in enumerate(sides)
            if allows(label.link_type, subject, target)
        ]
    only_english = sentence.replace(MARK, "").isascii() or not _CJK.search(sentence)
    rules = _RULES[:1] if only_english else _RULES
    return list(dict.fromkeys(typed_links(sentence, roles, setting, rules)))


def _label(sentence: str, layout: Layout, offset: int) -> FieldLink | None:
    """What `Investors: A, B` says, or a list item under a heading `Investors`."""
    mark = sentence.find(MARK)
    begin = sentence.rfind("\n", 0, mark) + 1
    lead = sentence[begin:mark]
    if ":" in lead or "：" in lead or "|" in lead:
        match = _LABEL.match(sentence, begin)
        if match:
            return field_link(match[1])
    return field_link(layout.heading_at(offset)) if _LISTED.match(sentence) else None


def _context(words: str, target: Target) -> str:
    """The sentence around a link as its reader sees it, or what of it is near the link."""
    if len(words) <= CONTEXT_CHARACTERS_MAX:
        return words
    at = max(0, words.find(target.display or target.name) - CONTEXT_CHARACTERS_MAX // 2)
    return words[at : at + CONTEXT_CHARACTERS_MAX].strip()


def _near(link: _Found, begin: int, end: int) -> tuple[int, int]:
    """What of a span is near a link; all of it when it is short."""
    if end - begin <= 4 * CONTEXT_CHARACTERS_MAX:
        return begin, end
    return max(begin, link.start - CONTEXT_CHARACTERS_MAX), min(end, link.end + CONTEXT_CHARACTERS_MAX)


def _reading(text: str, begin: int, end: int) -> str:
    """Some text on one line, as its reader sees it."""
    return " ".join(plain_words(text[begin:end]).split())
