"""The collection as the child process holds it, without the process: many histories in little time."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings

from services.domain.records import PageRecord
from services.search.adapters.edge_store import EdgeStore
from services.search.documents import vector_state
from tests.contract.search.histories import History, as_page_record, deliver, expected, histories
from tests.contract.search.pages import EVERYTHING, PARSER


@settings(max_examples=10, deadline=None)
@given(history=histories())
async def test_any_order_of_deliveries_ends_in_what_a_rebuild_holds(history: History) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = EdgeStore(Path(folder), 4)

        async def apply(records: list[PageRecord]) -> None:
            states = [vector_state(record, PARSER) for record in records]
            store.apply(states, {chunk_hash: np.ones(4, np.float32) for chunk_hash in store.missing(states)})

        async def died() -> None:
            """The death of a process is tried in its own test."""

        log = await deliver(history, apply, died)
        states = [vector_state(as_page_record(one), PARSER) for one in map(log.newest, log.kept) if one]
        with_text = {one.page.page_id for one in states if one.page and one.passages}
        pages, _ = store.held(None)
        held = {(page.key.slug, str(page.page_id), page.revision) for page in pages}
        assert held == {row for row in expected(log) if row[1] in with_text}
        assert store.count(EVERYTHING) == sum(len(one.passages) for one in states)
        store.close()
