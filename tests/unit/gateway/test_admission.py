"""Who is let in over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from gateway.admission import BODY_BYTES_MAX, Admission, Door, InFlight

TOKEN = "a token"


async def inner(scope: Scope, receive: Receive, send: Send) -> None:
    """Tells who is calling and how long the body is."""
    request = Request(scope, receive)
    body = await request.body()
    if request.url.path == "/healthz":
        response: Response = Response("ok")
    else:
        caller = request.state.caller
        response = JSONResponse({"principal": caller.principal, "remote": caller.remote, "bytes": len(body)})
    await response(scope, receive, send)


def client(door: Door, base_url: str = "http://127.0.0.1:8620") -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=Admission(inner, door)), base_url=base_url)


async def get(door: Door, headers: Mapping[str, str], path: str = "/api/get_page") -> httpx.Response:
    async with client(door) as http:
        return await http.get(path, headers=dict(headers))


async def test_callers_over_tcp_are_remote_whatever_they_say() -> None:
    response = await get(Door(local=False), {"brain-remote": "0", "brain-principal": "root"})

    assert response.json() == {"principal": "loopback", "remote": True, "bytes": 0}


async def test_callers_at_the_socket_are_local_unless_they_say_otherwise() -> None:
    assert (await get(Door(local=True), {})).json()["remote"] is False
    remote = await get(Door(local=True), {"brain-remote": "1", "brain-principal": "mcp"})

    assert remote.json() == {"principal": "mcp", "remote": True, "bytes": 0}


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example:8620", "@@"])
async def test_a_foreign_host_name_is_refused(host: str) -> None:
    response = await get(Door(local=False), {"host": host})

    assert response.status_code == 403
    assert response.json()["error"]["reason"] == "HOST_DENIED"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "[::1]:8620", "127.0.0.1", "brain.example:443"])
async def test_known_host_names_are_answered(host: str) -> None:
    door = Door(local=False, hosts=frozenset({"localhost", "127.0.0.1", "::1", "brain.example"}))

    assert (await get(door, {"host": host})).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1.evil.example"])
async def test_pages_of_other_origins_are_refused(origin: str) -> None:
    assert (await get(Door(local=False), {"origin": origin})).status_code == 403


async def test_pages_of_this_machine_may_call() -> None:
    assert (await get(Door(local=False), {"origin": "http://localhost:3000"})).status_code == 200


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer wrong", "Basic a token", "Bearer a tokens"])
async def test_without_the_token_nothing_is_answered(authorization: str) -> None:
    response = await get(Door(local=False, token=TOKEN), {"authorization": authorization} if authorization else {})

    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.json()["error"]["reason"] == "TOKEN_INVALID"


async def test_with_the_token_the_call_comes_in() -> None:
    response = await get(Door(local=False, token=TOKEN), {"authorization": f"bearer {TOKEN}"})

    assert response.json()["principal"] == "token"


async def test_health_is_answered_to_a_supervisor_without_token_and_name() -> None:
    response = await get(Door(local=False, token=TOKEN), {"host": "10.0.0.7"}, "/healthz")

    assert response.status_code == 200


async def parts(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b"x" * 1_000_000


async def test_a_body_that_is_announced_too_large_is_refused() -> None:
    async with client(Door(local=False)) as http:
        response = await http.post("/api/put_page", content=b"x" * (BODY_BYTES_MAX + 1))

    assert response.status_code == 413
    assert response.json()["error"]["reason"] == "PAGE_TOO_LARGE"


async def test_a_body_that_turns_out_too_large_is_refused_while_it_comes() -> None:
    async with client(Door(local=False)) as http:
        response = await http.post("/api/put_page", content=parts(13))

    assert response.status_code == 413


async def test_a_body_of_the_largest_size_comes_in() -> None:
    async with client(Door(local=False)) as http:
        response = await http.post("/api/put_page", content=parts(12))

    assert response.json()["bytes"] == BODY_BYTES_MAX


async def test_more_calls_than_there_is_room_for_are_told_to_come_back() -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def waiting(scope: Scope, receive: Receive, send: Send) -> None:
        entered.set()
        await leave.wait()
        await Response("done")(scope, receive, send)

    door = Door(local=False, in_flight=InFlight(), in_flight_max=1)
    transport = httpx.ASGITransport(app=Admission(waiting, door))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http, asyncio.timeout(5):
        first = asyncio.create_task(http.get("/api/query"))
        await entered.wait()
        second = await http.get("/api/query")
        leave.set()
        assert (await first).status_code == 200

    assert second.status_code == 429
    assert second.headers["retry-after"] == "1"
    assert door.in_flight.count == 0
