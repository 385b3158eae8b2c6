from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the models are unpacked, once for all tests."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def data(tmp_path: Path, models: Path) -> Path:
    """A data folder that finds the models unpacked."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "models").symlink_to(models)
    return folder
