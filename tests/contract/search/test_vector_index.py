"""What every `VectorIndex` promises: nearest first, filters in the engine, replacement by revision, reuse by hash."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from numpy.typing import NDArray

from services.domain.errors import NotReady
from services.domain.records import PageRecord
from services.search.documents import vector_state
from services.search.ports import VectorIndex
from services.search.values import PASSAGES_PER_PAGE_MAX, PageFilter, VectorState, date_code
from tests.contract.search.engines import OpenVectors
from tests.contract.search.histories import (
    AFTER_EVERYTHING,
    SLUGS,
    Held,
    History,
    as_page_record,
    deliver,
    expected,
    histories,
)
from tests.contract.search.pages import EVERYTHING, PARSER, record, within

DIMENSION = 16


def vector_of(text: str, dimension: int = DIMENSION) -> NDArray[np.float32]:
    """A vector that depends on the text alone: a model without a meaning."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    made = np.random.default_rng(seed).standard_normal(dimension).astype(np.float32)
    normal: NDArray[np.float32] = made / np.linalg.norm(made)
    return normal


def vstate(slug: str, body: str | None, revision: int, *, page_id: str = "", source: str = "default") -> VectorState:
    return vector_state(record(slug, body, revision, page_id=page_id, source=source), PARSER)


async def apply(index: VectorIndex, states: Sequence[VectorState]) -> list[str]:
    """Embeds what is missing and applies; returns what had to be embedded."""
    missing = await index.missing(states)
    await index.apply(states, {chunk_hash: vector_of(chunk_hash) for chunk_hash in missing})
    return missing


async def held(index: VectorIndex) -> Held:
    return {(page.key.slug, page.page_id, page.revision) async for page in index.held()}


def page(*parts: str) -> str:
    return "\n\n".join(("---\ntitle: The same\n---", *parts))


def hash_of(one: VectorState, ordinal: int = 0) -> str:
    return one.passages[ordinal].hash


async def test_the_nearest_passage_comes_first_with_its_cosine(vectors: VectorIndex) -> None:
    states = [vstate(f"p/{n}", f"text number {n}", n + 1) for n in range(50)]
    await apply(vectors, states)
    wanted = vector_of(hash_of(states[7]))
    hits = await vectors.search(wanted, EVERYTHING, 10)
    assert hits[0].key.page_id == "id-default-p/7"
    assert hits[0].score == pytest.approx(1.0, abs=5e-3)
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    cosines = sorted((float(vector_of(hash_of(one)) @ wanted) for one in states), reverse=True)
    assert scores == pytest.approx(cosines[:10], abs=1e-2)


