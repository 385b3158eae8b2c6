"""The ingest service on a server of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.runtime.bus import Bus
from tests.integration.ingest.service import Client, open_service


@pytest.fixture
async def client(bus: Bus, tmp_path: Path) -> AsyncIterator[Client]:
    async with open_service(bus, tmp_path) as opened:
        yield opened
