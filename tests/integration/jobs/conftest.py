"""An owner of stores, and the jobs service before it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.runtime.bus import Bus
from tests.integration.jobs.owner import Owner, open_owner
from tests.integration.jobs.parts import Parts, open_parts


@pytest.fixture
async def owner_and_address(tmp_path: Path) -> AsyncIterator[tuple[Owner, str]]:
    async with open_owner(tmp_path) as opened:
        yield opened


@pytest.fixture
def owner(owner_and_address: tuple[Owner, str]) -> Owner:
    return owner_and_address[0]


@pytest.fixture
async def parts(bus: Bus, owner_and_address: tuple[Owner, str]) -> AsyncIterator[Parts]:
    async with open_parts(bus, owner_and_address[1]) as opened:
        yield opened
