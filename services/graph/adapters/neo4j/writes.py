"""Applying changes: what a batch makes of the documents held, worked out under the store's lock, then written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from services.domain.page import LinkProvenance, LinkReference
from services.domain.records import PageId, PageKey
from services.graph.adapters.neo4j import errors
from services.graph.adapters.neo4j.connection import Parameters, Statements
from services.graph.adapters.neo4j.cypher import PROVENANCE_CODES
from services.graph.adapters.neo4j.grams import text_of
from services.graph.adapters.neo4j.schema import NAME, PAGE, SLUG, STORE, mark_of
from services.graph.naming import folder_of, key_of, page_names, slug_names, spelled_slug
from services.graph.ports import PageEntry, SlugChange

OWN = tuple(PROVENANCE_CODES[p] for p in (LinkProvenance.FRONTMATTER, LinkProvenance.TEXT))

ROWS_MAX = 2_000
"""Rows handed to one statement: some hundred kilobytes, and a plan that stays in memory."""

LOCK = f"""
    MATCH (st:{STORE} {{store: $store}}) SET st.version = st.version + 1
    WITH st WHERE NOT st.removed
    SET st.sources = st.sources + [source IN $sources WHERE NOT source IN st.sources]
    RETURN st.version AS version
"""
"""Writes before it reads, so the lock is taken first: whoever else applies to this store waits here until the end of
the transaction, and then reads what this one wrote. Readers never wait."""

READ_SLUGS = f"""
    UNWIND $keys AS key MATCH (s:{SLUG} {{store: $store, source: key[0], slug: key[1]}})
    RETURN s.source AS source, s.slug AS slug, s.page_id AS page_id, s.revision AS revision, s.redirect AS redirect
"""
READ_PAGES = f"""
    UNWIND $page_ids AS page_id MATCH (p:{PAGE} {{store: $store, page_id: page_id}})
    RETURN p.source AS source, p.slug AS slug, p.page_id AS page_id, p.revision AS revision
"""
READ_PLACES = f"""
    UNWIND $keys AS key MATCH (p:{PAGE} {{store: $store, source: key[0], slug: key[1]}})
    RETURN p.source AS source, p.slug AS slug, p.page_id AS page_id, p.revision AS revision
"""
REMOVE_SLUGS = f"UNWIND $rows AS key MATCH (s:{SLUG} {{store: $store, source: key[0], slug: key[1]}}) DETACH DELETE s"
REMOVE_PAGES = f"UNWIND $rows AS page_id MATCH (p:{PAGE} {{store: $store, page_id: page_id}}) DETACH DELETE p"
WRITE_NAMES = f"""
    UNWIND $rows AS row MERGE (k:{NAME} {{store: $store, mark: row.mark}}) ON CREATE SET k.source = row.source
"""
WRITE_SLUGS = f"""
    UNWIND $rows AS row MERGE (s:{SLUG} {{store: $store, source: row.source, slug: row.slug}})
    SET s.page_id = row.page_id, s.revision = row.revision, s.redirect = row.redirect
    WITH s OPTIONAL MATCH (s)-[old:GIVES]->() DELETE old
"""
GIVE_NAMES = f"""
    UNWIND $rows AS row MATCH (s:{SLUG} {{store: $store, source: row.source, slug: row.slug}})
    MATCH (k:{NAME} {{store: $store, mark: row.mark}}) CREATE (s)-[:GIVES {{kind: row.kind}}]->(k)
"""
WRITE_PAGES = f"""
    UNWIND $rows AS row MERGE (p:{PAGE} {{store: $store, page_id: row.page_id}}) SET p += row.says
    WITH p OPTIONAL MATCH (p)-[old:CALLED]->() DELETE old
"""
REMOVE_LINKS = f"""
    UNWIND $rows AS page_id MATCH (p:{PAGE} {{store: $store, page_id: page_id}})-[l:LINKS]->()
    WHERE l.provenance IN $own DELETE l
