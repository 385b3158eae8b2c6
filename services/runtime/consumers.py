"""Durable pull consumers, with every limit set by us."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from services.domain.errors import Unavailable
from services.runtime.nats_connection import ApiError, NatsConnection
from services.runtime.pull import ACK_WAIT_SECONDS, PULL_BYTES_MAX
from services.runtime.streams import SECOND

CONSUMER_NOT_FOUND = 10014
RESET_VERSION = (2, 14)
PULLS_WAITING_MAX = 512
"""Standing pull requests of all replicas together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerState:
    """Where a consumer is."""

    ack_floor: int
    """Everything up to this sequence of the stream is acknowledged."""
    delivered: int
    in_hand: int
    """Messages delivered and not yet acknowledged."""
    pending: int
    """Messages to be delivered or not yet acknowledged."""


async def ensure_consumer(
    connection: NatsConnection,
    stream: str,
    name: str,
    *,
    subjects: str,
    deliver_policy: Literal["all", "last_per_subject"],
    ack_pending_max: int,
    inactive_seconds: int = 0,
    ack_wait_seconds: float = ACK_WAIT_SECONDS,
) -> None:
    """Makes the consumer, or updates the limits of one that is there.

    `max_deliver` is unlimited: the server would drop a message silently, we copy it to the dead letters first.
    """
    config: dict[str, object] = {
        "name": name,
        "durable_name": name,
        "deliver_policy": deliver_policy,
        "ack_policy": "explicit",
        "ack_wait": int(ack_wait_seconds * SECOND),
        "max_deliver": -1,
        "max_ack_pending": ack_pending_max,
        "max_waiting": PULLS_WAITING_MAX,
        "max_bytes": PULL_BYTES_MAX,
        "filter_subject": subjects,
        "replay_policy": "instant",
        "inactive_threshold": inactive_seconds * SECOND,
    }
    body = {"stream_name": stream, "config": config}
    try:
        await connection.api(f"CONSUMER.CREATE.{stream}.{name}.{subjects}", body)
    except ApiError as error:
        raise refused(name, error) from error


async def consumer_state(connection: NatsConnection, stream: str, name: str) -> ConsumerState | None:
    """Where the consumer is; None when there is none of this name."""
    try:
        info = await connection.api(f"CONSUMER.INFO.{stream}.{name}")
    except ApiError as error:
        if error.error_code == CONSUMER_NOT_FOUND:
            return None
        raise refused(name, error) from error
    ack_floor, delivered = info["ack_floor"], info["delivered"]
    assert isinstance(ack_floor, dict)
    assert isinstance(delivered, dict)
    return ConsumerState(
        ack_floor=int(ack_floor["stream_seq"]),
        delivered=int(delivered["stream_seq"]),
        in_hand=int(str(info["num_ack_pending"])),
        pending=int(str(info["num_pending"])) + int(str(info["num_ack_pending"])),
    )


async def redeliver_at_once(connection: NatsConnection, stream: str, name: str) -> None:
    """Makes the server deliver everything unacknowledged again now, not after ACK_WAIT_SECONDS.

    Only for a consumer that nobody else reads from. Servers before 2.14 cannot; there it takes its time.
    """
    if connection.server_version >= RESET_VERSION:
        try:
            await connection.api(f"CONSUMER.RESET.{stream}.{name}")
        except ApiError as error:
            raise refused(name, error) from error


async def delete_consumer(connection: NatsConnection, stream: str, name: str) -> None:
    """Removes the consumer; one that is gone already is no error."""
    try:
        await connection.api(f"CONSUMER.DELETE.{stream}.{name}")
    except ApiError as error:
        if error.error_code != CONSUMER_NOT_FOUND:
            raise refused(name, error) from error


def refused(name: str, error: ApiError) -> Unavailable:
    """JetStream does nothing with the consumer now: a cluster may have no leader, or the stream is gone."""
    return Unavailable(
        "PEER_UNAVAILABLE",
        f"NATS refused the consumer {name}: {error}",
        metadata={"peer": "nats", "error_code": str(error.error_code), "consumer": name},
        next_step="It is tried again; if it stays, look into the NATS server's log.",
        retry_after_seconds=1.0,
    )
