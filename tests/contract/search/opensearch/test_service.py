"""The whole service on OpenSearch, chosen by URL alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from brain.v1 import search_service_pb2 as pb
from services.runtime.bus import Bus
from tests.integration.search.service import asking, put, running, settings_for


async def test_a_write_is_found_at_its_revision(bus: Bus, tmp_path: Path, opensearch_url: str) -> None:
    settings = replace(settings_for(tmp_path), lexical_url=f"{opensearch_url}/service")
    async with running(settings, bus) as service, asking():
        revision = await put(bus, "companies/solar", "# Solar Inc\n\nPanels for roofs in 里斯本.")
        response = await service.stub.SearchPassages(
            pb.SearchPassagesRequest(query="roof panels 里斯本", min_revision=revision)
        )
        [pages] = [one for one in response.lists if one.retriever == pb.RETRIEVER_LEXICAL_PAGES]
        assert [hit.page.slug for hit in pages.hits] == ["companies/solar"]


async def test_a_start_without_the_engine_is_not_ready_and_lives(bus: Bus, tmp_path: Path) -> None:
    settings = replace(settings_for(tmp_path), lexical_url="opensearch://127.0.0.1:9/away")
    async with running(settings, bus) as service:
        assert not service.module.ready()
        assert not any(task.done() for task in service.tasks[:1])
