"""A put: new pages, conflicts, repeated requests, and what is not a page."""

from __future__ import annotations

import pytest

from services.domain.context import OperationContext, Scope
from services.domain.errors import Conflict, InvalidArgument, PermissionDenied, Unavailable
from services.domain.records import PageRecord
from services.ingest.ports import WrongLastSequence
from services.ingest.requests import WriteStatus, put_request
from tests.unit.ingest.memory_log import MemoryLog
from tests.unit.ingest.parts import LOCAL, Ingest, key


async def test_a_new_page_is_created_and_read_back_by_any_spelling() -> None:
    """BC-004."""
    ingest = Ingest()
    reply = await ingest.put("Media/Clip/aB3dEf9.md", "# Clip\nA short one.")
    assert (reply.slug, reply.status, reply.title) == ("media/clip/ab3def9", WriteStatus.CREATED, "Clip")
    for spelling in ("media/clip/ab3def9", "MEDIA/clip/AB3DEF9", "media/clip/aB3dEf9.md"):
        assert await ingest.text(spelling) == "# Clip\nA short one."


async def test_decomposed_and_composed_names_are_one_page() -> None:
    """BC-007."""
    ingest = Ingest()
    first = await ingest.put("notes/re\u0301sume\u0301", "One.")
    second = await ingest.put("notes/r\u00e9sum\u00e9", "Two.", if_revision=first.revision)
    assert second.page_id == first.page_id
    assert await ingest.text("notes/résumé") == "Two."


async def test_chinese_pages_keep_their_names_and_bytes() -> None:
    ingest = Ingest()
    reply = await ingest.put("公司/织机实验室", "# 织机实验室\n[[人物/陈薇]]创立。")
    assert (reply.slug, reply.title) == ("公司/织机实验室", "织机实验室")


async def test_bytes_stay_as_they_came_and_the_hash_ignores_bom_and_line_ends() -> None:
    """BC-025."""
    ingest = Ingest()
    windows = b"\xef\xbb\xbf---\r\ntitle: Win\r\n---\r\nbody\r\n"
    first = await ingest.put("win", windows)
    assert first.title == "Win"
    assert (await ingest.get("win")).record.body == windows
    unix = await ingest.put("win", b"---\ntitle: Win\n---\nbody\n", if_revision=first.revision)
    assert unix.status is WriteStatus.UPDATED, "the no-op compares bytes"
    assert unix.content_hash == first.content_hash


async def test_a_put_without_expectation_never_replaces_other_text() -> None:
    """BC-067."""
    ingest = Ingest()
    base = await ingest.put("plan", "base")
    await ingest.put("plan", "text A", if_revision=base.revision)
    with pytest.raises(Conflict) as caught:
        await ingest.put("plan", "text B")
    error = caught.value
    assert (error.reason, error.metadata["revision"], error.metadata["actor"]) == ("REVISION_CONFLICT", "2", "local")
    assert len(error.metadata["content_hash"]) == 64
    assert "if_revision=2" in error.next_step
    assert await ingest.text("plan") == "text A"


async def test_a_stale_expectation_is_refused_and_overwrite_is_not() -> None:
    ingest = Ingest()
    base = await ingest.put("plan", "base")
    await ingest.put("plan", "newer", if_revision=base.revision)
    with pytest.raises(Conflict):
        await ingest.put("plan", "stale", if_revision=base.revision)
    reply = await ingest.put("plan", "forced", overwrite=True)
    assert (reply.status, reply.replaced_revision) == (WriteStatus.UPDATED, 2)


async def test_zero_means_that_no_live_page_may_be_there() -> None:
    ingest = Ingest()
    first = await ingest.put("plan", "one", if_revision=0)
    with pytest.raises(Conflict):
        await ingest.put("plan", "two", if_revision=0)
    await ingest.delete("plan")
    again = await ingest.put("plan", "two", if_revision=0)
    assert again.status is WriteStatus.CREATED
    assert again.page_id != first.page_id


async def test_an_expectation_on_nothing_is_a_conflict_that_says_so() -> None:
    with pytest.raises(Conflict) as caught:
        await Ingest().put("plan", "text", if_revision=7)
    assert caught.value.metadata["revision"] == "0"


async def test_the_same_bytes_write_nothing_whatever_was_expected() -> None:
    ingest = Ingest()
    await ingest.put("plan", "one")
    await ingest.put("plan", "two", overwrite=True)
    for if_revision in (None, 0, 1, 2):
        reply = await ingest.put("plan", "two", if_revision=if_revision)
        assert (reply.status, reply.revision, reply.title) == (WriteStatus.UNCHANGED, 2, "Plan")
    assert await ingest.log.last_revision() == 2


