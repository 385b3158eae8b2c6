"""Submitting over the real store and queue: once for each request, and equal waiting jobs are one."""

from __future__ import annotations

import asyncio

import pytest

from services.domain.errors import InvalidArgument, NotFound, Overloaded
from services.jobs.app import submitting, timekeeping
from services.jobs.ports import Answer
from services.jobs.requests import same_work
from services.jobs.states import State
from tests.integration.jobs.owner import Owner
from tests.integration.jobs.parts import Parts

REBUILD = '{"projection":"graph"}'


async def test_jobs_are_numbered_from_one_and_wait(parts: Parts) -> None:
    first, second = await parts.submit("embed"), await parts.submit("rebuild", REBUILD)

    assert (first.job_id, second.job_id) == (1, 2)
    assert (await parts.asking.get(2)).state is State.WAITING
    assert await parts.queue.depth() == 2


async def test_twenty_submitters_of_one_request_get_one_job(parts: Parts) -> None:
    asked = parts.ask("rebuild", REBUILD, request_id="same")

    answers = await asyncio.gather(*(parts.submitting.submit(asked, principal="local") for _ in range(20)))

    assert {(record.job_id, coalesced) for record, coalesced in answers} == {(answers[0][0].job_id, False)}
    assert len(await parts.store.jobs()) == 1
    assert await parts.queue.depth() == 1


async def test_twenty_submitters_of_the_same_work_get_one_job_and_are_told(parts: Parts) -> None:
    """BC-083: duplicates coalesce and say so."""
    asked = [parts.ask("rebuild", REBUILD) for _ in range(20)]

    answers = await asyncio.gather(*(parts.submitting.submit(one, principal="local") for one in asked))

    assert len({record.job_id for record, _ in answers}) == 1
    assert sorted(coalesced for _, coalesced in answers) == [False] + [True] * 19
    assert len(await parts.store.jobs()) == 1
    assert await parts.queue.depth() == 1


async def test_a_retry_gets_the_same_answer_after_the_job_is_done(parts: Parts, owner: Owner) -> None:
    asked, equal = parts.ask(request_id="first"), parts.ask(request_id="second")
    await parts.submitting.submit(asked, principal="local")
    await parts.submitting.submit(equal, principal="local")
    async with parts.working():
        await parts.until(1, State.COMPLETED)

    retried, coalesced = await parts.submitting.submit(asked, principal="local")
    equal_again, equal_coalesced = await parts.submitting.submit(equal, principal="local")

    assert (retried.job_id, retried.state, coalesced) == (1, State.COMPLETED, False)
    assert (equal_again.job_id, equal_coalesced) == (1, True)
    assert owner.began == ["job-1"]


async def test_another_request_under_the_same_id_is_refused(parts: Parts) -> None:
    await parts.submit("rebuild", REBUILD, request_id="same")

    with pytest.raises(InvalidArgument) as refused:
        await parts.submit("embed", request_id="same")

    assert (refused.value.reason, refused.value.metadata["job_id"]) == ("REQUEST_ID_REUSED", "1")


async def test_other_queues_and_later_jobs_are_no_duplicates(parts: Parts, owner: Owner) -> None:
    first = await parts.submit("embed")
    other_queue = await parts.submit("embed", queue="night")
    async with parts.working():
        await parts.until(first.job_id, State.COMPLETED)
        await parts.until(other_queue.job_id, State.COMPLETED)

    again = await parts.submit("embed")

    assert len({first.job_id, other_queue.job_id, again.job_id}) == 3


@pytest.mark.parametrize("steps", [1, 2, 3])
async def test_a_submitter_that_died_halfway_left_nothing_that_a_retry_does_twice(parts: Parts, steps: int) -> None:
    asked = parts.ask("rebuild", REBUILD, request_id="cut short")
    record = asked.begin(await parts.store.next_id(), principal="local", now=parts.clock())
    answer = Answer(digest=asked.digest, record=record, coalesced=False)
    await parts.store.create_answer("cut short", answer)
    if steps > 1:
        await parts.store.claim_same(same_work(record), record, None)
    if steps > 2:
        await parts.store.create(record)

    retried, coalesced = await parts.submitting.submit(asked, principal="local")
    equal = await parts.submit("rebuild", REBUILD)

    assert (retried.job_id, retried.state, coalesced) == (1, State.WAITING, False)
    assert equal.job_id == 1
    assert await parts.queue.depth() == 1


async def test_a_submitter_that_died_with_the_place_taken_is_helped_by_the_next(parts: Parts, owner: Owner) -> None:
    asked = parts.ask("rebuild", REBUILD, request_id="dead")
    record = asked.begin(await parts.store.next_id(), principal="local", now=parts.clock())
    await parts.store.create_answer("dead", Answer(digest=asked.digest, record=record, coalesced=False))
    await parts.store.claim_same(same_work(record), record, None)

    other, coalesced = await parts.submitting.submit(parts.ask("rebuild", REBUILD), principal="local")

    assert (other.job_id, coalesced) == (1, True)
    async with parts.working():
        await parts.until(1, State.COMPLETED)
    assert owner.completed == ["job-1"]


async def test_a_job_whose_message_was_never_published_gets_one(parts: Parts, owner: Owner) -> None:
    record = parts.ask().begin(await parts.store.next_id(), principal="local", now=parts.clock())
    await parts.store.create(record)
    await parts.until(1, State.WAITING)

    parts.clock.forward(seconds=6)
    await parts.timekeeper.step()

    async with parts.working():
        await parts.until(1, State.COMPLETED)
    assert owner.completed == ["job-1"]


async def test_too_many_unfinished_jobs_are_refused_and_nothing_is_made(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submitting, "UNFINISHED_MAX", 1)
    await parts.submit("embed")
    await parts.until(1, State.WAITING)

    with pytest.raises(Overloaded) as refused:
        await parts.submit("rebuild", REBUILD)

    assert refused.value.reason == "LIMIT_REACHED"
    assert (await parts.submit("embed")).job_id == 1
    assert len(await parts.store.jobs()) == 1


async def test_finished_jobs_are_kept_up_to_a_number_and_their_requests_are_over(
    parts: Parts, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timekeeping, "FINISHED_KEPT", 1)
    async with parts.working():
        for number in (1, 2):
            job = await parts.submit("embed", request_id=f"request {number}")
            await parts.until(job.job_id, State.COMPLETED)

    await parts.timekeeper.step()

    assert [record.job_id for record in await parts.store.jobs()] == [2]
    with pytest.raises(NotFound):
        await parts.submit("embed", request_id="request 1")
    assert (await parts.submit("embed")).job_id == 3
    assert owner.began == ["job-1", "job-2"]


async def test_pages_of_jobs_are_newest_first_and_filtered(parts: Parts) -> None:
    for queue in ("a", "b", "a", "b", "a"):
        await parts.submit("embed", queue=queue, delay=parts.clock.now - parts.clock.now)
        await parts.asking.cancel(len(await parts.store.jobs()))

    page, following = await parts.asking.page(state=State.CANCELLED, queue="a", name="", before=None, limit=2)
    rest, end = await parts.asking.page(state=State.CANCELLED, queue="a", name="", before=following, limit=2)

    assert [record.job_id for record in page] == [5, 3]
    assert [record.job_id for record in rest] == [1]
    assert end is None
