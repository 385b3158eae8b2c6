"""A process that indexes until it is killed: `python -m tests.integration.search.indexing FOLDER ROUND`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from services.search.adapters.tantivy import TantivyIndex
from services.search.values import SlugState
from tests.contract.search.pages import state

SLUGS = 40


def states_of(round_: int, batch: int) -> list[SlugState]:
    """Every slug again, with the round and batch in its text; later ones have higher revisions."""
    first = 1 + (round_ * 1_000 + batch) * SLUGS
    return [state(f"p/{n}", f"# P{n}\n\nround{round_} batch{batch}\n\n```\ncode\n```", first + n) for n in range(SLUGS)]


async def main(folder: Path, round_: int) -> None:
    index = TantivyIndex(folder)
    for batch in range(1_000):
        await index.apply(states_of(round_, batch))
        print(batch, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
