"""The page log over JetStream: read the newest, compare and append, keep 64 a page. See DESIGN section 3.

Reads go to the stream's leader (`STREAM.MSG.GET`), never to a replica: a decision on an older record would be lost.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import partial

import orjson
from nats.aio.msg import Msg

from services.domain.errors import Internal, Unavailable
from services.domain.records import KEPT_PER_SLUG, PageKey, PageRecord
from services.domain.slugs import key_of_subject, subject_of
from services.runtime.nats_connection import ApiError, NatsConnection, Request, api_error, read_api
from services.runtime.page_codec import decode_record, encode_record

STREAM = "PAGES"
SUBJECTS = "brain.pages.>"
EXPECTED_SEQUENCE = "Nats-Expected-Last-Subject-Sequence"
EXPECTED_STREAM = "Nats-Expected-Stream"
BATCH_RECORDS_MAX = 200
"""A move renews at most 100 redirects; the server's own limit is 1,000."""
SUBJECTS_PER_REPLY_MAX = 100_000
"""JetStream pages its subject lists by this many."""
SUBJECT_PAGES_MAX = 1_000
WRONG_LAST_SEQUENCE = frozenset({10071, 10164})
NO_MESSAGE = frozenset({10037, 10043})
"""JetStream's numbers for: no message found; sequence or subject not found."""


class WrongLastSequence(Exception):
    """A slug's newest revision is not the one the batch was decided on; nothing was stored."""

    def __init__(self, slug: str) -> None:
        super().__init__(slug)
        self.slug = slug


