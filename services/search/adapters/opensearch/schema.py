"""The two indices of a store, and how a page and a passage lie in them."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from services.domain.page import Visibility
from services.domain.records import PageKey
from services.search.adapters.opensearch.connection import Body
from services.search.adapters.tantivy_rows import address, order_key, passage_id
from services.search.values import PageDocument, PageRow, PassageDocument, date_code

SCHEMA_VERSION = 1
"""Of the mappings below; kept in each index, so that an older program refuses what a newer one made."""

ALWAYS = "\x01"
"""A token that every page has among its aliases. Lucene counts, for BM25, only the documents that have a field at all:
without it the few pages with an alias would be weighed among themselves. The lengths grow by one, and so the scores by
alias differ from the embedded engine's in the second place; titles and texts are weighed exactly as there."""

NAME_BYTES_MAX = 512

_KEYWORD = {"type": "keyword"}
_LONG = {"type": "long"}
_TOKENS = {"type": "text", "analyzer": "whitespace", "index_options": "freqs"}
"""Text comes analysed: tokens between spaces."""
_KEPT = {"type": "keyword", "index": False, "doc_values": False}
"""Only given back."""

_COMMON: dict[str, Body] = {
    "page_id": _KEYWORD,
    "revision": _LONG,
    "address": _KEYWORD,
    "source": _KEYWORD,
    "slug": _KEYWORD,
    "private": {"type": "boolean"},
    "type": _KEYWORD,
    "tag": _KEYWORD,
    "updated": _LONG,
    "created": _LONG,
    "date": _LONG,
    "terms": _TOKENS,
    "row": _KEPT,
}
_PAGES: dict[str, Body] = {"title": _TOKENS, "alias": _TOKENS, "order": _KEYWORD}
_PASSAGES: dict[str, Body] = {"passage_id": _KEYWORD, "ordinal": _LONG}


def pages_body() -> Body:
    """How the index of pages is made."""
    return _body({**_COMMON, **_PAGES})


def passages_body() -> Body:
    """How the index of passages is made."""
    return _body({**_COMMON, **_PASSAGES})


def page_source(page: PageDocument) -> dict[str, Any]:
    """A page as it is indexed."""
    row = page.row
    return {
        **_source(row, page.terms),
        "title": page.title_terms,
        "alias": f"{page.alias_terms} {ALWAYS}",
        "order": order_key(row.slug, row.source),
        "row": orjson.dumps([list(row), page.lead]).decode(),
    }


def passage_source(row: PageRow, entry: PassageDocument) -> dict[str, Any]:
    """A passage as it is indexed."""
    passage = entry.passage
    return {
        **_source(row, entry.terms),
        "passage_id": passage_id(row.page_id, passage.ordinal),
        "ordinal": passage.ordinal,
        "row": orjson.dumps([list(row), *passage]).decode(),
    }


def document_name(name: str) -> str:
    """What the engine calls a document: it takes names of so many bytes, and longer ones by their hash."""
    text = name.encode()
    return name if len(text) <= NAME_BYTES_MAX else hashlib.blake2b(text, digest_size=32).hexdigest()


def _source(row: PageRow, terms: str) -> dict[str, Any]:
    return {
        "page_id": row.page_id,
        "revision": row.revision,
        "address": address(PageKey(row.source, row.slug)),
        "source": row.source,
        "slug": row.slug,
        "private": row.visibility is Visibility.PRIVATE,
        "type": row.type,
        "tag": list(row.tags),
        "updated": row.updated,
        "created": row.created,
        "date": date_code(row.date),
        "terms": terms,
    }


def _body(properties: dict[str, Body]) -> Body:
    return {
        "settings": {
            # One shard: BM25 counts per shard. A brain of a million pages is some gigabytes, well within one.
            "number_of_shards": 1,
            "auto_expand_replicas": "0-1",
            # Every batch is made visible as it is written; nothing is left for a clock to do.
            "refresh_interval": "-1",
            "similarity": {"default": {"type": "BM25", "k1": 1.2, "b": 0.75}},
        },
        "mappings": {"dynamic": "strict", "_meta": {"fleetbrain": SCHEMA_VERSION}, "properties": properties},
    }
