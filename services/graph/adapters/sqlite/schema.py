"""The tables of a graph store, and connections to them.

Two tables hold the guarded documents: `slugs` (what a slug leads to) and `pages` with its `links` (what a page says).
Two are derived from them in the same transaction: `names`, every name of every page by its comparable key, and
`name_text`, the same for searching. A link's `target` is derived as well: it is what `naming.choose` says of the names
held now, kept beside the link and worked out anew whenever a name with the link's key changes. So reads follow integers
and still answer as if they resolved names when asked, which a contract test compares.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from services.domain.errors import Unavailable

SCHEMA_VERSION = 1
"""Raised with every change of the tables or of the rules that derive from them: an older store is built anew."""

BUSY_SECONDS = 5.0
"""One process writes and readers never block in WAL; only recovery after a crash makes anybody wait."""

WRITER_CACHE_KIB = 16_384
READER_CACHE_KIB = 2_048
MAPPED_BYTES = 268_435_456
"""Pages are read from the mapped file, which the kernel can drop, rather than from caches of our own."""

CHECKPOINT_PAGES = 4_000
"""16 MB of log before a checkpoint: an import then moves each page into the file a few times, not hundreds of times."""

GHOST = 0
"""A link's target when no page has the name."""
AMBIGUOUS = -1
"""A link's target when several pages have it and the rule prefers none."""

TABLES = """
CREATE TABLE slugs (
  source TEXT NOT NULL,
  slug TEXT NOT NULL,
  page_id TEXT NOT NULL,
  revision INTEGER NOT NULL,
  redirect INTEGER NOT NULL,
  PRIMARY KEY (source, slug)
) WITHOUT ROWID;

CREATE TABLE pages (
  id INTEGER PRIMARY KEY,
  page_id TEXT NOT NULL UNIQUE,
  source TEXT NOT NULL,
  slug TEXT NOT NULL,
  folder TEXT NOT NULL,
  title TEXT NOT NULL,
  type TEXT NOT NULL,
  date TEXT NOT NULL,
  private INTEGER NOT NULL,
  timeline_entries INTEGER NOT NULL,
  revision INTEGER NOT NULL
);
CREATE INDEX pages_by_slug ON pages (source, slug);

CREATE TABLE names (
  mark INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  page_id TEXT NOT NULL,
  name TEXT NOT NULL,
  source TEXT NOT NULL,
  key TEXT NOT NULL,
  PRIMARY KEY (mark, kind, page_id, name)
) WITHOUT ROWID;
CREATE INDEX names_by_page ON names (page_id);

CREATE VIRTUAL TABLE name_text USING fts5 (text, tokenize = 'trigram');
CREATE VIRTUAL TABLE name_parts USING fts5vocab (name_text, 'row');

CREATE TABLE link_types (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);

CREATE TABLE links (
  maker INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  provenance INTEGER NOT NULL,
  inward INTEGER NOT NULL,
  type INTEGER NOT NULL,
  mark INTEGER NOT NULL,
  source TEXT NOT NULL,
  name TEXT NOT NULL,
  titled INTEGER NOT NULL,
  target INTEGER NOT NULL,
  world_target INTEGER,
  line INTEGER NOT NULL,
  fragment TEXT NOT NULL,
  embed INTEGER NOT NULL,
  context TEXT NOT NULL,
  PRIMARY KEY (maker, ordinal)
) WITHOUT ROWID;
CREATE INDEX links_by_mark ON links (mark);
CREATE INDEX links_by_target ON links (target, inward, maker, type);
CREATE INDEX links_by_world_target ON links (world_target, inward, maker, type) WHERE world_target IS NOT NULL;
CREATE INDEX links_inward ON links (maker) WHERE inward = 1;
"""
# `mark` stands for a name's source and key in eight bytes (`naming_rows.mark_of`), so that the two largest indexes are
# small; whoever looks a name up by it compares source and key as well.
# `world_target` is what the name leads to for those who see no private page, where that differs from `target`.


def prepare(path: Path) -> None:
    """Makes the tables if the file is new.

    Raises:
        Unavailable: The file was made by another version, or this SQLite lacks what we need.
    """
    connection = connect(path)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == SCHEMA_VERSION:
            return
        if version != 0:
            raise Unavailable(
                "PEER_UNAVAILABLE",
                f"the graph store has version {version}, this program needs {SCHEMA_VERSION}",
                metadata={"peer": "sqlite"},
                next_step="Remove the store's folder; it is built anew from the page log.",
            )
        connection.executescript(f"BEGIN; {TABLES} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
    except sqlite3.OperationalError as error:
        raise Unavailable(
            "PEER_UNAVAILABLE",
            f"SQLite {sqlite3.sqlite_version} cannot keep the graph: {error}",
            metadata={"peer": "sqlite"},
            next_step="Use a Python whose SQLite is 3.34 or newer with FTS5.",
        ) from error
    finally:
        connection.close()


def connect(path: Path) -> sqlite3.Connection:
    """A connection for one user at a time, of whichever thread; transactions are begun and ended by hand."""
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    connection.execute(f"PRAGMA mmap_size = {MAPPED_BYTES}")
    return connection


def connect_writer(path: Path) -> sqlite3.Connection:
    """The one connection that writes.

    A commit waits for the disk (`FULL`): the message is acknowledged to the log right after, and what was
    acknowledged is never delivered again, so with `NORMAL` a power cut would lose the last changes for good.
    Deleted content is overwritten, because a page may be deleted for what it says.
    """
    connection = connect(path)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"PRAGMA cache_size = -{WRITER_CACHE_KIB}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    return connection


def connect_reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write."""
    connection = connect(path)
    connection.execute("PRAGMA query_only = ON")
    connection.execute(f"PRAGMA cache_size = -{READER_CACHE_KIB}")
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection
