"""Messages that a projection gave up: copied with the reason before the server may forget them, and counted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from brain.v1 import events_pb2
from services.runtime.consumers import refused
from services.runtime.nats_connection import ApiError, NatsConnection, read_api
from services.runtime.page_codec import timestamp
from services.runtime.pull import Delivery

REASON_CHARACTERS_MAX = 1_000


async def bury(connection: NatsConnection, durable: str, delivery: Delivery, *, tries: int, reason: str) -> None:
    """Stores a copy of the message; returns when it is acknowledged. Doing it twice within ten minutes is once."""
    letter = events_pb2.DeadLetter(
        durable=durable,
        revision=delivery.sequence,
        subject=delivery.subject,
        tries=tries,
        reason=reason[:REASON_CHARACTERS_MAX],
        time=timestamp(datetime.now(UTC)),
        record=delivery.payload,
    )
    payload = letter.SerializeToString()
    if len(payload) > connection.payload_bytes_max:
        letter.ClearField("record")  # the log has it, for as long as it is kept
        payload = letter.SerializeToString()
    headers = {"Nats-Msg-Id": f"{durable}.{delivery.sequence}", "Nats-Expected-Stream": "DEAD_LETTERS"}
    try:
        read_api(await connection.request(f"brain.dead.{durable}", payload, headers=headers))
    except ApiError as error:
        raise refused(durable, error) from error


async def count_letters(connection: NatsConnection, durable: str) -> int:
    """How many messages a durable gave up."""
    try:
        info = await connection.api("STREAM.INFO.DEAD_LETTERS", {"subjects_filter": f"brain.dead.{durable}"})
    except ApiError as error:
        raise refused(durable, error) from error
    state = info["state"]
    assert isinstance(state, Mapping)
    return int((state.get("subjects") or {}).get(f"brain.dead.{durable}", 0))