"""
CALL_NAMES = f"""
    UNWIND $rows AS row MATCH (p:{PAGE} {{store: $store, page_id: row.page_id}})
    MATCH (k:{NAME} {{store: $store, mark: row.mark}}) CREATE (p)-[:CALLED {{kind: row.kind, name: row.name}}]->(k)
"""
WRITE_LINKS = f"""
    UNWIND $rows AS row MATCH (p:{PAGE} {{store: $store, page_id: row.page_id}})
    MATCH (k:{NAME} {{store: $store, mark: row.mark}}) CREATE (p)-[l:LINKS]->(k) SET l = row.says
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlugDocument:
    """What a slug leads to."""

    page_id: PageId
    revision: int
    redirect: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PageDocument:
    """A page held, or to be written when it has an entry."""

    key: PageKey
    revision: int
    entry: PageEntry | None = None


@dataclass(slots=True)
class Documents:
    """The documents that a batch may touch, as they are held and as they become."""

    slugs: dict[PageKey, SlugDocument] = field(default_factory=dict)
    pages: dict[PageId, PageDocument] = field(default_factory=dict)

    def apply(self, change: SlugChange) -> None:
        """The consumer rule: write each document unless it is held newer, then remove all else that is older."""
        held_slug = self.slugs.get(change.key)
        if change.leads and (held_slug is None or held_slug.revision <= change.revision):
            redirect = change.page is None
            self.slugs[change.key] = SlugDocument(page_id=change.page_id, revision=change.revision, redirect=redirect)
        held_page = self.pages.get(change.page_id)
        if change.page is not None and (held_page is None or held_page.revision <= change.revision):
            self.pages[change.page_id] = PageDocument(key=change.key, revision=change.revision, entry=change.page)
        left = self.slugs.get(change.key)
        if left is not None and left.revision < change.revision:
            del self.slugs[change.key]
        for page_id, page in list(self.pages.items()):
            if page.key == change.key and page.revision < change.revision:
                del self.pages[page_id]


async def apply(statements: Statements, store: str, changes: Sequence[SlugChange]) -> None:
    """Applies all changes in the transaction of these statements; see `GraphStore.apply`."""
    sources = sorted({change.key.source for change in changes})
    if not await statements.run(LOCK, {"store": store, "sources": sources}):
        raise errors.unavailable("the graph's store is gone: another one took its place")
    held = await read(statements, store, changes)
    after = Documents(dict(held.slugs), dict(held.pages))
    for change in changes:
        after.apply(change)
    await write(statements, store, held, after)


async def read(statements: Statements, store: str, changes: Sequence[SlugChange]) -> Documents:
    """The documents held that these changes may touch."""
    held = Documents()
    parameters: Parameters = {
        "store": store,
        "keys": [list(change.key) for change in changes],
        "page_ids": sorted({change.page_id for change in changes if change.page is not None}),
    }
    for row in await statements.run(READ_SLUGS, parameters):
        held.slugs[key_of_row(row)] = SlugDocument(
            page_id=PageId(str(row["page_id"])), revision=cast("int", row["revision"]), redirect=bool(row["redirect"])
        )
    for statement in (READ_PAGES, READ_PLACES):
        for row in await statements.run(statement, parameters):
            page_id = PageId(str(row["page_id"]))
            held.pages[page_id] = PageDocument(key=key_of_row(row), revision=cast("int", row["revision"]))
    return held


def key_of_row(row: Mapping[str, object]) -> PageKey:
    """The address in a row."""
    return PageKey(str(row["source"]), str(row["slug"]))


