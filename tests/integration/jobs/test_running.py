"""Driving jobs over the real queue and a real owner: done once, whatever breaks on the way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from services.domain.errors import BrainError, Conflict, Internal, InvalidArgument, NotReady, Unavailable
from services.jobs.app import driving
from services.jobs.states import JobRecord, State
from services.runtime.bus import Bus
from services.runtime.consumers import redeliver_at_once
from tests.integration.jobs.owner import TOTAL, Owner
from tests.integration.jobs.parts import Parts, open_parts

REBUILD = '{"projection":"graph"}'
ALL = '{"projection":"all"}'


def delayed_after(attempts: int) -> Callable[[JobRecord], bool]:
    """Whether a job waits for its next run after so many."""
    return lambda seen: seen.state is State.DELAYED and seen.attempts == attempts


async def test_a_job_runs_and_says_what_came_of_it(parts: Parts, owner: Owner) -> None:
    job = await parts.submit("rebuild", REBUILD)

    async with parts.working():
        done = await parts.until(job.job_id, State.COMPLETED)
        await parts.emptied()

    assert json.loads(done.result) == {
        "projections": {"graph": {"finished": TOTAL, "total": TOTAL, "unit": "pages", "store_id": "store-2"}}
    }
    assert (done.attempts, done.finished, done.total, done.unit) == (1, TOTAL, TOTAL, "pages")


async def test_progress_is_stored_while_it_runs(parts: Parts, owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    owner.at_once = False
    job = await parts.submit("embed")

    async with parts.working():
        await owner.until(began=1)
        active = await parts.until(job.job_id, lambda seen: seen.total == TOTAL)
        owner.advance("job-1")
        done = await parts.until(job.job_id, State.COMPLETED)

    assert (active.state, active.finished, active.unit) == (State.ACTIVE, 0, "pages")
    assert done.finished == TOTAL


async def test_everything_is_rebuilt_one_after_the_other(parts: Parts, owner: Owner) -> None:
    job = await parts.submit("rebuild", ALL)

    async with parts.working():
        done = await parts.until(job.job_id, State.COMPLETED)

    assert owner.completed == ["job-1-search-lexical", "job-1-search-vectors", "job-1-graph"]
    assert (done.finished, done.total) == (3 * TOTAL, 3 * TOTAL)


async def test_of_everything_what_is_switched_off_is_left_out_and_named(parts: Parts, owner: Owner) -> None:
    off = NotReady("FEATURE_OFF", "the embedder is off")
    owner.refusals.append(off)
    everything = await parts.submit("rebuild", ALL)

    async with parts.working():
        done = await parts.until(everything.job_id, State.COMPLETED)
        owner.refusals.append(off)
        alone = await parts.submit("embed")
        refused = await parts.until(alone.job_id, State.DEAD)

    assert json.loads(done.result)["projections"]["search-lexical"]["skipped"] == "FEATURE_OFF"
    assert owner.completed == ["job-1-search-vectors", "job-1-graph"]
    assert (refused.attempts, refused.error_reason) == (1, "FEATURE_OFF")


async def test_a_stream_that_breaks_is_joined_again_and_the_work_goes_on(parts: Parts, owner: Owner) -> None:
    owner.at_once = False
    owner.refusals.append(Unavailable("PEER_UNAVAILABLE", "restarting"))
    job = await parts.submit("embed")

    async with parts.working():
        await owner.until(began=1)
        owner.advance("job-1", 4)
        owner.break_streams()
        await owner.until(joined=3)
        owner.advance("job-1", 6)
        done = await parts.until(job.job_id, State.COMPLETED)

    assert (owner.began, owner.completed) == (["job-1"], ["job-1"])
    assert (done.attempts, done.deferrals) == (1, 0)


@pytest.mark.parametrize(
    "error",
    [Conflict("JOB_STATE", "the rebuild was cancelled"), NotReady("INDEX_BEHIND", "graph is not running yet")],
)
async def test_an_owner_that_stops_or_starts_burns_no_attempt(parts: Parts, owner: Owner, error: BrainError) -> None:
    owner.refusals.append(error)
    job = await parts.submit("rebuild", REBUILD, max_attempts=1)

    async with parts.working():
        done = await parts.until(job.job_id, State.COMPLETED)

    assert (done.attempts, done.deferrals) == (1, 0)


async def test_an_owner_that_stays_away_puts_the_job_off_and_burns_no_attempt(
    parts: Parts, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BC-080: a blip of a dependency must not burn the attempts."""
    monkeypatch.setattr(driving, "REJOINS_MAX", 1)
    owner.refusals.extend(Unavailable("PEER_UNAVAILABLE", "away") for _ in range(2))
    job = await parts.submit("embed", max_attempts=1)

    async with parts.working():
        off = await parts.until(job.job_id, State.DELAYED)
        parts.clock.forward(seconds=2)
        await parts.timekeeper.step()
        done = await parts.until(job.job_id, State.COMPLETED)

    assert (off.deferrals, off.error_reason) == (1, "PEER_UNAVAILABLE")
    assert (done.attempts, done.error_message) == (1, "")


