"""Which vectors serve, and building better ones behind them.

A pinned model has one collection. Without a setting the brain answers with USE at once, builds a collection of E5 when
USE has come to the log's end, and changes over when that is complete: there is no minute without vectors. The file
`serving.json` says which model serves, so that a start goes on where the last process stopped.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from dataclasses import dataclass
from pathlib import Path

import orjson

from services.runtime.data_folder import write_atomic
from services.runtime.projection import HostedProjection
from services.search.consumer import VectorStore
from services.search.ports import Projection, VectorHolder

log = logging.getLogger(__name__)

FILE = "serving.json"
CATCH_UP_SECONDS = 3_600.0
"""How long one wait for the log's end lasts; then it is waited for again."""

CLOSE_GRACE_SECONDS = 15.0
"""How long the old collection stays open after the change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """The vectors of one model."""

    projection: HostedProjection[VectorStore]
    signature: str
    folder: Path


class OneCollection:
    """Vectors of one model, or none."""

    def __init__(self, only: Collection | None) -> None:
        self._only = only

    @property
    def current(self) -> Projection[VectorHolder] | None:
        """The one there is."""
        return self._only.projection if self._only else None

    @property
    def following(self) -> Projection[VectorHolder] | None:
        """None: a pinned model is never changed."""
        return None

    def signature(self, projection: Projection[VectorHolder] | None) -> str:
        """The model's signature."""
        return self._only.signature if self._only and projection is self._only.projection else ""

    async def start(self) -> None:
        """Open it."""
        if self._only is not None:
            await self._only.projection.start()

    async def run(self) -> None:
        """Keep it up to the log."""
        if self._only is not None:
            await self._only.projection.run()

    async def close(self) -> None:
        """Close it."""
        if self._only is not None:
            await self._only.projection.close()


class ChangingCollections:
    """Vectors of a quick model, and behind them those of a better one."""

    def __init__(
        self,
        folder: Path,
        *,
        quick: Collection,
        better: Collection,
        close_grace_seconds: float = CLOSE_GRACE_SECONDS,
    ) -> None:
        """Describes them.

        Args:
            folder: Where `serving.json` is.
            quick: What answers at once.
            better: What takes over.
            close_grace_seconds: How long the quick one stays open after that.
        """
        self._folder = folder
        self._quick = quick
        self._better = better
        self._close_grace_seconds = close_grace_seconds
        self._changed = False
        self._building = False

    @property
    def current(self) -> Projection[VectorHolder] | None:
        """The one that serves."""
        return (self._better if self._changed else self._quick).projection

    @property
    def following(self) -> Projection[VectorHolder] | None:
        """The better one, while it is built."""
        return self._better.projection if self._building else None

    def signature(self, projection: Projection[VectorHolder] | None) -> str:
        """The model's signature."""
        known = {id(one.projection): one.signature for one in (self._quick, self._better)}
        return known.get(id(projection), "")

    async def start(self) -> None:
        """Open what serves."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._changed = _serving(self._folder) == self._better.signature
        if self._changed:
            await asyncio.to_thread(shutil.rmtree, self._quick.folder, ignore_errors=True)
            await self._better.projection.start()
        else:
            await self._quick.projection.start()

    async def run(self) -> None:
        """Keep them up to the log, and change over once."""
        better = self._better.projection
        if self._changed:
            await better.run()
            return
        async with asyncio.TaskGroup() as tasks:
            quick = tasks.create_task(self._quick.projection.run())
            await _caught_up(self._quick.projection)
            await better.start()
            self._building = True
            tasks.create_task(better.run())
            await _caught_up(better)
            await self._change(quick)

    async def close(self) -> None:
        """Close both."""
        for one in (self._quick, self._better):
            await one.projection.close()

    async def _change(self, quick: asyncio.Task[None]) -> None:
        write_atomic(self._folder / FILE, orjson.dumps({"serving": self._better.signature}))
        self._changed, self._building = True, False
        log.info("vectors changed over", extra={"signature": self._better.signature})
        # Queries that took the old one before the change end within their deadline; `close` waits for nobody.
        await asyncio.sleep(self._close_grace_seconds)
        quick.cancel()
        await asyncio.wait({quick})
        await self._quick.projection.close()
        await asyncio.to_thread(shutil.rmtree, self._quick.folder, ignore_errors=True)


async def _caught_up(projection: HostedProjection[VectorStore]) -> None:
    """Waits until a projection holds the last revision there is now."""
    last_revision = (await projection.progress()).last_revision
    while not await projection.wait_for(last_revision, CATCH_UP_SECONDS):
        pass


def _serving(folder: Path) -> str:
    try:
        return str(orjson.loads((folder / FILE).read_bytes())["serving"])
    except (FileNotFoundError, orjson.JSONDecodeError, KeyError, TypeError):
        return ""
