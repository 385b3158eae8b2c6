"""What the search service needs of its engines, in its own words: any engine that keeps these promises will do.

The promises are checked by the suites in `tests/contract/search`, which every engine runs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from services.domain.records import PageId
from services.runtime.projection_store import ProjectionProgress, RebuildResult
from services.search.values import (
    HeldPage,
    LexicalCounts,
    LexicalHit,
    PageFilter,
    PageList,
    PageOrder,
    PagePosition,
    PassageKey,
    Retriever,
    SlugState,
    VectorHit,
    VectorState,
)

Vectors = NDArray[np.float32]
"""One row a text, L2-normalised."""


T_co = TypeVar("T_co", covariant=True)
Report = Callable[[int, int], Awaitable[None]]
"""Told how many units of work are finished, and how many there are."""


class Projection(Protocol[T_co]):
    """A projection of the page log as the use cases see it: `services.runtime.projection.HostedProjection`."""

    @property
    def name(self) -> str:
        """Such as `search-lexical`."""

    @property
    def ready(self) -> bool:
        """Whether its store has reached the log's end of when it was begun."""

    @property
    def indexed_revision(self) -> int:
        """Everything up to it is applied; 0 until ready."""

    def use(self) -> AbstractContextManager[T_co]:
        """The store that serves, kept open until the block ends."""

    async def wait_for(self, revision: int, timeout_seconds: float) -> bool:
        """Whether everything up to the revision is applied, now or within the time."""

    async def progress(self) -> ProjectionProgress:
        """How far it is."""

    async def rebuild(self, job_id: str, report: Report, *, to: str = "") -> RebuildResult:
        """Build another store beside the one that serves, or in the engine at a URL, and switch; idempotent by job."""

    async def cancel_rebuild(self, job_id: str) -> bool:
        """End the rebuild of a job; whether there was one."""

    async def sweep(self) -> int:
        """Apply again what differs from the log; how many slugs that were."""


class LexicalIndex(Protocol):
    """Pages and passages by their words.

    Every read is confined by its filter inside the engine. Errors of the engine are `Unavailable`. Terms come analysed
    (`services.domain.text`): none is ever read as the engine's query syntax.
    """

    async def apply(self, states: Sequence[SlugState]) -> None:
        """Bring some slugs up to date; durable and visible to reads on return, all of it or nothing.

        Each page replaces what is held under its id unless that is newer; what else is held under the slug with a
        lower revision goes. So repeated, late and reordered calls are harmless. At most one state of a slug a call.
        """

    async def search(
        self, retriever: Retriever, terms: Sequence[str], within: PageFilter, limit: int
    ) -> list[LexicalHit]:
        """The best pages or passages for some terms: best first, ties by page id and ordinal.

        At most PASSAGES_PER_PAGE_MAX passages of a page. `retriever` is any but DENSE.
        """

    async def passages(self, keys: Sequence[PassageKey], within: PageFilter) -> Mapping[PassageKey, LexicalHit]:
        """Passages by address; those that are not held or not visible are left out. Scores are 0."""

    async def best_passages(
        self, page_ids: Sequence[PageId], terms: Sequence[str], within: PageFilter
    ) -> Mapping[PageId, LexicalHit]:
        """Of each page the passage that fits the terms best; its first one without terms or where none fits."""

    async def pages(self, page_ids: Sequence[PageId], within: PageFilter) -> Mapping[PageId, LexicalHit]:
        """Pages by id; unknown and invisible ones are left out. Scores are 0."""

    async def list_pages(
        self, within: PageFilter, order: PageOrder, *, after: PagePosition | None, offset: int, limit: int
    ) -> PageList:
        """Pages in an order, behind a position and then behind `offset` more. No page twice, none left out."""

    async def counts(self, within: PageFilter) -> LexicalCounts:
        """Counts of what is held and visible; exact."""

    def held(self) -> AsyncIterator[HeldPage]:
        """Every page it holds, whatever its visibility."""

    async def close(self) -> None:
        """Give the engine's files and threads back. What was applied stays."""


class VectorIndex(Protocol):
    """Passages by their meaning: one vector of one model each.

    Reads are confined as in `LexicalIndex`, and `apply` keeps the same rules, with one more: a passage whose hash is
    held already for its page keeps its vector, so that an edit embeds only what changed.
    """

    async def missing(self, states: Sequence[VectorState]) -> list[str]:
        """Hashes of passages for which `apply` needs a vector, each once, in order."""

    async def apply(self, states: Sequence[VectorState], vectors: Mapping[str, NDArray[np.float32]]) -> None:
        """Bring some slugs up to date; durable and visible on return. `vectors` has those that are missing, by hash."""

    async def search(self, vector: NDArray[np.float32], within: PageFilter, limit: int) -> list[VectorHit]:
        """The nearest passages by cosine: best first, ties by page id and ordinal.

        Of the ten that an exact scan finds it finds 95 % or more. At most PASSAGES_PER_PAGE_MAX of a page.
        """

    async def count(self, within: PageFilter) -> int:
        """How many passages with a vector are held and visible; exact."""

    def held(self) -> AsyncIterator[HeldPage]:
        """Every page it holds passages of. A page without text has none, and is not held."""

    async def close(self) -> None:
        """Give files, threads and processes back. What was applied stays."""


class Purpose(StrEnum):
    """What a text is embedded as; some models differ."""

    QUERY = "query"
    PASSAGE = "passage"


class Embedder(Protocol):
    """One embedding model. Its signature is part of every collection made with it."""

    @property
    def signature(self) -> str:
        """Model, dimension and wrapper version, such as `local:use/512/0.2.1`: equal only if the vectors are."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        """One vector a text, in order; any text, of any length, has one. Never blocks the event loop.

        Queries do not wait behind passages.

        Raises:
            Unavailable: The model does not answer.
        """

    async def close(self) -> None:
        """Give threads, processes and memory back."""


class LexicalHolder(Protocol):
    """A store of the lexical projection."""

    @property
    def index(self) -> LexicalIndex:
        """What it keeps."""


class VectorHolder(Protocol):
    """A store of the projection of vectors."""

    @property
    def index(self) -> VectorIndex:
        """What it keeps."""

    @property
    def embedder(self) -> Embedder:
        """The model its vectors are of."""


class Collections(Protocol):
    """Which vectors serve now. They change once, when better ones are complete."""

    @property
    def current(self) -> Projection[VectorHolder] | None:
        """The projection that serves; None when vectors are off."""

    @property
    def following(self) -> Projection[VectorHolder] | None:
        """The one being built behind it; None when there is none."""

    def signature(self, projection: Projection[VectorHolder] | None) -> str:
        """The signature of a projection's model; empty for None."""
