"""The job store over a key-value bucket: one key a job, one for each request, one for each kind of work."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import AsyncIterator
from typing import Final

from brain.v1 import events_pb2
from services.domain.errors import Unavailable
from services.jobs.codec import decode_answer, decode_record, encode_answer, encode_record
from services.jobs.ports import Answer, Change, ContendedError, Stored, StoredAnswer
from services.jobs.requests import same_work
from services.jobs.states import JobRecord
from services.runtime.key_value import Entry, KeyValue, WrongRevision

BUCKET: Final = "jobs"
BUCKET_BYTES_MAX: Final = 256 * 1024 * 1024
"""Some thousand records of about 300 bytes are a thousandth of it; all of them with the largest data would fill it."""
ANSWERS_KEPT_SECONDS: Final = 7 * 24 * 3600
"""How long a request_id is remembered."""
REMOVED_SECONDS: Final = 300
"""How long a removed key stays taken, longer than any call: one that read it before must not make it anew."""
REMOVED: Final = b""
"""A record is never empty. A deletion would stay for ever; a value can be given an end."""
COUNTER: Final = "counter"
COUNTER_TRIES_MAX: Final = 256
"""Each lost round means that another submitter got a number."""


class KeyValueJobStore:
    """Implements `JobStore`."""

    def __init__(self, bucket: KeyValue) -> None:
        self._bucket = bucket

    async def next_id(self) -> int:
        """A number larger than any before."""
        for _ in range(COUNTER_TRIES_MAX):
            entry = await self._bucket.get(COUNTER)
            number = int(entry.value or b"0") + 1 if entry is not None else 1
            try:
                await self._bucket.put(COUNTER, str(number).encode(), revision=entry.revision if entry else 0)
            except WrongRevision:
                continue
            return number
        raise Unavailable("PEER_UNAVAILABLE", "the counter of jobs changes faster than it can be read")

    async def get(self, job_id: int) -> Stored | None:
        """The job as it is now."""
        entry = await self._bucket.get(job_key(job_id))
        return stored_of(entry) if entry is not None else None

    async def create(self, record: JobRecord) -> Stored:
        """Stores a new job."""
        return await self._put(record, 0)

    async def replace(self, stored: Stored, record: JobRecord) -> Stored:
        """Stores what became of a job."""
        return await self._put(record, stored.revision)

    async def jobs(self) -> list[JobRecord]:
        """All jobs, newest first."""
        found = [stored_of(entry) for entry in await self._bucket.entries("job")]
        return sorted((stored.record for stored in found if stored), key=lambda record: -record.job_id)

    async def remove(self, stored: Stored) -> None:
        """Removes a finished job; what leads to it goes first, so that nothing makes it anew."""
        record = stored.record
        same = same_work(record)
        place = await self.latest_same(same)
        if place is not None and place.record.job_id == record.job_id:
            value = encode_record(place.record).SerializeToString()
            with contextlib.suppress(WrongRevision):  # another job took the place
                await self._bucket.put(same_key(same), value, revision=place.revision, ttl_seconds=REMOVED_SECONDS)
        held = await self.answer(record.request_id)
        if held is not None and held.answer.record.job_id == record.job_id:
            # An answer that found its job makes none. The request is over: it gets "not found" for a while.
            over = Answer(digest=held.answer.digest, record=held.answer.record, coalesced=True)
            await self._put_answer(record.request_id, over, held.revision, ttl_seconds=REMOVED_SECONDS)
        try:
            key = job_key(record.job_id)
            await self._bucket.put(key, REMOVED, revision=stored.revision, ttl_seconds=REMOVED_SECONDS)
        except WrongRevision as error:
            raise ContendedError from error

    async def answer(self, request_id: str) -> StoredAnswer | None:
        """What this request led to."""
        entry = await self._bucket.get(request_key(request_id))
        if entry is None or not entry.value:
            return None
        answer = decode_answer(events_pb2.JobRequest.FromString(entry.value))
        return StoredAnswer(answer=answer, revision=entry.revision)

    async def create_answer(self, request_id: str, answer: Answer) -> StoredAnswer:
        """Decides what a request leads to."""
        return await self._put_answer(request_id, answer, 0)

    async def replace_answer(self, request_id: str, stored: StoredAnswer, answer: Answer) -> StoredAnswer:
        """Decides otherwise."""
        return await self._put_answer(request_id, answer, stored.revision)

    async def latest_same(self, same: bytes) -> Stored | None:
        """The job that was last made for this work."""
        entry = await self._bucket.get(same_key(same))
        return stored_of(entry) if entry is not None else None

    async def claim_same(self, same: bytes, record: JobRecord, held: Stored | None) -> None:
        """Makes it the last one."""
        value = encode_record(record).SerializeToString()
        try:
            await self._bucket.put(same_key(same), value, revision=held.revision if held else 0)
        except WrongRevision as error:
            raise ContendedError from error

    async def watch(self) -> AsyncIterator[Change]:
        """Every job as it is and then every change."""
        async for entry in self._bucket.watch("job"):
            yield Change(job_id=int(entry.key.removeprefix("job.")), stored=stored_of(entry))

    async def _put(self, record: JobRecord, revision: int) -> Stored:
        value = encode_record(record).SerializeToString()
        try:
            written = await self._bucket.put(job_key(record.job_id), value, revision=revision)
        except WrongRevision as error:
            raise ContendedError from error
        return Stored(record=record, revision=written)

    async def _put_answer(
        self, request_id: str, answer: Answer, revision: int, *, ttl_seconds: int = ANSWERS_KEPT_SECONDS
    ) -> StoredAnswer:
        value = encode_answer(answer).SerializeToString()
        try:
            written = await self._bucket.put(request_key(request_id), value, revision=revision, ttl_seconds=ttl_seconds)
        except WrongRevision as error:
            raise ContendedError from error
        return StoredAnswer(answer=answer, revision=written)


def stored_of(entry: Entry) -> Stored | None:
    """The record of an entry; None when it was removed."""
    if not entry.value:
        return None
    record = decode_record(events_pb2.JobRecord.FromString(entry.value))
    return Stored(record=record, revision=entry.revision)


def job_key(job_id: int) -> str:
    """Where a job is."""
    return f"job.{job_id}"


def request_key(request_id: str) -> str:
    """Where the answer to a request is; hashed, because an id may hold what a key may not."""
    return f"request.{hashlib.sha256(request_id.encode()).hexdigest()}"


def same_key(same: bytes) -> str:
    """Where the last job for the same work is."""
    return f"same.{same.hex()}"
