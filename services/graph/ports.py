"""What graph needs of an engine that keeps pages, their names and their links: values, and one small protocol.

A store holds two kinds of documents, each guarded by the revision it came from: what a slug leads to, and what a page
says (its titles and its links). Links keep the name as written; which page a name leads to follows from the documents
held now, so the order in which changes arrive never matters.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from services.domain.page import LinkProvenance, LinkReference
from services.domain.records import PageId, PageKey
from services.graph.naming import NameKind
from services.runtime.projection_store import ProjectionStore

NO_PAGE = PageId("")


class Direction(StrEnum):
    """Which way links are followed."""

    OUT = "out"
    IN = "in"
    BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """What the caller of a read may see. Every other page is, for this read, a page that does not exist."""

    sources: frozenset[str] | None
    """None means every source."""
    private: bool
    """Whether pages with visibility `private` exist for the caller."""

    def within(self, source: str) -> Viewer:
        """The same viewer looking at one source only; a source it may not read stays out of sight."""
        readable = self.sources is None or source in self.sources
        return Viewer(sources=frozenset({source}) if readable else frozenset(), private=self.private)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageEntry:
    """What the graph keeps of a live page."""

    title: str
    type: str
    private: bool
    date: str = ""
    aliases: tuple[str, ...] = ()
    timeline_entries: int = 0
    links: tuple[LinkReference, ...] = ()
    """What its own text and frontmatter make, in the order of the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlugChange:
    """What the newest record of a slug says: a page, the name of a page that moved on, or nothing any more."""

    key: PageKey
    revision: int
    page_id: PageId
    leads: bool = True
    """Whether the slug leads to the page id: True for a live page and a redirect, False for a delete."""
    page: PageEntry | None = None
    """The page, when it lives under this slug."""


class HeldRevision(NamedTuple):
    """What a store holds under a slug, for comparison with the log."""

    key: PageKey
    page_id: PageId
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPage:
    """A page as a link shows it. A ghost is a name that leads to no page this viewer can see."""

    source: str
    slug: str
    """For a ghost the name as written."""
    page_id: PageId = NO_PAGE
    """Empty for a ghost."""
    title: str = ""
    type: str = ""
    revision: int = 0

    @property
    def ghost(self) -> bool:
        """Whether no page stands behind it."""
        return not self.page_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A typed link in its own direction, whichever of the two pages wrote it."""

    from_page: GraphPage
    to_page: GraphPage
    link_type: str
    provenance: LinkProvenance
    name: str
    """As written."""
    made_by: PageId
    context: str = ""
    line: int = 0
    fragment: str = ""
    embed: bool = False
    ambiguous: bool = False
    """Whether the name fits several pages and the rule prefers none."""
    candidates: tuple[GraphPage, ...] = ()
    """Those pages, by slug, at most `naming.CANDIDATES_MAX`; empty unless ambiguous."""


class LinkPosition(NamedTuple):
    """Where a link stands in the order of a list: by type, far slug (or name as written), maker and place there."""

    link_type: str
    far: str
    made_by: str
    ordinal: int


class UnresolvedPosition(NamedTuple):
    """Where a reference stands among the unresolved: by source, slug, maker and place there.

    While a move or a late write is being applied, two pages may be held under one slug.
    """

    source: str
    slug: str
    made_by: str
    ordinal: int


class Hop(NamedTuple):
    """One edge as a walk takes it, from a page of the frontier to a page it may reach."""

    link: Link
    near: GraphPage
    far: GraphPage
    inward: bool
    """Whether the step goes against the link's direction."""


class NameMatch(NamedTuple):
    """A page that has a name."""

    page: GraphPage
    kind: NameKind
    name: str
    """As the page writes it."""


class NameQuestion(NamedTuple):
    """A name as somebody writes it, and where it is looked up."""

    name: str
    source: str | None
    """None looks in every source of the viewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphStats:
    """What is held, as far as a viewer can see."""

    pages: int
    links: int
    """Links of those pages, ghosts included, a page's links to itself not."""
    ghosts: int
    link_types: tuple[tuple[str, int], ...]
    """Most links first, ties by type."""
    timeline_entries: int


class GraphStore(Protocol):
    """One store of pages, names and links.

    Reads show one state between two `apply` calls, never a half of one, and are cancelled promptly. Nothing a viewer
    may not see takes part in anything it reads: not as a node, an end, a candidate or a count.
    """

    async def apply(self, changes: Sequence[SlugChange]) -> None:
        """Brings each slug to what its change says; all changes or none; durable against a power cut on return.

        A document is written unless a newer revision is held under its id (the slug, or the page id), and everything
        else held under the slug from lower revisions is removed, whatever its page id. A page's links from text and
        frontmatter are replaced exactly; links of other provenance stay. Changes may come in any order, repeated and
        late. At most one change per slug. One call at a time.
        """
        ...

    def held(self) -> AsyncIterator[HeldRevision]:
        """What each slug leads to and which pages are held under it, in order of slug; equal rows are one.

        A slug that leads to a page which is not held there shows revision 0 besides.
        """
        ...

    async def find_page(self, key: PageKey, viewer: Viewer) -> GraphPage | None:
        """The page that a canonical slug, current or former, leads to."""
        ...

    async def list_links(
        self,
        page_id: PageId,
        viewer: Viewer,
        *,
        arriving: bool,
        link_types: Sequence[str],
        after: LinkPosition | None,
        limit: int,
    ) -> list[tuple[LinkPosition, Link]]:
        """Links that leave the page or arrive at it, ghosts included, in order of position, from the one after `after`.

        No types means all. A page's links to itself are left out.
        """
        ...

    async def count_backlinks(self, page_ids: Sequence[PageId], viewer: Viewer) -> list[int]:
        """How many distinct pages link to each page, in the order asked; 0 for pages unknown to the viewer."""
        ...

    async def hops(
        self,
        frontier: Sequence[PageId],
        viewer: Viewer,
        *,
        direction: Direction,
        link_types: Sequence[str],
        page_types: Sequence[str],
        limit: int,
    ) -> list[Hop]:
        """The edges that leave a frontier for pages, in order of link type, far slug and near slug; at most `limit`.

        Of several links with the same ends and type the best evidence stands for all: frontmatter before text, then
        the first in its page. Links of provenance `mention` are not followed. No types means all.
        """
        ...

    async def resolve_names(self, questions: Sequence[NameQuestion], viewer: Viewer) -> list[list[NameMatch]]:
        """The pages each name leads to by its strongest kind, by source and slug, at most `naming.CANDIDATES_MAX`."""
        ...

    async def search_names(self, partial: str, viewer: Viewer, limit: int) -> list[NameMatch]:
        """Pages whose slug, title or alias contains or nearly equals a text, best first, each once."""
        ...

    async def list_unresolved(
        self, viewer: Viewer, *, makers: frozenset[str] | None, after: UnresolvedPosition | None, limit: int
    ) -> list[tuple[UnresolvedPosition, Link]]:
        """References that lead to no single page, of visible pages in the sources `makers`, in order of position.

        None means every source that the viewer may read. Where they lead is up to the viewer in any case: a link that
        crosses into another source it may read is resolved.
        """
        ...

    async def stats(self, viewer: Viewer, *, makers: frozenset[str] | None) -> GraphStats:
        """Counts of the visible pages in the sources `makers` and of their links; None means every source."""
        ...

    async def close(self) -> None:
        """Releases the store after running reads ended."""
        ...


class GraphHolder(ProjectionStore, Protocol):
    """The store of a projection that keeps a graph: what is filled from the log, and where reads are answered."""

    @property
    def graph(self) -> GraphStore:
        """The graph."""
