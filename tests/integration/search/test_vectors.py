"""The service with vectors of a real model: they come after the text, and find what words miss."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from brain.v1 import search_service_pb2 as pb
from services.runtime.bus import Bus
from tests.integration.search.service import LOCAL, REMOTE, Service, asking, embedded, put, running, settings_for


async def dense(service: Service, query: str) -> list[pb.PassageHit]:
    response = await service.stub.SearchPassages(pb.SearchPassagesRequest(query=query, retrievers=[pb.RETRIEVER_DENSE]))
    assert not response.missing, response.missing
    return list(response.lists[0].hits)


async def test_meaning_finds_what_words_miss_in_two_languages(bus: Bus, data: Path) -> None:
    async with running(settings_for(data, "local:use"), bus) as service:
        await put(bus, "cats", "# Pets\n\nMy kitten sleeps on the sofa all day.")
        await put(bus, "money", "# Finance\n\nThe fund bought shares of a solar company.")
        await put(bus, "hidden", "---\nvisibility: private\n---\n# Secret\n\nA kitten nobody may know.")
        revision = await put(bus, "zh", "# 天气\n\n今天北京下了大雨，地铁停运。")
        progress = await embedded(service, revision)
        assert progress.unembedded == 0
        assert {one.projection for one in progress.projections} == {"search-lexical", "search-vectors"}
        async with asking(LOCAL):
            assert (await dense(service, "a young cat naps"))[0].page.slug in ("cats", "hidden")
            assert (await dense(service, "heavy rain in the Chinese capital"))[0].page.slug == "zh"
            hit = (await dense(service, "股票投资"))[0]
            assert hit.page.slug == "money"
            assert 0 < hit.score <= 1
            assert hit.snippet
            stats = await service.stub.GetStats(pb.GetSearchStatsRequest())
            assert stats.embedded == stats.chunks == 4
            assert stats.embedder.startswith("local:use/512/")
            assert stats.next_embedder == ""
        async with asking(REMOTE):
            assert "hidden" not in {hit.page.slug for hit in await dense(service, "a kitten nobody may know")}


async def test_text_is_found_before_its_vector_is_there(bus: Bus, data: Path) -> None:
    async with running(settings_for(data, "local:use"), bus) as service, asking():
        revision = await put(bus, "a", "solar")
        response = await service.stub.SearchPassages(pb.SearchPassagesRequest(query="solar", min_revision=revision))
        assert [hit.page.slug for hit in response.lists[0].hits] == ["a"]


async def test_embedded_texts_are_normal_and_carry_the_signature(bus: Bus, data: Path) -> None:
    async with running(settings_for(data, "local:use"), bus) as service, asking():
        texts = ["who invested in solar", "", "谁投资了太阳能", "x" * 8_192, "a\0b", "\ud7ff 🚀"]
        for purpose in (pb.EMBED_PURPOSE_QUERY, pb.EMBED_PURPOSE_PASSAGE):
            response = await service.stub.EmbedTexts(pb.EmbedTextsRequest(texts=texts, purpose=purpose))
            rows = np.array([list(one.values) for one in response.embeddings])
            assert rows.shape == (len(texts), 512)
            assert np.linalg.norm(rows, axis=1) == pytest.approx(1.0, abs=1e-4)
            assert response.signature.startswith("local:use/512/")


async def test_the_service_goes_on_when_the_process_of_the_vectors_is_killed(bus: Bus, data: Path) -> None:
    async with running(settings_for(data, "local:use"), bus) as service:
        await embedded(service, await put(bus, "a", "# Cats\n\nMy kitten sleeps."))
        for pid in children("vectors"):
            os.kill(pid, signal.SIGKILL)
        async with asking():
            async with asyncio.timeout(20):
                while True:
                    response = await service.stub.SearchPassages(pb.SearchPassagesRequest(query="kitten sleeps"))
                    assert response.lists[0].hits[0].page.slug == "a"
                    if not response.missing:
                        break
                    assert [one.reason for one in response.missing] == ["unavailable"]
        await embedded(service, await put(bus, "b", "# Dogs\n\nMy puppy barks."))
        async with asking():
            assert (await dense(service, "a small dog is loud"))[0].page.slug == "b"


async def test_embed_missing_ends_with_every_passage_embedded(bus: Bus, data: Path) -> None:
    async with running(settings_for(data, "local:use"), bus) as service, asking(seconds=60):
        for number in range(30):
            revision = await put(bus, f"p/{number}", f"# Page {number}\n\nAbout thing {number}.")
        await service.stub.GetProgress(
            pb.GetSearchProgressRequest(projections=["search-lexical"], min_revision=revision)
        )
        steps = [step async for step in service.stub.EmbedMissing(pb.EmbedMissingRequest(job_id="j"))]
        assert steps[-1].done
        assert (steps[-1].finished, steps[-1].total, steps[-1].unit) == (30, 30, "passages")
        assert [step.finished for step in steps] == sorted(step.finished for step in steps)


async def test_a_rebuild_of_the_vectors_gives_the_same_hits(bus: Bus, data: Path) -> None:
    async with running(settings_for(data, "local:use"), bus) as service:
        for number in range(12):
            revision = await put(bus, f"p/{number}", f"# Page {number}\n\nAbout thing {number}.")
        await embedded(service, revision)
        async with asking(seconds=60):
            before = [(hit.page.slug, hit.ordinal) for hit in await dense(service, "thing 7")]
            request = pb.RebuildSearchProjectionRequest(job_id="again", projection="search-vectors")
            steps = [step async for step in service.stub.RebuildProjection(request)]
            assert steps[-1].done
            assert [(hit.page.slug, hit.ordinal) for hit in await dense(service, "thing 7")] == before


def children(role: str) -> list[int]:
    """Process ids of this process's children of a role."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
            parent = (path.parent / "stat").read_text().rsplit(") ", 1)[1].split()[1]
        except OSError:
            continue
        if b"services.search.adapters.child_main" in words and role.encode() in words and int(parent) == os.getpid():
            found.append(int(path.parent.name))
    return found