async def test_a_repeated_request_gets_its_first_reply_again() -> None:
    ingest = Ingest()
    first = await ingest.put("plan", "one", request_id="r1")
    await ingest.put("plan", "two", overwrite=True)
    ingest.wait(hours=30)
    assert await ingest.put("plan", "one", request_id="r1") == first
    assert await ingest.text("plan") == "two"


async def test_a_repeated_update_says_again_what_it_replaced() -> None:
    ingest = Ingest()
    await ingest.put("plan", "one")
    second = await ingest.put("plan", "two", request_id="r2", overwrite=True)
    assert await ingest.put("plan", "two", request_id="r2", overwrite=True) == second
    assert second.replaced_revision == 1


async def test_one_request_id_for_two_requests_is_refused() -> None:
    ingest = Ingest()
    await ingest.put("plan", "one", request_id="r1")
    with pytest.raises(InvalidArgument) as caught:
        await ingest.put("plan", "two", request_id="r1", overwrite=True)
    assert caught.value.reason == "REQUEST_ID_REUSED"


async def test_a_request_is_known_as_long_as_its_record_is_kept() -> None:
    ingest = Ingest()
    first = await ingest.put("plan", "first", request_id="r1")
    for number in range(63):
        await ingest.put("plan", f"text {number}", overwrite=True)
    assert (await ingest.put("plan", "first", request_id="r1", overwrite=True)).revision == first.revision
    await ingest.put("plan", "one more", overwrite=True)
    assert (await ingest.put("plan", "first", request_id="r1", overwrite=True)).status is WriteStatus.UPDATED


@pytest.mark.parametrize(
    ("slug", "told"),
    [
        ("notes/safe\u202egnp.md", "U+202E"),
        ("notes/a%2f..%2fb", "%"),
        ("notes\\win\\path", "U+005C"),
        ("notes/bell\u0007", "U+0007"),
        ("../secret", ".."),
        ("notes//empty", "empty part"),
    ],
)
async def test_a_slug_that_deceives_is_refused_and_told_why(slug: str, told: str) -> None:
    """BC-011, BC-164."""
    with pytest.raises(InvalidArgument) as caught:
        await Ingest().put(slug)
    assert caught.value.reason == "SLUG_INVALID"
    assert told in caught.value.message


@pytest.mark.parametrize(
    ("body", "reason", "told"),
    [
        (b"ok\nbad \xff byte", "ENCODING_INVALID", "line 2"),
        (b"one\ntwo\nthree \0", "ENCODING_INVALID", "line 3"),
        ("utf-16".encode("utf-16"), "ENCODING_INVALID", "line 1"),
        (b"", "PAGE_EMPTY", "no text"),
        (b"\xef\xbb\xbf \r\n\t", "PAGE_EMPTY", "no text"),
        (b"x" * 6_000_000, "PAGE_TOO_LARGE", "5000000"),
    ],
)
async def test_what_is_not_a_page_is_refused_before_anything_is_written(body: bytes, reason: str, told: str) -> None:
    """BC-164."""
    ingest = Ingest()
    with pytest.raises(InvalidArgument) as caught:
        await ingest.put("plan", body)
    error = caught.value
    assert (error.reason, error.field) == (reason, "body")
    assert told in error.message
    assert error.next_step
    assert await ingest.log.last_revision() == 0


def test_an_empty_page_is_accepted_when_it_is_meant() -> None:
    assert put_request(source="", slug="plan", body=b"", request_id="r", allow_empty=True).body == b""


@pytest.mark.parametrize(
    ("field", "changed"),
    [
        ("request_id", {"request_id": ""}),
        ("request_id", {"request_id": "x" * 37}),
        ("request_id", {"request_id": "naïve"}),
        ("if_revision", {"if_revision": -1}),
        ("source", {"source": "Team Notes"}),
        ("slug", {"slug": ""}),
    ],
)
def test_a_field_that_can_never_be_right_is_named(field: str, changed: dict[str, object]) -> None:
    arguments: dict[str, object] = {"source": "", "slug": "plan", "body": b"text", "request_id": "r", **changed}
    with pytest.raises(InvalidArgument) as caught:
        put_request(**arguments)  # type: ignore[arg-type]  # wrong on purpose
    assert caught.value.field == field
    assert caught.value.next_step


