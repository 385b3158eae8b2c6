"""The brains that end-to-end tests speak to; started once for all of them, so every test uses slugs of its own."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from gateway.local_client import LocalClient
from tests.e2e.deployments import ENGINES_START_SECONDS, Deployment, five_processes, one_brain, ready, until
from tests.engines.selection import selected

EMBEDDED = frozenset({"one process", "five processes"})
ON_SERVERS = frozenset({"one process on servers", "five processes on servers"})


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "deployment" in metafunc.fixturenames:
        shapes = selected(metafunc.config, EMBEDDED | ON_SERVERS, embedded=EMBEDDED)
        # "one process" before "five processes", as ever: what is wrong in both is seen sooner.
        metafunc.parametrize("deployment", sorted(shapes, reverse=True), indirect=True, scope="session")


@pytest.fixture(scope="session")
def deployment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A brain in each of its shapes: one process or five, with the engines in the process or on servers."""
    folder = tmp_path_factory.mktemp("deployment")
    engines = engines_of(request) if request.param in ON_SERVERS else {}
    five = request.param.startswith("five")
    with five_processes(folder, engines=engines) if five else one_brain(folder, **engines) as running:
        if engines:
            until(lambda: ready(running.http, ""), "brain that is ready", ENGINES_START_SECONDS)
            until(lambda: writes_at_once(running), "write that is in both indexes at once", ENGINES_START_SECONDS)
        yield running


def writes_at_once(running: Deployment) -> bool:
    """Whether a write is in the indexes before its answer; it changes no other test's page.

    The first batches on a server that has just started take longer than a write waits for them: it has to plan each
    statement, and has compiled nothing yet.
    """
    slug = f"warm/{secrets.token_hex(5)}"
    written = LocalClient(path=running.socket).call("put_page", {"slug": slug, "content": f"# Warm\n\n[[{slug}/x]]\n"})
    return written["indexed"] == {"text": True, "links": True}


def engines_of(request: pytest.FixtureRequest) -> dict[str, str]:
    """The settings that put a brain on the run's servers, under a prefix that no other brain has."""
    prefix = f"e2e{secrets.token_hex(5)}"
    return {
        "FLEETBRAIN_LEXICAL_URL": f"{request.getfixturevalue('opensearch_url')}/{prefix}",
        "FLEETBRAIN_GRAPH_URL": f"{request.getfixturevalue('neo4j_url')}/{prefix}",
    }