async def test_the_hits_are_those_of_an_exact_scan(open_vectors: OpenVectors, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    many = rng.standard_normal((600, 64)).astype(np.float32)
    many /= np.linalg.norm(many, axis=1, keepdims=True)
    async with open_vectors(tmp_path, 64) as index:
        for start in range(0, len(many), 200):
            states = [vstate(f"p/{n}", f"text {n}", n + 1) for n in range(start, start + 200)]
            await index.apply(states, {hash_of(one): many[start + n] for n, one in enumerate(states)})
        found = 0
        for query in range(20):
            best = np.argsort(-(many @ many[query]), kind="stable")[:10]
            hits = await index.search(many[query], EVERYTHING, 10)
            found += len({f"id-default-p/{n}" for n in best} & {hit.key.page_id for hit in hits})
        assert found >= 0.95 * 200


async def test_sources_and_private_pages_are_invisible(vectors: VectorIndex) -> None:
    await apply(
        vectors,
        [
            vstate("open", "one", 1),
            vstate("hidden", "---\nvisibility: private\n---\ntwo", 2),
            vstate("other", "three", 3, source="team"),
        ],
    )
    everything = {"id-default-open", "id-default-hidden", "id-team-other"}
    remote = PageFilter(sources=frozenset({"default"}), private=False)
    two = PageFilter(sources=frozenset({"default", "team"}), private=False)
    every_world = PageFilter(sources=None, private=False)
    nobody = PageFilter(sources=frozenset(), private=True)
    for where, seen in (
        (EVERYTHING, everything),
        (remote, {"id-default-open"}),
        (two, {"id-default-open", "id-team-other"}),
        (every_world, {"id-default-open", "id-team-other"}),
        (PageFilter(sources=frozenset({"default"}), private=True), {"id-default-open", "id-default-hidden"}),
        (nobody, set()),
    ):
        hits = await vectors.search(vector_of("x"), where, 50)
        assert {hit.key.page_id for hit in hits} == seen
        assert await vectors.count(where) == len(seen)


async def test_types_tags_dates_and_slug_prefixes_narrow(vectors: VectorIndex) -> None:
    await apply(
        vectors,
        [
            vstate("a_b/1", "---\ntype: person\ntags: [a, b]\ndate: 2025-12-31\n---\nx", 1),
            vstate("axb/2", "---\ntype: company\ntags: [a]\ndate: 2026-03\n---\ny", 2),
            vstate("项目/3", "---\ntype: meeting\n---\nz", 3),
        ],
    )

    async def found(**narrowed: object) -> set[str]:
        hits = await vectors.search(vector_of("x"), within(**narrowed), 50)
        return {hit.key.page_id.rpartition("/")[2] for hit in hits}

    assert await found(types=("person", "meeting")) == {"1", "3"}
    assert await found(tags=("a", "b")) == {"1"}
    assert await found(since=date_code("2026")) == {"2"}
    assert await found(until=date_code("2026")) == {"1"}
    assert await found(slug_prefix="a_b/") == {"1"}
    assert await found(slug_prefix="项目/") == {"3"}


async def test_one_page_of_many_passages_leaves_room_for_others(vectors: VectorIndex) -> None:
    """BC-110: passages of one page that are all nearer do not push the other pages out."""
    near = vector_of("near")
    body = "\n\n".join(f"## Part {n}\n\n{'word ' * 250}" for n in range(120))
    dense = vstate("dense", body, 1)
    await vectors.apply([dense], {passage.hash: near for passage in dense.passages})
    await apply(vectors, [vstate(f"other/{n}", f"text {n}", n + 2) for n in range(20)])
    hits = await vectors.search(near, EVERYTHING, 20)
    assert len({hit.key.page_id for hit in hits}) >= 10
    assert sum(hit.key.page_id == "id-default-dense" for hit in hits) <= PASSAGES_PER_PAGE_MAX


async def test_an_edit_embeds_only_what_changed(vectors: VectorIndex) -> None:
    parts = [f"## Part {n}\n\n" + f"sentence {n} about things. " * 40 for n in range(4)]
    first = vstate("a", page(*parts), 1)
    assert len(await apply(vectors, [first])) == len(first.passages) > 3
    again = vstate("a", page(*parts), 2)
    assert await apply(vectors, [again]) == []
    edited = vstate("a", page("## New\n\n" + "something else entirely. " * 50, *parts), 3)
    embedded = await apply(vectors, [edited])
    assert 1 <= len(embedded) <= 2
    hits = await vectors.search(vector_of(hash_of(edited, len(edited.passages) - 1)), EVERYTHING, 1)
    assert (hits[0].key.ordinal, hits[0].revision) == (len(edited.passages) - 1, 3)
    assert await vectors.count(EVERYTHING) == len(edited.passages)
    assert await apply(vectors, [vstate("a", page(parts[3], parts[0]), 4)]) == []
    assert await vectors.count(EVERYTHING) == 2


async def test_equal_passages_of_a_page_are_held_each(vectors: VectorIndex) -> None:
    block = "```\n" + "x = 1\n" * 3 + "```"
    one = vstate("a", f"# A\n\n{block}\n\nbetween\n\n{block}", 1)
    await apply(vectors, [one])
    assert await vectors.count(EVERYTHING) == len(one.passages)


async def test_a_move_embeds_nothing_and_leaves_one_page(vectors: VectorIndex) -> None:
    await apply(vectors, [vstate("old", "# Same\n\nalpha", 3, page_id="p")])
    assert await apply(vectors, [vstate("new", "# Same\n\nalpha", 9, page_id="p")]) == []
    assert await apply(vectors, [vstate("old", None, 8, page_id="p")]) == []
    assert await held(vectors) == {("new", "p", 9)}
    hits = await vectors.search(vector_of("x"), within(slug_prefix="new"), 5)
    assert [hit.key.page_id for hit in hits] == ["p"]


async def test_an_older_revision_that_comes_late_changes_nothing(vectors: VectorIndex) -> None:
    await apply(vectors, [vstate("a", "beta", 5)])
    await apply(vectors, [vstate("a", "alpha", 3)])
    assert await held(vectors) == {("a", "id-default-a", 5)}
    await apply(vectors, [vstate("a", None, 4)])
    assert await vectors.count(EVERYTHING) == 1
    await apply(vectors, [vstate("a", None, 6)])
    assert await vectors.count(EVERYTHING) == 0


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=histories(16, 50))
async def test_any_order_of_deliveries_ends_in_what_a_rebuild_holds(vectors: VectorIndex, history: History) -> None:
    async def apply_records(records: list[PageRecord]) -> None:
        await apply(vectors, [vector_state(one, PARSER) for one in records])

    log = await deliver(history, apply_records)
    newest = [as_page_record(one) for one in map(log.newest, log.kept) if one]
    states = [vector_state(one, PARSER) for one in newest]
    with_text = {one.page.page_id for one in states if one.page and one.passages}
    assert await held(vectors) == {row for row in expected(log) if row[1] in with_text}
    assert await vectors.count(EVERYTHING) == sum(len(one.passages) for one in states)
    await apply(vectors, [vstate(slug, None, AFTER_EVERYTHING) for slug in SLUGS])
    assert await vectors.count(EVERYTHING) == 0


async def test_what_was_applied_is_there_after_closing_and_opening(open_vectors: OpenVectors, tmp_path: Path) -> None:
    async with open_vectors(tmp_path, DIMENSION) as index:
        await apply(index, [vstate("a", "alpha", 1)])
    async with open_vectors(tmp_path, DIMENSION) as index:
        assert await held(index) == {("a", "id-default-a", 1)}
        assert await index.missing([vstate("a", "alpha", 2)]) == []
        one = vstate("a", "alpha", 1)
        [hit] = await index.search(vector_of(hash_of(one)), EVERYTHING, 5)
        assert hit.score == pytest.approx(1.0, abs=5e-3)


async def test_a_second_owner_is_refused(open_vectors: OpenVectors, tmp_path: Path) -> None:
    async with open_vectors(tmp_path, DIMENSION):
        with pytest.raises(NotReady) as refused:
            async with open_vectors(tmp_path, DIMENSION):
                pass
    assert refused.value.reason == "DATA_FOLDER_HELD"
    assert refused.value.next_step
