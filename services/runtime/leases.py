"""Leases: one holder of a name at a time, each with a fencing token that only grows.

A lease is a key that ends by itself. Its token is the revision at which it was taken, so a later holder's is larger:
whoever writes elsewhere on the strength of a lease sends the token along, and the receiver refuses a smaller one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import orjson

from services.domain.errors import Conflict, Unavailable
from services.runtime.key_value import KeyValue, WrongRevision
from services.runtime.nats_connection import NatsConnection
from services.runtime.streams import key_value_stream

log = logging.getLogger(__name__)

BUCKET = "leases"
TTL_SECONDS = 15
"""Long enough for a pause of the process, short enough that work goes on soon after its holder's death."""
RENEW_SECONDS = 5.0


class Lease:
    """A name that is ours until it ends, is released or is lost."""

    def __init__(self, bucket: KeyValue, name: str, holder: str, revision: int, ttl_seconds: int) -> None:
        self._bucket = bucket
        self._name = name
        self._value = orjson.dumps({"holder": holder})
        self._revision = revision
        self._ttl_seconds = ttl_seconds
        self.token = revision
        """Larger than that of every earlier holder of the name."""

    async def renew(self) -> None:
        """Makes the lease last `ttl_seconds` from now.

        Raises:
            Conflict: It was lost meanwhile; what it protected must stop.
        """
        try:
            self._revision = await self._bucket.put(
                self._name, self._value, revision=self._revision, ttl_seconds=self._ttl_seconds
            )
        except WrongRevision as error:
            raise lost(self._name) from error

    async def release(self) -> None:
        """Lets the next one have it at once; a lease that was lost already is no error."""
        try:
            await self._bucket.delete(self._name, revision=self._revision)
        except (WrongRevision, Unavailable):
            log.info("lease was over before it was released", extra={"lease": self._name})


class Leases:
    """All leases of the brain, by name (the form of a key: dotted tokens)."""

    def __init__(self, connection: NatsConnection) -> None:
        self._bucket = KeyValue(connection, BUCKET)

    @staticmethod
    def stream(max_bytes: int) -> Mapping[str, object]:
        """The stream the leases live in."""
        return key_value_stream(BUCKET, ttl_seconds=None, history=1, max_bytes=max_bytes)

    async def acquire(self, name: str, *, holder: str, ttl_seconds: int = TTL_SECONDS) -> Lease | None:
        """The lease, or None while somebody else has it. Who takes it must renew it within `ttl_seconds`."""
        try:
            revision = await self._bucket.create(name, orjson.dumps({"holder": holder}), ttl_seconds=ttl_seconds)
        except WrongRevision:
            return None
        return Lease(self._bucket, name, holder, revision, ttl_seconds)

    async def holder(self, name: str) -> str | None:
        """Who has the lease now; None when nobody has."""
        entry = await self._bucket.get(name)
        return str(orjson.loads(entry.value)["holder"]) if entry is not None and entry.value else None

    @asynccontextmanager
    async def hold(self, name: str, *, holder: str, ttl_seconds: int = TTL_SECONDS) -> AsyncIterator[Lease]:
        """Holds a lease, renewed by itself, for a block; the block is cancelled when the lease is lost.

        Raises:
            Conflict: Somebody else has it, or it was lost.
        """
        lease = await self.acquire(name, holder=holder, ttl_seconds=ttl_seconds)
        if lease is None:
            raise Conflict(
                "WRITE_CONTENDED",
                f"the lease {name!r} is held by {await self.holder(name)}",
                field="lease",
                value=name,
                next_step="Wait until it is free.",
            )
        owner = asyncio.current_task()
        ended = False

        async def renew() -> None:
            nonlocal ended
            loop = asyncio.get_running_loop()
            ends_at = loop.time() + ttl_seconds
            while True:
                await asyncio.sleep(min(RENEW_SECONDS, ttl_seconds / 3))
                try:
                    began = loop.time()
                    await lease.renew()
                    ends_at = began + ttl_seconds
                except (Conflict, Unavailable) as error:
                    if isinstance(error, Conflict) or loop.time() >= ends_at:
                        ended = True
                        assert owner is not None
                        owner.cancel()
                        return

        renewal = asyncio.create_task(renew(), name=f"lease-{name}")
        try:
            yield lease
        except asyncio.CancelledError:
            if not ended or owner is None:
                raise
            owner.uncancel()
            raise lost(name) from None
        finally:
            renewal.cancel()
            await asyncio.wait({renewal})
            if not ended:
                await lease.release()


def lost(name: str) -> Conflict:
    """A lease that another may have taken."""
    return Conflict(
        "WRITE_CONTENDED", f"the lease {name!r} was lost", field="lease", value=name, next_step="Take it again."
    )
