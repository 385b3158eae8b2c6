"""Leases over a real NATS server: one holder at a time, and a token that tells the later from the earlier."""

from __future__ import annotations

import asyncio

import pytest

from services.domain.errors import Conflict
from services.runtime.bus import Bus
from services.runtime.key_value import KeyValue
from tests.contract.runtime.projections import SECONDS


async def test_of_many_that_want_a_lease_one_gets_it(bus: Bus) -> None:
    taken = await asyncio.gather(*(bus.leases.acquire("vault.a", holder=f"h{n}") for n in range(10)))

    assert sum(lease is not None for lease in taken) == 1
    assert await bus.leases.acquire("vault.b", holder="other") is not None


async def test_a_later_holder_has_a_larger_token_also_after_renewals(bus: Bus) -> None:
    first = await bus.leases.acquire("a", holder="first")
    assert first is not None
    token = first.token
    await first.renew()
    await first.renew()
    assert first.token == token

    await first.release()
    second = await bus.leases.acquire("a", holder="second")

    assert second is not None
    assert second.token > token
    assert await bus.leases.holder("a") == "second"


async def test_a_lease_that_is_not_renewed_ends_and_its_old_holder_notices(bus: Bus) -> None:
    first = await bus.leases.acquire("a", holder="dead", ttl_seconds=1)
    assert first is not None

    second = None
    async with asyncio.timeout(SECONDS):
        while second is None:
            second = await bus.leases.acquire("a", holder="next")

    assert second.token > first.token
    with pytest.raises(Conflict):
        await first.renew()
    await first.release()
    assert await bus.leases.holder("a") == "next"


async def test_a_held_lease_is_refused_to_others_and_free_after_the_block(bus: Bus) -> None:
    async with bus.leases.hold("a", holder="me"):
        with pytest.raises(Conflict) as raised:
            async with bus.leases.hold("a", holder="you"):
                raise AssertionError

        assert "me" in raised.value.message
    async with bus.leases.hold("a", holder="you") as lease:
        assert lease.token > 0


async def test_work_under_a_lost_lease_is_cancelled(bus: Bus) -> None:
    async def work() -> None:
        async with asyncio.timeout(SECONDS), bus.leases.hold("a", holder="me", ttl_seconds=1):
            await KeyValue(bus.connection, "leases").put("a", b'{"holder":"thief"}')
            await asyncio.Event().wait()

    with pytest.raises(Conflict, match="lost"):
        await work()

    assert await bus.leases.holder("a") == "thief"
