from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.graph.ports import GraphStore
from tests.contract.graph.engines import GRAPHS, OpenGraph


@pytest.fixture(scope="session", params=sorted(GRAPHS))
def open_graph(request: pytest.FixtureRequest) -> OpenGraph:
    return GRAPHS[request.param]


@pytest.fixture
async def graph(open_graph: OpenGraph, tmp_path: Path) -> AsyncIterator[GraphStore]:
    async with open_graph(tmp_path / "graph") as store:
        yield store
