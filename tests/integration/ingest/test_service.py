"""Ingest at its process boundary: what goes over the wire, both ways."""

from __future__ import annotations

import pytest

from brain.v1 import error_reason_pb2, page_pb2
from brain.v1 import ingest_service_pb2 as pb
from services.domain.context import OperationContext, Scope
from services.domain.errors import AlreadyExists, Conflict, InvalidArgument, NotFound
from services.runtime.bus import Bus
from tests.integration.ingest.service import Client

REMOTE = OperationContext(
    principal="agent-7",
    scopes=frozenset({Scope.READ, Scope.WRITE}),
    read_sources=frozenset({"default"}),
    write_sources=frozenset({"default"}),
)


async def test_a_page_goes_in_and_comes_out_whole(client: Client) -> None:
    text = "---\ntitle: 织机\ntags: [纺织, looms]\ncount: 3\n---\n# 织机\n[[people/ana]]\n"
    result = await client.put("公司/织机", text)
    assert (result.slug, result.status, result.title) == ("公司/织机", pb.WRITE_STATUS_CREATED, "织机")
    with client.calling() as stub:
        page = (await stub.GetPage(pb.GetPageRequest(slug="公司/织机", include_body=True))).page
    assert (page.body, page.revision, page.page_id) == (text.encode(), result.revision, result.page_id)
    assert list(page.tags) == ["纺织", "looms"]
    assert (page.kind, page.visibility) == (page_pb2.RECORD_KIND_PUT, page_pb2.VISIBILITY_WORLD)
    assert page.create_time == page.update_time == result.update_time
    assert page.actor == "local"
    assert '"title":"织机"' in page.frontmatter_json


async def test_a_conflict_says_over_the_wire_what_is_there_and_what_to_do(client: Client) -> None:
    """BC-067."""
    first = await client.put("plan", "one")
    with pytest.raises(Conflict) as caught:
        await client.put("plan", "two")
    error = caught.value
    assert (error.reason, error.metadata["revision"]) == ("REVISION_CONFLICT", str(first.revision))
    assert f"if_revision={first.revision}" in error.next_step
    second = await client.put("plan", "two", if_revision=first.revision)
    assert second.replaced_revision == first.revision


async def test_a_page_lives_through_every_change(client: Client) -> None:
    """BC-056."""
    await client.put("a", "one")
    await client.put("a", "two", overwrite=True)
    with client.calling() as stub:
        moved = (await stub.MovePage(pb.MovePageRequest(slug="a", new_slug="b", request_id="m"))).result
        assert (moved.slug, moved.status) == ("b", pb.WRITE_STATUS_MOVED)
        old = await stub.GetPage(pb.GetPageRequest(slug="a", include_body=True))
        assert (old.moved_to, old.page.body, list(old.page.former_slugs)) == ("b", b"two", ["a"])
        reverted = (await stub.RevertVersion(pb.RevertVersionRequest(slug="b", revision=1, request_id="v"))).result
        assert reverted.status == pb.WRITE_STATUS_REVERTED
        gone = (await stub.DeletePage(pb.DeletePageRequest(slug="b", request_id="d"))).result
        assert gone.HasField("recoverable_until_time")
        with pytest.raises(NotFound):
            await stub.GetPage(pb.GetPageRequest(slug="b"))
        tombstone = (await stub.GetPage(pb.GetPageRequest(slug="b", include_deleted=True))).page
        assert tombstone.HasField("delete_time")
        assert (tombstone.body_bytes, bool(tombstone.title)) == (0, True)
        back = (await stub.RestorePage(pb.RestorePageRequest(slug="b", request_id="r"))).result
        assert back.status == pb.WRITE_STATUS_RESTORED
        with pytest.raises(Conflict) as caught:
            await stub.DeletePage(pb.DeletePageRequest(slug="a", request_id="d2"))
        assert caught.value.metadata["moved_to"] == "b"
        await client.put("c", "other")
        with pytest.raises(AlreadyExists):
            await stub.MovePage(pb.MovePageRequest(slug="b", new_slug="c", request_id="m2"))
        page = (await stub.GetPage(pb.GetPageRequest(slug="b", revision=2, include_body=True))).page
        assert (page.body, page.slug) == (b"two", "a")
    assert await client.versions("b") == [back.revision, reverted.revision, moved.revision, 2, 1]


