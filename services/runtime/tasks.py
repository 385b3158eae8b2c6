"""Small things about tasks that asyncio leaves to its users."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine


async def finish(cleanup: Coroutine[None, None, None]) -> None:
    """Awaits a clean-up to its end, also when the task is cancelled again meanwhile, and then lets that cancel it.

    A worker that fails cancels its siblings, and whoever stops the process cancels them once more: the second one
    would otherwise leave what the first had begun to put away. The clean-up must be bounded in itself.
    """
    task = asyncio.ensure_future(cleanup)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled


async def stop(task: asyncio.Task[None] | None) -> None:
    """Cancels a task of ours and returns when it has ended, however it did."""
    if task is not None:
        task.cancel()
        await asyncio.wait({task})
