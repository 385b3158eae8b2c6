"""What an agent can rely on, over MCP alone; the same for one process and for five."""

from __future__ import annotations

import asyncio
import hashlib

import httpx
import pytest
from jsonschema import Draft202012Validator
from mcp.shared.exceptions import MCPError

from gateway.local_client import LocalClient
from tests.e2e.agent import agent, fresh, refused, until
from tests.e2e.deployments import Deployment


async def test_an_agent_finds_what_it_wrote_at_once(deployment: Deployment) -> None:
    slug = fresh()
    async with agent(deployment.http) as brain:
        written = await brain.call("put_page", slug=slug, content="# Quillerberry\n\nThe quillerberry ripens in May.\n")
        found = await brain.call("query", query="when does the quillerberry ripen?")

    assert written["status"] == "created"
    assert written["indexed"] == {"text": True, "links": True}
    hit = found["hits"][0]
    assert hit["slug"] == slug
    assert hit["revision"] == written["revision"]
    assert not found["abstained"]
    assert set(hit) >= {
        "title", "source", "type", "score", "rank", "snippet", "matched_by", "chunk_kind", "evidence",
        "evidence_sentence", "create_safety",
    }  # fmt: skip


async def test_an_agent_finds_what_it_wrote_in_chinese(deployment: Deployment) -> None:
    slug = fresh("笔记")
    async with agent(deployment.http) as brain:
        await brain.call("put_page", slug=slug, content="# 冬藏计划\n\n霜降之后把梨膏封进陶罐。\n")

        assert (await brain.slugs("search", "梨膏什么时候封罐"))[0] == slug
        assert (await brain.slugs("query", "冬藏计划"))[0] == slug


async def test_links_become_a_graph_that_answers_in_both_languages(deployment: Deployment) -> None:
    fund, firm = fresh("companies"), fresh("companies")
    async with agent(deployment.http) as brain:
        await brain.call("put_page", slug=firm, content="---\ntype: company\n---\n# Nimbusforge\n\nMakes clouds.\n")
        text = f"---\ntype: company\n---\n# Okapi Partners\n\nOkapi Partners invested in [[{firm}]] in 2024.\n"
        await brain.call("put_page", slug=fund, content=text)

        backlinks = (await brain.call("get_backlinks", slug=firm))["links"]
        walked = await brain.call("traverse_graph", slug=fund, direction="out")
        answers = [
            (await brain.call("query", query=question))["hits"][0]
            for question in ("Who invested in Nimbusforge?", "谁投资了 Nimbusforge？")
        ]

    assert [(link["from_slug"], link["link_type"]) for link in backlinks] == [(fund, "invested_in")]
    assert [(link["to_slug"], link["depth"]) for link in walked["links"]] == [(firm, 1)]
    for hit in answers:
        assert hit["slug"] == fund
        assert hit["evidence"] == "relational"
        assert hit["path"][0]["link_type"] == "invested_in"


async def test_a_link_to_a_page_that_does_not_exist_becomes_real_when_it_comes(deployment: Deployment) -> None:
    here, there = fresh(), fresh()
    async with agent(deployment.http) as brain:
        await brain.call("put_page", slug=here, content=f"# Here\n\nSee [[{there}]].\n")
        before = (await brain.call("get_links", slug=here))["links"][0]
        await brain.call("put_page", slug=there, content="# There\n")
        after = (await brain.call("get_links", slug=here))["links"][0]

    assert (before["to_slug"], before["exists"]) == (there, False)
    assert (after["to_slug"], after["exists"], after["to_title"]) == (there, True, "There")


async def test_a_moved_page_keeps_its_history_its_links_and_its_old_address(deployment: Deployment) -> None:
    old, new, friend = fresh(), fresh(), fresh()
    async with agent(deployment.http) as brain:
        first = await brain.call("put_page", slug=old, content="# Wandering vellichor\n")
        await brain.call("put_page", slug=friend, content=f"# Friend\n\nSee [[{old}]].\n")
        moved = await brain.call("move_page", slug=old, new_slug=new)
        read = await brain.call("get_page", slug=old)
        versions = (await brain.call("get_versions", slug=new))["versions"]
        backlinks = (await brain.call("get_backlinks", slug=new))["links"]
        found = await brain.slugs("search", "vellichor")
        error = await refused(brain, "put_page", slug=old, content="# New\n", overwrite=True)

    assert (moved["status"], moved["slug"]) == ("moved", new)
    assert (read["slug"], read["moved_to"]) == (new, new)
    assert first["revision"] in [version["revision"] for version in versions]
    assert [link["from_slug"] for link in backlinks] == [friend]
    assert found == [new]
    assert (error.reason, error.details["moved_to"]) == ("PAGE_MOVED", new)