class PageLog:
    """The stream PAGES in the words of the domain. Safe to use from any number of tasks."""

    def __init__(self, connection: NatsConnection) -> None:
        self._connection = connection

    async def newest(self, key: PageKey) -> PageRecord | None:
        """The newest record of a page's subject; None when nothing was ever written there."""
        return (await self.newest_of([key]))[0]

    async def newest_of(self, keys: Sequence[PageKey]) -> list[PageRecord | None]:
        """The newest records of many subjects, in the order of the keys; each is read anew from the leader."""
        requests = [newest_request(subject_of(key)) for key in keys]
        return await self._connection.request_all(requests, read_record)

    async def newest_revisions(self, subjects: Sequence[str], known: Sequence[int]) -> list[PageRecord | None]:
        """Like `newest_of`, by subject; where the newest is still the known revision it is None, and not decoded."""
        requests = [newest_request(subject) for subject in subjects]
        expected = iter(known)
        return await self._connection.request_all(requests, lambda reply: read_unless(reply, next(expected)))

    async def at(self, key: PageKey, revision: int) -> PageRecord | None:
        """The record with this revision; None when it is gone or belongs to another page."""
        if revision < 1:
            return None
        reply = await self._connection.request(MSG_GET, orjson.dumps({"seq": revision}))
        return read_record(reply, subject=subject_of(key))

    async def kept(self, key: PageKey) -> list[PageRecord]:
        """The kept records of a subject, old to new; each record names its predecessors, so no search is needed."""
        newest = await self.newest(key)
        if newest is None:
            return []
        revisions = [p.revision for p in newest.predecessors[-(KEPT_PER_SLUG - 1) :]]
        requests = [Request(MSG_GET, orjson.dumps({"seq": revision})) for revision in revisions]
        read = partial(read_record, subject=subject_of(key))
        found = await self._connection.request_all(requests, read)
        return [*(record for record in found if record is not None), newest]

    async def append(self, batch: Sequence[PageRecord]) -> list[PageRecord]:
        """Stores all records or none and returns them with their revisions; each demands its `expected` to be newest.

        Returns only when JetStream acknowledged, so that nothing returned can be lost.

        Raises:
            WrongLastSequence: Somebody was faster on one of the slugs.
            Unavailable: No acknowledgement came. They may be stored all the same: decide again from a fresh read.
            InvalidArgument: A record is larger than a message may be.
        """
        if len(batch) == 1:
            record = batch[0]
            headers = {EXPECTED_STREAM: STREAM, EXPECTED_SEQUENCE: str(record.expected)}
            payload = encode_record(record)
            reply = await self._connection.request(subject_of(record.key), payload, headers=headers)
            try:
                return [replace(record, revision=self._sequence(reply, record.slug))]
            except WrongLastSequence:
                # A leader may have died with the answer, and the next one refuses to store the same twice.
                newest = await self.newest(record.key)
                if newest is None or encode_record(newest) != payload:
                    raise
                return [replace(record, revision=newest.revision)]
        return await self._append_batch(batch)

    async def _append_batch(self, batch: Sequence[PageRecord]) -> list[PageRecord]:
        assert 0 < len(batch) <= BATCH_RECORDS_MAX, f"a batch of {len(batch)} records"
        batch_id = uuid.uuid4().hex
        messages = [
            Request(
                subject_of(record.key),
                encode_record(record),
                {
                    EXPECTED_STREAM: STREAM,
                    EXPECTED_SEQUENCE: str(record.expected),
                    "Nats-Batch-Id": batch_id,
                    "Nats-Batch-Sequence": str(number),
                },
            )
            for number, record in enumerate(batch, start=1)
        ]
        for message in messages[:-1]:
            await self._connection.publish(message.subject, message.payload, headers=message.headers)
        last = messages[-1]
        headers = {**(last.headers or {}), "Nats-Batch-Commit": "1"}
        reply = await self._connection.request(last.subject, last.payload, headers=headers)
        try:
            revision = self._sequence(reply, "")
        except WrongLastSequence as error:
            raise WrongLastSequence(await self._changed(batch)) from error
        first = revision - len(batch) + 1
        return [replace(record, revision=first + offset) for offset, record in enumerate(batch)]

    async def _changed(self, batch: Sequence[PageRecord]) -> str:
        """The slug that somebody else changed; a refused batch does not say."""
        newest = await self.newest_of([record.key for record in batch])
        for record, found in zip(batch, newest, strict=True):
            if record.expected != (found.revision if found is not None else 0):
                return record.slug
        return batch[-1].slug

    def _sequence(self, reply: Msg, slug: str) -> int:
        try:
            return int(str(read_api(reply)["seq"]))
        except ApiError as error:
            if error.error_code in WRONG_LAST_SEQUENCE:
                raise WrongLastSequence(slug) from error
            raise Unavailable(
                "PEER_UNAVAILABLE",
                f"the page log refused an append: {error.description}",
                metadata={"peer": "nats", "error_code": str(error.error_code)},
                next_step="Look into the NATS server's log; a full disk refuses writes.",
                retry_after_seconds=1.0,
            ) from error

    async def erase(self, key: PageKey, revision: int) -> None:
        """Removes one record and overwrites its bytes on disk; one that is gone already is no error.

        Raises:
            Internal: The record is its subject's newest, or belongs to another page: our own mistake.
        """
        newest = await self.newest(key)
        record = await self.at(key, revision)
        if record is None:
            return
        if newest is None or newest.revision <= revision:
            raise Internal("INTERNAL", f"the newest record of a page is never erased (revision {revision})")
        try:
            await self._connection.api(f"STREAM.MSG.DELETE.{STREAM}", {"seq": revision, "no_erase": False})
        except ApiError as error:
            if error.error_code not in NO_MESSAGE and await self.at(key, revision) is not None:
                raise Unavailable(
                    "PEER_UNAVAILABLE",
                    f"the page log refused to erase a record: {error.description}",
                    metadata={"peer": "nats"},
                    next_step="Erase the page again.",
                ) from error

    async def last_revision(self) -> int:
        """The log's last sequence; 0 when nothing was ever written."""
        state = (await self._info())["state"]
        assert isinstance(state, dict)
        return int(state["last_seq"])

    async def log_id(self) -> str:
        """A UUID of this log, the same for every reader as long as the stream lives, and another for every other log.

        Of the moment in which the stream was made, which the server keeps, also through a backup, to the nanosecond.
        """
        return str(uuid.uuid5(LOG_IDS, str((await self._info())["created"])))

    async def keys(self, source: str, folder: str = "") -> list[PageKey]:
        """All addresses of a source, or at and below one folder, that have any record: live, deleted or redirected.

        In order of the slugs. An unknown source or folder has none.
        """
        below = subject_of(PageKey(source, folder)) if folder else f"brain.pages.{source}"
        subjects = set(await self._subjects(f"{below}.>"))
        if folder:
            subjects |= set(await self._subjects(below))
        return sorted(key_of_subject(subject) for subject in subjects)

    async def current(self, source: str | None) -> AsyncIterator[PageRecord]:
        """The newest record of every subject, deletes and redirects included, as of when each is read.

        For export, verification and sweeps. Addresses first seen after the start may be missing.
        """
        filtered = SUBJECTS if source is None else f"brain.pages.{source}.>"
        keys = sorted(key_of_subject(subject) for subject in await self._subjects(filtered))
        for start in range(0, len(keys), CURRENT_WINDOW):
            for record in await self.newest_of(keys[start : start + CURRENT_WINDOW]):
                if record is not None:
                    yield record

    async def _subjects(self, subjects_filter: str) -> list[str]:
        found: list[str] = []
        for _ in range(SUBJECT_PAGES_MAX):
            info = await self._info({"subjects_filter": subjects_filter, "offset": len(found)})
            state = info["state"]
            assert isinstance(state, dict)
            page = state.get("subjects") or {}
            found.extend(page)
            if not page or len(found) >= int(str(info.get("total", 0))):
                return found
        raise Internal("INTERNAL", f"more than {SUBJECT_PAGES_MAX * SUBJECTS_PER_REPLY_MAX} pages in one listing")

    async def _info(self, body: dict[str, object] | None = None) -> dict[str, object]:
        try:
            return await self._connection.api(f"STREAM.INFO.{STREAM}", body)
        except ApiError as error:
            raise Unavailable(
                "PEER_UNAVAILABLE",
                f"the page log is not there: {error.description}",
                metadata={"peer": "nats"},
                next_step="Start the brain again: it makes the stream when it is missing.",
            ) from error


