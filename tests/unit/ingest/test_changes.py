"""Deletes, restores, moves, reverts and erasures."""

from __future__ import annotations

from collections.abc import Awaitable

import pytest

from services.domain.errors import AlreadyExists, BrainError, Conflict, NotFound
from services.domain.records import PageKey, RecordKind
from services.ingest.requests import WriteStatus
from tests.unit.ingest.memory_log import MemoryLog
from tests.unit.ingest.parts import LOCAL, Ingest, key


async def refused(call: Awaitable[object]) -> BrainError:
    """The error that a call ends with."""
    with pytest.raises(BrainError) as caught:
        await call
    return caught.value


async def test_a_deleted_page_is_gone_and_can_be_restored_for_three_days() -> None:
    ingest = Ingest()
    first = await ingest.put("plan", "text")
    gone = await ingest.delete("plan")
    assert (gone.status, gone.replaced_revision, gone.content_hash) == (WriteStatus.DELETED, 1, b"")
    assert gone.recoverable_until is not None
    error = await refused(ingest.get("plan"))
    assert error.reason == "PAGE_NOT_FOUND"
    assert (await ingest.get("plan", include_deleted=True)).record.kind is RecordKind.DELETE
    ingest.wait(hours=71)
    back = await ingest.restore("plan")
    assert (back.status, back.page_id, back.replaced_revision) == (WriteStatus.RESTORED, first.page_id, 2)
    assert await ingest.text("plan") == "text"


async def test_a_page_is_not_restored_after_three_days() -> None:
    ingest = Ingest()
    await ingest.put("plan", "text")
    await ingest.delete("plan")
    ingest.wait(hours=73)
    assert (await refused(ingest.restore("plan"))).reason == "RESTORE_WINDOW_OVER"


async def test_what_is_there_already_is_unchanged() -> None:
    ingest = Ingest()
    first = await ingest.put("plan", "text")
    assert (await ingest.restore("plan")).status is WriteStatus.UNCHANGED
    assert (await ingest.move("plan", "Plan")).status is WriteStatus.UNCHANGED
    assert (await ingest.revert("plan", first.revision)).status is WriteStatus.UNCHANGED
    gone = await ingest.delete("plan")
    again = await ingest.delete("plan")
    assert (again.status, again.revision) == (WriteStatus.UNCHANGED, gone.revision)
    assert again.recoverable_until == gone.recoverable_until


async def test_a_delete_may_name_the_revision_it_was_decided_on() -> None:
    ingest = Ingest()
    await ingest.put("plan", "one")
    await ingest.put("plan", "two", overwrite=True)
    assert isinstance(await refused(ingest.delete("plan", if_revision=1)), Conflict)
    assert (await ingest.delete("plan", if_revision=2)).status is WriteStatus.DELETED


async def test_a_moved_page_keeps_its_identity_history_and_old_address() -> None:
    """BC-056."""
    ingest = Ingest()
    first = await ingest.put("people/dora-example", "Dora.")
    moved = await ingest.move("people/dora-example", "people/Dora-Sample")
    assert (moved.slug, moved.page_id, moved.status) == ("people/dora-sample", first.page_id, WriteStatus.MOVED)
    assert (moved.revision, moved.replaced_revision) == (3, 1)
    read = await ingest.get("people/dora-example")
    assert (read.moved_to, read.record.revision) == ("people/dora-sample", 3)
    assert await ingest.versions("people/dora-example") == [3, 1]
    assert await ingest.text("people/dora-sample", revision=1) == "Dora."


async def test_every_old_slug_is_one_hop_away() -> None:
    ingest = Ingest()
    await ingest.put("a", "text")
    for slug, new_slug in (("a", "b"), ("b", "c"), ("c", "d")):
        await ingest.move(slug, new_slug)
    for old in ("a", "b", "c"):
        newest = await ingest.log.newest(key(old))
        assert newest is not None
        assert newest.moved_to == "d"
        assert (await ingest.get(old)).moved_to == "d"
    await ingest.move("d", "b")
    assert (await ingest.get("b")).moved_to == ""
    assert (await ingest.get("b")).former_slugs == {"a", "c", "d"}