async def test_a_page_cannot_be_moved_onto_another(deployment: Deployment) -> None:
    here, there = fresh(), fresh()
    async with agent(deployment.http) as brain:
        await brain.call("put_page", slug=here, content="# Here\n")
        await brain.call("put_page", slug=there, content="# There\n")

        assert (await refused(brain, "move_page", slug=here, new_slug=there)).reason == "SLUG_TAKEN"


async def test_a_deleted_page_is_nowhere_and_comes_back(deployment: Deployment) -> None:
    slug = fresh()
    async with agent(deployment.http) as brain:
        await brain.call("put_page", slug=slug, content="# Marzipan zeppelin\n")
        deleted = await brain.call("delete_page", slug=slug)
        gone = await refused(brain, "get_page", slug=slug)
        tombstone = await brain.call("get_page", slug=slug, include_deleted=True)
        found = await brain.slugs("search", "marzipan zeppelin")
        listed = (await brain.call("list_pages", slug_prefix=slug))["pages"]
        restored = await brain.call("restore_page", slug=slug)
        again = await brain.slugs("search", "marzipan zeppelin")

    assert deleted["status"] == "deleted"
    assert deleted["recoverable_until"]
    assert gone.reason == "PAGE_NOT_FOUND"
    assert tombstone["deleted_at"]
    assert slug not in found
    assert listed == []
    assert restored["status"] == "restored"
    assert again[0] == slug


async def test_every_revision_can_be_read_and_brought_back(deployment: Deployment) -> None:
    slug = fresh()
    async with agent(deployment.http) as brain:
        revisions: list[int] = []
        for text in ("one", "two", "three"):
            last = revisions[-1] if revisions else 0
            reply = await brain.call("put_page", slug=slug, content=f"# {text}\n", if_revision=last)
            revisions.append(reply["revision"])
        versions = (await brain.call("get_versions", slug=slug))["versions"]
        first = await brain.call("get_page", slug=slug, revision=revisions[0])
        reverted = await brain.call("revert_version", slug=slug, version_id=revisions[0])
        now = await brain.call("get_page", slug=slug)

    assert [version["revision"] for version in versions] == revisions[::-1]
    assert first["content"] == "# one\n"
    assert reverted["status"] == "reverted"
    assert (now["content"], now["revision"]) == ("# one\n", reverted["revision"])


async def test_nobody_overwrites_what_they_have_not_read(deployment: Deployment) -> None:
    slug = fresh()
    async with agent(deployment.http) as brain:
        first = await brain.call("put_page", slug=slug, content="# Mine\n")
        blind = await refused(brain, "put_page", slug=slug, content="# Yours\n")
        stale = await refused(brain, "put_page", slug=slug, content="# Yours\n", if_revision=first["revision"] + 999)
        same = await brain.call("put_page", slug=slug, content="# Mine\n", if_revision=1)
        forced = await brain.call("put_page", slug=slug, content="# Yours\n", overwrite=True)

    for error in (blind, stale):
        assert error.reason == "REVISION_CONFLICT"
        assert error.details["revision"] == first["revision"]
        assert error.details["content_hash"] == first["content_hash"]
    assert (same["status"], same["revision"]) == ("unchanged", first["revision"])
    assert forced["replaced_revision"] == first["revision"]


async def test_a_retry_with_the_same_request_id_writes_once(deployment: Deployment) -> None:
    slug = fresh()
    async with agent(deployment.http) as brain:
        first = await brain.call("put_page", slug=slug, content="# Once\n", request_id="retry-1")
        second = await brain.call("put_page", slug=slug, content="# Once\n", request_id="retry-1")
        other = await refused(brain, "put_page", slug=slug, content="# Twice\n", request_id="retry-1")

    assert second["revision"] == first["revision"]
    assert other.reason == "REQUEST_ID_REUSED"


async def test_a_text_that_was_cut_on_its_way_is_refused(deployment: Deployment) -> None:
    """BC-077."""
    slug, text = fresh(), "# Long\n\n" + "word " * 10_000
    async with agent(deployment.http) as brain:
        await brain.call("put_page", slug=slug, content=text)
        read = await brain.call("get_page", slug=slug)
        cut = await refused(
            brain, "put_page", slug=slug, content=text[:500], overwrite=True, content_hash=read["content_hash"]
        )

    assert read["content_bytes"] == len(text)
    assert read["content_hash"] == hashlib.sha256(text.encode()).hexdigest()
    assert cut.field == "content_hash"


