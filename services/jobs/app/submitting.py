"""Submitting a job: once for each request, and not at all when an equal one waits already.

There is no transaction over several keys, so the steps have an order in which each can be repeated by anybody:

1. The answer to the request is decided: which job, new or found. From here on every retry follows that answer.
2. A new job claims the place of the last job for its work, whole, so that whoever reads the place can do step 3.
3. The job is created from the record in answer or place; a number is created once.
4. Its message is published.

Who dies after step 1 leaves a job that the next retry makes; after step 2 one that the next equal submission makes;
after step 3 one that the timekeeper publishes. The caller has no reply yet in any of these.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from services.domain.errors import Conflict, InvalidArgument, NotFound, Overloaded
from services.jobs.app.board import Board
from services.jobs.app.publishing import publish
from services.jobs.ports import Answer, ContendedError, JobQueue, JobStore, Stored, StoredAnswer
from services.jobs.requests import Submission, same_work
from services.jobs.states import JobRecord, State

UNFINISHED_MAX = 1_000
"""Jobs that are not final. Equal ones coalesce, so more means that something submits without end."""
TRIES_MAX = 32
"""Rounds against faster submitters of the same work; each lost round means that another one got ahead."""


class Submitting:
    """The use case. Safe to run in several processes at once."""

    def __init__(self, store: JobStore, queue: JobQueue, board: Board, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._queue = queue
        self._board = board
        self._clock = clock

    async def submit(self, submission: Submission, *, principal: str) -> tuple[JobRecord, bool]:
        """The job that does what was asked, and whether it was waiting before.

        Raises:
            InvalidArgument: The request_id was used for another request.
            Overloaded: Too many jobs wait.
            NotFound: The request was answered before, with a job that is no longer kept.
            Conflict: Others kept submitting the same work at the same moment.
        """
        stored = await self._answer(submission, principal)
        if stored.answer.digest != submission.digest:
            raise InvalidArgument(
                "REQUEST_ID_REUSED",
                "this request_id was used for another job",
                field="request_id",
                value=submission.request_id,
                metadata={"job_id": str(stored.answer.record.job_id)},
                next_step="Send a new request_id with a new request.",
            )
        if not stored.answer.coalesced:
            return await self._settle(submission.request_id, stored)
        return await self._found(stored.answer)

    async def _answer(self, submission: Submission, principal: str) -> StoredAnswer:
        for _ in range(TRIES_MAX):
            held = await self._store.answer(submission.request_id)
            if held is not None:
                return held
            answer = await self._decide(submission, principal)
            try:
                return await self._store.create_answer(submission.request_id, answer)
            except ContendedError:
                continue  # the same request at the same moment: follow what it decided
        raise contended()

    async def _decide(self, submission: Submission, principal: str) -> Answer:
        draft = submission.begin(0, principal=principal, now=self._clock())
        if draft.state is State.WAITING and (place := await self._store.latest_same(same_work(draft))):
            last = await self._made(place.record)
            if last is not None and last.record.open_to_more:
                return Answer(digest=submission.digest, record=last.record, coalesced=True)
        if self._board.unfinished >= UNFINISHED_MAX:
            raise Overloaded(
                "LIMIT_REACHED",
                f"{UNFINISHED_MAX} jobs are not finished yet",
                metadata={"limit": "unfinished_jobs"},
                next_step="Cancel jobs that are not needed, or wait until some are done.",
                retry_after_seconds=60.0,
            )
        record = submission.begin(await self._store.next_id(), principal=principal, now=self._clock())
        return Answer(digest=submission.digest, record=record, coalesced=False)

    async def _settle(self, request_id: str, stored: StoredAnswer) -> tuple[JobRecord, bool]:
        """Makes the job of an answer that says so, unless it is there, or an equal one got ahead of it."""
        record = stored.answer.record
        same = same_work(record)
        for _ in range(TRIES_MAX):
            # The place is read first: had this job held it and lost it, then the job would have been made before.
            place = await self._store.latest_same(same) if record.state is State.WAITING else None
            if made := await self._store.get(record.job_id):
                if made.record.state is State.WAITING and not made.record.sequence:
                    made = await publish(self._store, self._queue, made)
                return made.record, False
            if record.state is State.WAITING and (place is None or place.record.job_id != record.job_id):
                other = await self._made(place.record) if place is not None else None
                try:
                    if other is not None and other.record.open_to_more:
                        found = Answer(digest=stored.answer.digest, record=other.record, coalesced=True)
                        await self._store.replace_answer(request_id, stored, found)
                        return other.record, True
                    await self._store.claim_same(same, record, place)
                except ContendedError:
                    stored = await self._store.answer(request_id) or stored
                    if stored.answer.coalesced:
                        return await self._found(stored.answer)
                    continue
            created = await self._made(record)
            if created is not None:
                return created.record, False
        raise contended()

    async def _made(self, record: JobRecord) -> Stored | None:
        """The job as it is, created from this record if nobody did that; None when it is no longer kept."""
        if (held := await self._store.get(record.job_id)) is not None:
            return held
        try:
            created = await self._store.create(record)
        except ContendedError:
            return await self._store.get(record.job_id)
        return await publish(self._store, self._queue, created) if record.state is State.WAITING else created

    async def _found(self, answer: Answer) -> tuple[JobRecord, bool]:
        held = await self._store.get(answer.record.job_id)
        if held is None:
            raise job_not_found(answer.record.job_id)
        return held.record, answer.coalesced


def job_not_found(job_id: int) -> NotFound:
    """There is no such job, or it is finished so long ago that it is not kept."""
    return NotFound(
        "JOB_NOT_FOUND",
        f"there is no job {job_id}",
        field="job_id",
        value=job_id,
        next_step="List jobs; finished ones are kept for a while only.",
    )


def contended() -> Conflict:
    """Others were faster every time."""
    return Conflict(
        "WRITE_CONTENDED",
        "others kept changing the same job at the same moment; nothing was done",
        next_step="Send the request again, with the same request_id.",
    )
