"""The life of a job: no history of events breaks its rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.errors import Internal, Overloaded, Unavailable
from services.jobs import states
from services.jobs.states import FINAL, TRANSITIONS, Drop, JobRecord, State, Take

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AWAY = Unavailable("PEER_UNAVAILABLE", "search does not answer")
BROKEN = Internal("INTERNAL", "the disk is full")


def job(**changes: object) -> JobRecord:
    fields: dict[str, object] = {
        "job_id": 7,
        "name": "rebuild",
        "data": '{"projection":"graph"}',
        "queue": "default",
        "state": State.WAITING,
        "priority": 0,
        "max_attempts": 3,
        "submitted_by": "local",
        "create_time": NOW,
        "update_time": NOW,
        "timeout": timedelta(hours=1),
        "request_id": "r",
        "sequence": 5,
    }
    return JobRecord(**{**fields, **changes})  # type: ignore[arg-type]


def active(**changes: object) -> JobRecord:
    return job(state=State.ACTIVE, attempts=1, begun=True, **changes)


def test_every_state_has_its_row_and_final_ones_lead_nowhere() -> None:
    assert set(TRANSITIONS) == set(State)
    assert {state for state, after in TRANSITIONS.items() if not after} == FINAL


def test_a_message_begins_the_job_that_waits_for_it() -> None:
    decision = states.receive(job(), run=1, sequence=5, now=NOW)

    assert isinstance(decision, Take)
    assert (decision.record.state, decision.record.attempts, decision.record.start_time) == (State.ACTIVE, 1, NOW)


def test_a_message_whose_sequence_nobody_noted_begins_its_run() -> None:
    decision = states.receive(job(sequence=0), run=1, sequence=9, now=NOW)

    assert isinstance(decision, Take)
    assert decision.record.sequence == 9


@pytest.mark.parametrize(
    ("record", "run", "sequence"),
    [
        (None, 1, 5),
        (job(), 1, 6),
        (active(), 1, 6),
        (job(sequence=0, run=2), 1, 5),
        (job(state=State.DELAYED, sequence=0, run=2), 1, 5),
        (job(state=State.COMPLETED), 1, 5),
        (job(state=State.CANCELLED), 1, 5),
    ],
)
def test_a_message_that_is_older_or_a_double_is_dropped(record: JobRecord | None, run: int, sequence: int) -> None:
    assert isinstance(states.receive(record, run=run, sequence=sequence, now=NOW), Drop)


def test_the_same_message_again_means_that_the_worker_is_gone_and_burns_no_attempt() -> None:
    decision = states.receive(active(), run=1, sequence=5, now=NOW)

    assert isinstance(decision, Take)
    assert (decision.record.run, decision.record.stalls, decision.record.attempts) == (2, 1, 1)


def test_a_job_that_outlives_five_workers_kills_no_sixth() -> None:
    record = active()
    for _ in range(states.STALLS_MAX):
        record = states.continued(record, NOW)

    assert record.state is State.ACTIVE
    assert states.continued(record, NOW).state is State.DEAD


def test_a_released_job_begins_again_without_another_attempt() -> None:
    released = states.released(active(), NOW)

    again = states.claimed(released, 5, NOW)

    assert (again.attempts, again.stalls, again.run) == (1, 0, 1)


def test_a_failed_run_waits_longer_each_time_and_the_last_one_is_dead() -> None:
    record, pauses = job(), []
    while record.state is not State.DEAD:
        record = states.failed(states.claimed(record, 5, NOW), BROKEN, jitter=0.5, now=NOW)
        if record.delay_until is not None:
            pauses.append((record.delay_until - NOW).total_seconds())
            record = states.promoted(record, NOW)

    assert pauses == [1.0, 2.0]
    assert (record.attempts, record.error_message) == (3, "the disk is full")


def test_a_peer_that_says_when_to_come_back_is_believed() -> None:
    busy = Overloaded("LIMIT_REACHED", "too many rebuilds", retry_after_seconds=40.0)

    record = states.failed(active(), busy, jitter=0.0, now=NOW)

    assert record.delay_until == NOW + timedelta(seconds=40)


def test_an_owner_that_is_away_burns_no_attempt_but_not_for_ever() -> None:
    record = active()
    for _ in range(states.DEFERRALS_MAX):
        record = states.deferred(record, AWAY, jitter=0.0, now=NOW)
        assert record.state is State.DELAYED
        record = states.claimed(states.promoted(record, NOW), 5, NOW)

    assert record.attempts == 1
    assert states.deferred(record, AWAY, jitter=0.0, now=NOW).state is State.DEAD


def test_a_run_that_fails_after_its_end_was_asked_for_is_cancelled() -> None:
    asked = states.end_requested(active(), NOW)

    assert states.failed(asked, BROKEN, jitter=0.0, now=NOW).state is State.CANCELLED
    assert states.deferred(asked, AWAY, jitter=0.0, now=NOW).state is State.CANCELLED


@given(failures=st.integers(1, 10_000), jitter=st.floats(0, 1, exclude_max=True))
def test_a_pause_is_never_longer_than_its_bound_and_its_jitter(failures: int, jitter: float) -> None:
    pause = states.backoff_seconds(failures, jitter)

    assert 0.8 * states.BACKOFF_SECONDS <= pause <= 1.2 * states.BACKOFF_SECONDS_MAX


EVENTS = st.sampled_from(
    ["deliver", "double", "progress", "complete", "fail", "defer", "release", "promote", "cancel", "step back"]
)


@given(events=st.lists(EVENTS, max_size=60), delay=st.booleans())
def test_no_history_breaks_the_rules(events: list[str], delay: bool) -> None:
    record = job(state=State.DELAYED, sequence=0, delay_until=NOW) if delay else job()
    sequence, messages = 5, 0
    for event in events:
        before = record
        active_now = record.state is State.ACTIVE
        if event == "deliver":
            if record.state is State.WAITING and not record.sequence:
                sequence += 1
                record = states.published(record, sequence)
            decision = states.receive(record, run=record.run, sequence=record.sequence, now=NOW)
            record = decision.record if isinstance(decision, Take) else record
            messages += isinstance(decision, Take)
        elif event == "double":
            assert isinstance(states.receive(record, run=record.run - 1, sequence=10_000, now=NOW), Drop)
        elif event == "progress" and active_now:
            record = states.progressed(record, 1, 2, "pages", NOW)
        elif event == "complete" and active_now:
            record = states.completed(record, "{}", NOW)
        elif event == "fail" and active_now:
            record = states.failed(record, BROKEN, jitter=0.3, now=NOW)
        elif event == "defer" and active_now:
            record = states.deferred(record, AWAY, jitter=0.3, now=NOW)
        elif event == "release" and active_now:
            record = states.released(record, NOW)
        elif event == "promote" and record.state is State.DELAYED:
            record = states.promoted(record, NOW)
        elif event == "cancel" and not record.final:
            record = states.end_requested(record, NOW) if active_now else states.ended(record, NOW)
        elif event == "step back" and record.state is State.WAITING:
            record = states.requeued(record, NOW)

        assert record.state == before.state or record.state in TRANSITIONS[before.state]
        assert record.run >= before.run
        assert before.attempts <= record.attempts <= record.max_attempts
        assert record.stalls <= states.STALLS_MAX + 1
        assert (record.finish_time is not None) == record.final
        assert (record.delay_until is not None) == (record.state is State.DELAYED)
        assert not before.final or record == before
    assert record.attempts <= messages