async def test_a_run_that_fails_is_tried_again_after_a_growing_pause(parts: Parts, owner: Owner) -> None:
    owner.refusals.extend(Internal("INTERNAL", "the disk is full") for _ in range(2))
    job = await parts.submit("embed")

    async with parts.working():
        for attempts, pause in ((1, 1), (2, 2)):
            failed = await parts.until(job.job_id, delayed_after(attempts))
            assert failed.delay_until == parts.clock.now + timedelta(seconds=pause)
            assert await parts.timekeeper.step() > 0
            assert (await parts.asking.get(job.job_id)).state is State.DELAYED
            parts.clock.forward(seconds=pause)
            await parts.timekeeper.step()
        done = await parts.until(job.job_id, State.COMPLETED)

    assert done.attempts == 3


async def test_the_last_failure_is_final_and_keeps_its_reason(parts: Parts, owner: Owner) -> None:
    owner.refusals.append(Internal("INTERNAL", "the disk is full"))
    job = await parts.submit("embed", max_attempts=1)

    async with parts.working():
        dead = await parts.until(job.job_id, State.DEAD)
        await parts.emptied()

    assert (dead.error_message, dead.error_reason) == ("the disk is full", "INTERNAL")
    assert dead.finish_time == parts.clock.now


async def test_a_refusal_is_not_tried_again(parts: Parts, owner: Owner) -> None:
    owner.refusals.append(InvalidArgument("FIELD_INVALID", "no such projection", field="projection"))
    job = await parts.submit("rebuild", REBUILD)

    async with parts.working():
        dead = await parts.until(job.job_id, State.DEAD)

    assert dead.attempts == 1


async def test_a_delayed_job_begins_when_its_time_has_come(parts: Parts, owner: Owner) -> None:
    job = await parts.submit("embed", delay=timedelta(hours=1))
    assert job.state is State.DELAYED

    async with parts.working():
        await parts.until(job.job_id, State.DELAYED)
        parts.clock.forward(minutes=59)
        seconds = await parts.timekeeper.step()
        assert owner.joined == []
        parts.clock.forward(minutes=1)
        await parts.timekeeper.step()
        done = await parts.until(job.job_id, State.COMPLETED)

    assert 0 < seconds <= 60
    assert done.start_time == parts.clock.now


async def test_a_run_that_takes_too_long_is_ended_at_its_owner_and_counts(parts: Parts, owner: Owner) -> None:
    owner.at_once = False
    job = await parts.submit("embed", timeout=timedelta(milliseconds=100), max_attempts=1)

    async with parts.working():
        dead = await parts.until(job.job_id, State.DEAD)

    assert dead.error_reason == "DEADLINE_EXCEEDED"
    assert owner.works["job-1"].cancelled


async def test_a_waiting_job_is_cancelled_at_once_and_never_runs(parts: Parts, owner: Owner) -> None:
    job = await parts.submit("embed")

    cancelled = await parts.asking.cancel(job.job_id)

    other = await parts.submit("rebuild", REBUILD)
    async with parts.working():
        await parts.until(other.job_id, State.COMPLETED)
        await parts.emptied()
    assert cancelled.state is State.CANCELLED
    assert (await parts.asking.cancel(job.job_id)).finish_time == cancelled.finish_time
    assert owner.began == ["job-2"]


async def test_an_active_job_is_ended_at_its_owner(parts: Parts, owner: Owner) -> None:
    owner.at_once = False
    job = await parts.submit("rebuild", ALL)

    async with parts.working():
        await owner.until(began=1)
        asked = await parts.asking.cancel(job.job_id)
        cancelled = await parts.until(job.job_id, State.CANCELLED)
        await parts.emptied()

    assert (asked.state, asked.cancel_requested) == (State.ACTIVE, True)
    assert owner.works["job-1-search-lexical"].cancelled
    assert (cancelled.attempts, owner.began) == (1, ["job-1-search-lexical"])


async def test_a_finished_job_stays_as_it_is(parts: Parts) -> None:
    job = await parts.submit("embed")
    async with parts.working():
        done = await parts.until(job.job_id, State.COMPLETED)

    assert await parts.asking.cancel(job.job_id) == done


