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


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What only a server can show is not part of a run that is about the engines in the process."""
    return True if collection_path.name == "neo4j" and config.getoption("--engines") == "embedded" else None


@pytest.fixture(scope="session")
def open_graph(request: pytest.FixtureRequest) -> OpenGraph:
    return GRAPHS[request.param](request)


@pytest.fixture
async def graph(open_graph: OpenGraph, tmp_path: Path) -> AsyncIterator[GraphStore]:
    async with open_graph(tmp_path / "graph") as store:
        yield store