async def test_lists_come_in_pages_bound_to_their_arguments(client: Client) -> None:
    for number in range(5):
        await client.put(f"n/{number}", "one")
        await client.put("plan", f"text {number}", overwrite=True)
    with client.calling() as stub:
        first = await stub.ListKeys(pb.ListKeysRequest(folder="n", page_size=3))
        second = await stub.ListKeys(pb.ListKeysRequest(folder="n", page_size=3, page_token=first.next_page_token))
        assert [*first.slugs, *second.slugs] == [f"n/{number}" for number in range(5)]
        assert (second.next_page_token, second.last_revision) == ("", 10)
        versions = await stub.ListVersions(pb.ListVersionsRequest(slug="plan", page_size=2))
        rest = await stub.ListVersions(pb.ListVersionsRequest(slug="plan", page_token=versions.next_page_token))
        assert [v.revision for v in (*versions.versions, *rest.versions)] == [10, 8, 6, 4, 2]
        assert not any(version.body for version in versions.versions)
        for wrong in (
            stub.ListVersions(pb.ListVersionsRequest(slug="n/1", page_token=versions.next_page_token)),
            stub.ListKeys(pb.ListKeysRequest(folder="n", page_token="nonsense")),
            stub.ListKeys(pb.ListKeysRequest(page_size=-1)),
        ):
            with pytest.raises(InvalidArgument):
                await wrong


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (pb.PutPageRequest(slug="../x", body=b"t", request_id="r"), "slug"),
        (pb.PutPageRequest(slug="x", body=b"t", request_id="r", source="No!"), "source"),
        (pb.PutPageRequest(slug="x", body=b"t"), "request_id"),
        (pb.PutPageRequest(slug="x", request_id="r"), "body"),
        (pb.PutPageRequest(slug="x", body=b"6" * 6_000_000, request_id="r"), "body"),
        (pb.PutPageRequest(slug="x", body=b"a\nb\0", request_id="r"), "body"),
        (pb.PutPageRequest(slug="x", body=b"t", request_id="r", if_revision=-5), "if_revision"),
    ],
)
async def test_bad_input_is_named_over_the_wire(client: Client, request_: pb.PutPageRequest, field: str) -> None:
    with client.calling() as stub, pytest.raises(InvalidArgument) as caught:
        await stub.PutPage(request_)
    assert caught.value.field == field
    assert caught.value.next_step


async def test_a_page_of_the_largest_size_goes_through(client: Client) -> None:
    """BC-047."""
    body = "长".encode() * 1_666_666 + b"\n"
    result = await client.put("large", body)
    assert result.body_bytes == len(body)
    assert await client.body("large") == body


async def test_a_remote_caller_sees_no_private_page(client: Client) -> None:
    await client.put("secret", "---\nvisibility: private\n---\nhidden")
    with client.calling(REMOTE) as stub, pytest.raises(NotFound):
        await stub.GetPage(pb.GetPageRequest(slug="secret"))


async def test_an_import_answers_for_every_file_in_order(client: Client) -> None:
    """BC-019."""
    files = [(f"notes/{number:03}.md", f"# Note {number}\n".encode()) for number in range(250)]
    files[7] = ("notes/007.md", b"\xff\xfe broken")
    files[120] = ("notes/120.md", b"")
    results = await client.import_files(files, import_id="first")
    assert [result.path for result in results] == [path for path, _ in files]
    bad = {result.path: result.error for result in results if result.HasField("error")}
    assert list(bad) == ["notes/007.md", "notes/120.md"]
    assert bad["notes/007.md"].reason == error_reason_pb2.ERROR_REASON_ENCODING_INVALID
    assert bad["notes/007.md"].line == 1
    assert bad["notes/120.md"].reason == error_reason_pb2.ERROR_REASON_PAGE_EMPTY
    assert {result.status for result in results if result.path not in bad} == {pb.WRITE_STATUS_CREATED}
    assert await client.body("notes/249") == b"# Note 249\n"
    again = await client.import_files(files)
    assert {result.status for result in again if result.path not in bad} == {pb.WRITE_STATUS_UNCHANGED}


async def test_an_import_begins_with_its_header(client: Client) -> None:
    file = pb.ImportFile(path="a.md", body=b"text")
    header = pb.ImportHeader(import_id="i", paths=["a.md"])
    wrong = [
        [pb.ImportPagesRequest(batch=pb.ImportBatch(files=[file]))],
        [
            pb.ImportPagesRequest(header=header),
            pb.ImportPagesRequest(batch=pb.ImportBatch(files=[file])),
            pb.ImportPagesRequest(header=header),
        ],
        [
            pb.ImportPagesRequest(header=header),
            pb.ImportPagesRequest(header=pb.ImportHeader(import_id="other")),
        ],
    ]
    for messages in wrong:
        with client.calling() as stub, pytest.raises(InvalidArgument) as caught:
            async for _ in stub.ImportPages(iter(messages)):
                pass
        assert caught.value.field.startswith("header")


async def test_what_was_acknowledged_is_in_the_log(client: Client, bus: Bus) -> None:
    """BC-167: the reply comes after the log has it, so that a reader finds it at once."""
    for number in range(20):
        result = await client.put(f"p/{number}", f"text {number}")
        assert result.revision <= await bus.page_log.last_revision()
        assert await client.body(f"p/{number}") == f"text {number}".encode()
