"""Which fleetbrain this is."""

from __future__ import annotations

import importlib.metadata


def version() -> str:
    """The installed version; `source` for a checkout that runs without being installed."""
    try:
        return importlib.metadata.version("fleetbrain")
    except importlib.metadata.PackageNotFoundError:
        return "source"
