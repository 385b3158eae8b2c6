"""The service without vectors: reads of its own writes, trust, lists, errors, rebuilds, restarts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from brain.v1 import page_pb2
from brain.v1 import search_service_pb2 as pb
from services.domain.errors import BrainError, InvalidArgument, NotReady, PermissionDenied
from services.runtime.bus import Bus
from tests.integration.search.service import LOCAL, REMOTE, Service, asking, put, running, settings_for


async def _call(service: Service, request: object) -> object:
    match request:
        case pb.SearchPassagesRequest():
            return await service.stub.SearchPassages(request)
        case pb.ListPagesRequest():
            return await service.stub.ListPages(request)
        case pb.BatchGetPagesRequest():
            return await service.stub.BatchGetPages(request)
        case _:
            raise AssertionError(request)


async def _search(service: Service, query: str, min_revision: int) -> pb.SearchPassagesResponse:
    return await service.stub.SearchPassages(pb.SearchPassagesRequest(query=query, min_revision=min_revision))


def slugs(response: pb.SearchPassagesResponse, retriever: int) -> list[str]:
    [found] = [one for one in response.lists if one.retriever == retriever]
    return [hit.page.slug for hit in found.hits]


async def test_a_write_is_found_at_its_revision_and_shows_what_the_page_is(bus: Bus, tmp_path: Path) -> None:
    async with running(settings_for(tmp_path), bus) as service, asking():
        body = "---\ntags: [energy]\naliases: [Sun Inc]\ndate: 2026-03\n---\n# Solar Inc\n\nPanels for roofs in 里斯本."
        revision = await put(bus, "companies/solar", body)
        response = await service.stub.SearchPassages(
            pb.SearchPassagesRequest(query="roof panels 里斯本", min_revision=revision)
        )
        assert response.indexed_revision >= revision
        assert {one.retriever: one.reason for one in response.missing} == {pb.RETRIEVER_DENSE: "off"}
        for retriever in (pb.RETRIEVER_LEXICAL_PAGES, pb.RETRIEVER_LEXICAL_CHUNKS):
            assert slugs(response, retriever) == ["companies/solar"]
        hit = response.lists[1].hits[0]
        assert (hit.ordinal, hit.chunk_kind, hit.page.revision) == (0, "compiled_truth", revision)
        assert "Panels for roofs" in hit.snippet
        assert set(hit.matched_tokens) <= set(response.query_tokens)
        assert "里斯" in hit.matched_tokens
        page = response.lists[0].hits[0].page
        assert (page.title, page.date, list(page.tags), list(page.aliases)) == (
            "Solar Inc", "2026-03", ["energy"], ["Sun Inc"],
        )  # fmt: skip
        assert page.visibility == page_pb2.VISIBILITY_WORLD
        assert page.body_bytes == len(body.encode())


async def test_a_revision_that_does_not_come_is_index_behind(bus: Bus, tmp_path: Path) -> None:
    async with running(settings_for(tmp_path), bus) as service:
        async with asking(seconds=0.5):
            with pytest.raises(NotReady) as late:
                await service.stub.SearchPassages(pb.SearchPassagesRequest(query="x", min_revision=999))
        assert late.value.reason == "INDEX_BEHIND"
        assert late.value.next_step
        async with asking(seconds=0.5):
            progress = await service.stub.GetProgress(pb.GetSearchProgressRequest(min_revision=999))
        assert not progress.reached
        assert [one.projection for one in progress.projections] == ["search-lexical"]


async def test_a_remote_caller_sees_neither_private_pages_nor_other_sources(bus: Bus, tmp_path: Path) -> None:
    async with running(settings_for(tmp_path), bus) as service:
        await put(bus, "open", "solar")
        await put(bus, "hidden", "---\nvisibility: private\ntype: diary\n---\nsolar")
        revision = await put(bus, "other", "solar", source="team")
        for caller, seen in ((REMOTE, {"open"}), (LOCAL, {"open", "hidden", "other"})):
            async with asking(caller):
                response = await service.stub.SearchPassages(
                    pb.SearchPassagesRequest(query="solar", min_revision=revision)
                )
                assert set(slugs(response, pb.RETRIEVER_LEXICAL_CHUNKS)) == seen
                listed = await service.stub.ListPages(pb.ListPagesRequest())
                assert {page.slug for page in listed.pages} == seen
                stats = await service.stub.GetStats(pb.GetSearchStatsRequest())
                assert stats.pages == len(seen)
                ids = ["id-default-open", "id-default-hidden", "id-team-other", "nobody"]
                shown = await service.stub.BatchGetPages(pb.BatchGetPagesRequest(page_ids=ids, query="solar"))
                assert {hit.page.slug for hit in shown.pages} == seen
        async with asking(REMOTE):
            with pytest.raises(PermissionDenied):
                await service.stub.ListPages(pb.ListPagesRequest(filter=pb.PageFilter(source="team")))
            with pytest.raises(PermissionDenied):
                await service.stub.GetStats(pb.GetSearchStatsRequest(source="team"))


async def test_stop_words_alone_fall_back_to_titles(bus: Bus, tmp_path: Path) -> None:
    """BC-100: bounded, flagged, and the page that is called so is found."""
    async with running(settings_for(tmp_path), bus) as service, asking():
        await put(bus, "bands/who", "# The Who Example\n\nA band.")
        for number in range(30):
            revision = await put(bus, f"n/{number}", f"# Note {number}\n\nthe who to be or not to be it")
        response = await service.stub.SearchPassages(pb.SearchPassagesRequest(query="the who", min_revision=revision))
        assert response.stopwords_only
        assert slugs(response, pb.RETRIEVER_TITLE) == ["bands/who"]
        assert slugs(response, pb.RETRIEVER_LEXICAL_PAGES) == []
        for query in ("to be or not to be", "it"):
            response = await service.stub.SearchPassages(pb.SearchPassagesRequest(query=query))
            assert response.stopwords_only
            assert sum(len(one.hits) for one in response.lists) == 0


async def test_the_tail_of_an_overlong_query_is_what_is_looked_for(bus: Bus, tmp_path: Path) -> None:
    """BC-101: the question at the end of a pasted text is answered, and the reply says that it was cut."""
    async with running(settings_for(tmp_path), bus) as service, asking():
        revision = await put(bus, "companies/acme", "# Acme Example\n\nOwned by Ana.")
        query = "lorem ipsum dolor " * 440 + "Who owns Acme Example?"
        response = await service.stub.SearchPassages(pb.SearchPassagesRequest(query=query, min_revision=revision))
        assert response.query_cut
        assert slugs(response, pb.RETRIEVER_LEXICAL_CHUNKS) == ["companies/acme"]
        with pytest.raises(InvalidArgument) as refused:
            await service.stub.SearchPassages(pb.SearchPassagesRequest(query="x" * 60_000))
        assert refused.value.field == "query"


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (pb.SearchPassagesRequest(query=" \n"), "query"),
        (pb.SearchPassagesRequest(query="x", limit=-1), "limit"),
        (pb.SearchPassagesRequest(query="x", limit=501), "limit"),
        (pb.SearchPassagesRequest(query="x", snippet_characters=2_001), "snippet_characters"),
        (pb.SearchPassagesRequest(query="x", min_revision=-1), "min_revision"),
        (pb.SearchPassagesRequest(query="x", retrievers=[pb.RETRIEVER_TITLE, pb.RETRIEVER_TITLE]), "retrievers"),
        (pb.SearchPassagesRequest(query="x", filter=pb.PageFilter(since="soon")), "filter.since"),
        (pb.SearchPassagesRequest(query="x", filter=pb.PageFilter(tags=["t"] * 33)), "filter.tags"),
        (pb.ListPagesRequest(page_size=-1), "page_size"),
        (pb.ListPagesRequest(offset=10_001), "offset"),
        (pb.ListPagesRequest(page_token="no token"), "page_token"),
        (pb.BatchGetPagesRequest(page_ids=["x"] * 501), "page_ids"),
    ],
)  # fmt: skip
async def test_bad_input_is_named(bus: Bus, tmp_path: Path, request_: object, field: str) -> None:
    async with running(settings_for(tmp_path), bus) as service, asking():
        with pytest.raises(InvalidArgument) as refused:
            await _call(service, request_)
        assert refused.value.field == field
        assert refused.value.next_step


async def test_lists_follow_tokens_and_refuse_those_of_other_arguments(bus: Bus, tmp_path: Path) -> None:
    async with running(settings_for(tmp_path), bus) as service, asking():
        for number in range(7):
            revision = await put(bus, f"p/{number}", "x")
        seen: list[str] = []
        token = ""
        while True:
            request = pb.ListPagesRequest(
                order=pb.PAGE_ORDER_SLUG, page_size=3, page_token=token, min_revision=revision
            )
            listed = await service.stub.ListPages(request)
            seen += [page.slug for page in listed.pages]
            token = listed.next_page_token
            if not token:
                break
            with pytest.raises(InvalidArgument) as refused:
                await service.stub.ListPages(pb.ListPagesRequest(page_token=token))
            assert refused.value.reason == "PAGE_TOKEN_INVALID"
        assert seen == [f"p/{number}" for number in range(7)]


async def test_spellings_of_any_script_stay_apart(bus: Bus, tmp_path: Path) -> None:
    """BC-001, BC-007: three pages, three slugs, each found; one page under one NFC spelling."""
    async with running(settings_for(tmp_path), bus) as service, asking():
        for slug, mark in (("notes/רשימה", "mark-a"), ("notes/משימות", "mark-b"), ("notes/заметка", "mark-c")):
            await put(bus, slug, mark)
        revision = await put(bus, "notes/r\u00e9sum\u00e9", "mark-d")
        for mark, slug in (
            ("mark-a", "notes/רשימה"),
            ("mark-c", "notes/заметка"),
            ("mark-d", "notes/r\u00e9sum\u00e9"),
        ):
            response = await service.stub.SearchPassages(pb.SearchPassagesRequest(query=mark, min_revision=revision))
            assert slugs(response, pb.RETRIEVER_LEXICAL_PAGES)[0] == slug


async def test_a_delete_a_move_and_an_edit_show_at_their_revision(bus: Bus, tmp_path: Path) -> None:
    async with running(settings_for(tmp_path), bus) as service, asking():

        async def found(word: str, revision: int) -> list[str]:
            request = pb.SearchPassagesRequest(query=word, min_revision=revision)
            return slugs(await service.stub.SearchPassages(request), pb.RETRIEVER_LEXICAL_CHUNKS)

        await put(bus, "a", "alpha", page_id="p")
        revision = await put(bus, "a", "beta", page_id="p")
        assert await found("alpha", revision) == []
        assert await found("beta", revision) == ["a"]
        await put(bus, "a", None, page_id="p", kind="redirect")
        revision = await put(bus, "b", "beta", page_id="p", kind="move")
        assert await found("beta", revision) == ["b"]
        revision = await put(bus, "b", None, page_id="p")
        assert await found("beta", revision) == []


async def test_a_rebuild_gives_the_same_and_is_done_once_a_job(bus: Bus, tmp_path: Path) -> None:
    async with running(settings_for(tmp_path), bus) as service, asking():
        for number in range(40):
            revision = await put(bus, f"p/{number}", f"solar page {number}")
        await put(bus, "p/3", None)
        revision = await put(bus, "p/4", "solar edited")
        before = await service.stub.ListPages(pb.ListPagesRequest(min_revision=revision, order=pb.PAGE_ORDER_SLUG))
        request = pb.RebuildSearchProjectionRequest(job_id="job-1", projection="search-lexical")
        steps = [step async for step in service.stub.RebuildProjection(request)]
        assert steps[-1].done
        assert steps[-1].store_id
        after = await service.stub.ListPages(pb.ListPagesRequest(min_revision=revision, order=pb.PAGE_ORDER_SLUG))
        assert list(after.pages) == list(before.pages)
        again = [step async for step in service.stub.RebuildProjection(request)]
        assert (again[-1].done, again[-1].store_id) == (True, steps[-1].store_id)
        assert not (await service.stub.CancelWork(pb.CancelSearchWorkRequest(job_id="job-1"))).cancelled
        unknown = pb.RebuildSearchProjectionRequest(job_id="job-2", projection="search-nothing")
        with pytest.raises(InvalidArgument):
            [step async for step in service.stub.RebuildProjection(unknown)]
        with pytest.raises(BrainError) as off:
            [step async for step in service.stub.EmbedMissing(pb.EmbedMissingRequest(job_id="job-3"))]
        assert off.value.reason == "FEATURE_OFF"


async def test_what_was_indexed_is_there_after_a_restart(bus: Bus, tmp_path: Path) -> None:
    async with running(settings_for(tmp_path), bus) as service, asking():
        revision = await put(bus, "a", "solar")
        await service.stub.GetProgress(pb.GetSearchProgressRequest(min_revision=revision))
    revision = await put(bus, "b", "solar")
    async with running(settings_for(tmp_path), bus) as service, asking():
        response = await service.stub.SearchPassages(pb.SearchPassagesRequest(query="solar", min_revision=revision))
        assert set(slugs(response, pb.RETRIEVER_LEXICAL_PAGES)) == {"a", "b"}


async def test_many_readers_wait_for_one_write_at_once(bus: Bus, tmp_path: Path) -> None:
    async with running(settings_for(tmp_path), bus) as service, asking():
        revision = await put(bus, "first", "solar")
        waiting = [asyncio.create_task(_search(service, "solar", revision + 1)) for _ in range(20)]
        await put(bus, "second", "solar")
        for response in await asyncio.gather(*waiting):
            assert set(slugs(response, pb.RETRIEVER_LEXICAL_PAGES)) == {"first", "second"}
