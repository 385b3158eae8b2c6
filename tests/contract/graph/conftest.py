from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.graph.ports import GraphStore
from tests.contract.graph.engines import EMBEDDED, GRAPHS, OpenGraph
from tests.engines.selection import selected


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "open_graph" in metafunc.fixturenames:
        engines = selected(metafunc.config, GRAPHS, embedded=EMBEDDED)
        metafunc.parametrize("open_graph", engines, indirect=True, scope="session")


@pytest.fixture(scope="session")
def open_graph(request: pytest.FixtureRequest) -> OpenGraph:
    return GRAPHS[request.param](request)


@pytest.fixture
async def graph(open_graph: OpenGraph, tmp_path: Path) -> AsyncIterator[GraphStore]:
    async with open_graph(tmp_path / "graph") as store:
        yield store
