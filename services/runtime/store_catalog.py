"""Where the stores of one projection are, and which of them serves.

A private catalog is a folder of this process: each store a folder in it, and the file `current.json` the pointer. A
shared one is kept in a server engine, by the engine's adapter: other processes work on the same stores.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

import orjson

from services.runtime.data_folder import write_atomic
from services.runtime.projection_store import ProjectionStore, RebuildResult

FILE = "current.json"
RESULTS_MAX = 16
"""Results of finished rebuilds that are remembered, so that a job asked for again is answered and not done twice."""

S = TypeVar("S", bound=ProjectionStore)
S_co = TypeVar("S_co", bound=ProjectionStore, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """The store that serves, and the log's last revision when it was begun."""

    store_id: str
    ready_from: int
    results: Mapping[str, RebuildResult] = field(default_factory=dict)
    moved_to: str = ""
    """The URL, without credentials, of the engine that took over; empty while the store serves."""

    def with_result(self, result: RebuildResult) -> Mapping[str, RebuildResult]:
        """The results, the newest last, without the oldest beyond RESULTS_MAX."""
        results = {**self.results, result.job_id: result}
        return dict(list(results.items())[-RESULTS_MAX:])


class StoreCatalog(Protocol[S_co]):
    """The stores of one projection in one engine, and which of them serves. An id is 1 to 32 of `[a-z0-9]`."""

    @property
    def shared(self) -> bool:
        """Whether other processes work on the same stores; then all pull from the one durable that a store has."""

    async def read(self) -> Pointer | None:
        """Which store serves; None when none was ever begun.

        Raises:
            Unavailable: The engine does not answer.
            NotReady: The stores belong to another log, or were made by a newer version.
        """

    async def write(self, pointer: Pointer, *, expected: Pointer | None) -> bool:
        """Makes another store the one that serves, if the one that serves is still the expected one.

        For a server engine this is the switch of the alias too: whoever reads by it sees the new store at once.

        Returns:
            False when somebody was faster; nothing is changed then. Stores are compared by their ids.
        """

    async def stores(self) -> Sequence[str]:
        """The ids of all stores there are, whether they serve, are being filled or were left by a death."""

    async def open(self, store_id: str) -> S_co:
        """Opens the store, or makes an empty one; doing both twice, and at once, is harmless.

        Raises:
            Unavailable: The engine does not answer.
        """

    async def remove(self, store_id: str) -> None:
        """Removes a store for good; one that is gone already is no error."""


class FolderCatalog(StoreCatalog[S]):
    """Stores in a folder that no other process uses."""

    shared = False

    def __init__(self, folder: Path, open_store: Callable[[str, Path], Awaitable[S]]) -> None:
        """Describes it; nothing happens yet.

        Args:
            folder: Where the stores' folders lie; made when it is not there.
            open_store: Opens or makes the store with this id in this folder, which exists.
        """
        self._folder = folder
        self._open_store = open_store

    async def read(self) -> Pointer | None:
        """The pointer; None when there is none yet, or one that cannot be read: then the store is built anew."""
        try:
            return decode_pointer((self._folder / FILE).read_bytes())
        except (FileNotFoundError, ValueError):
            return None

    async def write(self, pointer: Pointer, *, expected: Pointer | None) -> bool:
        """Makes another store the one that serves; there is nobody else who could be faster."""
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomic(self._folder / FILE, encode_pointer(pointer))
        return True

    async def stores(self) -> Sequence[str]:
        """The folders there are."""
        if not self._folder.is_dir():
            return []
        return sorted(path.name for path in self._folder.iterdir() if path.is_dir())

    async def open(self, store_id: str) -> S:
        """Opens the store in its folder, which is there first: a start finds and removes by it what a death left."""
        place = self._folder / store_id
        place.mkdir(parents=True, exist_ok=True)
        return await self._open_store(store_id, place)

    async def remove(self, store_id: str) -> None:
        """Removes a store's files."""
        await asyncio.to_thread(shutil.rmtree, self._folder / store_id, ignore_errors=True)


def encode_pointer(pointer: Pointer) -> bytes:
    """A pointer as JSON, the form in which every catalog keeps it."""
    results = [{"job_id": r.job_id, "store_id": r.store_id, "pages": r.pages} for r in pointer.results.values()]
    body: dict[str, object] = {"store_id": pointer.store_id, "ready_from": pointer.ready_from, "results": results}
    if pointer.moved_to:
        body["moved_to"] = pointer.moved_to
    return orjson.dumps(body, option=orjson.OPT_INDENT_2)


def decode_pointer(text: bytes | str) -> Pointer:
    """Reads what `encode_pointer` wrote.

    Raises:
        ValueError: It is no pointer.
    """
    try:
        body = orjson.loads(text)
        results = {r["job_id"]: RebuildResult(**r) for r in body["results"]}
        return Pointer(
            store_id=str(body["store_id"]),
            ready_from=int(body["ready_from"]),
            results=results,
            moved_to=str(body.get("moved_to", "")),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"this is no pointer to a store: {error}") from error