async def test_many_agents_write_side_by_side_and_everything_is_there(deployment: Deployment) -> None:
    folder = fresh("crowd")

    async def write(number: int) -> None:
        async with agent(deployment.http) as brain:
            for page in range(3):
                await brain.call("put_page", slug=f"{folder}/{number}-{page}", content=f"# Page {number} {page}\n")

    async with asyncio.TaskGroup() as writers:
        for number in range(10):
            writers.create_task(write(number))
    async with agent(deployment.http) as brain:
        listed = (await brain.call("list_pages", slug_prefix=folder, limit=100, sort="slug"))["pages"]

    assert len(listed) == 30


async def test_a_read_with_min_revision_shows_a_write_that_did_not_wait(deployment: Deployment) -> None:
    slug = fresh()
    async with agent(deployment.http) as brain:
        written = await brain.call("put_page", slug=slug, content="# Hobnail cathedral\n", wait="none")
        found = await brain.call("search", query="hobnail cathedral", min_revision=written["revision"])

    assert "indexed" not in written
    assert found["hits"][0]["slug"] == slug
    assert found["indexed_revision"] >= written["revision"]


async def test_a_list_is_paged_and_filtered(deployment: Deployment) -> None:
    folder = fresh("paged")
    async with agent(deployment.http) as brain:
        for number in range(5):
            text = f"---\ntype: {'person' if number % 2 else 'idea'}\ntags: [blue]\n---\n# Number {number}\n"
            await brain.call("put_page", slug=f"{folder}/{number}", content=text)
        first = await brain.call("list_pages", slug_prefix=folder, limit=3, sort="slug")
        second = await brain.call(
            "list_pages", slug_prefix=folder, limit=3, sort="slug", page_token=first["next_page_token"]
        )
        people = await brain.call("list_pages", slug_prefix=folder, types=["person"], tags="blue")

    slugs = [page["slug"] for page in first["pages"] + second["pages"]]
    assert slugs == [f"{folder}/{number}" for number in range(5)]
    assert "next_page_token" not in second
    assert {page["slug"] for page in people["pages"]} == {f"{folder}/1", f"{folder}/3"}


async def test_a_page_is_found_by_its_name_when_the_slug_is_not_known(deployment: Deployment) -> None:
    slug = fresh("people")
    async with agent(deployment.http) as brain:
        await brain.call("put_page", slug=slug, content="---\naliases: [Zephyrine]\n---\n# Zéphyrine Oddfellow\n")
        by_alias = await brain.call("get_page", slug="Zephyrine", fuzzy=True)
        partial = (await brain.call("resolve_slugs", partial="oddfell"))["pages"]
        unknown = await refused(brain, "get_page", slug="oddfellow-nobody", fuzzy=True)

    assert (by_alias["slug"], by_alias["resolved_slug"]) == (slug, slug)
    assert partial[0]["slug"] == slug
    assert unknown.reason == "PAGE_NOT_FOUND"


async def test_what_nothing_answers_is_said_to_be_unknown(deployment: Deployment) -> None:
    async with agent(deployment.http) as brain:
        answer = await brain.call("query", query="Who founded Xyloquartz Hibernia Ltd?")

    assert answer["abstained"]
    assert answer["abstained_because"]


async def test_the_trace_names_every_stage_and_a_stage_can_be_left_out(deployment: Deployment) -> None:
    async with agent(deployment.http) as brain:
        await brain.call("put_page", slug=fresh(), content="# Trace\n\nA traced page.\n")
        full = (await brain.call("query", query="traced page", explain=True))["trace"]
        less = (await brain.call("query", query="traced page", explain=True, without=["backlinks", "title"]))["trace"]

    stages = {stage["stage"]: stage for stage in full["stages"]}
    assert {"intent", "fusion", "evidence", "limit"} <= set(stages)
    assert all(set(stage) >= {"milliseconds", "in", "out", "changed"} for stage in full["stages"])
    assert "title" in full["arms"]
    assert "title" not in less["arms"]


