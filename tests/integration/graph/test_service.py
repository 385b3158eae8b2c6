"""Pages put into the log are read as links over gRPC."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from brain.v1 import graph_service_pb2 as pb
from services.domain.errors import InvalidArgument, NotFound, NotReady, PermissionDenied
from services.runtime.bus import Bus
from services.runtime.calls import operation
from tests.integration.graph.service import LOCAL, REMOTE, SECONDS, delete, move, running, write

ANA = "---\ntitle: Ana Example\ntype: person\n---\nAna founded [[companies/acme]] and knows [[Bo]]."
SECRET = "---\nvisibility: private\n---\nAbout [[companies/acme]]."


async def test_a_write_is_read_at_its_revision(bus: Bus, tmp_path: Path) -> None:
    async with running(tmp_path, bus) as service:
        revision = await write(bus, "people/ana", ANA)
        assert await service.links("people/ana", at=revision) == ["[companies/acme]", "[Bo]"]

        revision = await write(bus, "companies/acme", "# Acme")
        assert await service.links("people/ana", at=revision) == ["companies/acme", "[Bo]"]

        revision = await move(bus, "companies/acme", "companies/acme-robotics")
        assert await service.links("people/ana", at=revision) == ["companies/acme-robotics", "[Bo]"]

        revision = await delete(bus, "people/ana")
        with pytest.raises(NotFound):
            await service.links("people/ana", at=revision)


async def test_every_reading_call_answers(bus: Bus, tmp_path: Path) -> None:
    await write(bus, "people/ana", ANA)
    await write(bus, "people/secret", SECRET)
    at = await write(bus, "companies/acme", "---\ntype: company\n---\n# Acme\n\nSee [[nobody]].")
    async with running(tmp_path, bus) as service:
        stub = service.stub
        with operation(LOCAL, timeout_seconds=SECONDS):
            backlinks = await stub.ListBacklinks(
                pb.ListBacklinksRequest(slug="companies/acme", page_size=1, min_revision=at)
            )
            more = await stub.ListBacklinks(
                pb.ListBacklinksRequest(slug="companies/acme", page_size=1, page_token=backlinks.next_page_token)
            )
            counts = await stub.BatchCountBacklinks(
                pb.BatchCountBacklinksRequest(page_ids=["default:companies/acme", "nobody"])
            )
            walk = await stub.TraverseLinks(pb.TraverseLinksRequest(slug="companies/acme", direction=pb.DIRECTION_BOTH))
            names = await stub.BatchResolveNames(pb.BatchResolveNamesRequest(names=["ana example", "nope"]))
            found = await stub.SearchNames(pb.SearchNamesRequest(partial="exam"))
            relation = await stub.AnswerRelation(
                pb.AnswerRelationRequest(
                    names=["Acme"], hops=[pb.RelationHop(link_types=["founded"], direction=pb.DIRECTION_IN)]
                )
            )
            lost = await stub.ListUnresolved(pb.ListUnresolvedRequest())
            stats = await stub.GetStats(pb.GetGraphStatsRequest())
        with operation(REMOTE, timeout_seconds=SECONDS):
            remote = await stub.BatchCountBacklinks(pb.BatchCountBacklinksRequest(page_ids=["default:companies/acme"]))

    makers = [link.from_page.slug for link in (*backlinks.links, *more.links)]
    assert makers == ["people/ana", "people/secret"]
    assert (bool(backlinks.next_page_token), more.next_page_token) == (True, "")
    assert list(counts.counts) == [2, 0]
    assert list(remote.counts) == [1]
    assert [edge.link.from_page.slug for edge in walk.edges] == ["people/ana", "people/secret"]
    assert [[match.kind for match in name.matches] for name in names.names] == [[pb.NAME_KIND_TITLE], []]
    assert [match.page.slug for match in found.matches] == ["people/ana"]
    assert [answer.page.slug for answer in relation.answers] == ["people/ana"]
    assert relation.answers[0].path[0].context
    assert {(row.link.name, row.reason) for row in lost.references} == {
        ("Bo", "no such page"),
        ("nobody", "no such page"),
    }
    assert (stats.pages, stats.links, stats.ghosts) == (3, 4, 2)
    assert (stats.projection.projection, stats.projection.engine, stats.projection.ready) == ("graph", "sqlite", True)


async def test_bad_requests_are_refused_with_the_field(bus: Bus, tmp_path: Path) -> None:
    async with running(tmp_path, bus) as service:
        stub = service.stub
        at = await write(bus, "a", "[[b]] [[c]]")
        with operation(LOCAL, timeout_seconds=SECONDS):
            first = await stub.ListLinks(pb.ListLinksRequest(slug="a", page_size=1, min_revision=at))
            with pytest.raises(InvalidArgument) as token:
                await stub.ListLinks(pb.ListLinksRequest(slug="b", page_token=first.next_page_token))
            with pytest.raises(InvalidArgument) as slug:
                await stub.ListLinks(pb.ListLinksRequest(slug="../a"))
            with pytest.raises(InvalidArgument) as nothing:
                await stub.ListLinks(pb.ListLinksRequest())
            with pytest.raises(InvalidArgument) as direction:
                await stub.TraverseLinks(pb.TraverseLinksRequest(slug="a", direction=9))  # type: ignore[arg-type]
            with pytest.raises(InvalidArgument) as revision:
                await stub.GetStats(pb.GetGraphStatsRequest(min_revision=-1))
        with operation(REMOTE, timeout_seconds=SECONDS), pytest.raises(PermissionDenied):
            await stub.ListLinks(pb.ListLinksRequest(source="team", slug="a"))
        with operation(REMOTE, timeout_seconds=SECONDS), pytest.raises(PermissionDenied):
            await anext(aiter(stub.RebuildProjection(pb.RebuildGraphProjectionRequest(job_id="j"))))

    assert token.value.reason == "PAGE_TOKEN_INVALID"
    assert slug.value.reason == "SLUG_INVALID"
    fields = [refused.value.field for refused in (nothing, direction, revision)]
    assert fields == ["slug", "direction", "min_revision"]


async def test_a_revision_that_does_not_come_in_time_is_said_with_the_one_there_is(bus: Bus, tmp_path: Path) -> None:
    async with running(tmp_path, bus) as service:
        at = await write(bus, "a", "[[b]]")
        await service.links("a", at=at)
        with operation(LOCAL, timeout_seconds=0.3), pytest.raises(NotReady) as behind:
            await service.stub.ListLinks(pb.ListLinksRequest(slug="a", min_revision=at + 1))
        with operation(LOCAL, timeout_seconds=0.3):
            progress = await service.stub.GetProgress(pb.GetGraphProgressRequest(min_revision=at + 1))

    assert behind.value.reason == "INDEX_BEHIND"
    assert behind.value.metadata["indexed_revision"] == str(at)
    assert (progress.reached, progress.projection.indexed_revision) == (False, at)


async def test_a_rebuild_answers_as_before_from_another_store_and_is_the_same_for_the_same_job(
    bus: Bus, tmp_path: Path
) -> None:
    async with running(tmp_path, bus) as service:
        await write(bus, "a", "[[b]] and [[Old Name]]")
        await write(bus, "b", "# Old Name")
        at = await move(bus, "b", "c")
        before = await service.links("a", at=at)
        with operation(LOCAL, timeout_seconds=20.0):
            first = [p async for p in service.stub.RebuildProjection(pb.RebuildGraphProjectionRequest(job_id="j1"))]
            again = [p async for p in service.stub.RebuildProjection(pb.RebuildGraphProjectionRequest(job_id="j1"))]
            progress = await service.stub.GetProgress(pb.GetGraphProgressRequest())
            cancelled = await service.stub.CancelWork(pb.CancelGraphWorkRequest(job_id="unknown"))

        assert await service.links("a") == before == ["c", "c"]
        assert (first[-1].done, first[-1].unit, first[-1].finished) == (True, "pages", 3)
        assert first[-1].store_id == again[-1].store_id == progress.projection.store_id
        assert not cancelled.cancelled
        at = await write(bus, "a", "nothing")
        assert await service.links("a", at=at) == []


async def test_a_service_started_again_goes_on_where_it_was(bus: Bus, tmp_path: Path) -> None:
    async with running(tmp_path, bus) as service:
        at = await write(bus, "a", "[[b]]")
        assert await service.links("a", at=at) == ["[b]"]
    at = await write(bus, "b", "[[a]]")

    async with running(tmp_path, bus) as service:
        assert await service.links("a", at=at) == ["b"]
        assert await service.links("b") == ["a"]


async def test_reads_beside_writes_always_see_a_whole_page(bus: Bus, tmp_path: Path) -> None:
    shown = [["[x0]", "[x1]", "[x2]"], ["[y0]", "[y1]", "[y2]"]]
    async with running(tmp_path, bus) as service:
        at = await write(bus, "a", "[[x0]] [[x1]] [[x2]]")
        await service.links("a", at=at)

        async def change() -> None:
            for turn in range(20):
                letter = "xy"[turn % 2]
                await write(bus, "a", f"[[{letter}0]] [[{letter}1]] [[{letter}2]]")

        changing = asyncio.create_task(change())
        while not changing.done():
            assert await service.links("a") in shown
        await changing