async def test_every_write_to_an_old_slug_names_the_new_one() -> None:
    ingest = Ingest()
    await ingest.put("old", "text")
    await ingest.move("old", "new")
    for call in (
        ingest.put("old", "other", overwrite=True),
        ingest.put("old", "other", if_revision=0),
        ingest.delete("old"),
        ingest.restore("old"),
        ingest.revert("old", 1),
        ingest.move("old", "elsewhere"),
        ingest.erase("old"),
    ):
        error = await refused(call)
        assert (error.reason, error.metadata["moved_to"], error.metadata["revision"]) == ("PAGE_MOVED", "new", "2")


async def test_a_new_page_begins_on_an_old_slug_only_by_the_redirects_revision() -> None:
    ingest = Ingest()
    first = await ingest.put("old", "text")
    await ingest.move("old", "new")
    fresh = await ingest.put("old", "another", if_revision=2)
    assert (fresh.status, fresh.page_id != first.page_id) == (WriteStatus.CREATED, True)
    assert await ingest.versions("old") == [fresh.revision]
    assert await ingest.versions("new") == [3, 1], "the history under the old slug stays the first page's"


async def test_a_live_page_at_the_new_slug_is_not_replaced() -> None:
    ingest = Ingest()
    await ingest.put("a", "text")
    await ingest.put("b", "other")
    assert isinstance(await refused(ingest.move("a", "b")), AlreadyExists)
    await ingest.delete("b")
    assert (await ingest.move("a", "b")).status is WriteStatus.MOVED


async def test_a_repeated_move_gets_its_first_reply_again() -> None:
    ingest = Ingest()
    await ingest.put("a", "text")
    moved = await ingest.move("a", "b", request_id="m1")
    assert await ingest.move("a", "b", request_id="m1") == moved
    await ingest.move("b", "c")
    assert await ingest.move("a", "b", request_id="m1") == moved
    for number in range(64):
        await ingest.put("c", f"text {number}", overwrite=True)
    assert (await ingest.move("a", "b", request_id="m1")).revision == moved.revision


async def test_a_page_has_at_most_100_former_slugs() -> None:
    ingest = Ingest()
    await ingest.put("s0", "text")
    for number in range(100):
        await ingest.move(f"s{number}", f"s{number + 1}")
    error = await refused(ingest.move("s100", "s101"))
    assert error.reason == "FORMER_SLUGS_LIMIT"
    assert (await ingest.move("s100", "s3")).slug == "s3"


async def test_a_revert_writes_an_earlier_text_as_a_new_revision() -> None:
    ingest = Ingest()
    for text in ("one", "two", "three"):
        await ingest.put("plan", text, overwrite=True)
    reply = await ingest.revert("plan", 1)
    assert (reply.status, reply.revision, reply.replaced_revision) == (WriteStatus.REVERTED, 4, 3)
    assert await ingest.text("plan") == "one"
    assert (await refused(ingest.revert("plan", 99))).reason == "REVISION_NOT_FOUND"


async def test_a_revert_reaches_revisions_under_former_slugs_but_not_other_pages() -> None:
    ingest = Ingest()
    await ingest.put("a", "one")
    await ingest.move("a", "b")
    other = await ingest.put("a", "another page", if_revision=2)
    await ingest.put("b", "two", overwrite=True)
    assert (await ingest.revert("b", 1)).status is WriteStatus.REVERTED
    assert (await refused(ingest.revert("b", other.revision))).reason == "REVISION_NOT_FOUND"
    assert (await refused(ingest.revert("b", 2))).reason == "REVISION_NOT_FOUND", "a redirect is no revision"


