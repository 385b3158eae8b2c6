"""What the use cases need from outside: a store that decides, a queue that wakes, and owners that work."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from services.jobs.kinds import Work
from services.jobs.states import JobRecord


class ContendedError(Exception):
    """Somebody else stored first; nothing was stored. Read again, decide again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A record with the revision that its next write must name."""

    record: JobRecord
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A job as it is now, or that it is not kept any more."""

    job_id: int
    stored: Stored | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a submission led to, under its request_id."""

    digest: bytes
    record: JobRecord
    """The job as it was made or found."""
    coalesced: bool
    """Whether the job was there before. If not, and the job is not there yet, it is begun from `record`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """An answer with the revision that its next write must name."""

    answer: Answer
    revision: int


class JobStore(Protocol):
    """Records under compare-and-set. Every write is durable on return; every method may raise Unavailable."""

    async def next_id(self) -> int:
        """A number larger than any before; one that is not used is no harm."""

    async def get(self, job_id: int) -> Stored | None:
        """The job as it is now, by the leader's word."""

    async def create(self, record: JobRecord) -> Stored:
        """Stores a new job; raises ContendedError when there is, or was a moment ago, one of this number."""

    async def replace(self, stored: Stored, record: JobRecord) -> Stored:
        """Stores what became of a job; raises ContendedError unless `stored` is still the newest."""

    async def jobs(self) -> list[JobRecord]:
        """All jobs, newest first."""

    async def remove(self, stored: Stored) -> None:
        """Removes a finished job; raises ContendedError unless `stored` is still the newest."""

    async def answer(self, request_id: str) -> StoredAnswer | None:
        """What this request led to."""

    async def create_answer(self, request_id: str, answer: Answer) -> StoredAnswer:
        """Decides what a request leads to; raises ContendedError when that is decided already."""

    async def replace_answer(self, request_id: str, stored: StoredAnswer, answer: Answer) -> StoredAnswer:
        """Decides otherwise; raises ContendedError unless `stored` is still the newest."""

    async def latest_same(self, same: bytes) -> Stored | None:
        """The job that was last made for this work; it may have to be created still."""

    async def claim_same(self, same: bytes, record: JobRecord, held: Stored | None) -> None:
        """Makes it the last one; raises ContendedError unless `held` is still what there was."""

    def watch(self) -> AsyncIterator[Change]:
        """Every job as it is and then every change, as they come; may skip to the last of several."""


class Delivery(Protocol):
    """A message in hand: it is kept from other workers until it is ended by one of its methods."""

    @property
    def job_id(self) -> int:
        """The job."""

    @property
    def run(self) -> int:
        """The run that the message was published for."""

    @property
    def sequence(self) -> int:
        """Its place in the queue; the same when it is delivered again."""

    @property
    def tries(self) -> int:
        """How often it was delivered, from 1."""

    async def ack(self) -> None:
        """Its run is over, or it means nothing: it never comes again."""

    async def nak(self, delay_seconds: float) -> None:
        """It comes again, to any worker."""

    def leave(self) -> None:
        """Another worker has it by now."""


class Deliveries(Protocol):
    """The receiving end of the queue."""

    async def next(self) -> Delivery:
        """One message; waits as long as it takes. Nothing is fetched ahead. Raises Unavailable; then call again."""


class JobQueue(Protocol):
    """A work queue: each message goes to one worker, again and again until it is ended."""

    async def publish(self, record: JobRecord) -> int:
        """Puts a message for the job's run into the queue and returns its sequence. Doubles are no harm."""

    def worker(self) -> AbstractAsyncContextManager[Deliveries]:
        """A receiving end; what is in hand goes back when it closes."""

    async def depth(self) -> int:
        """How many messages there are, those in hand included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkState:
    """How far the owner is with a piece of work."""

    finished: int
    total: int
    unit: str
    done: bool
    store_id: str = ""


class Owners(Protocol):
    """The services that do the work on their own stores."""

    def do(self, work: Work) -> AsyncGenerator[WorkState, None]:
        """Begins or joins the work and yields how far it is; the last has `done`.

        Leaving the iteration does not end the work. Raises BrainError: Unavailable and DeadlineExceeded mean that the
        stream broke and joining again is right.
        """

    async def cancel(self, work: Work) -> None:
        """Ends the work; one that is not known is no error."""
