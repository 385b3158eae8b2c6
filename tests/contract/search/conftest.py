from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.search.ports import LexicalIndex
from tests.contract.search.engines import LEXICAL, OpenLexical


@pytest.fixture(scope="session", params=sorted(LEXICAL))
def open_lexical(request: pytest.FixtureRequest) -> OpenLexical:
    return LEXICAL[request.param]


@pytest.fixture
async def lexical(open_lexical: OpenLexical, tmp_path: Path) -> AsyncIterator[LexicalIndex]:
    async with open_lexical(tmp_path / "index") as index:
        yield index