async def write(statements: Statements, store: str, held: Documents, after: Documents) -> None:
    """Writes what differs; a document that a change names is written again even when it says the same."""
    slugs = {key: slug for key, slug in after.slugs.items() if slug is not held.slugs.get(key)}
    pages = {page_id: page for page_id, page in after.pages.items() if page.entry is not None}
    named = [row for key, slug in slugs.items() for row in slug_rows(key, slug)]
    called = [row for page_id, page in pages.items() for row in called_rows(page_id, page)]
    links = [row for page_id, page in pages.items() for row in link_rows(page_id, page)]
    marks = {cast("str", row["mark"]): row.pop("name_source") for row in (*named, *called, *links)}
    steps: list[tuple[str, Sequence[object]]] = [
        (REMOVE_SLUGS, [list(key) for key in held.slugs if key not in after.slugs]),
        (REMOVE_PAGES, [page_id for page_id in held.pages if page_id not in after.pages]),
        (WRITE_NAMES, [{"mark": mark, "source": source} for mark, source in sorted(marks.items())]),
        (WRITE_SLUGS, [{**key._asdict(), **slug_says(slug)} for key, slug in slugs.items()]),
        (GIVE_NAMES, named),
        (WRITE_PAGES, [page_row(store, page_id, page) for page_id, page in pages.items()]),
        (REMOVE_LINKS, [page_id for page_id in pages if page_id in held.pages]),
        (CALL_NAMES, called),
        (WRITE_LINKS, links),
    ]
    for statement, rows in steps:
        for start in range(0, len(rows), ROWS_MAX):
            part = rows[start : start + ROWS_MAX]
            await statements.run(statement, {"store": store, "own": list(OWN), "rows": part})


def slug_says(slug: SlugDocument) -> dict[str, object]:
    """A slug's properties."""
    return {"page_id": slug.page_id, "revision": slug.revision, "redirect": slug.redirect}


def slug_rows(key: PageKey, slug: SlugDocument) -> Iterator[dict[str, object]]:
    """The names that a slug gives."""
    for kind, name in slug_names(key.slug, redirect=slug.redirect):
        yield {**key._asdict(), **named(key.source, name), "kind": int(kind)}


def called_rows(page_id: PageId, page: PageDocument) -> Iterator[dict[str, object]]:
    """The names that a page gives itself."""
    assert page.entry is not None
    for kind, key, name in page_names(page.entry.title, page.entry.aliases):
        yield {"page_id": page_id, **named(page.key.source, key), "kind": int(kind), "name": name}


def link_rows(page_id: PageId, page: PageDocument) -> Iterator[dict[str, object]]:
    """The links of a page, each thing that it says once; the first place is the evidence."""
    assert page.entry is not None
    for ordinal, link in said_once(page.entry.links):
        says = {
            "ordinal": ordinal,
            "provenance": PROVENANCE_CODES[link.provenance],
            "inward": link.inward,
            "type": link.link_type,
            "name": link.name,
            "spelled": spelled_slug(link.name),
            "titled": link.titled,
            "line": link.line,
            "fragment": link.fragment,
            "embed": link.embed,
            "context": link.context,
        }
        yield {"page_id": page_id, **named(link.source, key_of(link.name)), "says": says}


def said_once(links: Iterable[LinkReference]) -> Iterator[tuple[int, LinkReference]]:
    """The links with their places, without those that an earlier one has said."""
    seen: set[tuple[object, ...]] = set()
    for ordinal, link in enumerate(links):
        what = (link.source, link.name, link.link_type, link.provenance, link.inward, link.fragment, link.embed)
        if what not in seen:
            seen.add(what)
            yield ordinal, link


def named(source: str, key: str) -> dict[str, object]:
    """The name's node that a row leads to."""
    return {"mark": mark_of(source, key), "name_source": source}


def page_row(store: str, page_id: PageId, page: PageDocument) -> dict[str, object]:
    """A page's properties."""
    entry = page.entry
    assert entry is not None
    keys = list(dict.fromkeys(key_of(name) for name in (entry.title, page.key.slug, *entry.aliases)))
    says = {
        **page.key._asdict(),
        "folder": folder_of(page.key.slug),
        "title": entry.title,
        "type": entry.type,
        "date": entry.date,
        "private": entry.private,
        "aliases": list(entry.aliases),
        "timeline_entries": entry.timeline_entries,
        "revision": page.revision,
        "grams": text_of(store, page.key.source, entry.private, keys),
        "names_size": sum(map(len, keys)),
    }
    return {"page_id": page_id, "says": says}
