"""What an agent may get wrong, and what it is told; the same for one process and for five."""

from __future__ import annotations

import httpx
import pytest

from tests.e2e.agent import agent, fresh, refused
from tests.e2e.deployments import Deployment


@pytest.mark.parametrize(
    "query",
    [
        "ORD-4471",
        "don't",
        "a/b",
        "user:/x",
        "foo(bar",
        '"unclosed',
        "C++",
        "*",
        "((",
        "x AND",
        "-only",
        "AND OR",
        "！？",
    ],
)
async def test_no_character_of_a_query_is_an_operator(deployment: Deployment, query: str) -> None:
    """BC-095."""
    async with agent(deployment.http) as brain:
        for tool in ("search", "query"):
            assert "hits" in await brain.call(tool, query=query)


@pytest.mark.parametrize("query", ["the who", "to be or not to be", "it", "的 了"])
async def test_a_query_of_stop_words_is_answered_and_bounded(deployment: Deployment, query: str) -> None:
    """BC-100."""
    slug = fresh("bands")
    async with agent(deployment.http) as brain:
        written = await brain.call("put_page", slug=slug, content="# The Who Example\n")
        answer = await brain.call("search", query=query, limit=5, min_revision=written["revision"])

    assert len(answer["hits"]) <= 5
    assert "stopwords_only" in [note["code"] for note in answer["degraded"]]
    if query == "the who":
        assert answer["hits"][0]["slug"].startswith("bands/")


async def test_the_question_at_the_end_of_a_long_paste_is_answered(deployment: Deployment) -> None:
    """BC-101."""
    slug = fresh("companies")
    async with agent(deployment.http) as brain:
        await brain.call("put_page", slug=slug, content="# Gantryhollow\n\nGantryhollow is owned by its staff.\n")
        answer = await brain.call("query", query="lorem ipsum " * 5_000 + "\n\nWho owns Gantryhollow?")
        longest = await brain.call("search", query="x" * 100_000)

    assert slug in [hit["slug"] for hit in answer["hits"]]
    assert answer["notes"]
    assert longest["notes"]


@pytest.mark.parametrize(
    ("tool", "arguments", "reason", "field"),
    [
        ("put_page", {"slug": "a/../b", "content": "x"}, "SLUG_INVALID", "slug"),
        ("put_page", {"slug": "a\u0007b", "content": "x"}, "SLUG_INVALID", "slug"),
        ("put_page", {"slug": "a\u202eb", "content": "x"}, "SLUG_INVALID", "slug"),
        ("put_page", {"slug": "/".join(["a"] * 40), "content": "x"}, "SLUG_INVALID", "slug"),
        ("put_page", {"slug": "empty", "content": ""}, "PAGE_EMPTY", "content"),
        ("put_page", {"slug": "nul", "content": "a\0b"}, "ENCODING_INVALID", "content"),
        ("put_page", {"slug": "huge", "content": "x" * 6_000_000}, "PAGE_TOO_LARGE", "content"),
        ("put_page", {"content": "x"}, "FIELD_REQUIRED", "slug"),
        ("put_page", {"slug": "x", "contents": "x"}, "ARGUMENT_UNKNOWN", "contents"),
        ("put_page", {"slug": "x", "content": ["x"]}, "FIELD_INVALID", "content"),
        ("put_page", {"slug": "x", "content": "x", "if_revision": "soon"}, "FIELD_INVALID", "if_revision"),
        ("put_page", {"slug": "x", "content": "x", "source": "Not A Source"}, "SOURCE_INVALID", "source"),
        ("get_page", {"slug": "no/such/page"}, "PAGE_NOT_FOUND", "slug"),
        ("list_pages", {"limit": -1}, "FIELD_INVALID", "limit"),
        ("list_pages", {"page_token": "nonsense"}, "PAGE_TOKEN_INVALID", "page_token"),
        ("list_pages", {"updated_after": "yesterday"}, "FIELD_INVALID", "updated_after"),
        ("search", {"query": "   "}, "FIELD_REQUIRED", "query"),
        ("search", {"query": "x", "limit": "many"}, "FIELD_INVALID", "limit"),
        ("query", {"query": "x", "without": ["gravity"]}, "FIELD_INVALID", "without"),
        ("get_links", {"slug": "no/such/page"}, "PAGE_NOT_FOUND", "slug"),
        ("traverse_graph", {"slug": "no/such/page", "direction": "up"}, "FIELD_INVALID", "direction"),
        ("submit_job", {"name": "mine-bitcoin"}, "JOB_INVALID", "name"),
        ("get_job", {"id": 999_999}, "JOB_NOT_FOUND", "job_id"),
        ("list_jobs", {"status": "sleeping"}, "FIELD_INVALID", "status"),
    ],
)
async def test_bad_input_gets_a_typed_error_with_field_and_next_step(
    deployment: Deployment, tool: str, arguments: dict[str, object], reason: str, field: str
) -> None:
    async with agent(deployment.http) as brain:
        error = await refused(brain, tool, **arguments)

    assert (error.reason, error.field) == (reason, field)


async def test_sensible_coercions_are_made_and_told(deployment: Deployment) -> None:
    """BC-142."""
    async with agent(deployment.http) as brain:
        for arguments in ({"limit": 0}, {"limit": 10**9}, {"limit": "3"}, {"types": "person, company"}):
            assert (await brain.call("list_pages", **arguments))["notes"]
        silent = await brain.call("search", query="x", source=None, limit="", types=None, since="null")

    assert "notes" not in silent


async def test_broken_frontmatter_never_refuses_a_page(deployment: Deployment) -> None:
    slug = fresh()
    async with agent(deployment.http) as brain:
        text = "---\ntitle: Good\ntags: [unclosed\nkey: : bad\n---\n# Body\n\nPersnickety umlaut.\n"
        written = await brain.call("put_page", slug=slug, content=text)
        read = await brain.call("get_page", slug=slug)

    assert written["findings"][0]["line"]
    assert read["findings"]
    assert read["content"] == text


async def test_arguments_that_are_a_string_of_json_are_read(deployment: Deployment) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    headers = {"accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(base_url=deployment.http) as http:
        quoted = await http.post(
            "/mcp", json=call | {"params": {"name": "list_pages", "arguments": '{"limit": 1}'}}, headers=headers
        )
        nonsense = await http.post(
            "/mcp", json=call | {"params": {"name": "list_pages", "arguments": "one, please"}}, headers=headers
        )

    assert "string of JSON" in quoted.json()["result"]["content"][0]["text"]
    assert nonsense.json()["result"]["isError"] is True
