"""Fixtures every test may use: a NATS server of the test's own, and the bus of one process on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from services.runtime.bus import Bus, open_bus
from services.runtime.nats_child import NatsAddress, nats_child

pytest_plugins = ["tests.engines.fixtures"]

# The machine is shared: an example that waits for a processor is not a slow test.
settings.register_profile("fleetbrain", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fleetbrain")


@pytest.fixture
async def nats_server(tmp_path: Path) -> AsyncIterator[NatsAddress]:
    """A real server with an empty log; it starts in 25 ms, so no test shares one."""
    async with nats_child(tmp_path / "nats") as address:
        yield address


@pytest.fixture
async def bus(nats_server: NatsAddress) -> AsyncIterator[Bus]:
    """The bus of one process."""
    async with open_bus(nats_server.url, name="test") as opened:
        yield opened
