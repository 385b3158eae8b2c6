"""The streams of the brain: what each promises, set explicitly, and made or brought up to date at every start."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from services.domain.errors import InvalidArgument, PermissionDenied, Unavailable
from services.domain.records import KEPT_PER_SLUG
from services.runtime.nats_config import MAX_PAYLOAD_BYTES
from services.runtime.nats_connection import ApiError, NatsConnection
from services.runtime.nats_options import NatsOptions
from services.runtime.nats_troubles import LEADERLESS

log = logging.getLogger(__name__)

SECOND = 1_000_000_000
STREAM_NOT_FOUND = 10059
STREAM_EXISTS = frozenset({10058, 10065})

NO_ROOM = frozenset({10023, 10028, 10047, 10022})
"""JetStream's numbers for: insufficient resources, memory or storage; of the servers or of the account."""
TOO_FEW_SERVERS = frozenset({10005, 10074})
"""No suitable peers for placement; replicas on a single server."""
REPLICAS_IN_CLUSTER = 3
RECONFIGURING = frozenset({10124, 10226})
"""JetStream's numbers for: a move, or another change of its servers, is under way."""
RECONFIGURE_SECONDS, RECONFIGURE_TRIES_MAX = 0.25, 40
"""New replicas of an ordinary log are filled within a second; one that takes over ten is left to the next start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """On how many servers, and on which, the streams lie."""

    replicas: int = 1
    chosen: bool = False
    """A setting says how many; else it follows from where we are."""
    tags: tuple[str, ...] = ()
    allow_shrink: bool = False

    def config(self) -> Mapping[str, object]:
        """Its part of a stream's configuration."""
        return {"num_replicas": self.replicas, **({"placement": {"tags": list(self.tags)}} if self.tags else {})}


def topology_of(options: NatsOptions, *, clustered: bool) -> Topology:
    """What the settings say, or else three copies in a cluster and one on a single server."""
    return Topology(
        replicas=options.replicas or (REPLICAS_IN_CLUSTER if clustered else 1),
        chosen=options.replicas > 0,
        tags=options.tags,
        allow_shrink=options.allow_shrink,
    )


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
    # Room that an account with limits must have free: enough for a look at what went wrong, the oldest go first.
    "max_bytes": 256 * 1024 * 1024,
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


async def ensure_stream(connection: NatsConnection, wanted: Mapping[str, object], *, topology: Topology) -> None:
    """Makes the stream, or brings one that is there up to what is wanted, and logs what changes from what to what.

    Raises:
        Unavailable: The servers have no room or too few of them answer, or another service must make it first.
        InvalidArgument: It has more replicas than are wanted, and nobody said that they may be given up.
    """
    name = str(wanted["name"])
    try:
        info = await connection.api(f"STREAM.INFO.{name}")
    except ApiError as error:
        if error.error_code != STREAM_NOT_FOUND:
            raise refused_stream(name, error, topology) from error
        await _make(connection, {**wanted, **topology.config()}, topology)
        return
    held = info["config"]
    assert isinstance(held, dict)
    target = {**wanted, **topology.config()}
    replicas = int(held.get("num_replicas", 1))
    if topology.replicas < replicas:
        if topology.chosen and not topology.allow_shrink:
            raise too_many_replicas(name, replicas, topology)
        if not topology.chosen:
            target["num_replicas"] = replicas  # somebody gave it more than we would by ourselves
    changed = {key: value for key, value in target.items() if held.get(key, absent(value)) != value}
    if not changed:
        return
    shown = {key: f"{held.get(key, absent(value))} -> {value}" for key, value in sorted(changed.items())}
    log.warning("stream is brought up to date", extra={"stream": name, "changes": shown})
    try:
        if "placement" in changed and "num_replicas" in changed:  # the server does not do both at once
            await _update(connection, {**held, "num_replicas": target["num_replicas"]})
        await _update(connection, {**held, **target})
    except ApiError as error:
        raise refused_stream(name, error, topology) from error
    except PermissionDenied:
        log.warning("stream is left to the service that may change it", extra={"stream": name, "changes": shown})


async def _make(connection: NatsConnection, config: Mapping[str, object], topology: Topology) -> None:
    name = str(config["name"])
    try:
        await connection.api(f"STREAM.CREATE.{name}", config)
    except ApiError as error:
        if error.error_code not in STREAM_EXISTS:
            raise refused_stream(name, error, topology) from error
    except PermissionDenied as error:
        raise Unavailable(
            "PEER_UNAVAILABLE",
            f"the stream {name} is not there yet, and this service may not make it",
            metadata={"peer": "nats", "stream": name},
            next_step="Start the service that makes it (ingest makes those of the pages, jobs its own).",
            retry_after_seconds=1.0,
        ) from error


async def _update(connection: NatsConnection, config: Mapping[str, object]) -> None:
    """Changes the stream, after whatever change is under way."""
    for _ in range(RECONFIGURE_TRIES_MAX):
        try:
            await connection.api(f"STREAM.UPDATE.{config['name']}", config)
        except ApiError as error:
            if error.error_code not in RECONFIGURING:
                raise
            await asyncio.sleep(RECONFIGURE_SECONDS)
        else:
            return
    await connection.api(f"STREAM.UPDATE.{config['name']}", config)


def refused_stream(name: str, error: ApiError, topology: Topology) -> Unavailable:
    """JetStream did not make, change or find a stream; what helps depends on why."""
    if error.error_code in NO_ROOM:
        next_step = (
            "Make room for JetStream: its max_file_store or the account's limits are below what the streams need."
        )
    elif error.error_code in TOO_FEW_SERVERS:
        next_step = (
            f"{topology.replicas} replicas need as many JetStream servers that answer"
            f"{f' and have the tags {sorted(topology.tags)}' if topology.tags else ''}: "
            "start them, or set FLEETBRAIN_NATS_REPLICAS."
        )
    elif error.error_code in LEADERLESS:
        next_step = "Wait until the servers have a leader: most of them must answer."
    else:
        next_step = "Use nats-server 2.12 or newer with JetStream on."
    return Unavailable(
        "PEER_UNAVAILABLE",
        f"NATS refused the stream {name} with {topology.replicas} replicas: {error}",
        metadata={"peer": "nats", "error_code": str(error.error_code), "stream": name},
        next_step=next_step,
        retry_after_seconds=1.0,
    )


def too_many_replicas(name: str, held: int, topology: Topology) -> InvalidArgument:
    """Fewer copies are wanted than there are."""
    return InvalidArgument(
        "FIELD_INVALID",
        f"the stream {name} has {held} replicas and FLEETBRAIN_NATS_REPLICAS says {topology.replicas}",
        field="FLEETBRAIN_NATS_REPLICAS",
        value=topology.replicas,
        next_step=f"Set it to {held}, or FLEETBRAIN_NATS_ALLOW_SHRINK=true to give copies up.",
    )


def absent(value: object) -> object:
    """What the server means by leaving a setting out of its answer, for comparing with this value."""
    return False if isinstance(value, bool) else 0 if isinstance(value, int) else value if value == "none" else None
