"""Agents that go on writing and asking through the Service while something happens to the brain behind it."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

CALL_SECONDS = 20.0
"""As long as an agent waits for one answer. What takes longer has failed."""
WRITERS, ASKERS = 3, 2
PAUSE_SECONDS = 0.02


@dataclass(slots=True)
class Tally:
    """What the agents saw."""

    acknowledged: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Slug to revision and text of the last write that was answered."""
    writes: int = 0
    questions: int = 0
    failures: list[str] = field(default_factory=list)
    longest_seconds: float = 0.0
    missing_arms: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        return (
            f"{self.writes} writes, {self.questions} questions, {len(self.failures)} failed calls, "
            f"longest {self.longest_seconds:.1f} s, arms missing now and then: {sorted(self.missing_arms) or 'none'}"
        )


class Brain:
    """The brain as one agent sees it: JSON over HTTP, through the Service."""

    def __init__(self, base_url: str, token: str) -> None:
        self._client = httpx.AsyncClient(
            base_url=base_url,
            headers={"authorization": f"Bearer {token}"},
            timeout=CALL_SECONDS,
            # Each call by a new connection, as agents that come and go make them: kube-proxy chooses anew each time.
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    async def call(self, operation: str, **arguments: object) -> dict[str, Any]:
        """The operation's bare result; raises what went wrong."""
        reply = await self._client.post(f"/api/{operation}", json=arguments)
        body: dict[str, Any] = reply.json()
        if reply.status_code != 200:
            raise RuntimeError(f"{operation}: {reply.status_code} {body.get('error')}")
        return body

    async def close(self) -> None:
        """Ends its connections."""
        await self._client.aclose()


@contextmanager
def agents_at_work(base_url: str, token: str) -> Iterator[Tally]:
    """Runs the agents in a thread of their own until the block ends; yields what they see."""
    tally, stop = Tally(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(work(base_url, token, tally, stop)))
    thread.start()
    try:
        yield tally
    finally:
        stop.set()
        thread.join(3 * CALL_SECONDS)
        assert not thread.is_alive(), "the agents did not end"


async def work(base_url: str, token: str, tally: Tally, stop: threading.Event) -> None:
    """All agents, until told to stop."""
    run = f"{time.time_ns():x}"
    brain = Brain(base_url, token)
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(WRITERS):
                group.create_task(write(brain, f"load/{run}-{number}", tally, stop))
            for _ in range(ASKERS):
                group.create_task(ask(brain, tally, stop))
    finally:
        await brain.close()


async def write(brain: Brain, folder: str, tally: Tally, stop: threading.Event) -> None:
    """Writes one new page after another, each linked to the one before."""
    for number in itertools.count():
        if stop.is_set():
            return
        slug = f"{folder}/page-{number}"
        text = f"# Page {number}\n\nWritten under load, after [[{folder}/page-{max(number - 1, 0)}]].\n"
        began = time.monotonic()
        try:
            # A careful agent: the same request_id when it must ask again, so that nothing is written twice.
            reply = await brain.call("put_page", slug=slug, content=text, request_id=f"{slug}-1")
            tally.acknowledged[slug] = (int(reply["revision"]), text)
            tally.writes += 1
        except Exception as error:  # noqa: BLE001 - whatever an agent may meet is what is counted
            tally.failures.append(f"put {slug} after {time.monotonic() - began:.1f} s: {error!r}")
        tally.longest_seconds = max(tally.longest_seconds, time.monotonic() - began)
        await asyncio.sleep(PAUSE_SECONDS)


async def ask(brain: Brain, tally: Tally, stop: threading.Event) -> None:
    """Asks the same question again and again."""
    while not stop.is_set():
        began = time.monotonic()
        try:
            reply = await brain.call("query", query="who founded Loomwick?")
            tally.questions += 1
            tally.missing_arms |= {str(missing.get("arm", missing)) for missing in reply.get("missing", [])}
        except Exception as error:  # noqa: BLE001 - whatever an agent may meet is what is counted
            tally.failures.append(f"query after {time.monotonic() - began:.1f} s: {error!r}")
        tally.longest_seconds = max(tally.longest_seconds, time.monotonic() - began)
        await asyncio.sleep(PAUSE_SECONDS)


async def lost(base_url: str, token: str, tally: Tally) -> list[str]:
    """The acknowledged pages that cannot be read any more, or read otherwise."""
    brain = Brain(base_url, token)
    gone = []
    try:
        for slug, (revision, text) in tally.acknowledged.items():
            page = await brain.call("get_page", slug=slug)
            if page["revision"] != revision or page["content"] != text:
                gone.append(slug)
    finally:
        await brain.close()
    return gone