async def test_private_pages_do_not_exist_for_an_agent(deployment: Deployment) -> None:
    slug, friend = fresh("private"), fresh("private")
    local = LocalClient(path=deployment.socket)
    text = f"---\nvisibility: private\n---\n# Secretive gherkin\n\nKnows [[{friend}]].\n"
    local.call("put_page", {"slug": friend, "content": "# Friend of a gherkin\n"})
    written = local.call("put_page", {"slug": slug, "content": text})
    async with agent(deployment.http) as brain:
        found = await brain.slugs("query", "secretive gherkin", min_revision=written["revision"])
        listed = (await brain.call("list_pages", slug_prefix=slug))["pages"]
        backlinks = (await brain.call("get_backlinks", slug=friend))["links"]
        named = (await brain.call("resolve_slugs", partial="secretive"))["pages"]
        error = await refused(brain, "get_page", slug=slug)
        nothing = await refused(brain, "get_page", slug="private/never-there")

    assert slug not in found
    assert (listed, backlinks, named) == ([], [], [])
    assert str(error).replace(slug, "") == str(nothing).replace("private/never-there", "")
    assert local.call("get_page", {"slug": slug})["content"] == text
    assert local.call("search", {"query": "secretive gherkin"})["hits"]


async def test_an_index_is_built_anew_by_a_job_and_answers_the_same(deployment: Deployment) -> None:
    slug = fresh()
    async with agent(deployment.http) as brain:
        await brain.call("put_page", slug=slug, content=f"# Brindlewick\n\nSee [[{slug}]] and [[nowhere/at-all]].\n")
        before = (await brain.call("get_links", slug=slug))["links"], await brain.slugs("search", "brindlewick")
        ids = [
            (await brain.call("submit_job", name="rebuild", data={"projection": projection}))["id"]
            for projection in ("search-lexical", "graph")
        ]

        async def all_completed() -> bool:
            jobs = [await brain.call("get_job", id=job) for job in ids]
            assert not [job for job in jobs if job["status"] in {"dead", "cancelled"}], jobs
            return all(job["status"] == "completed" for job in jobs)

        await until(all_completed)
        after = (await brain.call("get_links", slug=slug))["links"], await brain.slugs("search", "brindlewick")
        listed = (await brain.call("list_jobs", status="completed"))["jobs"]

    assert before == after
    assert set(ids) <= {job["id"] for job in listed}


async def test_a_job_that_waits_can_be_cancelled(deployment: Deployment) -> None:
    async with agent(deployment.http) as brain:
        job = await brain.call("submit_job", name="rebuild", data={"projection": "graph"}, delay=3_600_000)
        cancelled = await brain.call("cancel_job", id=job["id"])

    assert job["status"] == "delayed"
    assert cancelled["status"] == "cancelled"


async def test_stats_count_and_show_the_indexes(deployment: Deployment) -> None:
    async with agent(deployment.http) as brain:
        await brain.call("put_page", slug=fresh(), content="# Counted\n")
        stats = await brain.call("get_stats")

    assert stats["pages"] >= 1
    assert stats["chunks"] >= 1
    assert {"search-lexical", "graph"} <= {state["projection"] for state in stats["projections"]}


async def test_every_tool_says_what_it_takes(deployment: Deployment) -> None:
    """BC-139, BC-140."""
    async with agent(deployment.http) as brain:
        tools = (await brain.client.list_tools()).tools

    assert len(tools) == 19
    for tool in tools:
        Draft202012Validator.check_schema(tool.input_schema)
        assert tool.output_schema is None or tool.output_schema["type"] == "object"
        assert all("type" in shown and shown["description"] for shown in tool.input_schema["properties"].values())


async def test_an_unknown_tool_is_an_error_of_the_protocol(deployment: Deployment) -> None:
    async with agent(deployment.http) as brain:
        with pytest.raises(MCPError, match="get_page"):
            await brain.client.call_tool("get_pages", {})


async def test_the_newest_protocol_works_as_the_older_one(deployment: Deployment) -> None:
    slug = fresh()
    async with agent(deployment.http, mode="auto") as brain:
        await brain.call("put_page", slug=slug, content="# Newest\n")

        assert (await brain.call("get_page", slug=slug))["content"] == "# Newest\n"


async def test_calls_need_no_session_and_a_stale_one_is_told(deployment: Deployment) -> None:
    """BC-146."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_stats", "arguments": None}}
    headers = {"accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(base_url=deployment.http) as http:
        stale = await http.post("/mcp", json=call, headers={**headers, "mcp-session-id": "of-another-life"})
        fine = await http.post("/mcp", json=call, headers=headers)
        stream = await http.get("/mcp", headers=headers)

    assert stale.status_code == 404
    assert fine.json()["result"]["isError"] is False
    assert stream.status_code == 405