async def test_a_worker_that_stops_in_order_hands_its_job_on(parts: Parts, owner: Owner) -> None:
    owner.at_once = False
    job = await parts.submit("embed")
    async with parts.working():
        await owner.until(began=1)

    released = await parts.asking.get(job.job_id)
    owner.advance("job-1")
    async with parts.working():
        done = await parts.until(job.job_id, State.COMPLETED)

    assert released.state is State.WAITING
    assert (done.attempts, done.stalls) == (1, 0)
    assert (owner.began, owner.completed) == (["job-1"], ["job-1"])


async def test_a_job_that_was_handed_back_is_cancelled_at_its_owner_too(parts: Parts, owner: Owner) -> None:
    owner.at_once = False
    job = await parts.submit("embed")
    async with parts.working():
        await owner.until(began=1)

    cancelled = await parts.asking.cancel(job.job_id)

    assert cancelled.state is State.CANCELLED
    assert owner.works["job-1"].cancelled


async def test_a_worker_taken_for_dead_writes_nothing_more(
    parts: Parts, owner: Owner, bus: Bus, owner_and_address: tuple[Owner, str]
) -> None:
    """One fencing number for each run: of two workers only the later one's word counts."""
    owner.at_once = False
    job = await parts.submit("embed")
    async with open_parts(bus, owner_and_address[1], parts.clock) as others, parts.working():
        await owner.until(began=1)
        await redeliver_at_once(bus.connection, "JOBS", "workers")
        async with others.working():
            taken = await parts.until(job.job_id, lambda seen: seen.run == 2)
            await owner.until(joined=2)
            owner.advance("job-1")
            done = await parts.until(job.job_id, State.COMPLETED)

    assert (taken.stalls, taken.attempts) == (1, 1)
    assert (done.run, done.attempts) == (2, 1)
    assert (owner.began, owner.completed) == (["job-1"], ["job-1"])


async def test_smaller_priorities_run_first_and_equal_ones_in_order(parts: Parts, owner: Owner) -> None:
    await parts.submit("embed")
    await parts.submit("rebuild", REBUILD)
    await parts.submit("rebuild", '{"projection":"lexical"}', priority=-10)
    await parts.submit("rebuild", '{"projection":"vectors"}', priority=5)
    await parts.until(4, lambda seen: seen.sequence > 0)

    async with parts.working():
        for job_id in range(1, 5):
            await parts.until(job_id, State.COMPLETED)

    assert owner.began == ["job-3", "job-1", "job-2", "job-4"]


async def test_a_busy_worker_leaves_the_next_job_to_an_idle_one(
    parts: Parts, owner: Owner, bus: Bus, owner_and_address: tuple[Owner, str]
) -> None:
    owner.at_once = False
    first = await parts.submit("embed")
    async with open_parts(bus, owner_and_address[1], parts.clock) as others, parts.working():
        await owner.until(began=1)
        second = await parts.submit("rebuild", REBUILD)
        async with others.working():
            await owner.until(began=2)
            owner.advance("job-2")
            await parts.until(second.job_id, State.COMPLETED)
            owner.advance("job-1")
            await parts.until(first.job_id, State.COMPLETED)

    assert owner.completed == ["job-2", "job-1"]


async def test_jobs_whose_messages_were_removed_get_new_ones(parts: Parts, owner: Owner, bus: Bus) -> None:
    job = await parts.submit("embed")
    await parts.until(job.job_id, lambda seen: seen.sequence > 0)
    assert await parts.timekeeper.publish_lost() == 0
    await bus.connection.api("STREAM.PURGE.JOBS")

    assert await parts.timekeeper.publish_lost() == 1

    async with parts.working():
        await parts.until(job.job_id, State.COMPLETED)
    assert owner.completed == ["job-1"]


async def test_many_jobs_are_each_done_once_by_three_workers(
    parts: Parts, owner: Owner, bus: Bus, owner_and_address: tuple[Owner, str]
) -> None:
    count = 60
    async with (
        open_parts(bus, owner_and_address[1], parts.clock) as second,
        open_parts(bus, owner_and_address[1], parts.clock) as third,
        parts.working(),
        second.working(),
        third.working(),
    ):
        await asyncio.gather(*(parts.submit("embed", queue=f"q-{number}") for number in range(count)))
        jobs = [record.job_id for record in await parts.store.jobs()]
        for job_id in jobs:
            await parts.until(job_id, State.COMPLETED)

    assert sorted(owner.completed) == sorted(f"job-{job_id}" for job_id in jobs)
    assert len(jobs) == count
