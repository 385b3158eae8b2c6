"""Collections of vectors in Qdrant Edge, as the child process holds them. Synchronous: one caller, one call at a time.

A point's id comes from its page, the hash of what was embedded and, for equal passages of one page, their number. So an
edit that only moves passages changes payloads, and no vector is ever read back and written again.
"""

from __future__ import annotations

import fcntl
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from qdrant_edge import (
    CountRequest,
    Distance,
    EdgeConfig,
    EdgeShard,
    EdgeVectorParams,
    Filter,
    IntegerIndexParams,
    KeywordIndexParams,
    Memory,
    Point,
    Query,
    QueryRequest,
    ScrollRequest,
    SearchParams,
    UpdateOperation,
    VectorStorageDatatype,
)

from services.domain.errors import NotReady, Unavailable
from services.search.adapters.edge_points import (
    Condition,
    address,
    any_of,
    conditions,
    held_page,
    hit_of,
    payload_of,
    points_of,
)
from services.search.values import (
    PASSAGES_PER_PAGE_MAX,
    HeldPage,
    PageFilter,
    PageRow,
    PassageKey,
    VectorHit,
    VectorPassage,
    VectorState,
)

ROUNDS_MAX = 6
"""How often a list is filled up when passages of few pages fill it; each time the pages that are full are left out."""

TIES_MAX = 32
"""Hits read beyond a limit, so that equal scores at its edge are cut in order of their ids."""

UPSERT_MAX = 500
"""Points in one write: some 2 MB, far below the 32 MB of a file of the engine's log."""

SCROLL_MAX = 2_000
"""Points read in one go."""

KEYWORDS = ("page_id", "address", "access", "visibility", "type", "tag")
KNOWN = ["page_id", "address", "revision", "ordinal", "hash"]
"""What is read of a point."""


class Held(NamedTuple):
    """A point as it stands."""

    point: str
    page_id: str
    address: str
    revision: int


class EdgeStores:
    """The collections this process has open, by folder."""

    def __init__(self) -> None:
        self._open: dict[str, EdgeStore] = {}

    def open(self, folder: str, dimension: int) -> None:
        """Open or create a collection; open already is no error. Every other method opens it too."""
        self._store(folder, dimension)

    def missing(self, folder: str, dimension: int, states: Sequence[VectorState]) -> list[str]:
        """See `VectorIndex.missing`."""
        return self._store(folder, dimension).missing(states)

    def apply(
        self,
        folder: str,
        dimension: int,
        states: Sequence[VectorState],
        vectors: Mapping[str, NDArray[np.float32]],
    ) -> None:
        """See `VectorIndex.apply`."""
        self._store(folder, dimension).apply(states, vectors)

    def search(
        self, folder: str, dimension: int, vector: NDArray[np.float32], within: PageFilter, limit: int
    ) -> list[VectorHit]:
        """See `VectorIndex.search`."""
        return self._store(folder, dimension).search(vector, within, limit)

    def count(self, folder: str, dimension: int, within: PageFilter) -> int:
        """See `VectorIndex.count`."""
        return self._store(folder, dimension).count(within)

    def held(self, folder: str, dimension: int, after: str | None) -> tuple[list[HeldPage], str | None]:
        """Some of the pages held behind a point, and the point to go on behind; a page may come more than once."""
        return self._store(folder, dimension).held(after)

    def close(self, folder: str) -> None:
        """Close a collection; not open is no error."""
        store = self._open.pop(folder, None)
        if store is not None:
            store.close()

    def _store(self, folder: str, dimension: int) -> EdgeStore:
        if folder not in self._open:
            self._open[folder] = EdgeStore(Path(folder), dimension)
        return self._open[folder]


