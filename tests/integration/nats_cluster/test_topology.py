"""How many copies there are, where, who may do what and whom we believe: as said, or the start is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from services.domain.errors import BrainError, InvalidArgument, PermissionDenied, Unavailable
from services.runtime.bus import Bus, open_bus
from services.runtime.nats_child import nats_child
from services.runtime.nats_connection import read_api
from services.runtime.nats_options import NatsOptions
from tests.integration.nats_cluster.cluster import UP_SECONDS, Cluster, make_certificates, three_servers
from tests.records import key, put


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with three_servers(tmp_path, verify_clients=True) as servers:
        yield servers


async def config_of(bus: Bus, stream: str) -> dict[str, object]:
    config = (await bus.connection.api(f"STREAM.INFO.{stream}"))["config"]
    assert isinstance(config, dict)
    return config


async def error_of_start(url: str, options: NatsOptions) -> BrainError:
    with pytest.raises(BrainError) as raised:
        async with open_bus(url, name="t", options=options):
            raise AssertionError
    return raised.value


async def test_replicas_grow_by_themselves_and_shrink_only_when_a_setting_allows_it(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    url, options = cluster.url("ingest"), cluster.options
    one = replace(options, replicas=1)
    async with open_bus(url, name="t", patience_seconds=UP_SECONDS, options=one) as bus:
        assert (await config_of(bus, "PAGES"))["num_replicas"] == 1
        await bus.page_log.append([put("a")])

    async with open_bus(url, name="t", options=replace(options, tags=("disk:ssd",))) as bus:
        assert (await config_of(bus, "PAGES"))["num_replicas"] == 3
        assert (await config_of(bus, "PAGES"))["placement"] == {"tags": ["disk:ssd"]}
        assert (await config_of(bus, "KV_leases"))["num_replicas"] == 3
        changes = [getattr(r, "changes", {}) for r in caplog.records if r.message == "stream is brought up to date"]
        assert {"num_replicas": "1 -> 3"}.items() <= changes[0].items()
        assert await bus.page_log.newest(key("a")) is not None

    refused = await error_of_start(url, one)
    assert isinstance(refused, InvalidArgument)
    assert "FLEETBRAIN_NATS_ALLOW_SHRINK" in refused.next_step

    async with open_bus(url, name="t", options=replace(one, allow_shrink=True)) as bus:
        assert (await config_of(bus, "PAGES"))["num_replicas"] == 1
        assert await bus.page_log.newest(key("a")) is not None


async def test_copies_that_cannot_be_had_refuse_the_start(cluster: Cluster, tmp_path: Path) -> None:
    async with cluster.bus("ingest"):
        pass
    too_many = await error_of_start(cluster.url("ingest"), replace(cluster.options, replicas=5))
    assert isinstance(too_many, Unavailable)
    assert "5 replicas" in too_many.next_step

    nowhere = await error_of_start(cluster.url("ingest"), replace(cluster.options, tags=("disk:tape",)))
    assert "disk:tape" in nowhere.next_step

    async with nats_child(tmp_path / "single") as address:
        alone = await error_of_start(address.url, NatsOptions(replicas=3))
        assert "3 replicas" in alone.next_step
        async with open_bus(address.url, name="t") as bus:  # and nothing half made is in the way
            assert await bus.page_log.last_revision() == 0


async def test_each_service_may_do_its_own_work_and_no_other(cluster: Cluster) -> None:
    async with cluster.bus("ingest") as ingest, cluster.bus("search") as search, cluster.bus("jobs") as jobs:
        (page,) = await ingest.page_log.append([put("a")])
        assert await search.page_log.newest(key("a")) is not None
        await search.key_value("projections", max_bytes=1024 * 1024)
        queue = await jobs.work_queue("JOBS", subjects="brain.jobs.>")
        await queue.publish("brain.jobs.x", b"x", message_id="1")

        with pytest.raises(PermissionDenied, match=r"brain\.pages"):
            await search.page_log.append([put("b")])
        with pytest.raises(PermissionDenied):
            await search.page_log.erase(key("a"), await written_again(ingest, page.revision))
        with pytest.raises(PermissionDenied):
            await jobs.connection.api("STREAM.DELETE.PAGES")
        with pytest.raises(PermissionDenied):
            await ingest.connection.api("STREAM.PURGE.PAGES")
        with pytest.raises(PermissionDenied):
            read_api(await search.connection.request("brain.jobs.x", b"x"))
        assert await ingest.page_log.newest(key("b")) is None


async def written_again(bus: Bus, revision: int) -> int:
    """Makes the revision an older one, and returns it."""
    await bus.page_log.append([put("a", "again", expected=revision)])
    return revision


async def test_a_service_that_is_first_waits_for_the_one_that_makes_the_log(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    async def revision_seen_by_graph() -> int:
        async with cluster.bus("graph") as bus:
            return await bus.page_log.last_revision()

    first = asyncio.create_task(revision_seen_by_graph())
    async with asyncio.timeout(UP_SECONDS):
        while not any("may not make it" in getattr(r, "error", "") for r in caplog.records):  # noqa: ASYNC110 - a log
            await asyncio.sleep(0.05)
    async with cluster.bus("ingest"):
        assert await first == 0


async def test_wrong_passwords_certificates_and_authorities_are_told_apart_at_once(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with cluster.bus("ingest"):
        pass
    password = await error_of_start(cluster.url("ingest", password="wrong"), cluster.options)
    assert isinstance(password, InvalidArgument)
    assert "refuses this user or password" in password.message
    assert "wrong" not in password.message

    (tmp_path / "other").mkdir()
    other_authority, other_certificate, other_key = make_certificates(tmp_path / "other")
    stranger = await error_of_start(cluster.url("ingest"), replace(cluster.options, authority=other_authority))
    assert isinstance(stranger, InvalidArgument)
    assert "FLEETBRAIN_NATS_CA" in stranger.next_step

    shown = replace(cluster.options, certificate=other_certificate, key=other_key)
    assert isinstance(await error_of_start(cluster.url("ingest"), shown), InvalidArgument | Unavailable)

    broken = await error_of_start(cluster.url("ingest"), replace(cluster.options, authority=tmp_path / "none.pem"))
    assert broken.field == "FLEETBRAIN_NATS_CA"
