"""A watermark only grows, and wakes exactly those it has reached."""

from __future__ import annotations

import asyncio

from services.runtime.watermark import Watermark


async def test_waiters_wake_in_whatever_order_their_revisions_are_reached() -> None:
    mark = Watermark()
    waiting = {revision: asyncio.create_task(mark.wait_for(revision, 5)) for revision in (5, 1, 3)}
    await asyncio.sleep(0)

    mark.advance(3)
    await asyncio.wait({waiting[1], waiting[3]})

    assert not waiting[5].done()
    mark.advance(2)
    assert mark.revision == 3
    mark.advance(9)
    assert await waiting[5]


async def test_what_is_reached_already_is_answered_without_waiting() -> None:
    mark = Watermark()
    mark.advance(7)

    assert await mark.wait_for(7, 0)
    assert not await mark.wait_for(8, 0.01)


async def test_a_waiter_that_left_is_no_harm() -> None:
    mark = Watermark()
    waiting = asyncio.create_task(mark.wait_for(1, None))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})

    mark.advance(1)

    assert waiting.cancelled()


async def test_a_listener_hears_where_it_is_and_every_step() -> None:
    mark = Watermark()
    heard: list[int] = []
    mark.advance(2)
    mark.listen(heard.append)
    mark.advance(4)
    mark.advance(3)

    assert heard == [2, 4]