class EdgeStore:
    """One collection of one model, in a folder that only this process uses."""

    def __init__(self, folder: Path, dimension: int) -> None:
        """Open or create it.

        Raises:
            NotReady: Another process has it.
            Unavailable: The folder holds something that cannot be read.
        """
        folder.mkdir(parents=True, exist_ok=True)
        # The engine's own lock is that of its write-ahead log: ours says what is wrong before it opens anything.
        self._lock = (folder / "owner.lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise _held_by_another(folder) from error
        try:
            self._shard = _open_shard(folder / "shard", dimension)
        except Exception as error:
            self._lock.close()
            raise Unavailable(
                "PEER_UNAVAILABLE",
                f"the vectors in {folder} cannot be opened: {error}",
                next_step="Rebuild the projection `search-vectors`; nothing is lost but the time to embed.",
                metadata={"peer": "qdrant-edge"},
            ) from error

    def missing(self, states: Sequence[VectorState]) -> list[str]:
        """Hashes of passages that need a vector."""
        held = {held.point for held in self._held_of(states)}
        wanted = (pair for state in states for pair in points_of(state))
        return list(dict.fromkeys(passage.hash for point, passage in wanted if point not in held))

    def apply(self, states: Sequence[VectorState], vectors: Mapping[str, NDArray[np.float32]]) -> None:
        """Write what is new, change what moved, remove what is old, then make it durable."""
        stand = {point.point: point for point in self._held_of(states)}
        before = frozenset(stand)
        payloads: dict[str, tuple[PageRow, VectorPassage]] = {}
        for state in sorted(states, key=lambda state: state.revision):
            name = address(state.key)
            page_id = state.page.page_id if state.page else None
            newest = max((one.revision for one in stand.values() if one.page_id == page_id), default=0)
            if state.page is not None and newest <= state.revision:
                for point, passage in points_of(state):
                    payloads[point] = state.page, passage
                    stand[point] = Held(point, state.page.page_id, name, state.revision)
            for one in list(stand.values()):
                if one.revision < state.revision and (one.address == name or one.page_id == page_id):
                    del stand[one.point]
                    payloads.pop(one.point, None)
        new = [
            Point(id=point, vector=vectors[passage.hash].tolist(), payload=payload_of(page, passage))
            for point, (page, passage) in payloads.items()
            if point not in before
        ]
        changed = {p: payload_of(page, passage) for p, (page, passage) in payloads.items() if p in before}
        self._write(new, changed, before - stand.keys())

    def _write(self, new: list[Point], changed: Mapping[str, dict[str, Any]], gone: frozenset[str]) -> None:
        for start in range(0, len(new), UPSERT_MAX):
            self._shard.update(UpdateOperation.upsert_points(new[start : start + UPSERT_MAX]))
        for point, payload in changed.items():
            self._shard.update(UpdateOperation.overwrite_payload([point], payload))
        if gone:
            self._shard.update(UpdateOperation.delete_points(sorted(gone)))
        if new or changed or gone:
            self._shard.flush()

    def search(self, vector: NDArray[np.float32], within: PageFilter, limit: int) -> list[VectorHit]:
        """The nearest by an exact scan; asks again without pages that are full, a few times."""
        must = conditions(within)
        if must is None or limit < 1:
            return []
        query = Query.Nearest(vector.tolist())
        kept: dict[PassageKey, VectorHit] = {}
        taken: Counter[str] = Counter()
        pool = limit + TIES_MAX
        for _ in range(ROUNDS_MAX):
            full = sorted(page_id for page_id, count in taken.items() if count >= PASSAGES_PER_PAGE_MAX)
            without: list[Condition] | None = [any_of("page_id", full)] if full else None
            confined = Filter(must=must or None, must_not=without) if must or without else None
            found = self._shard.query(
                QueryRequest(
                    limit=pool,
                    query=query,
                    filter=confined,
                    with_payload=KNOWN,
                    params=SearchParams(exact=True),
                )
            )
            for point in found:
                hit = hit_of(point.payload, point.score)
                if hit.key not in kept and taken[hit.key.page_id] < PASSAGES_PER_PAGE_MAX:
                    kept[hit.key] = hit
                    taken[hit.key.page_id] += 1
            if len(kept) >= limit or len(found) < pool:
                break
        return sorted(kept.values(), key=lambda hit: (-hit.score, hit.key))[:limit]

    def count(self, within: PageFilter) -> int:
        """How many points are visible."""
        must = conditions(within)
        if must is None:
            return 0
        confined = Filter(must=must) if must else None
        return int(self._shard.count(CountRequest(exact=True, filter=confined)))

    def held(self, after: str | None) -> tuple[list[HeldPage], str | None]:
        """See `EdgeStores.held`."""
        points, following = self._shard.scroll(
            ScrollRequest(offset=after, limit=SCROLL_MAX, with_payload=KNOWN, with_vector=False)
        )
        pages = {held_page(point.payload): None for point in points}
        return list(pages), None if following is None else str(following)

    def close(self) -> None:
        """Make all durable and give the folder back."""
        self._shard.flush()
        self._shard.close()
        self._lock.close()

    def _held_of(self, states: Sequence[VectorState]) -> list[Held]:
        """The points under the slugs and of the pages of some states."""
        addresses = [address(state.key) for state in states]
        page_ids = [str(state.page.page_id) for state in states if state.page is not None]
        should = [any_of("address", addresses)]
        if page_ids:
            should.append(any_of("page_id", page_ids))
        held: list[Held] = []
        offset: Any = None
        while True:
            points, offset = self._shard.scroll(
                ScrollRequest(
                    offset=offset,
                    limit=SCROLL_MAX,
                    filter=Filter(should=should),
                    with_payload=KNOWN,
                    with_vector=False,
                )
            )
            held += [_held(str(point.id), point.payload) for point in points]
            if offset is None:
                return held


def _held(point: str, payload: Mapping[str, Any] | None) -> Held:
    assert payload is not None, point
    return Held(point, payload["page_id"], payload["address"], payload["revision"])


def _open_shard(folder: Path, dimension: int) -> EdgeShard:
    if (folder / "edge_config.json").exists():
        return EdgeShard.load(str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    shard = EdgeShard.create(
        str(folder),
        EdgeConfig(
            vectors=EdgeVectorParams(
                size=dimension,
                distance=Distance.Cosine,
                # Eight bits a number: half the time and half the room of 16 (5 against 10 ms at 50,000), and of the ten
                # nearest by USE it finds 99.5 %, of the fifty nearest 99.9 %.
                datatype=VectorStorageDatatype.Turbo8,
                memory=Memory.Cold,
            ),
            payload_memory=Memory.Cold,
            max_search_threads=1,
            # Without it a kill in the middle of a flush empties the collection: 7 of 14 times; with it, never.
            wal_enabled=True,
        ),
    )
    # Before any data: an index made later can silently drop hits.
    for field in KEYWORDS:
        shard.update(
            UpdateOperation.create_field_index(field, KeywordIndexParams(is_tenant=True if field == "access" else None))
        )
    shard.update(UpdateOperation.create_field_index("slug", KeywordIndexParams(prefix=True)))
    for field in ("updated", "date"):
        shard.update(UpdateOperation.create_field_index(field, IntegerIndexParams(lookup=False, range=True)))
    shard.flush()
    return shard


def _held_by_another(folder: Path) -> NotReady:
    return NotReady(
        "DATA_FOLDER_HELD",
        f"another process holds the vectors in {folder}",
        field="data",
        value=str(folder),
        next_step="Stop that process, or give this one a data folder of its own.",
    )
