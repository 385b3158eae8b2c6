"""The page log's promises, kept by a real NATS server. See DESIGN section 3."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from services.domain.errors import Internal, InvalidArgument, Unavailable
from services.domain.records import KEPT_PER_SLUG, PageId, PageRecord, Predecessor, RecordKind
from services.runtime.bus import Bus, open_bus
from services.runtime.nats_child import NatsAddress, nats_child
from services.runtime.page_log import WrongLastSequence
from tests.records import key, put

CONTENDERS = 20


async def write_next(bus: Bus, slug: str, body: str) -> PageRecord:
    """Appends after whatever is newest, as ingest does, with its predecessors."""
    newest = await bus.page_log.newest(key(slug))
    predecessors: tuple[Predecessor, ...] = ()
    if newest is not None:
        last = Predecessor(revision=newest.revision, request_id=newest.request_id, digest=newest.request_digest)
        predecessors = (*newest.predecessors, last)[-(KEPT_PER_SLUG - 1) :]
    record = put(slug, body, expected=newest.revision if newest else 0, predecessors=predecessors)
    return (await bus.page_log.append([record]))[0]


async def test_a_record_comes_back_as_it_was_stored(bus: Bus) -> None:
    record = replace(
        put("人物/王小明", "正文 🚀\r\n", request_id="r1"),
        former_slugs=frozenset({"people/wang"}),
        erased_request_ids=frozenset({"r0"}),
        remote=True,
    )

    (stored,) = await bus.page_log.append([record])

    assert stored.revision == 1
    assert await bus.page_log.newest(key("人物/王小明")) == replace(stored, expected=0)
    assert await bus.page_log.at(key("人物/王小明"), 1) == replace(stored, expected=0)


async def test_nothing_is_read_where_nothing_was_written(bus: Bus) -> None:
    assert await bus.page_log.newest(key("a")) is None
    assert await bus.page_log.at(key("a"), 1) is None
    assert await bus.page_log.at(key("a"), 0) is None
    assert await bus.page_log.kept(key("a")) == []
    assert await bus.page_log.keys("default") == []
    assert await bus.page_log.last_revision() == 0


async def test_a_revision_of_another_page_is_not_shown(bus: Bus) -> None:
    await bus.page_log.append([put("a")])

    assert await bus.page_log.at(key("b"), 1) is None
    assert await bus.page_log.at(key("a", source="other"), 1) is None


async def test_an_append_on_a_stale_revision_stores_nothing(bus: Bus) -> None:
    (first,) = await bus.page_log.append([put("a", "1")])

    with pytest.raises(WrongLastSequence) as raised:
        await bus.page_log.append([put("a", "2")])

    assert raised.value.slug == "a"
    assert await bus.page_log.last_revision() == first.revision


async def test_twenty_writers_of_one_page_make_a_history_without_gaps(bus: Bus) -> None:
    """Each acknowledged revision was decided on the one before it."""
    chain: list[tuple[int, int]] = []
    lost = 0

    async def contend(number: int) -> None:
        nonlocal lost
        for _ in range(100):
            newest = await bus.page_log.newest(key("a"))
            expected = newest.revision if newest else 0
            try:
                (stored,) = await bus.page_log.append([put("a", f"by {number}", expected=expected)])
            except WrongLastSequence:
                lost += 1
                continue
            chain.append((expected, stored.revision))
            return

    await asyncio.gather(*(contend(number) for number in range(CONTENDERS)))

    chain.sort()
    assert [revision for _, revision in chain] == list(range(1, CONTENDERS + 1))
    assert [expected for expected, _ in chain] == list(range(CONTENDERS))
    assert lost > 0, "the writers never met"


async def test_a_batch_is_stored_whole_with_revisions_in_its_order(bus: Bus) -> None:
    await bus.page_log.append([put("old")])
    redirect = replace(put("old", expected=1), kind=RecordKind.REDIRECT, body=None, moved_to="new")
    move = replace(put("new"), kind=RecordKind.MOVE)

    stored = await bus.page_log.append([redirect, move])

    assert [record.revision for record in stored] == [2, 3]
    newest = await bus.page_log.newest_of([key("new"), key("old"), key("none")])
    assert [record and (record.kind, record.revision) for record in newest] == [
        (RecordKind.MOVE, 3),
        (RecordKind.REDIRECT, 2),
        None,
    ]


@pytest.mark.parametrize("stale", [0, 1, 2])
async def test_a_batch_with_one_stale_expectation_stores_nothing_and_names_the_slug(bus: Bus, stale: int) -> None:
    for slug in "abc":
        await bus.page_log.append([put(slug)])
    batch = [put(slug, "new", expected=revision) for revision, slug in enumerate("abc", start=1)]
    batch[stale] = replace(batch[stale], expected=0)

    with pytest.raises(WrongLastSequence) as raised:
        await bus.page_log.append(batch)

    assert raised.value.slug == "abc"[stale]
    assert await bus.page_log.last_revision() == 3


async def test_the_largest_move_fits_one_batch(bus: Bus) -> None:
    batch = [put(f"former/{number}") for number in range(101)]

    stored = await bus.page_log.append(batch)

    assert [record.revision for record in stored] == list(range(1, 102))


async def test_batches_that_cross_each_other_are_each_whole_or_nothing(bus: Bus) -> None:
    async def swap(number: int) -> bool:
        try:
            await bus.page_log.append([put("x", str(number)), put("y", str(number))])
        except WrongLastSequence:
            return False
        return True

    outcomes = await asyncio.gather(*(swap(number) for number in range(10)))

    assert sum(outcomes) == 1
    x, y = await bus.page_log.newest_of([key("x"), key("y")])
    assert x is not None
    assert y is not None
    assert x.body == y.body


async def test_exactly_the_newest_64_records_of_a_page_are_kept(bus: Bus) -> None:
    await bus.page_log.append([put("other")])
    for number in range(KEPT_PER_SLUG + 6):
        await write_next(bus, "a", f"version {number}")

    kept = await bus.page_log.kept(key("a"))

    assert [record.body for record in kept] == [f"version {n}".encode() for n in range(6, KEPT_PER_SLUG + 6)]
    assert await bus.page_log.at(key("a"), 2) is None
    assert await bus.page_log.newest(key("other")) is not None


async def test_erased_bytes_are_gone_from_reads_and_from_disk_and_the_rest_stays(bus: Bus, tmp_path: Path) -> None:
    secret = "SECRET-7f3a91"
    await write_next(bus, "a", f"with {secret}")
    await write_next(bus, "a", "without")

    await bus.page_log.erase(key("a"), 1)
    await bus.page_log.erase(key("a"), 1)

    assert [record.revision for record in await bus.page_log.kept(key("a"))] == [2]
    files = [path for path in (tmp_path / "nats").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if secret.encode() in path.read_bytes()]


async def test_the_newest_record_of_a_page_is_never_erased(bus: Bus) -> None:
    await bus.page_log.append([put("a")])
    await bus.page_log.append([put("b")])

    with pytest.raises(Internal):
        await bus.page_log.erase(key("a"), 1)
    await bus.page_log.erase(key("b"), 1)

    assert await bus.page_log.newest(key("a")) is not None


async def test_keys_list_a_folder_and_nothing_beside_it(bus: Bus) -> None:
    for slug in ("people/ann", "people/ann/notes", "people/bo", "people", "peoples/x", "人物/王"):
        await bus.page_log.append([put(slug)])
    await bus.page_log.append([put("people/ann", source="other")])

    assert await bus.page_log.keys("default", "people") == [
        key(slug) for slug in ("people", "people/ann", "people/ann/notes", "people/bo")
    ]
    assert await bus.page_log.keys("default", "人物") == [key("人物/王")]
    assert len(await bus.page_log.keys("default")) == 6
    assert await bus.page_log.keys("nowhere") == []


async def test_current_yields_the_newest_of_every_page_once(bus: Bus) -> None:
    for slug in ("b", "a", "c"):
        await write_next(bus, slug, "1")
    await write_next(bus, "a", "2")
    await bus.page_log.append([put("z", source="other")])

    found = [(record.key, record.body) async for record in bus.page_log.current("default")]

    assert found == [(key("a"), b"2"), (key("b"), b"1"), (key("c"), b"1")]
    assert len([record async for record in bus.page_log.current(None)]) == 4


async def test_a_page_of_five_million_bytes_is_stored_and_one_over_the_limit_is_refused_by_name(bus: Bus) -> None:
    body = os.urandom(5_000_000)
    await bus.page_log.append([put("large", body)])

    newest = await bus.page_log.newest(key("large"))
    with pytest.raises(InvalidArgument) as raised:
        await bus.page_log.append([put("larger", os.urandom(9_000_000))])

    assert newest is not None
    assert newest.body == body
    assert raised.value.reason == "PAGE_TOO_LARGE"
    assert await bus.page_log.newest(key("larger")) is None


async def test_acknowledged_records_survive_a_killed_server_and_the_rest_is_unavailable(tmp_path: Path) -> None:
    acknowledged: dict[str, int] = {}
    killed = asyncio.Event()

    async def write(bus: Bus, worker: int) -> None:
        for number in range(10_000):
            slug = f"w{worker}/p{number}"
            try:
                (stored,) = await bus.page_log.append([put(slug)])
            except Unavailable:
                return
            acknowledged[slug] = stored.revision
            if len(acknowledged) == 200:
                killed.set()

    async with nats_child(tmp_path / "nats") as address, open_bus(address.url, name="test") as bus:
        writers = asyncio.gather(*(write(bus, worker) for worker in range(20)))
        await asyncio.wait_for(killed.wait(), 5)
        os.kill(address.pid, signal.SIGKILL)
        await asyncio.wait_for(writers, 10)

        found = await bus.page_log.newest_of([key(slug) for slug in acknowledged])

    assert {record.slug: record.revision for record in found if record is not None} == acknowledged


async def test_a_log_that_is_away_is_unavailable_with_what_to_do(nats_server: NatsAddress, bus: Bus) -> None:
    os.kill(nats_server.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, nats_server.pid, os.WSTOPPED | os.WNOWAIT)  # noqa: ASYNC222 - it stops at once
    try:
        with pytest.raises(Unavailable) as raised:
            await bus.connection.request("$JS.API.INFO", timeout_seconds=0.2)
    finally:
        os.kill(nats_server.pid, signal.SIGCONT)

    assert raised.value.metadata["peer"] == "nats"
    assert raised.value.next_step


async def test_a_page_id_travels_with_every_kind_of_record(bus: Bus) -> None:
    await bus.page_log.append([put("a")])
    gone = replace(put("a", expected=1), kind=RecordKind.DELETE, body=None, content_hash=b"")
    await bus.page_log.append([gone])

    newest = await bus.page_log.newest(key("a"))

    assert newest is not None
    assert (newest.kind, newest.page_id, newest.live) == (RecordKind.DELETE, PageId("id-of-a"), False)
