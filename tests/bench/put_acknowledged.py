"""How long PutPage takes until it is acknowledged, over gRPC, with writers that offer a fixed rate."""

from __future__ import annotations

import asyncio
import time
import uuid

from brain.v1 import ingest_service_pb2 as pb
from brain.v1 import ingest_service_pb2_grpc
from services.domain.context import local_context
from services.runtime.calls import operation
from services.runtime.channels import open_channel
from tests.bench.brain import running_brain
from tests.bench.figures import OFFERED_PUTS_PER_SECOND, OFFERED_SECONDS, WRITERS, milliseconds, put_text
from tests.bench.tables import print_table


def print_put_acknowledged() -> None:
    """Prints p50, p95 and the maximum of PutPage at 50 puts a second."""
    with running_brain(embedder="none") as brain:
        seconds = asyncio.run(put_all(brain.address("grpc")))
    print_table(
        f"PutPage acknowledged, {WRITERS} writers offering {OFFERED_PUTS_PER_SECOND}/s (goal: p95 20 ms)",
        ("puts", "p50 ms", "p95 ms", "max ms"),
        [(str(len(seconds)), *milliseconds(seconds))],
    )


async def put_all(address: str) -> list[float]:
    """Seconds of every put, in the order they were answered."""
    seconds: list[float] = []
    async with open_channel(address, service="brain.v1.IngestService") as channel:
        stub = ingest_service_pb2_grpc.IngestServiceStub(channel)
        began = time.perf_counter() + 0.5

        async def write(writer: int) -> None:
            for ordinal in range(OFFERED_PUTS_PER_SECOND * OFFERED_SECONDS // WRITERS):
                due = began + (ordinal * WRITERS + writer) / OFFERED_PUTS_PER_SECOND
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                body = put_text(writer, ordinal).encode()
                request = pb.PutPageRequest(slug=f"ack/{writer}-{ordinal}", body=body, request_id=str(uuid.uuid4()))
                started = time.perf_counter()
                with operation(local_context(), timeout_seconds=10):
                    await stub.PutPage(request)
                seconds.append(time.perf_counter() - started)

        async with asyncio.TaskGroup() as writers:
            for writer in range(WRITERS):
                writers.create_task(write(writer))
    return seconds
