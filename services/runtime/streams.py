"""The streams of the brain: what each promises, set explicitly, and made or brought up to date at every start."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from services.domain.records import KEPT_PER_SLUG
from services.runtime.nats_config import MAX_PAYLOAD_BYTES
from services.runtime.nats_connection import ApiError, NatsConnection

log = logging.getLogger(__name__)

SECOND = 1_000_000_000
STREAM_NOT_FOUND = 10059
STREAM_EXISTS = frozenset({10058, 10065})

COMMON: Mapping[str, object] = {
    "storage": "file",
    "discard": "old",
    "max_consumers": -1,
    "max_msgs": -1,
    "max_bytes": -1,
    "max_age": 0,
    "max_msg_size": MAX_PAYLOAD_BYTES,
    # Compressed, one read unpacks a whole block (10 ms, measured).
    "compression": "none",
    # Every read of the newest goes to the leader.
    "allow_direct": False,
    "allow_rollup_hdrs": False,
    "deny_delete": False,
}

PAGES: Mapping[str, object] = {
    **COMMON,
    "name": "PAGES",
    "description": "The page log: one subject a page, one message a revision.",
    "subjects": ["brain.pages.>"],
    "retention": "limits",
    "max_msgs_per_subject": KEPT_PER_SLUG,
    # Unused: every append carries an expectation instead of a message id. The smallest window costs the least memory.
    "duplicate_window": SECOND,
    "allow_atomic": True,
    # A purge would leave the bytes on disk and take tombstones with it.
    "deny_purge": True,
}

DEAD_LETTERS: Mapping[str, object] = {
    **COMMON,
    "name": "DEAD_LETTERS",
    "description": "Messages that a projection gave up, with the reason.",
    "subjects": ["brain.dead.>"],
    "retention": "limits",
    "max_msgs": 10_000,
    "max_bytes": 1024 * 1024 * 1024,
    "max_msgs_per_subject": -1,
    # A projection that dies between the copy and the `term` copies again: the same id within this time is one message.
    "duplicate_window": 600 * SECOND,
    "deny_purge": False,
}


def work_queue_stream(name: str, subjects: str) -> Mapping[str, object]:
    """A stream whose messages are gone once a worker is done with them."""
    return {
        **COMMON,
        "name": name,
        "subjects": [subjects],
        "retention": "workqueue",
        "max_msgs_per_subject": -1,
        "max_msgs": 100_000,
        # With `old` a full queue would lose its first job; so a full queue refuses.
        "discard": "new",
        "duplicate_window": 120 * SECOND,
        "deny_purge": False,
    }


def key_value_stream(bucket: str, *, ttl_seconds: float | None, history: int, max_bytes: int) -> Mapping[str, object]:
    """A bucket in the form that every NATS client knows as key-value."""
    return {
        **COMMON,
        "name": f"KV_{bucket}",
        "subjects": [f"$KV.{bucket}.>"],
        "retention": "limits",
        "max_msgs_per_subject": history,
        "max_bytes": max_bytes,
        "max_age": int(ttl_seconds * SECOND) if ttl_seconds else 0,
        "discard": "new",
        "duplicate_window": SECOND if ttl_seconds is None else min(SECOND, int(ttl_seconds * SECOND)),
        "allow_rollup_hdrs": True,
        "allow_msg_ttl": True,
        "deny_delete": True,
        "deny_purge": False,
    }


async def ensure_stream(connection: NatsConnection, wanted: Mapping[str, object], *, replicas: int) -> None:
    """Makes the stream, or brings one that is there up to what is wanted; an existing number of replicas stays."""
    name = wanted["name"]
    try:
        info = await connection.api(f"STREAM.INFO.{name}")
    except ApiError as error:
        if error.error_code != STREAM_NOT_FOUND:
            raise
        try:
            await connection.api(f"STREAM.CREATE.{name}", {**wanted, "num_replicas": replicas})
        except ApiError as made_meanwhile:
            if made_meanwhile.error_code not in STREAM_EXISTS:
                raise
        return
    held = info["config"]
    assert isinstance(held, dict)
    changed = {key: value for key, value in wanted.items() if held.get(key, absent(value)) != value}
    if changed:
        log.info("stream brought up to date", extra={"stream": name, "changed": sorted(changed)})
        await connection.api(f"STREAM.UPDATE.{name}", {**held, **wanted})


def absent(value: object) -> object:
    """What the server means by leaving a setting out of its answer, for comparing with this value."""
    return False if isinstance(value, bool) else 0 if isinstance(value, int) else value if value == "none" else None
