"""Many writers, few pages, two replicas: every acknowledged write is in the history, every lost race is told."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from services.domain.errors import Conflict
from services.domain.records import PageKey
from services.runtime.bus import Bus, open_bus
from services.runtime.nats_child import NatsAddress
from tests.integration.ingest.service import Client, open_service

WRITERS = 20
PAGES = 20
KEPT = 64


@dataclass(slots=True)
class Outcome:
    """What the writers were told."""

    acknowledged: dict[str, dict[int, bytes]] = field(default_factory=lambda: defaultdict(dict))
    """By slug: the text of each acknowledged revision."""
    reasons: list[str] = field(default_factory=list)
    """Of the refusals."""


async def write_all(clients: list[Client], puts_per_page: int, *, overwrite: bool) -> Outcome:
    """Lets the writers put until every page has its number of accepted puts."""
    outcome = Outcome()
    tickets = [f"page-{number}" for number in range(PAGES) for _ in range(puts_per_page)]
    random.Random(7).shuffle(tickets)

    async def writer(client: Client) -> None:
        while tickets:
            slug = tickets.pop()
            known: int | None = 0
            while True:
                body = f"{slug} {uuid.uuid4()}".encode()
                try:
                    result = await client.put(slug, body, if_revision=None if overwrite else known, overwrite=overwrite)
                except Conflict as error:
                    outcome.reasons.append(error.reason)
                    known = int(error.metadata.get("revision", "0"))
                    continue
                assert result.revision not in outcome.acknowledged[slug], "one revision for two writes"
                outcome.acknowledged[slug][result.revision] = body
                break

    async with asyncio.TaskGroup() as tasks:
        for number in range(WRITERS):
            tasks.create_task(writer(clients[number % len(clients)]))
    return outcome


async def kept_texts(bus: Bus, slug: str) -> dict[int, bytes | None]:
    return {record.revision: record.body for record in await bus.page_log.kept(PageKey("default", slug))}


async def test_every_acknowledged_revision_is_in_the_history_and_every_lost_race_is_a_conflict(
    nats_server: NatsAddress, bus: Bus, client: Client, tmp_path: Path
) -> None:
    """BC-067 and BC-068: 20 writers, 20 pages, 60 accepted puts a page, over two replicas."""
    (tmp_path / "second").mkdir()
    async with open_bus(nats_server.url, name="second") as second, open_service(second, tmp_path / "second") as other:
        outcome = await write_all([client, other], 60, overwrite=False)
    assert set(outcome.reasons) <= {"REVISION_CONFLICT", "WRITE_CONTENDED"}
    assert outcome.reasons.count("REVISION_CONFLICT") > 100, "the writers must have met"
    for slug, texts in outcome.acknowledged.items():
        assert await client.versions(slug) == sorted(texts, reverse=True)
        assert await kept_texts(bus, slug) == texts
        assert len(texts) == 60
    assert len(outcome.acknowledged) == PAGES


async def test_exactly_the_64_newest_are_kept_and_the_current_one_is_the_last_acknowledged(
    nats_server: NatsAddress, bus: Bus, client: Client, tmp_path: Path
) -> None:
    """200 accepted puts a page, over two replicas."""
    (tmp_path / "second").mkdir()
    async with open_bus(nats_server.url, name="second") as second, open_service(second, tmp_path / "second") as other:
        outcome = await write_all([client, other], 200, overwrite=True)
    assert set(outcome.reasons) <= {"WRITE_CONTENDED"}
    for slug, texts in outcome.acknowledged.items():
        newest = sorted(texts, reverse=True)[:KEPT]
        assert await client.versions(slug) == newest
        assert await kept_texts(bus, slug) == {revision: texts[revision] for revision in newest}
        assert await client.body(slug) == texts[newest[0]]
        assert len(texts) == 200
