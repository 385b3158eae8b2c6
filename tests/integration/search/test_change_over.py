"""Without a setting: USE answers at once, E5 is built behind it and takes over, for good."""

from __future__ import annotations

import asyncio
from pathlib import Path

from brain.v1 import search_service_pb2 as pb
from services.runtime.bus import Bus
from tests.integration.search.service import asking, put, running, settings_for


async def test_the_better_vectors_take_over_without_a_gap_and_stay(bus: Bus, data: Path) -> None:
    async with running(settings_for(data, ""), bus) as service:
        for number in range(4):
            revision = await put(bus, f"p/{number}", f"# Page {number}\n\nA kitten sleeps, number {number}.")
        request = pb.SearchPassagesRequest(
            query="young cat naps", min_revision=revision, retrievers=[pb.RETRIEVER_DENSE]
        )
        async with asking(seconds=60):
            await service.stub.GetProgress(
                pb.GetSearchProgressRequest(min_revision=revision, embedded=True), timeout=60
            )
        seen: list[str] = []
        async with asyncio.timeout(60):
            while not seen or not seen[-1].startswith("local:e5/"):
                async with asking():
                    stats = await service.stub.GetStats(pb.GetSearchStatsRequest())
                    answer = await service.stub.SearchPassages(request)
                seen.append(stats.embedder)
                assert not answer.missing
                assert len(answer.lists[0].hits) == 4
        assert set(seen) <= {stats.embedder, seen[0]}
        assert stats.embedded == 4
        assert stats.next_embedder == ""
        revision = await put(bus, "later", "# Later\n\nA puppy barks.")
        async with asking(seconds=60):
            await service.stub.GetProgress(
                pb.GetSearchProgressRequest(min_revision=revision, embedded=True), timeout=60
            )
            assert (await service.stub.GetStats(pb.GetSearchStatsRequest())).embedded == 5
    async with running(settings_for(data, ""), bus) as service, asking():
        stats = await service.stub.GetStats(pb.GetSearchStatsRequest())
        assert stats.embedder.startswith("local:e5/")
        assert stats.embedded == 5
        assert [path.name for path in (data / "vectors").iterdir() if path.is_dir()] == [
            stats.embedder.replace(":", "-").replace("/", "-")
        ]
