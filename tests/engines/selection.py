"""Which engines a run of the tests is about: `--engines embedded`, the default, `cluster` or `all`."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import settings

CHOICES = ("embedded", "cluster", "all")


def selected(config: pytest.Config, engines: Iterable[str], *, embedded: frozenset[str]) -> list[str]:
    """The engines that take part, by name. One that is not there fails its tests; none is ever left out silently."""
    chosen = config.getoption("--engines")
    return sorted(name for name in engines if chosen == "all" or (name in embedded) == (chosen == "embedded"))


def examples(wanted: int) -> int:
    """As many of a property test's examples as the engines of this run have time for."""
    return min(wanted, settings.default.max_examples) if settings.default is not None else wanted


def gaps_of(config: pytest.Config) -> dict[str, str]:
    """What the engines of this run cannot show, by name, with the reason: printed at the end."""
    return config.stash[GAPS]


GAPS = pytest.StashKey[dict[str, str]]()
