"""A call from one service to another: its caller, its deadline, its trace, its errors.

Over a real socket, and inside one process: who calls cannot tell which it was.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from brain.v1 import graph_service_pb2, graph_service_pb2_grpc, ingest_service_pb2, ingest_service_pb2_grpc
from services.domain.context import OperationContext
from services.domain.errors import BrainError, DeadlineExceeded, Internal, Overloaded, Unauthenticated, Unavailable
from services.runtime.calls import operation, trace_id
from services.runtime.channels import open_channel
from services.runtime.local_calls import LocalCalls
from services.runtime.process import OpenModule, serve
from services.runtime.status import CODES
from tests.integration.runtime.echo import GRAPH, INGEST, Echo, Seen, echo_module, make_echo, make_relay, relay_module

SECONDS = 5.0
CALLER = OperationContext(principal="王", read_sources=frozenset({"default"}))
Request = ingest_service_pb2.GetPageRequest


@asynccontextmanager
async def serving(
    opens: list[OpenModule], addresses: list[str], *, token: str = "", local: LocalCalls | None = None
) -> AsyncIterator[dict[str, str]]:
    """Serves until the block ends, and yields the bound addresses."""
    up: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(
        serve(
            opens,
            addresses,
            grace_seconds=2,
            token=token,
            local=local,
            on_serving=lambda bound: up.set_result(dict(bound)),
        )
    )
    both: set[asyncio.Future[Any]] = {task, up}
    await asyncio.wait(both, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
    try:
        yield up.result()
    finally:
        if not task.done():
            os.kill(os.getpid(), signal.SIGTERM)
        await task


@dataclass
class Wire:
    """A served echo and a stub of it."""

    echo: Echo
    seen: Seen
    stub: ingest_service_pb2_grpc.IngestServiceAsyncStub
    address: str


@pytest.fixture(params=["socket", "one process"])
async def wire(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Wire]:
    seen = Seen()
    echo = make_echo(seen)
    address = f"unix:{tmp_path}/b.sock"
    local = LocalCalls() if request.param == "one process" else None
    async with (
        serving([echo_module(echo)], [address], local=local),
        open_channel(address, service=INGEST, local=local) as channel,
    ):
        yield Wire(echo, seen, ingest_service_pb2_grpc.IngestServiceStub(channel), address)


def raising(error: Exception) -> Callable[[], Awaitable[None]]:
    async def act() -> None:
        raise error

    return act


async def forever() -> None:
    await asyncio.Event().wait()


async def test_a_call_brings_its_caller_its_deadline_and_its_trace(wire: Wire) -> None:
    with operation(CALLER, timeout_seconds=3):
        trace = trace_id()
        response = await wire.stub.GetPage(Request(slug="页"))

    assert response.page.slug == "页"
    assert (wire.seen.principal, wire.seen.trace) == ("王", trace)
    assert wire.seen.remaining is not None
    assert 0 < wire.seen.remaining < 3


async def test_a_deadline_shrinks_along_a_chain_and_the_trace_stays_the_same(tmp_path: Path) -> None:
    middle, leaf = Seen(), Seen()
    address = f"unix:{tmp_path}/b.sock"
    opens = [echo_module(make_echo(leaf)), relay_module(make_relay(address, middle))]
    async with serving(opens, [address]), open_channel(address, service=GRAPH) as channel:
        stub = graph_service_pb2_grpc.GraphServiceStub(channel)
        with operation(CALLER, timeout_seconds=2):
            trace = trace_id()
            await stub.GetStats(graph_service_pb2.GetGraphStatsRequest())

    assert leaf.principal == middle.principal == "王"
    assert leaf.trace == middle.trace == trace
    assert leaf.remaining is not None
    assert middle.remaining is not None
    assert leaf.remaining < middle.remaining < 2


@pytest.mark.parametrize("cls", list(CODES))
async def test_every_error_of_ours_arrives_as_it_was_raised(wire: Wire, cls: type[BrainError]) -> None:
    error = cls(
        "PAGE_MOVED", "搬走了", field="slug", value="a", next_step="Go there.", metadata={"moved_to": "b"},
        retry_after_seconds=1.5,
    )  # fmt: skip
    wire.echo.actions["x"] = raising(error)

    with operation(CALLER, timeout_seconds=3), pytest.raises(cls) as raised:
        await wire.stub.GetPage(Request(slug="x"))

    for name in ("reason", "message", "field", "value", "next_step", "metadata", "retry_after_seconds"):
        assert getattr(raised.value, name) == getattr(error, name)


async def test_an_error_with_long_words_arrives_whole(wire: Wire) -> None:
    """GRPC's own limit for all metadata is 8 KB."""
    metadata = {f"key{number}": "值" * 300 for number in range(20)}
    wire.echo.actions["x"] = raising(Unavailable("PEER_UNAVAILABLE", "m", metadata=metadata))

    with operation(CALLER, timeout_seconds=3), pytest.raises(Unavailable) as raised:
        await wire.stub.GetPage(Request(slug="x"))

    assert raised.value.metadata == metadata


