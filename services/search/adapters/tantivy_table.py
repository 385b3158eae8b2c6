"""One tantivy index as a table of documents: schema, the single writer, readers, commits.

A term is indexed without positions and the engine's own query syntax is never used. Nothing here runs on the event
loop: writes run on the table's one thread, reads wherever the caller calls.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from tantivy import (
    DocAddress,
    Document,
    Index,
    IndexWriter,
    Query,
    Schema,
    SchemaBuilder,
    Searcher,
    TextAnalyzerBuilder,
    Tokenizer,
)

from services.domain.errors import NotReady, Unavailable

WRITER_HEAP_BYTES = 24_000_000
"""What the writer holds before it makes a segment itself; a commit makes one anyway. The engine's least is 15 MB."""

ROWS_MAX = 2_000
"""Rows read in one go when a table is walked."""


class Table:
    """Documents of one kind, each of a page: the fields that filters need, and those the kind adds."""

    def __init__(self, folder: Path, add_fields: Callable[[SchemaBuilder], None]) -> None:
        """Open or create the table.

        Raises:
            NotReady: Another process writes to this folder.
            Unavailable: The folder holds something this program cannot read.
        """
        folder.mkdir(parents=True, exist_ok=True)
        builder = SchemaBuilder()
        _add_common_fields(builder)
        add_fields(builder)
        self.schema: Schema = builder.build()
        try:
            self._index = Index(self.schema, path=str(folder))
            self._index.register_tokenizer("whitespace", TextAnalyzerBuilder(Tokenizer.whitespace()).build())
            self._index.config_reader("manual", 0)
            self._writer: IndexWriter = self._index.writer(WRITER_HEAP_BYTES, 1)
        except ValueError as error:
            raise _opening_failed(folder, error) from error
        self._index.reload()

    def searcher(self) -> Searcher:
        """A view of everything committed so far, which later commits do not change."""
        return self._index.searcher()

    def replace(self, delete_page_ids: Sequence[str], documents: Sequence[Document]) -> None:
        """Remove all documents of some pages, add others, and make both durable and visible in one step.

        Raises:
            Unavailable: The engine failed; nothing changed.
        """
        try:
            if delete_page_ids:
                self._writer.delete_documents_by_query(
                    Query.term_set_query(self.schema, "page_id", list(delete_page_ids))
                )
            for document in documents:
                self._writer.add_document(document)
            self._writer.commit()
        except (ValueError, OSError) as error:
            self._writer.rollback()
            raise Unavailable(
                "PEER_UNAVAILABLE", "the lexical index cannot be written", metadata={"peer": "tantivy"}
            ) from error
        self._index.reload()

    def close(self) -> None:
        """Wait for merges and give the lock back."""
        self._writer.wait_merging_threads()


def page_number(page_id: str) -> int:
    """A number for a page id: the engine reads numbers of many documents at once, but not texts."""
    return int.from_bytes(hashlib.blake2b(page_id.encode(), digest_size=8).digest(), "big")


def stored(searcher: Searcher, address: DocAddress) -> bytes:
    """The row kept with a document."""
    row = searcher.doc(address).get_first("row")
    assert isinstance(row, bytes), row
    return row


def total(searcher: Searcher, query: Query) -> int:
    """How many documents match, exactly."""
    count: int = searcher.search(query, 1).count  # type: ignore[attr-defined]  # Its stub forgets this attribute.
    return count


def _add_common_fields(builder: SchemaBuilder) -> None:
    """What a filter or a replacement looks at."""
    builder.add_text_field("page_id", tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("page_number", fast=True)
    builder.add_unsigned_field("revision", fast=True, indexed=True)
    builder.add_text_field("address", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("source", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("slug", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("private", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("type", tokenizer_name="raw", index_option="basic", fast=True)
    builder.add_text_field("tag", tokenizer_name="raw", index_option="basic", fast=True)
    builder.add_integer_field("updated", fast=True, indexed=True)
    builder.add_integer_field("created", fast=True, indexed=True)
    builder.add_unsigned_field("date", fast=True, indexed=True)
    builder.add_text_field("terms", tokenizer_name="whitespace", index_option="freq")
    builder.add_bytes_field("row", stored=True)


def _opening_failed(folder: Path, error: ValueError) -> NotReady | Unavailable:
    if "LockBusy" in str(error):
        return NotReady(
            "DATA_FOLDER_HELD",
            f"another process writes to the lexical index in {folder}",
            field="data",
            value=str(folder),
            next_step="Stop that process, or give this one a data folder of its own.",
        )
    return Unavailable(
        "PEER_UNAVAILABLE",
        f"the lexical index in {folder} cannot be opened: {error}",
        next_step="Rebuild the projection `search-lexical`; nothing is lost, the page log holds every page.",
        metadata={"peer": "tantivy"},
    )
