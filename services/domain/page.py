"""What a page is once it is read: the values that the parser makes and every projection stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

FrontmatterValue = str | int | float | bool | None | tuple["FrontmatterValue", ...] | Mapping[str, "FrontmatterValue"]
"""YAML by the 1.2 core schema, with lists as tuples; dates and everything else textual stay exactly as typed."""


class ChunkKind(StrEnum):
    """What part of a page a chunk is cut from."""

    COMPILED_TRUTH = "compiled_truth"
    TIMELINE = "timeline"
    FENCED_CODE = "fenced_code"
    CODE = "code"


class LinkProvenance(StrEnum):
    """Who made a link. A put replaces exactly the text and frontmatter links of its page."""

    TEXT = "text"
    FRONTMATTER = "frontmatter"
    MENTION = "mention"
    MANUAL = "manual"


class Visibility(StrEnum):
    """Who may know that a page exists."""

    WORLD = "world"
    PRIVATE = "private"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something in a page that its author should know; it never refuses the page."""

    code: str
    """Upper snake case, one cause each, such as `FRONTMATTER_KEY_UNREADABLE`."""
    line: int
    """From 1; 0 when it concerns no single line."""
    message: str
    next_step: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A passage of a page, the unit of search. Its id is the page id and its ordinal."""

    ordinal: int
    """From 0, in the order of the page."""
    kind: ChunkKind
    text: str
    heading: str = ""
    """The nearest heading above, without its marks; empty before the first."""
    start_line: int
    """From 1, in the page as accepted."""
    language: str = ""
    """Of code, as its fence or its file name says; empty for prose."""
    hash: str
    """Hex SHA-256 of what is embedded: kind, title, heading and text. Equal hashes need no new vector."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkReference:
    """A link as a page's own text or frontmatter makes it, with the name as written: graph resolves it when read."""

    name: str
    """The slug or title it names, cleaned of fragment, alias and escapes; a relative path is already made a slug."""
    source: str
    """The source to resolve in: the page's own, or the one a qualified name gives."""
    link_type: str
    """Such as `founded`, `invested_in`, `works_at`, `attended`, `mentions`."""
    provenance: LinkProvenance
    inward: bool = False
    """True when the field means that the named page points at this one, as `investors:` on a company does."""
    titled: bool = False
    """True when the name may be a title or alias; False when it was written as a path."""
    display: str = ""
    fragment: str = ""
    embed: bool = False
    context: str = ""
    """The sentence around it, at most 240 characters, for evidence."""
    line: int = 0
    """From 1; 0 when unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPage:
    """A page as read by `services.domain.parser.parse_page`: a pure function of source, slug, path and bytes."""

    source: str
    slug: str
    title: str
    """Never empty: frontmatter, else the first heading, else the file name made readable."""
    type: str
    """Such as person, company, meeting, concept, note, code; open: other words are kept as written."""
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    date: str = ""
    """ISO 8601 with the precision that is known (2026, 2026-03, 2026-03-01); empty when unknown."""
    date_source: str = ""
    """Where the date comes from: `frontmatter`, `path`, or empty."""
    visibility: Visibility = Visibility.WORLD
    frontmatter: Mapping[str, FrontmatterValue] = field(default_factory=dict)
    compiled_truth: str = ""
    timeline: str = ""
    chunks: tuple[Chunk, ...] = ()
    links: tuple[LinkReference, ...] = ()
    findings: tuple[Finding, ...] = ()
