"""What a remote caller may see and set."""

from __future__ import annotations

import pytest

from services.domain.context import OperationContext, Scope
from services.domain.errors import BrainError, Conflict, InvalidArgument, NotFound, PermissionDenied
from services.domain.records import Operation
from services.ingest.requests import WriteStatus, change_request
from tests.unit.ingest.parts import LOCAL, REMOTE, Ingest, key

PRIVATE = "---\nvisibility: private\n---\nSecret plans."


async def test_a_private_page_does_not_exist_for_a_remote_caller() -> None:
    ingest = Ingest()
    await ingest.put("secret", PRIVATE)
    absent = await told_of_absence(ingest, "nothing")
    assert await told_of_absence(ingest, "secret") == absent
    await ingest.move("secret", "hidden")
    assert await told_of_absence(ingest, "secret") == absent, "nor does its redirect"
    await ingest.delete("hidden")
    assert await told_of_absence(ingest, "hidden") == absent, "nor does its tombstone"
    assert await told_of_absence(ingest, "secret") == absent


async def told_of_absence(ingest: Ingest, slug: str) -> list[str]:
    """What a remote caller hears from every call about a page, with the slug blanked out."""
    heard = []
    for call in (
        ingest.get(slug, ctx=REMOTE),
        ingest.get(slug, ctx=REMOTE, include_deleted=True),
        ingest.get(slug, ctx=REMOTE, revision=1),
        ingest.versions(slug, ctx=REMOTE),
        ingest.delete(slug, ctx=REMOTE),
        ingest.delete(slug, ctx=REMOTE, if_revision=1),
        ingest.restore(slug, ctx=REMOTE),
        ingest.revert(slug, 1, ctx=REMOTE),
        ingest.move(slug, "elsewhere", ctx=REMOTE),
    ):
        with pytest.raises(NotFound) as caught:
            await call
        error = caught.value
        heard.append(f"{error.reason} {error.message} {error.next_step} {dict(error.metadata)}".replace(slug, "*"))
    return heard


async def test_a_remote_put_over_a_private_page_is_refused_without_a_word_about_it() -> None:
    ingest = Ingest()
    await ingest.put("secret", PRIVATE)
    await ingest.put("open", "Open.")
    for call in (
        ingest.put("secret", "mine", ctx=REMOTE),
        ingest.put("secret", "mine", ctx=REMOTE, overwrite=True),
        ingest.put("secret", PRIVATE, ctx=REMOTE),
        ingest.move("open", "secret", ctx=REMOTE),
    ):
        with pytest.raises(PermissionDenied) as caught:
            await call
        assert caught.value.reason == "SLUG_DENIED"
        assert not caught.value.metadata
    assert await ingest.text("secret") == PRIVATE


async def test_a_stale_write_at_a_private_page_is_refused_as_if_nothing_were_there() -> None:
    ingest = Ingest()
    await ingest.put("secret", PRIVATE)
    await ingest.put("open", "Open.")
    assert await stale_writes(ingest, "secret") == await stale_writes(ingest, "nothing")


async def stale_writes(ingest: Ingest, slug: str) -> list[str]:
    """What a remote caller hears of writes decided on a revision that is not there, with the slug blanked out."""
    heard = []
    calls = [
        ingest.put(slug, "mine", ctx=REMOTE, if_revision=99),
        ingest.move("open", slug, ctx=REMOTE, if_revision=99),
    ]
    for call in calls:
        with pytest.raises(Conflict) as caught:
            await call
        error = caught.value
        heard.append(f"{error.reason} {error.message} {dict(error.metadata)}".replace(slug, "*"))
    return heard


async def test_a_remote_caller_cannot_take_a_name_that_leads_to_a_private_page() -> None:
    ingest = Ingest()
    await ingest.put("secret", PRIVATE)
    await ingest.move("secret", "hidden")
    await ingest.put("open", "Open.")
    for call in (ingest.put("secret", "mine", ctx=REMOTE), ingest.move("open", "secret", ctx=REMOTE)):
        with pytest.raises(PermissionDenied):
            await call
    assert await ingest.text("secret") == PRIVATE


