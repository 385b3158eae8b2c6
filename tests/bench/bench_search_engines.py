"""Prints what the engines of search cost alone: `python -m tests.bench.bench_search_engines --pages 17000`.

Indexing by words, and one query over all four retrievers with USE. The passages' vectors are random: embedding 50,000
passages takes a quarter of an hour, and an exact scan costs the same whatever they are.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from services.domain.context import OperationContext
from services.domain.parser import PageParser
from services.domain.records import PageId, PageRecord, RecordKind
from services.domain.slugs import slug_from_path
from services.runtime.projection_store import ProjectionProgress, RebuildResult
from services.search.adapters.child import Child
from services.search.adapters.edge import EdgeIndex
from services.search.adapters.local_embedder import LocalEmbedder
from services.search.adapters.tantivy import TantivyIndex
from services.search.app.ranking import Question, RankPassages
from services.search.app.reads import page_filter
from services.search.consumer import LexicalStore, VectorStore
from services.search.documents import vector_state
from services.search.ports import Projection, Report, VectorHolder
from services.search.values import Retriever
from tests.bench.corpus import generate_pages

T = TypeVar("T")
QUERIES = (
    "who repaired the amber turbine",
    "reservoir gearbox delayed",
    "哪个灯塔被重建了",
    "when was the orchard protocol reviewed by the team",
    "传感器 校准",
    "a quiet harbor with a brittle compass",
)


@dataclass
class Still(Generic[T]):
    """A projection that does not move."""

    store: T
    name: str = "still"
    ready: bool = True
    indexed_revision: int = 1 << 60

    @contextmanager
    def use(self) -> Iterator[T]:
        yield self.store

    async def wait_for(self, revision: int, timeout_seconds: float) -> bool:
        return True

    async def progress(self) -> ProjectionProgress:
        raise NotImplementedError

    async def rebuild(self, job_id: str, report: Report, *, to: str = "") -> RebuildResult:
        raise NotImplementedError

    async def cancel_rebuild(self, job_id: str) -> bool:
        return False

    async def sweep(self) -> int:
        return 0


@dataclass
class StillCollections:
    current: Projection[VectorHolder] | None
    following: Projection[VectorHolder] | None = None

    def signature(self, projection: Projection[VectorHolder] | None) -> str:
        return ""


def records(pages: int, seed: int) -> list[PageRecord]:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        PageRecord(
            source="default",
            slug=slug_from_path(page.path),
            kind=RecordKind.PUT,
            page_id=PageId(f"id-{number:08d}"),
            time=now,
            actor="bench",
            body=page.text.encode(),
            revision=number + 1,
            create_time=now,
        )
        for number, page in enumerate(generate_pages(pages, seed=seed))
    ]


async def measure(pages: int, seed: int, folder: Path) -> None:
    made = records(pages, seed)
    parser = PageParser()
    lexical = LexicalStore(TantivyIndex(folder / "lexical"), parser)
    started = time.perf_counter()
    for start in range(0, len(made), 256):
        await lexical.apply(made[start : start + 256])
    seconds = time.perf_counter() - started
    print(f"| parse, analyse and index by words, {pages} pages | {pages / seconds:,.0f} pages/s |")
    child = Child("vectors", {"models": str(folder / "models")})
    passages = Child("passages", {"models": str(folder / "models")}, nice=19)
    embedder = LocalEmbedder("use", queries=child, passages=passages)
    index = EdgeIndex(child, folder / "vectors", 512)
    rng = np.random.default_rng(seed)
    count = 0
    started = time.perf_counter()
    for start in range(0, len(made), 256):
        states = [vector_state(record, parser) for record in made[start : start + 256]]
        hashes = [passage.hash for state in states for passage in state.passages]
        vectors = rng.standard_normal((len(hashes), 512)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        await index.apply(states, dict(zip(hashes, vectors, strict=True)))
        count += len(hashes)
    print(f"| keep {count} vectors | {count / (time.perf_counter() - started):,.0f} passages/s |")
    ranking = RankPassages(Still(lexical), StillCollections(Still(VectorStore(index, embedder, parser))))
    local = OperationContext(principal="b", remote=False, read_sources=None)
    remote = OperationContext(principal="b", remote=True, read_sources=frozenset({"default"}))
    for name, caller in (("local", local), ("remote, one source", remote)):
        for retrievers in (tuple(Retriever), *((one,) for one in Retriever)):
            random.seed(seed)
            times = []
            for number in range(60):
                question = Question(
                    text=f"{random.choice(QUERIES)} {number if number % 3 == 0 else ''}",
                    retrievers=retrievers,
                    within=page_filter(caller),
                    limit=50,
                    snippet_characters=240,
                )
                started = time.perf_counter()
                answer = await ranking.rank(question, 10.0)
                times.append((time.perf_counter() - started) * 1e3)
                assert not answer.missing, answer.missing
            times = sorted(times[10:])
            label = "all four" if len(retrievers) > 1 else retrievers[0].value
            p50, p95 = statistics.median(times), times[int(len(times) * 0.95)]
            print(f"| {name}: {label} | p50 {p50:.1f} ms, p95 {p95:.1f} ms |")
    print(f"| anonymous memory of the vectors' process | {anonymous(child.pid)} MB |")
    await index.close()
    await child.close()
    await passages.close()
    await lexical.close()


def anonymous(pid: int | None) -> int:
    lines = Path(f"/proc/{pid or 'self'}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("Anonymous"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=17_000)
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(arguments.pages, arguments.seed, Path(folder)))


if __name__ == "__main__":
    main()
