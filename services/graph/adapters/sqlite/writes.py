"""Applying changes: the guard by revision, exact replacement, and the links that changed names lead elsewhere now."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from services.domain.page import LinkProvenance, LinkReference
from services.domain.records import PageId
from services.graph.adapters.sqlite.naming_rows import Choices, NameRow, in_lists, mark_of, name_row, searchable
from services.graph.naming import NameKind, folder_of, key_of, page_names, slug_names
from services.graph.ports import PageEntry, SlugChange

PROVENANCES = (LinkProvenance.FRONTMATTER, LinkProvenance.MANUAL, LinkProvenance.TEXT, LinkProvenance.MENTION)
"""By weight as evidence: what is stated counts more than what is said, and that more than what is only named."""
PROVENANCE_CODES = {provenance: code for code, provenance in enumerate(PROVENANCES)}
OWN = tuple(PROVENANCE_CODES[p] for p in (LinkProvenance.FRONTMATTER, LinkProvenance.TEXT))

TYPES_REMEMBERED = 1_000
"""Link types are open words, but a brain uses some dozens."""

INSERT_LINK = f"INSERT INTO links VALUES ({', '.join('?' * 15)})"  # noqa: S608 (nothing but question marks)


@dataclass(slots=True)
class Batch:
    """What one transaction has still to do when all its documents are written."""

    changed_names: set[int] = field(default_factory=set)
    """Marks of names that some page got, lost or has in another way."""
    new_links: dict[int, tuple[SlugChange, PageEntry]] = field(default_factory=dict)
    """Pages written, whose own links are to be inserted."""


class Writer:
    """The only user of the connection that writes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._types: dict[str, int] = {}

    def apply(self, changes: Sequence[SlugChange]) -> None:
        """Applies all changes in one transaction; see `GraphStore.apply`."""
        with self._transaction():
            batch = Batch()
            for change in changes:
                self._apply(change, batch)
            choices = Choices(self._connection)
            links = [link for _, entry in batch.new_links.values() for link in entry.links]
            choices.load(batch.changed_names | {mark_of(link.source, key_of(link.name)) for link in links})
            self._lead_again(batch.changed_names, choices)
            for maker, (change, entry) in batch.new_links.items():
                self._insert_links(maker, change, entry.links, choices)

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            self._types.clear()  # Numbers given by what is taken back.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _apply(self, change: SlugChange, batch: Batch) -> None:
        """The consumer rule: write each document unless it is held newer, then remove all else that is older."""
        if change.leads:
            self._write_slug(change, batch)
        if change.page is not None:
            self._write_page(change, change.page, batch)
        self._remove_older(change, batch)

    def _write_slug(self, change: SlugChange, batch: Batch) -> None:
        source, slug = change.key
        redirect = change.page is None
        held = self._connection.execute(
            "SELECT page_id, revision, redirect FROM slugs WHERE source = ? AND slug = ?", (source, slug)
        ).fetchone()
        if held is not None and held[1] > change.revision:
            return
        self._connection.execute(
            "INSERT OR REPLACE INTO slugs VALUES (?, ?, ?, ?, ?)",
            (source, slug, change.page_id, change.revision, redirect),
        )
        if held is not None:
            if (held[0], held[2]) == (change.page_id, redirect):
                return
            self._drop_slug_names(source, slug, held[0], redirect=bool(held[2]), batch=batch)
        rows = [name_row(source, key, kind, change.page_id, slug) for kind, key in slug_names(slug, redirect=redirect)]
        self._insert_names(rows)
        batch.changed_names.update(row.mark for row in rows)

    def _write_page(self, change: SlugChange, entry: PageEntry, batch: Batch) -> None:
        source, slug = change.key
        held = self._connection.execute(
            "SELECT id, revision, source, slug, private FROM pages WHERE page_id = ?", (change.page_id,)
        ).fetchone()
        if held is not None and held[1] > change.revision:
            return
        place = (source, slug, folder_of(slug))
        says = (entry.title, entry.type, entry.date, entry.private, entry.timeline_entries)
        row = (*place, *says, change.revision, change.page_id)
        if held is None:
            inserted = self._connection.execute(
                "INSERT INTO pages"
                " (source, slug, folder, title, type, date, private, timeline_entries, revision, page_id)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )
            maker = int(inserted.lastrowid or 0)
        else:
            maker = held[0]
            self._connection.execute(
                "UPDATE pages SET source = ?, slug = ?, folder = ?, title = ?, type = ?, date = ?, private = ?,"
                " timeline_entries = ?, revision = ? WHERE page_id = ?",
                row,
            )
            self._connection.execute("DELETE FROM links WHERE maker = ? AND provenance IN (?, ?)", (maker, *OWN))
        renamed = self._write_page_names(source, change.page_id, entry, batch, new=held is None)
        if held is None or held[2:] != (source, slug, entry.private):
            # Whether a name leads here depends on where the page is and who sees it, for all its names.
            self._all_names_changed(change.page_id, batch)
            renamed = True
            # So does where the links lead that are not of its text: they stay, and prefer pages of its folder.
            kept = self._connection.execute("SELECT mark FROM links WHERE maker = ?", (maker,))
            batch.changed_names.update(mark for (mark,) in kept)
        if renamed:
            self._write_search_text(maker, slug, entry, new=held is None)
        batch.new_links[maker] = (change, entry)

    def _write_page_names(self, source: str, page_id: PageId, entry: PageEntry, batch: Batch, *, new: bool) -> bool:
        names = page_names(entry.title, entry.aliases)
        wanted = {name_row(source, key, kind, page_id, name) for kind, key, name in names}
        held: set[NameRow] = set() if new else set(self._page_names(page_id))
        self._remove_names(held - wanted)
        self._insert_names(wanted - held)
        batch.changed_names.update(row.mark for row in held ^ wanted)
        return held != wanted

    def _write_search_text(self, maker: int, slug: str, entry: PageEntry, *, new: bool) -> None:
        if not new:
            self._connection.execute("DELETE FROM name_text WHERE rowid = ?", (maker,))
        keys = dict.fromkeys(key_of(name) for name in (entry.title, slug, *entry.aliases))
        self._connection.execute(
            "INSERT INTO name_text (rowid, text) VALUES (?, ?)", (maker, "\n".join(map(searchable, keys)))
        )

    def _remove_older(self, change: SlugChange, batch: Batch) -> None:
        source, slug = change.key
        where = (source, slug, change.revision)
        for maker, page_id in self._connection.execute(
            "SELECT id, page_id FROM pages WHERE source = ? AND slug = ? AND revision < ?", where
        ).fetchall():
            self._all_names_changed(page_id, batch)
            self._remove_names(self._page_names(page_id))
            self._connection.execute("DELETE FROM pages WHERE id = ?", (maker,))
            self._connection.execute("DELETE FROM name_text WHERE rowid = ?", (maker,))
            self._connection.execute("DELETE FROM links WHERE maker = ?", (maker,))
            batch.new_links.pop(maker, None)
        if change.leads:
            return  # The slug's own document was just written, or is newer.
        for page_id, redirect in self._connection.execute(
            "DELETE FROM slugs WHERE source = ? AND slug = ? AND revision < ? RETURNING page_id, redirect", where
        ).fetchall():
            self._drop_slug_names(source, slug, page_id, redirect=bool(redirect), batch=batch)

    def _drop_slug_names(self, source: str, slug: str, page_id: PageId, *, redirect: bool, batch: Batch) -> None:
        rows = [name_row(source, key, kind, page_id, slug) for kind, key in slug_names(slug, redirect=redirect)]
        self._remove_names(rows)
        batch.changed_names.update(row.mark for row in rows)

    def _page_names(self, page_id: PageId) -> list[NameRow]:
        """The names that the page itself says; those of its slugs belong to the slugs."""
        rows = self._connection.execute(
            "SELECT mark, kind, page_id, name, source, key FROM names WHERE page_id = ? AND kind IN (?, ?)",
            (page_id, NameKind.TITLE, NameKind.ALIAS),
        )
        return [NameRow(*row) for row in rows]

    def _insert_names(self, rows: Iterable[NameRow]) -> None:
        self._connection.executemany("INSERT INTO names VALUES (?, ?, ?, ?, ?, ?)", rows)

    def _remove_names(self, rows: Iterable[NameRow]) -> None:
        self._connection.executemany(
            "DELETE FROM names WHERE mark = ? AND kind = ? AND page_id = ? AND name = ?", (row[:4] for row in rows)
        )

    def _all_names_changed(self, page_id: PageId, batch: Batch) -> None:
        marks = self._connection.execute("SELECT mark FROM names WHERE page_id = ?", (page_id,))
        batch.changed_names.update(mark for (mark,) in marks)

    def _lead_again(self, changed_names: Iterable[int], choices: Choices) -> None:
        """Works out anew where the links held go whose name is among the changed ones."""
        moved = []
        for listed in in_lists(changed_names):
            links = self._connection.execute(
                "SELECT l.target, l.world_target, l.maker, l.ordinal, l.source, l.name, l.titled, m.source, m.folder"  # noqa: S608
                f" FROM links l JOIN pages m ON m.id = l.maker WHERE l.mark IN ({listed})"
            )
            for target, world_target, maker, ordinal, source, name, titled, maker_source, folder in links:
                near = folder if maker_source == source else None
                targets = choices.targets(source, name, titled=bool(titled), folder=near)
                if targets != (target, world_target):
                    moved.append((*targets, maker, ordinal))
        self._connection.executemany(
            "UPDATE links SET target = ?, world_target = ? WHERE maker = ? AND ordinal = ?", moved
        )

    def _insert_links(self, maker: int, change: SlugChange, links: Sequence[LinkReference], choices: Choices) -> None:
        source, slug = change.key
        folder = folder_of(slug)
        rows = []
        seen: set[tuple[object, ...]] = set()
        for ordinal, link in enumerate(links):
            what = (link.source, link.name, link.link_type, link.provenance, link.inward, link.fragment, link.embed)
            if what in seen:
                continue  # A page that says the same thing twice says it once; the first place is the evidence.
            seen.add(what)
            near = folder if link.source == source else None
            targets = choices.targets(link.source, link.name, titled=link.titled, folder=near)
            rows.append(
                (
                    *(maker, ordinal, PROVENANCE_CODES[link.provenance], link.inward, self._type_of(link.link_type)),
                    *(mark_of(link.source, key_of(link.name)), link.source, link.name, link.titled, *targets),
                    *(link.line, link.fragment, link.embed, link.context),
                )
            )
        self._connection.executemany(INSERT_LINK, rows)

    def _type_of(self, link_type: str) -> int:
        """The number of a link type, given at its first use."""
        found = self._types.get(link_type)
        if found is None:
            if len(self._types) >= TYPES_REMEMBERED:
                self._types.clear()
            self._connection.execute("INSERT OR IGNORE INTO link_types (name) VALUES (?)", (link_type,))
            query = "SELECT id FROM link_types WHERE name = ?"
            found = self._types[link_type] = int(self._connection.execute(query, (link_type,)).fetchone()[0])
        return found
