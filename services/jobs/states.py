"""The life of a job as values: what each event makes of its record. Pure; every time is an argument."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from services.domain.errors import BrainError


class State(StrEnum):
    """Where a job is. `paused`, `waiting-children` and `failed` are entered by operations that come later."""

    WAITING = "waiting"
    ACTIVE = "active"
    DELAYED = "delayed"
    WAITING_CHILDREN = "waiting-children"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    DEAD = "dead"
    CANCELLED = "cancelled"


FINAL: Final = frozenset({State.COMPLETED, State.DEAD, State.CANCELLED})

TRANSITIONS: Final[Mapping[State, frozenset[State]]] = MappingProxyType(
    {
        State.WAITING: frozenset({State.ACTIVE, State.PAUSED, State.WAITING_CHILDREN, State.CANCELLED}),
        State.ACTIVE: frozenset(set(State) - {State.ACTIVE}),
        State.DELAYED: frozenset({State.WAITING, State.PAUSED, State.WAITING_CHILDREN, State.CANCELLED}),
        State.WAITING_CHILDREN: frozenset({State.WAITING, State.FAILED, State.CANCELLED}),
        State.PAUSED: frozenset({State.WAITING, State.CANCELLED}),
        State.FAILED: frozenset({State.WAITING, State.CANCELLED}),
        State.COMPLETED: frozenset(),
        State.DEAD: frozenset(),
        State.CANCELLED: frozenset(),
    }
)

STALLS_MAX: Final = 5
"""How many workers may disappear over a job: fewer punish a job for a bad day of the cluster, more keep killing it."""
DEFERRALS_MAX: Final = 100
"""How often the owner may be away: with the longest pause that is a working day."""
BACKOFF_SECONDS: Final = 1.0
BACKOFF_SECONDS_MAX: Final = 300.0
"""Beyond it a pause helps the failing part no more, and only keeps people waiting once it is well."""
BACKOFF_JITTER: Final = 0.2
ERROR_CHARACTERS_MAX: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """Everything that is known of a job. It decides what happens to the job; queue messages only wake workers."""

    job_id: int
    name: str
    data: str
    """JSON with sorted keys and without spaces, as the kind normalised it."""
    queue: str
    state: State
    priority: int
    attempts: int = 0
    max_attempts: int
    finished: int = 0
    total: int = 0
    unit: str = ""
    result: str = ""
    error_message: str = ""
    error_reason: str = ""
    submitted_by: str
    create_time: datetime
    update_time: datetime
    delay_until: datetime | None = None
    start_time: datetime | None = None
    finish_time: datetime | None = None
    timeout: timedelta
    cancel_requested: bool = False
    request_id: str
    run: int = 1
    """The fencing number: who works under an older one may not write any more."""
    sequence: int = 0
    """The one queue message that may start or continue the run; 0 while none is known."""
    stalls: int = 0
    deferrals: int = 0
    begun: bool = False
    """Whether the attempt was begun by a worker that gave it back; its next begin is not counted again."""

    @property
    def final(self) -> bool:
        """Whether nothing will happen to it any more."""
        return self.state in FINAL

    @property
    def open_to_more(self) -> bool:
        """Whether an equal submission is answered by this job: it has not begun, and nobody asked for its end."""
        return self.state is State.WAITING and not self.begun and not self.cancel_requested


def moved(record: JobRecord, state: State, now: datetime) -> JobRecord:
    """The record in another state; a step the table does not have is a mistake of ours."""
    assert state in TRANSITIONS[record.state], f"job {record.job_id}: {record.state} to {state}"
    finish_time = now if state in FINAL else None
    return replace(record, state=state, update_time=now, finish_time=finish_time)


def published(record: JobRecord, sequence: int) -> JobRecord:
    """Its run has a message in the queue."""
    return replace(record, sequence=sequence)


def claimed(record: JobRecord, sequence: int, now: datetime) -> JobRecord:
    """A worker begins it."""
    attempts = record.attempts if record.begun else record.attempts + 1
    active = moved(record, State.ACTIVE, now)
    return replace(active, attempts=attempts, begun=True, sequence=sequence, start_time=now, delay_until=None)


def continued(record: JobRecord, now: datetime) -> JobRecord:
    """The worker that had it is gone, and another goes on under a new number; that burns no attempt. Or it is dead."""
    assert record.state is State.ACTIVE
    stalls = record.stalls + 1
    if stalls > STALLS_MAX and not record.cancel_requested:
        return replace(
            moved(record, State.DEAD, now),
            stalls=stalls,
            run=record.run + 1,
            error_reason="LIMIT_REACHED",
            error_message=f"{stalls} workers disappeared while they had this job",
        )
    return replace(record, stalls=stalls, run=record.run + 1, start_time=now, update_time=now)


def released(record: JobRecord, now: datetime) -> JobRecord:
    """Its worker stops in order, and the same message brings it to another one."""
    return moved(record, State.WAITING, now)


def progressed(record: JobRecord, finished: int, total: int, unit: str, now: datetime) -> JobRecord:
    """So much of it is done."""
    return replace(record, finished=finished, total=total, unit=unit, update_time=now)


def completed(record: JobRecord, result: str, now: datetime) -> JobRecord:
    """It is done. The end that somebody asked for came too late."""
    return replace(moved(record, State.COMPLETED, now), result=result, error_message="", error_reason="")


def failed(record: JobRecord, error: BrainError, *, jitter: float, now: datetime) -> JobRecord:
    """Its run failed: it waits for the next one, or is dead after the last.

    Args:
        record: The active job.
        error: Why.
        jitter: Random, in [0, 1).
        now: The time.
    """
    if record.cancel_requested:
        return ended(blamed(record, error), now)
    if record.attempts >= record.max_attempts:
        return given_up(record, error, now)
    pause = max(backoff_seconds(record.attempts, jitter), error.retry_after_seconds or 0.0)
    return replace(blamed(delayed(record, pause, now), error), begun=False)


def given_up(record: JobRecord, error: BrainError, now: datetime) -> JobRecord:
    """Its run failed for a cause that no other try cures, or it was the last."""
    return blamed(moved(record, State.DEAD, now), error)


def deferred(record: JobRecord, error: BrainError, *, jitter: float, now: datetime) -> JobRecord:
    """The owner of the work does not answer: it waits, and that burns no attempt. At some time it is dead."""
    if record.cancel_requested:
        return ended(blamed(record, error), now)
    deferrals = record.deferrals + 1
    if deferrals > DEFERRALS_MAX:
        return replace(given_up(record, error, now), deferrals=deferrals)
    waiting = delayed(record, backoff_seconds(deferrals, jitter), now)
    return replace(blamed(waiting, error), deferrals=deferrals)


def promoted(record: JobRecord, now: datetime) -> JobRecord:
    """Its time has come."""
    return replace(moved(record, State.WAITING, now), delay_until=None)


def requeued(record: JobRecord, now: datetime) -> JobRecord:
    """It needs a new message: it steps behind a more urgent one, or its message was lost."""
    waiting = record if record.state is State.WAITING else moved(record, State.WAITING, now)
    return replace(waiting, run=record.run + 1, sequence=0, update_time=now)


def ended(record: JobRecord, now: datetime, note: str = "") -> JobRecord:
    """Its end was asked for and has come; `note` says what could not be done about it."""
    message = note or record.error_message
    return replace(moved(record, State.CANCELLED, now), cancel_requested=True, delay_until=None, error_message=message)


def end_requested(record: JobRecord, now: datetime) -> JobRecord:
    """Its end is asked for; an active job's worker sees to it."""
    if record.final or record.cancel_requested:
        return record
    return replace(record, cancel_requested=True, update_time=now)


