"""Figures of the graph store alone: `python -m tests.bench.bench_graph_store` applies, counts, walks, answers."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from services.domain.context import OperationContext, Scope, local_context
from services.domain.page import LinkProvenance, LinkReference
from services.domain.records import PageId, PageKey
from services.graph.adapters.sqlite.store import SqliteGraphStore
from services.graph.app.walks import RelationHop, answer_relation, traverse
from services.graph.ports import Direction, NameQuestion, PageEntry, SlugChange, Viewer

TYPES = ("mentions", "founded", "invested_in", "works_at", "attended", "advises")
FOLDERS = (("people", "person"), ("companies", "company"), ("notes", "note"), ("meetings", "meeting"))
LINKS = 8
BATCH = 256
SEED = 1
CONTEXT = "A sentence around the link that has a usual length and says something about what the link is for."
LOCAL = local_context()
REMOTE = OperationContext(principal="agent", scopes=frozenset({Scope.READ}), read_sources=frozenset({"default"}))


def slug(number: int) -> str:
    return f"{FOLDERS[number % 4][0]}/page-{number:05d}-of-some-length"


def corpus(count: int) -> list[SlugChange]:
    """Pages with skewed in-degree, a third of the links by title, one page in fifty private."""
    rng = random.Random(SEED)
    weights = list(itertools.accumulate(1 / (n + 1) ** 0.7 for n in range(count)))
    changes = []
    for number in range(count):
        links = []
        for place, far in enumerate(rng.choices(range(count), cum_weights=weights, k=LINKS)):
            titled = rng.random() < 0.3
            links.append(
                LinkReference(
                    name=f"Page {far} of some title" if titled else slug(far),
                    source="default",
                    link_type=rng.choice(TYPES),
                    provenance=LinkProvenance.FRONTMATTER if place < 2 else LinkProvenance.TEXT,
                    inward=place == 1 and rng.random() < 0.3,
                    titled=titled,
                    context=CONTEXT,
                    line=place + 5,
                )
            )
        entry = PageEntry(
            title=f"Page {number} of some title",
            type=FOLDERS[number % 4][1],
            private=number % 50 == 49,
            aliases=(f"P{number}",) if number % 3 == 0 else (),
            links=tuple(links),
        )
        page_id = PageId(f"00000000-0000-4000-8000-{number:012d}")
        key = PageKey("default", slug(number))
        changes.append(SlugChange(key=key, revision=number + 1, page_id=page_id, page=entry))
    rng.shuffle(changes)
    return changes


async def timed(label: str, call: Callable[[], Awaitable[object]], repeats: int = 100) -> None:
    await call()
    taken = []
    for _ in range(repeats):
        begun = time.perf_counter()
        await call()
        taken.append((time.perf_counter() - begun) * 1000)
    taken.sort()
    print(f"{label:52} p50 {statistics.median(taken):8.2f} ms   p95 {taken[int(len(taken) * 0.95)]:8.2f} ms")


async def measure(count: int, folder: Path) -> None:
    changes = corpus(count)
    store = SqliteGraphStore(folder)
    begun, processor = time.perf_counter(), time.process_time()
    for start in range(0, count, BATCH):
        await store.apply(changes[start : start + BATCH])
    seconds, processor = time.perf_counter() - begun, time.process_time() - processor
    print(f"{count} pages of {LINKS} links: {count / seconds:.0f} pages/s")
    print(f"{processor / count * 1e6:.0f} µs of processor a page")
    again = [replace(change, revision=change.revision + count) for change in changes[: min(count, 4000)]]
    begun = time.perf_counter()
    for start in range(0, len(again), BATCH):
        await store.apply(again[start : start + BATCH])
    print(f"written again: {len(again) / (time.perf_counter() - begun):.0f} pages/s")
    newer = iter([replace(change, revision=change.revision + 2 * count) for change in changes[:200]])
    await timed("one page written", lambda: store.apply([next(newer)]))
    for name, viewer, caller in (
        ("local", Viewer(sources=None, private=True), LOCAL),
        ("remote", Viewer(sources=frozenset({"default"}), private=False), REMOTE),
    ):
        print(name)
        await measure_reads(store, sorted(change.page_id for change in changes), viewer, caller)
    await store.close()


async def measure_reads(store: SqliteGraphStore, ids: list[PageId], viewer: Viewer, caller: OperationContext) -> None:
    rng = random.Random(SEED)
    count = len(ids)
    one = [RelationHop(link_types=("invested_in",), direction=Direction.IN)]
    two = [*one, RelationHop(link_types=("founded",), direction=Direction.OUT)]

    async def resolve() -> object:
        questions = [NameQuestion(f"Page {n} of some title", "default") for n in rng.sample(range(count), 10)]
        return await store.resolve_names(questions, viewer)

    async def relation(hops: list[RelationHop]) -> object:
        name = f"Page {rng.randrange(count)} of some title"
        return await answer_relation(store, caller, source="", names=[name], hops=hops, limit=50)

    async def walk() -> object:
        begin, way = slug(rng.randrange(count // 50) * 50), Direction.BOTH
        return await traverse(store, caller, source="", slug=begin, direction=way, link_types=(), depth=2, limit=500)

    async def backlinks() -> object:
        return await store.list_links(ids[0], viewer, arriving=True, link_types=(), after=None, limit=100)

    await timed("count backlinks of 100 pages", lambda: store.count_backlinks(rng.sample(ids, 100), viewer))
    await timed("count backlinks of the 100 most linked", lambda: store.count_backlinks(ids[:100], viewer))
    await timed("resolve 10 names", resolve)
    await timed("relation, one hop", lambda: relation(one))
    await timed("relation, two hops", lambda: relation(two))
    await timed("100 links that arrive at the most linked", backlinks, 20)
    await timed("walk both ways, depth 2, 500 edges", walk, 20)
    await timed("names that contain", lambda: store.search_names("page-0123", viewer, 20), 20)
    await timed("names nearly equal", lambda: store.search_names("Paeg 1234 of smoe", viewer, 20), 10)
    await timed("figures", lambda: store.stats(viewer, makers=None), 10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, nargs="+", default=[2_400, 17_000])
    for count in parser.parse_args().pages:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(measure(count, Path(folder)))


if __name__ == "__main__":
    main()
