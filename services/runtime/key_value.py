"""A bucket of small values with compare-and-set, in the form that every NATS client knows as key-value."""

from __future__ import annotations

import base64
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass

import orjson
from nats.aio.msg import Msg

from services.domain.errors import Overloaded, Unavailable
from services.runtime.nats_connection import ApiError, NatsConnection, Request, read_api
from services.runtime.pull import ConsumerGone, open_reader

WRONG_LAST_SEQUENCE = frozenset({10071, 10164})
BUCKET_FULL = frozenset({10047, 10077, 10054, 10122, 10123})
WRITE_ID = "Fleetbrain-Write"
"""A header that tells one write from another of the same value."""
GONE = ("KV-Operation:", "Nats-Marker-Reason:")
WATCH_IDLE_SECONDS = 60
WATCH_BATCH = 64


@dataclass(frozen=True, slots=True)
class Entry:
    """A value; its revision is what the next write of the key must name. A deleted key has `value` None."""

    key: str
    value: bytes | None
    revision: int


class WrongRevision(Exception):
    """The key's revision is not the one the write named; nothing was stored."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class KeyValue:
    """One bucket. Keys are dotted tokens of ASCII letters, digits, `-`, `_`, `=` and `/`."""

    def __init__(self, connection: NatsConnection, bucket: str) -> None:
        self._connection = connection
        self._stream = f"KV_{bucket}"
        self._prefix = f"$KV.{bucket}."

    async def get(self, key: str) -> Entry | None:
        """The newest value; None when there is none, or it was deleted or is over its time."""
        entry = await self.newest(key)
        return entry if entry is not None and entry.value is not None else None

    async def newest(self, key: str) -> Entry | None:
        """Like `get`, but a deletion is an entry without value, whose revision a `create` over it needs."""
        body = orjson.dumps({"last_by_subj": self._prefix + key})
        return self._read(await self._connection.request(f"$JS.API.STREAM.MSG.GET.{self._stream}", body))

    async def create(self, key: str, value: bytes, *, ttl_seconds: int | None = None) -> int:
        """Stores the first value of a key and returns its revision.

        Raises:
            WrongRevision: The key has a value.
        """
        try:
            return await self.put(key, value, revision=0, ttl_seconds=ttl_seconds)
        except WrongRevision:
            entry = await self.newest(key)
            if entry is not None and entry.value is not None:
                raise
            return await self.put(key, value, revision=entry.revision if entry else 0, ttl_seconds=ttl_seconds)

    async def put(self, key: str, value: bytes, *, revision: int | None = None, ttl_seconds: int | None = None) -> int:
        """Stores a value and returns its revision.

        Args:
            key: The key.
            value: The value, at most 8 MB with its key.
            revision: What the key's newest revision must be; 0 means that there is none; None writes whatever is there.
            ttl_seconds: After so long the value is gone; None keeps it.

        Raises:
            WrongRevision: The newest revision is another.
        """
        headers = {} if ttl_seconds is None else {"Nats-TTL": str(ttl_seconds)}
        return await self._write(key, value, revision, headers)

    async def delete(self, key: str, *, revision: int | None = None) -> None:
        """Deletes a value; a key without one is no error.

        Raises:
            WrongRevision: The newest revision is another than the one named.
        """
        await self._write(key, b"", revision, {"KV-Operation": "DEL"})

    async def keys(self, prefix: str = "") -> list[str]:
        """All keys that have a value, or those that are `prefix` or begin with `prefix` and a dot, in order."""
        return [entry.key for entry in await self.entries(prefix)]

    async def entries(self, prefix: str = "") -> list[Entry]:
        """All values, or those whose key is `prefix` or begins with `prefix` and a dot, in order of the keys."""
        subjects: set[str] = set()
        for subjects_filter in (
            (f"{self._prefix}{prefix}.>", self._prefix + prefix) if prefix else (f"{self._prefix}>",)
        ):
            subjects |= set(await self._subjects(subjects_filter))
        requests = [
            Request(f"$JS.API.STREAM.MSG.GET.{self._stream}", orjson.dumps({"last_by_subj": subject}))
            for subject in sorted(subjects)
        ]
        entries = await self._connection.request_all(requests, self._read)
        return [entry for entry in entries if entry is not None and entry.value is not None]

    async def watch(self, prefix: str = "") -> AsyncIterator[Entry]:
        """The newest entry of each key and then every change, deletions too, as they come; ends only by cancellation.

        After a break some entries may come twice, and of several quick changes of a key only the last.
        """
        subjects_filter = f"{self._prefix}{prefix}.>" if prefix else f"{self._prefix}>"
        while True:
            info = await self._connection.api(
                f"CONSUMER.CREATE.{self._stream}",
                {
                    "stream_name": self._stream,
                    "config": {
                        "filter_subject": subjects_filter,
                        "deliver_policy": "last_per_subject",
                        "ack_policy": "none",
                        "inactive_threshold": WATCH_IDLE_SECONDS * 1_000_000_000,
                        "mem_storage": True,
                        "num_replicas": 1,
                    },
                },
            )
            try:
                async with open_reader(
                    self._connection, self._stream, str(info["name"]), batch_max=WATCH_BATCH, acknowledges=False
                ) as reader:
                    while True:
                        for delivery in await reader.next_batch(WATCH_BATCH):
                            gone = delivery.headers is not None and any(h[:-1] in delivery.headers for h in GONE)
                            key = delivery.subject[len(self._prefix) :]
                            yield Entry(key, None if gone else delivery.payload, delivery.sequence)
            except (ConsumerGone, Unavailable):
                continue  # the server was away longer than it keeps the consumer: begin again

    async def _write(self, key: str, value: bytes, revision: int | None, headers: dict[str, str]) -> int:
        write_id = ""
        if revision is not None:
            headers["Nats-Expected-Last-Subject-Sequence"] = str(revision)
            headers[WRITE_ID] = write_id = secrets.token_hex(8)
        reply = await self._connection.request(self._prefix + key, value, headers=headers)
        try:
            return int(str(read_api(reply)["seq"]))
        except ApiError as error:
            if error.error_code in WRONG_LAST_SEQUENCE:
                mine = await self._stored(key, write_id)
                if mine is not None:
                    return mine
                raise WrongRevision(key) from error
            if error.error_code in BUCKET_FULL:
                raise Overloaded(
                    "LIMIT_REACHED",
                    f"{self._stream} is full: {error.description}",
                    metadata={"limit": f"{self._stream}.max_bytes"},
                    next_step="Remove what is finished, then try again.",
                ) from error
            raise Unavailable(
                "PEER_UNAVAILABLE",
                f"{self._stream} refused a write: {error}",
                metadata={"peer": "nats"},
                next_step="Look into the NATS server's log.",
            ) from error

    async def _stored(self, key: str, write_id: str) -> int | None:
        """The revision at which this very write was stored, as the newest of its key.

        A leader may have died with the answer; the write is then sent to the next one, which refuses to store it twice.
        """
        body = orjson.dumps({"last_by_subj": self._prefix + key})
        answer = orjson.loads((await self._connection.request(f"$JS.API.STREAM.MSG.GET.{self._stream}", body)).data)
        message = answer.get("message") or {}
        headers = base64.b64decode(message.get("hdrs", "")).decode("ascii", "replace")
        return int(message["seq"]) if f"{WRITE_ID}: {write_id}" in headers else None

    async def _subjects(self, subjects_filter: str) -> list[str]:
        found: list[str] = []
        while True:
            body = {"subjects_filter": subjects_filter, "offset": len(found)}
            info = await self._connection.api(f"STREAM.INFO.{self._stream}", body)
            state = info["state"]
            assert isinstance(state, dict)
            page = state.get("subjects") or {}
            found.extend(page)
            if not page or len(found) >= int(str(info.get("total", 0))):
                return found

    def _read(self, reply: Msg) -> Entry | None:
        answer = orjson.loads(reply.data)
        if "error" in answer:
            if answer["error"].get("code") == 404:
                return None
            raise Unavailable(
                "PEER_UNAVAILABLE",
                f"{self._stream} refused a read: {answer['error'].get('description')}",
                metadata={"peer": "nats"},
                next_step="Read again.",
            )
        message = answer["message"]
        headers = base64.b64decode(message.get("hdrs", "")).decode("ascii", "replace")
        gone = any(header in headers for header in GONE)
        value = None if gone else base64.b64decode(message.get("data", ""))
        return Entry(message["subject"][len(self._prefix) :], value, int(message["seq"]))