def delayed(record: JobRecord, seconds: float, now: datetime) -> JobRecord:
    """It begins again later, with a message and a number of its own."""
    waiting = moved(record, State.DELAYED, now)
    return replace(waiting, run=record.run + 1, sequence=0, delay_until=now + timedelta(seconds=seconds))


def backoff_seconds(failures: int, jitter: float) -> float:
    """The pause after so many failures, from 1: doubling, at most BACKOFF_SECONDS_MAX, 20 % more or less."""
    pause = min(BACKOFF_SECONDS * 2.0 ** min(failures - 1, 30), BACKOFF_SECONDS_MAX)
    return pause * (1.0 + BACKOFF_JITTER * (2.0 * jitter - 1.0))


def blamed(record: JobRecord, error: BrainError) -> JobRecord:
    """The record with why its last run failed."""
    return replace(record, error_message=error.message[:ERROR_CHARACTERS_MAX], error_reason=error.reason)


@dataclass(frozen=True, slots=True)
class Drop:
    """The message means nothing any more."""

    reason: str


@dataclass(frozen=True, slots=True)
class Take:
    """The record to store before anything is done; it may be final, and then there is nothing to do."""

    record: JobRecord


def receive(record: JobRecord | None, *, run: int, sequence: int, now: datetime) -> Drop | Take:
    """What a delivered message means.

    Exactly one message bears the run of a job. It begins the job when it waits; when the job is active, the same
    message came again because its worker is gone. Any other message is an earlier one, or a double.
    """
    if record is None:
        return Drop("unknown")
    bears = sequence == record.sequence if record.sequence else run == record.run
    if not bears:
        return Drop("superseded")
    match record.state:
        case State.WAITING:
            return Take(claimed(record, sequence, now))
        case State.ACTIVE:
            return Take(continued(record, now))
        case _:
            return Drop(record.state.value)