LOG_IDS = uuid.UUID("6a6f1c1e-5c0b-4b8e-9d0f-2f7d1c9a3b57")
"""The name space of logs' ids."""
CURRENT_WINDOW = 64
"""Pages read ahead by `current`: enough to hide the round trips, little enough to hold the largest in memory."""
MSG_GET = f"$JS.API.STREAM.MSG.GET.{STREAM}"


def newest_request(subject: str) -> Request:
    """Asks the leader for the newest message of a subject."""
    return Request(MSG_GET, orjson.dumps({"last_by_subj": subject}))


def read_message(reply: Msg) -> dict[str, str] | None:
    """The stored message in a reply of STREAM.MSG.GET; None when there is none."""
    answer = orjson.loads(reply.data)
    if "error" in answer:
        error = api_error(answer["error"])
        if error.code == 404 or error.error_code in NO_MESSAGE:
            return None
        raise Unavailable(
            "PEER_UNAVAILABLE",
            f"the page log refused a read: {error.description}",
            metadata={"peer": "nats"},
            next_step="Read again.",
            retry_after_seconds=1.0,
        )
    message: dict[str, str] = answer["message"]
    return message


def read_record(reply: Msg, subject: str | None = None) -> PageRecord | None:
    """The record in a reply of STREAM.MSG.GET, None when there is none or it is of another subject."""
    message = read_message(reply)
    if message is None or (subject is not None and message["subject"] != subject):
        return None
    return decode_record(base64.b64decode(message.get("data", "")), int(message["seq"]))


def read_unless(reply: Msg, revision: int) -> PageRecord | None:
    """The record in a reply unless it is the one of this revision, or there is none."""
    message = read_message(reply)
    if message is None or int(message["seq"]) == revision:
        return None
    return decode_record(base64.b64decode(message.get("data", "")), int(message["seq"]))