async def test_a_remote_caller_may_begin_a_page_where_a_private_one_was_deleted() -> None:
    ingest = Ingest()
    await ingest.put("secret", PRIVATE)
    await ingest.delete("secret")
    with pytest.raises(Conflict) as caught:
        await ingest.put("secret", "mine", ctx=REMOTE, if_revision=1)
    assert caught.value.metadata["revision"] == "0"
    assert (await ingest.put("secret", "mine", ctx=REMOTE)).status is WriteStatus.CREATED


async def test_revisions_of_the_time_when_a_page_was_private_stay_so() -> None:
    ingest = Ingest()
    await ingest.put("plan", PRIVATE)
    await ingest.put("plan", "Open now.", overwrite=True)
    assert await ingest.versions("plan", ctx=REMOTE) == [2]
    assert await ingest.versions("plan") == [2, 1]
    for call in (ingest.get("plan", ctx=REMOTE, revision=1), ingest.revert("plan", 1, ctx=REMOTE)):
        with pytest.raises(NotFound) as caught:
            await call
        assert caught.value.reason == "REVISION_NOT_FOUND"


async def test_a_remote_caller_gets_its_reply_again_even_when_the_page_is_private_by_now() -> None:
    ingest = Ingest()
    first = await ingest.put("plan", PRIVATE, ctx=REMOTE, request_id="r1")
    assert await ingest.put("plan", PRIVATE, ctx=REMOTE, request_id="r1") == first


async def test_a_remote_list_of_addresses_has_only_what_the_caller_may_see() -> None:
    ingest = Ingest()
    await ingest.put("a/open", "Open.")
    await ingest.put("a/secret", PRIVATE)
    await ingest.put("a/gone", "Gone.")
    await ingest.delete("a/gone")
    assert await ingest.reads.keys(REMOTE, "default", "a", limit=10) == (["a/open"], "", 4)
    assert await ingest.reads.keys(LOCAL, "default", "", limit=2) == (["a/gone", "a/open"], "a/open", 4)
    assert await ingest.reads.keys(LOCAL, "default", "", limit=2, after="a/open") == (["a/secret"], "", 4)


async def test_reserved_keys_are_the_local_callers_to_set() -> None:
    ingest = Ingest()
    flagged = "---\nquarantine: true\n---\nText."
    with pytest.raises(InvalidArgument) as caught:
        await ingest.put("plan", flagged, ctx=REMOTE)
    assert (caught.value.reason, caught.value.field) == ("FIELD_INVALID", "body.frontmatter.quarantine")
    await ingest.put("plan", flagged)
    edited = flagged + "\nMore."
    assert (await ingest.put("plan", edited, ctx=REMOTE, overwrite=True)).status is WriteStatus.UPDATED
    with pytest.raises(InvalidArgument):
        await ingest.put("plan", edited.replace("true", "false"), ctx=REMOTE, overwrite=True)


async def test_a_source_that_is_not_the_callers_is_denied_before_anything_is_read() -> None:
    ingest = Ingest()
    stranger = OperationContext(
        principal="s", scopes=frozenset({Scope.READ, Scope.WRITE}), read_sources=frozenset({"team"})
    )
    calls = [ingest.get("plan", ctx=stranger), ingest.versions("plan", ctx=stranger)]
    for call in calls:
        with pytest.raises(PermissionDenied) as caught:
            await call
        assert caught.value.reason == "SOURCE_DENIED"


async def test_only_an_administrator_erases() -> None:
    ingest = Ingest()
    await ingest.put("plan", "text")
    request = change_request(Operation.ERASE, source="", slug="plan", request_id="e")
    with pytest.raises(BrainError) as caught:
        await ingest.writes.write(REMOTE, request)
    assert caught.value.reason == "SCOPE_MISSING"
    assert await ingest.log.newest(key("plan")) is not None