async def test_broken_frontmatter_is_a_finding_with_its_line_and_no_refusal() -> None:
    """BC-019."""
    reply = await Ingest().put("bad", "---\ntitle: Good\npath: `C:\\agent\\run`\n---\nThe text.")
    assert reply.status is WriteStatus.CREATED
    assert [finding.line for finding in reply.findings] == [3]


async def test_very_deep_structure_is_taken_as_it_is() -> None:
    """BC-047."""
    deep = "\n".join("  " * level + "- item" for level in range(120)) + "\n" + "> " * 40 + "quote\n"
    reply = await Ingest().put("deep", deep)
    assert reply.status is WriteStatus.CREATED
    assert reply.findings


async def test_of_a_very_large_page_the_top_says_what_it_is() -> None:
    """BC-047."""
    ingest = Ingest()
    body = b"---\ntitle: Ledger\ntype: project\n---\n" + "长".encode() * 1_600_000
    reply = await ingest.put("ledger", body)
    assert (reply.title, reply.type, reply.body_bytes) == ("Ledger", "project", len(body))
    assert "LINE_TOO_LONG" in {finding.code for finding in reply.findings}
    assert (await ingest.get("ledger")).record.body == body


class ContendedLog(MemoryLog):
    """A log whose other writers are faster so many times."""

    def __init__(self, races: int) -> None:
        super().__init__()
        self.races = races

    async def append(self, batch: list[PageRecord]) -> list[PageRecord]:  # type: ignore[override]
        if self.races:
            self.races -= 1
            raise WrongLastSequence(batch[0].slug)
        return await super().append(batch)


async def test_a_lost_race_is_decided_again_three_times_and_then_told() -> None:
    ingest = Ingest(log=ContendedLog(2))
    assert (await ingest.put("plan", "text")).status is WriteStatus.CREATED
    ingest = Ingest(log=ContendedLog(3))
    with pytest.raises(Conflict) as caught:
        await ingest.put("plan", "text", overwrite=True)
    assert caught.value.reason == "WRITE_CONTENDED"
    assert await ingest.log.newest(key("plan")) is None


class ForgetfulLog(MemoryLog):
    """A log that stores and then loses the acknowledgement, so many times."""

    def __init__(self, losses: int) -> None:
        super().__init__()
        self.losses = losses

    async def append(self, batch: list[PageRecord]) -> list[PageRecord]:  # type: ignore[override]
        stored = await super().append(batch)
        if self.losses:
            self.losses -= 1
            raise Unavailable("PEER_UNAVAILABLE", "no answer")
        return stored


async def test_a_lost_acknowledgement_makes_no_second_revision() -> None:
    ingest = Ingest(log=ForgetfulLog(1))
    reply = await ingest.put("plan", "text")
    assert (reply.revision, reply.status) == (1, WriteStatus.CREATED)
    assert await ingest.log.last_revision() == 1


async def test_only_who_may_write_the_slug_may_write() -> None:
    ingest = Ingest()
    reader = OperationContext(principal="r", scopes=frozenset({Scope.READ}), write_sources=None)
    with pytest.raises(PermissionDenied, match="scope"):
        await ingest.put("plan", ctx=reader)
    elsewhere = OperationContext(principal="w", scopes=frozenset({Scope.WRITE}), write_sources=frozenset({"team"}))
    with pytest.raises(PermissionDenied, match="source"):
        await ingest.put("plan", ctx=elsewhere)
    prefixed = OperationContext(
        principal="w", scopes=frozenset({Scope.WRITE}), write_sources=None, write_prefixes=("agents/7/",)
    )
    assert (await ingest.put("agents/7/log", ctx=prefixed)).revision == 1
    with pytest.raises(PermissionDenied, match="prefixes"):
        await ingest.move("agents/7/log", "people/ana", ctx=prefixed)


async def test_a_caller_cannot_claim_that_its_text_came_from_a_file() -> None:
    ingest = Ingest()
    imported = await ingest.import_files({"notes/a.md": "from the file"})
    assert imported["notes/a.md"].status is WriteStatus.CREATED
    await ingest.put("notes/a", "from an agent", overwrite=True)
    assert (await ingest.get("notes/a")).record.provenance.path == ""


async def test_times_of_a_page_never_stand_still() -> None:
    ingest = Ingest()
    await ingest.put("plan", "one")
    await ingest.put("plan", "two", overwrite=True)
    times = [record.time for record in await ingest.log.kept(key("plan"))]
    assert times == sorted(set(times))
    assert (await ingest.get("plan", ctx=LOCAL)).record.create_time == times[0]
