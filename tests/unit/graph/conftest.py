from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.graph.adapters.sqlite.store import SqliteGraphStore
from services.graph.ports import GraphStore


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[GraphStore]:
    """The embedded engine, which passes the contract suite: use cases need no fake."""
    opened = SqliteGraphStore(tmp_path)
    yield opened
    await opened.close()
