"""What the graph is made of in a property graph, and the constraints that must stand before its first node.

A page is a node, and so is what a slug leads to: both guarded by the revision they came from. A name is a node too,
the place where those who have it (`GIVES` from a slug, `CALLED` from a page) and those who write it (`LINKS` from a
page) meet. Which page a link leads to is worked out along these edges when somebody asks, by the rule of
`graph.naming`, among the pages that the asker may see. So nothing is derived, and no order of writing leaves anything
out of step.

Every key begins with the store, so that several stores share one database, and goes on with the source; a page's does
not need it, because page ids are unique among all sources. A name's node holds a digest and no words: when the last
page lets go of a name, nothing of it stays behind.
"""

from __future__ import annotations

from hashlib import blake2b

SCHEMA_VERSION = 1
"""Raised with every change of nodes or edges: an older store is built anew, a newer one is refused."""

PAGE = "FleetbrainPage"
SLUG = "FleetbrainSlug"
NAME = "FleetbrainName"
STORE = "FleetbrainStore"
CATALOG = "FleetbrainCatalog"
NAMES_INDEX = "fleetbrain_page_grams"

OPTIONS = "OPTIONS {indexConfig: {`fulltext.analyzer`: 'whitespace'}}"

STATEMENTS = (
    f"CREATE CONSTRAINT fleetbrain_page IF NOT EXISTS FOR (n:{PAGE}) REQUIRE (n.store, n.page_id) IS UNIQUE",
    f"CREATE CONSTRAINT fleetbrain_slug IF NOT EXISTS FOR (n:{SLUG}) REQUIRE (n.store, n.source, n.slug) IS UNIQUE",
    f"CREATE CONSTRAINT fleetbrain_name IF NOT EXISTS FOR (n:{NAME}) REQUIRE (n.store, n.mark) IS UNIQUE",
    f"CREATE CONSTRAINT fleetbrain_store IF NOT EXISTS FOR (n:{STORE}) REQUIRE n.store IS UNIQUE",
    f"CREATE CONSTRAINT fleetbrain_catalog IF NOT EXISTS FOR (n:{CATALOG}) REQUIRE n.prefix IS UNIQUE",
    f"CREATE INDEX fleetbrain_page_place IF NOT EXISTS FOR (n:{PAGE}) ON (n.store, n.source, n.slug)",
    f"CREATE INDEX fleetbrain_slug_page IF NOT EXISTS FOR (n:{SLUG}) ON (n.store, n.page_id)",
    # Our own words, hexadecimal, parted by spaces: whatever somebody asks for is never the index's query language.
    f"CREATE FULLTEXT INDEX {NAMES_INDEX} IF NOT EXISTS FOR (n:{PAGE}) ON EACH [n.grams] {OPTIONS}",
)

SHOW_INDEXES = """
    SHOW INDEXES YIELD name, state WHERE name STARTS WITH 'fleetbrain_'
    RETURN state, count(*) AS indexes
"""
"""How many of our indexes, those of the constraints included, are in which state."""

AWAIT_SECONDS = 60
"""For the indexes at every start: after a crash they come back empty and fill again."""


def mark_of(source: str, key: str) -> str:
    """What stands for a source and a name's key: 128 bits, so that no two names ever share a node."""
    return blake2b(f"{source}\n{key}".encode("utf-8", "replace"), digest_size=16).hexdigest()
