"""Deaths in mid apply: what was applied stays, and the same calls again end as if nothing had happened."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from services.domain.errors import NotReady, Unavailable
from services.search.adapters.child import Child
from services.search.adapters.edge import EdgeIndex
from services.search.adapters.tantivy import TantivyIndex
from services.search.documents import vector_state
from services.search.values import Retriever, VectorState
from tests.contract.search.pages import EVERYTHING, PARSER, record
from tests.integration.search.indexing import SLUGS, states_of

KILLS = 3
PLACES_SECONDS = (0.0, 0.01, 0.03)
"""How long after the last finished batch the kill comes: before, in and after what a batch does."""


async def test_words_survive_kill_9_of_the_process_that_indexes(tmp_path: Path) -> None:
    for round_ in range(KILLS):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.integration.search.indexing", str(tmp_path), str(round_),
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        async with asyncio.timeout(60):
            finished = [int(await process.stdout.readline()) for _ in range(3 + round_)][-1]
            await asyncio.sleep(PLACES_SECONDS[round_])
            process.send_signal(signal.SIGKILL)
            finished = max([finished, *map(int, (await process.stdout.read()).split())])
            await process.wait()
        index = TantivyIndex(tmp_path)
        try:
            held = {(page.key.slug, page.revision) async for page in index.held()}
            acknowledged = states_of(round_, finished)
            assert len(held) == SLUGS
            assert min(revision for _, revision in held) >= acknowledged[0].revision
            await index.apply(states_of(round_, finished + 2))
            hits = await index.search(Retriever.LEXICAL_CHUNKS, [f"round{round_}"], EVERYTHING, 500)
            assert {hit.row.revision for hit in hits} == {one.revision for one in states_of(round_, finished + 2)}
            assert (await index.counts(EVERYTHING)).chunks == 2 * SLUGS
        finally:
            await index.close()


async def test_a_second_process_is_refused_the_words(tmp_path: Path) -> None:
    index = TantivyIndex(tmp_path)
    try:
        with pytest.raises(NotReady) as refused:
            TantivyIndex(tmp_path)
        assert refused.value.reason == "DATA_FOLDER_HELD"
    finally:
        await index.close()


def vectors_of(revision: int) -> list[VectorState]:
    return [
        vector_state(record(f"p/{n}", f"# P\n\ntext {revision // 2}", revision * 100 + n), PARSER) for n in range(30)
    ]


async def test_vectors_survive_kill_9_of_their_process(tmp_path: Path) -> None:
    child = Child("vectors", {"models": str(tmp_path / "models")})
    index = EdgeIndex(child, tmp_path / "collection", 8)
    applied, goal = 0, 0
    there = asyncio.Event()

    async def apply(revision: int) -> None:
        states = vectors_of(revision)
        missing = await index.missing(states)
        await index.apply(states, {chunk_hash: np.ones(8, np.float32) for chunk_hash in missing})

    async def work() -> None:
        nonlocal applied
        for revision in range(applied + 1, applied + 1_000):
            await apply(revision)
            applied = revision
            if applied >= goal:
                there.set()

    async with asyncio.timeout(60):
        for round_ in range(KILLS):
            goal = applied + 3
            there.clear()
            working = asyncio.create_task(work())
            await there.wait()
            await asyncio.sleep(PLACES_SECONDS[round_])
            assert child.pid is not None
            os.kill(child.pid, signal.SIGKILL)
            with pytest.raises(Unavailable):
                await working
            held = {page.key.slug: page.revision async for page in index.held()}
            assert len(held) == 30
            assert all(held[one.key.slug] >= one.revision for one in vectors_of(applied))
            await apply(applied + 2)
            applied += 2
            after = {(page.key.slug, page.revision) async for page in index.held()}
            assert after == {(one.key.slug, one.revision) for one in vectors_of(applied)}
            assert await index.count(EVERYTHING) == 30
    await index.close()
    await child.close()
