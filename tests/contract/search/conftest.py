from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.search.ports import LexicalIndex, VectorIndex
from tests.contract.search.engines import EMBEDDED, LEXICAL, VECTORS, OpenLexical, OpenVectors
from tests.engines.selection import gaps_of, selected


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for fixture, engines in (("open_lexical", LEXICAL), ("open_vectors", VECTORS)):
        if fixture in metafunc.fixturenames:
            chosen = selected(metafunc.config, engines, embedded=EMBEDDED)
            metafunc.parametrize(fixture, chosen, indirect=True, scope="session")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What only a server can show is not part of a run that is about the engines in the process, and vice versa."""
    engines = config.getoption("--engines")
    if collection_path.name == "opensearch" and engines == "embedded":
        return True
    if collection_path.name == "test_vector_index.py" and engines == "cluster":
        gaps_of(config)["vectors on a server"] = "there is no adapter for Qdrant yet"
        return True
    return None


@pytest.fixture(scope="session")
def open_lexical(request: pytest.FixtureRequest) -> OpenLexical:
    return LEXICAL[request.param](request)


@pytest.fixture
async def lexical(open_lexical: OpenLexical, tmp_path: Path) -> AsyncIterator[LexicalIndex]:
    async with open_lexical(tmp_path / "index") as index:
        yield index


@pytest.fixture(scope="session")
def open_vectors(request: pytest.FixtureRequest) -> OpenVectors:
    return VECTORS[request.param]


@pytest.fixture
async def vectors(open_vectors: OpenVectors, tmp_path: Path) -> AsyncIterator[VectorIndex]:
    async with open_vectors(tmp_path, 16) as index:
        yield index
