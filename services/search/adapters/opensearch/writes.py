"""One index brought up to date with some slugs, beside others who do the same.

Each document is written only over what was read: over the very version that was seen, or where nothing was. Whoever was
slower reads again and decides again. So the rule of every projection holds among many writers, and an engine that has
forgotten a deletion forgets nothing that the rule needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import orjson

from services.domain.records import PageId, PageKey
from services.search.adapters.opensearch import errors
from services.search.adapters.opensearch.connection import Body, Connection
from services.search.adapters.opensearch.queries import any_of
from services.search.adapters.tantivy import plan
from services.search.adapters.tantivy_rows import address
from services.search.values import HeldPage, SlugState

ROUNDS_MAX = 8
"""How often a batch is decided again because others wrote the same pages; two who meet need two."""

LOOKED_AT_ONCE = 5_000
"""Documents of one look; the engine gives at most 10,000."""

ITEMS_MAX = 1_000
BYTES_MAX = 1_000_000
"""Of one bulk, unless a single document is larger: what is sent in one go holds up nothing else, here and there."""

Entries = Callable[[SlugState], list[tuple[str, dict[str, Any]]]]
"""The documents of a page by their names."""


class Document(NamedTuple):
    """A document that is held, and the version of it that was seen."""

    name: str
    held: HeldPage
    seen: tuple[int, int]


async def replace(connection: Connection, index: str, key: str, states: Sequence[SlugState], entries: Entries) -> None:
    """Applies states, in order of their revisions, to the index whose documents are named by the field `key`."""
    for _ in range(ROUNDS_MAX):
        documents = await look(connection, index, key, states)
        if await write(connection, index, operations(states, documents, entries)):
            return
        await connection.refresh(index)
    raise errors.unavailable("others write the same pages into OpenSearch all the time")


def operations(states: Sequence[SlugState], documents: Sequence[Document], entries: Entries) -> list[list[Body]]:
    """What to send, an item each: its action and, when it writes, its document. Pure."""
    newest: dict[PageId, HeldPage] = {}
    for document in documents:
        held = document.held
        if held.page_id not in newest or newest[held.page_id].revision < held.revision:
            newest[held.page_id] = held
    removed, written = plan(states, newest.values())
    gone = set(removed)
    there = {document.name: document for document in documents}
    items: list[list[Body]] = []
    kept: set[str] = set()
    for state in written:
        for name, source in entries(state):
            kept.add(name)
            items.append([_action("index" if name in there else "create", name, there.get(name)), source])
    for name, document in there.items():
        if document.held.page_id in gone and name not in kept:
            items.append([_action("delete", name, document)])
    return items


async def write(connection: Connection, index: str, items: Sequence[list[Body]]) -> bool:
    """Sends them; whether nobody else had written what they were decided on."""
    untouched = True
    body, count = b"", 0
    for item in items:
        encoded = b"".join(orjson.dumps(line) + b"\n" for line in item)
        if count and (count == ITEMS_MAX or len(body) + len(encoded) > BYTES_MAX):
            untouched = await _send(connection, index, body, count) and untouched
            body, count = b"", 0
        body, count = body + encoded, count + 1
    return (not count or await _send(connection, index, body, count)) and untouched


async def _send(connection: Connection, index: str, body: bytes, count: int) -> bool:
    answers = await connection.bulk(index, body)
    if len(answers) != count:
        raise errors.unavailable("OpenSearch answered to another number of writes than it was asked for")
    return not sum(not _taken(answer) for answer in answers)  # Every item is looked at.


async def look(connection: Connection, index: str, key: str, states: Sequence[SlugState]) -> list[Document]:
    """All documents under the slugs and of the pages of some states."""
    either = [any_of("address", [address(state.key) for state in states])]
    page_ids = [state.page.row.page_id for state in states if state.page is not None]
    if page_ids:
        either.append(any_of("page_id", page_ids))
    body: dict[str, Any] = {
        "query": {"bool": {"filter": [{"bool": {"should": either, "minimum_should_match": 1}}]}},
        "size": LOOKED_AT_ONCE,
        "sort": [{key: "asc"}],
        "track_total_hits": False,
        "seq_no_primary_term": True,
        "_source": ["source", "slug", "page_id", "revision"],
    }
    found: list[Document] = []
    while True:
        hits = (await connection.search(index, body))["hits"]["hits"]
        found += [
            Document(hit["_id"], held_page(hit["_source"]), (hit["_seq_no"], hit["_primary_term"])) for hit in hits
        ]
        if len(hits) < LOOKED_AT_ONCE:
            return found
        body["search_after"] = hits[-1]["sort"]


def held_page(source: Body) -> HeldPage:
    """What a document says of who holds which slug."""
    key = PageKey(source["source"], source["slug"])
    return HeldPage(key=key, page_id=PageId(source["page_id"]), revision=source["revision"])


def _action(kind: str, name: str, seen: Document | None) -> Body:
    guard = {"if_seq_no": seen.seen[0], "if_primary_term": seen.seen[1]} if seen is not None else {}
    return {kind: {"_id": name, **guard}}


def _taken(answer: Body) -> bool:
    status = int(answer["status"])
    if status < 300:
        return True
    # 409: another version is there now. 404: what was to be deleted is gone.
    if status in (404, 409) and answer.get("error", {}).get("type", "") != "index_not_found_exception":
        return False
    raise errors.of_status(status, str(answer.get("error", {}).get("type", "")))
