"""The JSON endpoints, and what HTTP says of errors, health and numbers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.e2e.deployments import Deployment


@pytest.fixture
async def http(deployment: Deployment) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the brain's HTTP address."""
    async with httpx.AsyncClient(base_url=deployment.http, timeout=30) as client:
        yield client


async def test_an_operation_is_an_endpoint_that_replies_with_the_bare_result(http: httpx.AsyncClient) -> None:
    written = await http.post("/api/put_page", json={"slug": "http/one", "content": "# One\n"})
    lists = {
        "hits": await http.post("/api/search", json={"query": "one"}),
        "pages": await http.post("/api/list_pages", json={}),
        "versions": await http.post("/api/get_versions", json={"slug": "http/one"}),
        "links": await http.post("/api/get_links", json={"slug": "http/one"}),
        "jobs": await http.post("/api/list_jobs"),
    }

    assert written.json()["slug"] == "http/one"
    for name, response in lists.items():
        assert response.status_code == 200
        assert isinstance(response.json()[name], list)


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("/api/get_page", b'{"slug": "no/such/page"}', 404, "PAGE_NOT_FOUND"),
        ("/api/get_page", b'{"slug": ".."}', 400, "SLUG_INVALID"),
        ("/api/get_page", b"{", 400, "FIELD_INVALID"),
        ("/api/get_page", b"[1]", 400, "FIELD_INVALID"),
        ("/api/get_page", b"\xff\xfe", 400, "FIELD_INVALID"),
        ("/api/put_page", b'{"slug": "x", "content": "\\ud800"}', 400, "FIELD_INVALID"),
        ("/api/no_such_operation", b"{}", 404, "OPERATION_UNKNOWN"),
        ("/api/put_page", b'{"slug": "x", "content": "' + b"x" * 5_000_001 + b'"}', 413, "PAGE_TOO_LARGE"),
        ("/api/put_page", b'{"slug": "x", "content": "' + b"x" * 13_000_000 + b'"}', 413, "PAGE_TOO_LARGE"),
        ("/api/search", b'{"query": "x", "min_revision": 99999999}', 503, "INDEX_BEHIND"),
    ],
)
async def test_errors_have_a_status_and_say_what_to_do(
    http: httpx.AsyncClient, path: str, body: bytes, status: int, reason: str
) -> None:
    response = await http.post(path, content=body)

    assert response.status_code == status
    error = response.json()["error"]
    assert set(error) >= {"reason", "message", "field", "value", "next_step"}
    assert error["reason"] == reason
    assert error["next_step"]


async def test_a_conflict_is_409_and_names_the_current_revision(http: httpx.AsyncClient) -> None:
    first = await http.post("/api/put_page", json={"slug": "http/conflict", "content": "# Mine\n"})
    second = await http.post("/api/put_page", json={"slug": "http/conflict", "content": "# Yours\n"})

    assert second.status_code == 409
    assert second.json()["error"]["details"]["revision"] == first.json()["revision"]


async def test_health_readiness_and_numbers_are_there(http: httpx.AsyncClient) -> None:
    assert (await http.get("/healthz")).json() == {"status": "ok"}
    assert (await http.get("/readyz")).json()["status"] == "ready"
    metrics = (await http.get("/metrics")).text
    assert "# TYPE" in metrics
    assert "brain_" in metrics


async def test_a_page_of_five_million_bytes_of_chinese_goes_in_and_comes_back(http: httpx.AsyncClient) -> None:
    """As ASCII JSON it has twice its bytes."""
    text = "# 长\n\n" + "字，" * 833_000
    escaped = (
        '{"slug": "http/long", "content": "' + text.replace("\n", "\\n").encode("ascii", "backslashreplace").decode()
    )
    written = await http.post("/api/put_page", content=escaped + '", "overwrite": true, "wait": "none"}')
    read = await http.post("/api/get_page", json={"slug": "http/long"})

    assert written.status_code == 200, written.text[:300]
    assert written.json()["content_bytes"] == len(text.encode())
    assert read.json()["content"] == text
    await http.post("/api/delete_page", json={"slug": "http/long", "wait": "none"})


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b"{}",
        b'{"jsonrpc": "1.0", "id": 1, "method": "tools/list"}',
        b'{"jsonrpc": "2.0", "id": 1}',
        b'{"jsonrpc": "2.0", "id": {}, "method": "tools/list"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []}',
    ],
)
async def test_what_is_no_message_of_the_protocol_gets_one_line(http: httpx.AsyncClient, body: bytes) -> None:
    accepted = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    response = await http.post("/mcp", content=body, headers=accepted)

    assert response.status_code == 400
    error = response.json()["error"]
    assert error["code"] in (-32700, -32600)
    assert "pydantic" not in response.text
    assert len(error["message"]) < 120


@pytest.mark.parametrize(
    ("operation", "arguments", "field"),
    [
        ("query", {"query": "x", "since": "bad"}, "since"),
        ("list_pages", {"type": 5}, "type"),
        ("put_page", {"slug": "x", "content": "a\x00b"}, "content"),
    ],
)
async def test_an_error_names_the_argument_as_it_was_written(
    http: httpx.AsyncClient, operation: str, arguments: dict[str, object], field: str
) -> None:
    response = await http.post(f"/api/{operation}", json=arguments)

    assert response.status_code == 400
    assert response.json()["error"]["field"] == field
