from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.search.ports import LexicalIndex, VectorIndex
from tests.contract.search.engines import LEXICAL, VECTORS, OpenLexical, OpenVectors


@pytest.fixture(scope="session", params=sorted(LEXICAL))
def open_lexical(request: pytest.FixtureRequest) -> OpenLexical:
    return LEXICAL[request.param]


@pytest.fixture
async def lexical(open_lexical: OpenLexical, tmp_path: Path) -> AsyncIterator[LexicalIndex]:
    async with open_lexical(tmp_path / "index") as index:
        yield index


@pytest.fixture(scope="session", params=sorted(VECTORS))
def open_vectors(request: pytest.FixtureRequest) -> OpenVectors:
    return VECTORS[request.param]


@pytest.fixture
async def vectors(open_vectors: OpenVectors, tmp_path: Path) -> AsyncIterator[VectorIndex]:
    async with open_vectors(tmp_path, 16) as index:
        yield index
