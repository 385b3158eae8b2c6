"""What is left of an answer when a service is gone, and a token that everybody needs."""

from __future__ import annotations

from pathlib import Path

import httpx

from gateway.local_client import LocalClient
from services.domain.errors import BrainError
from tests.e2e.deployments import five_processes

TOKEN = {"authorization": "Bearer open sesame"}


def test_without_search_graph_still_answers_and_every_missing_arm_is_named(tmp_path: Path) -> None:
    with five_processes(tmp_path, without="search", FLEETBRAIN_TOKEN="open sesame") as running:
        client = LocalClient(path=running.socket)
        client.call("put_page", {"slug": "companies/loom", "content": "# Loom\n", "wait": "none"})
        text = "# Fund\n\nFund invested in [[companies/loom]].\n"
        written = client.call("put_page", {"slug": "companies/fund", "content": text})
        question = {"query": "Who invested in Loom?", "min_revision": written["revision"]}
        answer = client.call("query", question)
        refused = refusal(client, "search", {"query": "loom"})
        with httpx.Client(base_url=running.http) as http:
            anonymous = http.post("/api/get_stats", json={})
            ready = http.get("/readyz")
            known = http.post("/api/get_page", json={"slug": "companies/fund"}, headers=TOKEN)

    assert written["indexed"] == {"text": False, "links": True}
    assert "min_revision" in str(written["notes"])
    hits = answer["hits"]
    assert isinstance(hits, list)
    assert [hit["slug"] for hit in hits if isinstance(hit, dict)] == ["companies/fund"]
    missing = answer["missing"]
    assert isinstance(missing, list)
    assert {entry["arm"] for entry in missing if isinstance(entry, dict)} == {
        "dense", "lexical_pages", "lexical_chunks", "title",
    }  # fmt: skip
    assert refused.reason == "PEER_UNAVAILABLE"
    assert anonymous.status_code == 401
    assert ready.status_code == 503
    assert ready.json()["services"]["brain.v1.SearchService"] is False
    assert known.json()["slug"] == "companies/fund"


def refusal(client: LocalClient, operation: str, arguments: dict[str, str]) -> BrainError:
    """The error of a call that fails."""
    try:
        client.call(operation, {**arguments})
    except BrainError as error:
        return error
    raise AssertionError(f"{operation} did not fail")
