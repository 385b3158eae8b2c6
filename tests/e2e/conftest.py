"""The brains that end-to-end tests speak to; started once for all of them, so every test uses slugs of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.deployments import Deployment, five_processes, one_brain


@pytest.fixture(scope="session", params=["one process", "five processes"])
def deployment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A brain in each of its two shapes."""
    opened = one_brain if request.param == "one process" else five_processes
    with opened(tmp_path_factory.mktemp("deployment")) as running:
        yield running
