"""A writing process is killed without a word: what it had said is applied is there, and nothing is half there."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from services.graph.adapters.sqlite.store import SqliteGraphStore
from services.graph.ports import NameQuestion, SlugChange
from tests.contract.graph.pages import EVERYTHING, link, page, pid

BATCH = 20
WRITER = """
import asyncio, sys
from pathlib import Path
from services.graph.adapters.sqlite.store import SqliteGraphStore
from tests.integration.graph.test_kill import batch

async def main():
    store = SqliteGraphStore(Path(sys.argv[1]))
    for number in range(int(sys.argv[2]), 10_000):
        await store.apply(batch(number))
        print(number, flush=True)

asyncio.run(main())
"""


def batch(number: int) -> list[SlugChange]:
    """Pages of one batch, each linking to the one before and to a hub that every batch writes again."""
    first = number * BATCH
    pages = [page(f"p/{n}", link("hub"), link(f"p/{n - 1}")) for n in range(first, first + BATCH)]
    return [*pages, page("hub", link(f"p/{first}"), title=f"Hub {number}", revision=10**9 + number)]


async def test_ten_kills_lose_nothing_that_was_applied_and_leave_nothing_half_applied(tmp_path: Path) -> None:
    done = -1
    for kill in range(10):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", WRITER, str(tmp_path), str(done + 1)), stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        async with asyncio.timeout(30):
            for _ in range(1 + kill % 3):
                done = int(await process.stdout.readline())
        process.kill()
        rest = await process.stdout.read()
        await process.wait()
        done = max([done, *(int(line) for line in rest.split(b"\n")[:-1] if line)])

    store = SqliteGraphStore(tmp_path)
    try:
        stats = await store.stats(EVERYTHING, makers=None)
        assert stats.pages in {(done + 1) * BATCH + 1, (done + 2) * BATCH + 1}
        applied = (stats.pages - 1) // BATCH
        assert await store.count_backlinks([pid("hub")], EVERYTHING) == [applied * BATCH]
        ((hub,),) = await store.resolve_names([NameQuestion(f"Hub {applied - 1}", "default")], EVERYTHING)
        assert hub.page.page_id == pid("hub")
        assert stats.ghosts == 1, "p/0 links to a page before the first"
    finally:
        await store.close()
