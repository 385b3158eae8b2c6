"""Servers that the tests of a run share, started by the first that needs one: a plugin of `tests/conftest.py`."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.engines import neo4j, opensearch
from tests.engines.selection import CHOICES, GAPS, gaps_of

SERVER_EXAMPLES_MAX = 8
"""An example makes two stores on a server, seconds each. The same ones in every run: the runs on the engines in the
process look for new ones, and there a failure costs nobody else's landing."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engines",
        choices=CHOICES,
        default="embedded",
        help="the engines that contract tests run on: those in the process, the servers of a cluster, or all",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[GAPS] = {}
    if config.getoption("--engines") != "embedded":
        settings.register_profile("servers", settings.default, max_examples=SERVER_EXAMPLES_MAX, derandomize=True)
        settings.load_profile("servers")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    gaps = config.stash[GAPS]
    if gaps:
        terminalreporter.section("what the engines of this run cannot show")
        for name, reason in sorted(gaps.items()):
            terminalreporter.write_line(f"{name}: {reason}")


NEO4J_GAPS = {
    "neo4j, reads beside writes": "a commit becomes visible record by record; a read of which every statement falls"
    " into those milliseconds could see half a batch. Reads are done again when a batch ended meanwhile, and a writer"
    " beside readers is tried, but that moment cannot be brought about at will.",
    "neo4j, power cuts": "kill -9 is tried; a cut of the power would need a machine to cut off.",
}


@pytest.fixture(scope="session")
def neo4j_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Neo4j with its credentials: the one that FLEETBRAIN_TEST_NEO4J_URL names, or one of the run's own."""
    gaps_of(request.config).update(NEO4J_GAPS)
    running = os.environ.get("FLEETBRAIN_TEST_NEO4J_URL", "")
    if running:
        yield running
        return
    with neo4j.running(tmp_path_factory.mktemp("neo4j")) as server:
        yield server.url


@pytest.fixture(scope="session")
def opensearch_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An OpenSearch: the one that FLEETBRAIN_TEST_OPENSEARCH_URL names, or one of the run's own."""
    running = os.environ.get("FLEETBRAIN_TEST_OPENSEARCH_URL", "")
    if running:
        yield running
        return
    with opensearch.running(tmp_path_factory.mktemp("opensearch")) as server:
        yield server.url