async def test_an_error_of_no_kind_of_ours_shows_nothing_but_a_trace(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    wire.echo.actions["x"] = raising(RuntimeError("the secret"))

    with operation(CALLER, timeout_seconds=3):
        trace = trace_id()
        with pytest.raises(Internal) as raised:
            await wire.stub.GetPage(Request(slug="x"))

    assert "secret" not in repr(vars(raised.value))
    assert raised.value.metadata["trace_id"] == trace
    assert [record.exc_info is not None for record in caplog.records if record.message == "call failed"] == [True]


async def test_a_call_without_a_caller_is_refused(wire: Wire) -> None:
    async with aio.insecure_channel(wire.address) as bare:
        stub = ingest_service_pb2_grpc.IngestServiceStub(bare)
        with pytest.raises(aio.AioRpcError) as raised:
            await stub.GetPage(Request(slug="a"))

    assert raised.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert wire.seen.calls == 0


async def test_a_call_outside_of_any_operation_is_not_made(wire: Wire) -> None:
    with pytest.raises(Internal):
        await wire.stub.GetPage(Request(slug="a"))

    assert wire.seen.calls == 0


async def test_a_call_without_time_left_is_not_made(wire: Wire) -> None:
    with operation(CALLER, timeout_seconds=0), pytest.raises(DeadlineExceeded):
        await wire.stub.GetPage(Request(slug="a"))

    assert wire.seen.calls == 0


async def test_a_call_that_takes_too_long_ends_at_both_ends(wire: Wire) -> None:
    wire.echo.actions["slow"] = forever

    with operation(CALLER, timeout_seconds=0.2), pytest.raises(DeadlineExceeded) as raised:
        await wire.stub.GetPage(Request(slug="slow"))

    assert raised.value.reason == "DEADLINE_EXCEEDED"
    await asyncio.wait_for(wire.seen.cancelled.wait(), SECONDS)


async def test_a_caller_that_leaves_cancels_the_call_at_the_other_end(wire: Wire) -> None:
    wire.echo.actions["slow"] = forever
    with operation(CALLER, timeout_seconds=60):
        call = asyncio.ensure_future(wire.stub.GetPage(Request(slug="slow")))
    await asyncio.wait_for(wire.seen.entered.wait(), SECONDS)

    call.cancel()

    await asyncio.wait_for(wire.seen.cancelled.wait(), SECONDS)


async def test_a_stream_brings_its_answers_and_then_its_error(wire: Wire) -> None:
    wire.echo.actions["end of import"] = raising(Overloaded("LIMIT_REACHED", "enough"))

    async def requests() -> AsyncIterator[ingest_service_pb2.ImportPagesRequest]:
        for _ in range(3):
            yield ingest_service_pb2.ImportPagesRequest()

    got: list[ingest_service_pb2.ImportPagesResponse] = []

    async def read() -> None:
        async for response in wire.stub.ImportPages(requests()):
            got.append(response)  # noqa: PERF401 - what came before the error counts

    with operation(CALLER, timeout_seconds=3), pytest.raises(Overloaded, match="enough"):
        await read()

    assert len(got) == 3


async def test_leaving_a_stream_cancels_it_at_the_other_end(wire: Wire) -> None:
    async def requests() -> AsyncIterator[ingest_service_pb2.ImportPagesRequest]:
        yield ingest_service_pb2.ImportPagesRequest()
        await forever()

    with operation(CALLER, timeout_seconds=60):
        stream = wire.stub.ImportPages(requests())
        await anext(aiter(stream))
        await stream.aclose()  # type: ignore[attr-defined]

    await asyncio.wait_for(wire.seen.ended.wait(), SECONDS)


async def test_a_message_over_the_limit_is_refused_in_our_words(wire: Wire) -> None:
    with operation(CALLER, timeout_seconds=3), pytest.raises(Overloaded) as raised:
        await wire.stub.GetPage(Request(slug="x" * (8 * 1024 * 1024 + 1)))

    assert raised.value.reason == "LIMIT_REACHED"


async def test_nobody_there_is_unavailable_by_name(tmp_path: Path) -> None:
    async with open_channel(f"unix:{tmp_path}/none.sock", service=INGEST) as channel:
        stub = ingest_service_pb2_grpc.IngestServiceStub(channel)
        with operation(CALLER, timeout_seconds=3), pytest.raises(Unavailable) as raised:
            await stub.GetPage(Request(slug="a"))

    assert raised.value.metadata["peer"] == INGEST


async def test_over_tcp_the_token_is_asked_for_and_over_the_socket_it_is_not(tmp_path: Path) -> None:
    seen = Seen()
    socket = f"unix:{tmp_path}/b.sock"
    async with serving([echo_module(make_echo(seen))], [socket, "127.0.0.1:0"], token="hush") as bound:
        for address, token, allowed in (
            (socket, "", True),
            (bound["grpc_tcp"], "hush", True),
            (bound["grpc_tcp"], "", False),
            (bound["grpc_tcp"], "wrong", False),
        ):
            async with open_channel(address, service=INGEST, token=token) as channel:
                stub = ingest_service_pb2_grpc.IngestServiceStub(channel)
                with operation(CALLER, timeout_seconds=3):
                    if allowed:
                        await stub.GetPage(Request(slug="a"))
                    else:
                        with pytest.raises(Unauthenticated):
                            await stub.GetPage(Request(slug="a"))
        async with aio.insecure_channel(bound["grpc_tcp"]) as bare:  # a probe has no token
            health: Any = health_pb2_grpc.HealthStub(bare)
            answer = await health.Check(health_pb2.HealthCheckRequest(service=INGEST))

    assert seen.calls == 2
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_a_method_that_nobody_serves_is_an_error_of_ours(wire: Wire) -> None:
    async with open_channel(wire.address, service=GRAPH) as channel:
        stub = graph_service_pb2_grpc.GraphServiceStub(channel)
        with operation(CALLER, timeout_seconds=3), pytest.raises(Internal):
            await stub.GetStats(graph_service_pb2.GetGraphStatsRequest())


async def test_a_call_inside_one_process_needs_no_connection(tmp_path: Path) -> None:
    local, seen = LocalCalls(), Seen()
    address = f"unix:{tmp_path}/b.sock"
    async with serving([echo_module(make_echo(seen))], [address], local=local):
        (tmp_path / "b.sock").unlink()
        async with open_channel(address, service=INGEST, local=local) as channel:
            stub = ingest_service_pb2_grpc.IngestServiceStub(channel)
            with operation(CALLER, timeout_seconds=3):
                await stub.GetPage(Request(slug="a"))

    assert seen.calls == 1


async def test_a_service_at_another_address_is_called_there_although_one_of_its_kind_is_here(tmp_path: Path) -> None:
    local, here, there = LocalCalls(), Seen(), Seen()
    addresses = [f"unix:{tmp_path}/{name}.sock" for name in ("here", "there")]
    local.begin(addresses[:1], [registering(make_echo(here))])
    async with (
        serving([echo_module(make_echo(there))], addresses[1:]),
        open_channel(addresses[1], service=INGEST, local=local) as channel,
    ):
        stub = ingest_service_pb2_grpc.IngestServiceStub(channel)
        with operation(CALLER, timeout_seconds=3):
            await stub.GetPage(Request(slug="a"))

    assert (here.calls, there.calls) == (0, 1)


async def test_a_service_of_this_process_that_stops_is_unavailable_to_new_calls(tmp_path: Path) -> None:
    local, seen = LocalCalls(), Seen()
    address = f"unix:{tmp_path}/none.sock"
    local.begin([address], [registering(make_echo(seen))])
    async with open_channel(address, service=INGEST, local=local) as channel:
        stub = ingest_service_pb2_grpc.IngestServiceStub(channel)
        with operation(CALLER, timeout_seconds=3):
            await stub.GetPage(Request(slug="a"))
            local.end()
            with pytest.raises(Unavailable):
                await stub.GetPage(Request(slug="a"))

    assert seen.calls == 1


async def test_a_failing_read_that_may_succeed_is_tried_again(wire: Wire) -> None:
    async def twice() -> None:
        if wire.seen.calls < 3:
            raise Unavailable("PEER_UNAVAILABLE", "not yet")

    wire.echo.actions["x"] = twice

    with operation(CALLER, timeout_seconds=3):
        await wire.stub.GetPage(Request(slug="x"))

    assert wire.seen.calls == 3


def registering(echo: Echo) -> Callable[[aio.Server], None]:
    return lambda server: ingest_service_pb2_grpc.add_IngestServiceServicer_to_server(echo, server)