async def test_the_newest_64_revisions_stay_readable() -> None:
    ingest = Ingest()
    for number in range(70):
        await ingest.put("plan", f"text {number}", overwrite=True)
    assert await ingest.versions("plan") == list(range(70, 6, -1))
    assert await ingest.text("plan", revision=7) == "text 6"
    assert (await refused(ingest.get("plan", revision=6))).reason == "REVISION_NOT_FOUND"


async def test_versions_come_in_pages() -> None:
    ingest = Ingest()
    for number in range(5):
        await ingest.put("plan", f"text {number}", overwrite=True)
    first, rest = await ingest.reads.versions(LOCAL, key("plan"), limit=3)
    assert [version.record.revision for version in first] == [5, 4, 3]
    assert all(version.record.body is None and version.body_bytes == 6 for version in first)
    second, end = await ingest.reads.versions(LOCAL, key("plan"), limit=3, before=rest)
    assert [version.record.revision for version in second] == [2, 1]
    assert end == 0


async def test_an_erasure_removes_the_text_everywhere_and_refuses_its_requests() -> None:
    ingest = Ingest()
    await ingest.put("a", "secret", request_id="r1")
    await ingest.put("a", "secret and more", request_id="r2", overwrite=True)
    await ingest.move("a", "b", request_id="r3")
    await ingest.put("b", "clean", request_id="r4", overwrite=True)
    erased = await ingest.erase("b", request_id="e1")
    bodies = [r.body for records in ingest.log.records.values() for r in records if r.body is not None]
    assert bodies == [b"clean"]
    assert await ingest.versions("b") == [erased.revision]
    await ingest.put("b", "later", overwrite=True)
    for request_id, slug, text in (("r4", "b", "clean"), ("r2", "b", "secret and more")):
        error = await refused(ingest.put(slug, text, request_id=request_id, overwrite=True))
        assert error.reason == "ERASED"
    error = await refused(ingest.put("a", "secret", request_id="r1", overwrite=True))
    assert error.reason == "ERASED", "also under the slug that the page had left by then"
    assert (await ingest.erase("b", request_id="e1")).revision == erased.revision


async def test_an_erased_deleted_page_cannot_be_restored() -> None:
    ingest = Ingest()
    await ingest.put("a", "secret")
    await ingest.delete("a")
    await ingest.erase("a")
    assert (await refused(ingest.restore("a"))).reason == "RESTORE_WINDOW_OVER"
    assert isinstance(await refused(ingest.get("a")), NotFound)


class DyingLog(MemoryLog):
    """A log whose server dies before so many removals."""

    def __init__(self) -> None:
        super().__init__()
        self.deaths = 4

    async def erase(self, key: PageKey, revision: int) -> None:
        if self.deaths:
            self.deaths -= 1
            raise Conflict("WRITE_CONTENDED", "dead")
        await super().erase(key, revision)


async def test_an_erasure_that_died_half_way_is_finished_by_its_repetition() -> None:
    ingest = Ingest(log=DyingLog())
    await ingest.put("a", "secret")
    await ingest.put("a", "clean", overwrite=True)
    await refused(ingest.erase("a", request_id="e1"))
    assert isinstance(await refused(ingest.revert("a", 1)), NotFound), "what is being erased does not come back"
    await refused(ingest.erase("a", request_id="e1"))
    ingest.log = restarted(ingest.log)
    reply = await ingest.erase("a", request_id="e1")
    assert reply.revision == 3
    assert [r.revision for r in ingest.log.records[key("a")]] == [3]


def restarted(log: MemoryLog) -> MemoryLog:
    again = MemoryLog()
    again.records, again.last = log.records, log.last
    return again


async def test_all_changes_of_a_page_that_is_not_there_say_so() -> None:
    ingest = Ingest()
    for call in (
        ingest.delete("a"),
        ingest.restore("a"),
        ingest.move("a", "b"),
        ingest.revert("a", 1),
        ingest.erase("a"),
    ):
        error = await refused(call)
        assert (error.reason, error.field, error.value) == ("PAGE_NOT_FOUND", "slug", "a")
