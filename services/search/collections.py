"""Which vectors serve, and building better ones behind them.

A pinned model has one collection; where another model served before, that one serves until it is complete. Without a
setting the brain answers with USE at once, builds a collection of E5 when USE has come to the log's end, and changes
over when that is complete: there is no minute without vectors. The file `serving.json` says which model serves, so that
a start goes on where the last process stopped.
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

    def __init__(self, only: Collection | None, folder: Path | None = None) -> None:
        """Describes it; `folder` is where `serving.json` says that it serves, for the day the setting changes."""
        self._only = only
        self._folder = folder

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
        if self._only is None:
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._only.projection.run())
            if self._folder is not None and serving(self._folder) != self._only.signature:
                await _caught_up(self._only.projection)
                _serve(self._folder, self._only.signature)

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
        quick_first: bool = True,
        close_grace_seconds: float = CLOSE_GRACE_SECONDS,
    ) -> None:
        """Describes them.

        Args:
            folder: Where `serving.json` is.
            quick: What answers at once.
            better: What takes over.
            quick_first: Whether the better one is begun only when the quick one is complete. Not so when the setting
                changed: the quick one is the former model, which may be away for good.
            close_grace_seconds: How long the quick one stays open after that.
        """
        self._folder = folder
        self._quick = quick
        self._better = better
        self._quick_first = quick_first
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
        self._changed = serving(self._folder) == self._better.signature
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
            if self._quick_first:
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
        _serve(self._folder, self._better.signature)
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


def _serve(folder: Path, signature: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / FILE, orjson.dumps({"serving": signature}))


def serving(folder: Path) -> str:
    """The signature of the model that served last; empty when none was complete."""
    try:
        return str(orjson.loads((folder / FILE).read_bytes())["serving"])
    except (FileNotFoundError, orjson.JSONDecodeError, KeyError, TypeError):
        return ""
