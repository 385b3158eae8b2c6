"""The five services as five processes, each as its own user over TLS, on three servers that lose one."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.deployments import clean_environ, free_ports, start
from tests.integration.nats_cluster.cluster import Cluster, three_servers

SERVICES = ("ingest", "search", "graph", "jobs", "gateway")
CALL_SECONDS = 60.0


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with three_servers(tmp_path) as servers:
        yield servers


def start_all(cluster: Cluster, folder: Path, ports: list[int]) -> list[subprocess.Popen[bytes]]:
    addresses = {
        f"FLEETBRAIN_{s.upper()}_ADDRESS": f"127.0.0.1:{p}" for s, p in zip(SERVICES[:-1], ports, strict=False)
    }
    processes = []
    for service, port in zip(SERVICES, ports, strict=True):
        own = {"FLEETBRAIN_DATA": str(folder / service)}
        own["FLEETBRAIN_HTTP" if service == "gateway" else "FLEETBRAIN_LISTEN"] = f"127.0.0.1:{port}"
        if service != "gateway":
            own |= {"FLEETBRAIN_NATS_URL": cluster.url(service), "FLEETBRAIN_NATS_CA": str(cluster.options.authority)}
        processes.append(start(service, folder, clean_environ(**addresses, **own)))
    return processes


async def until_ready(http: httpx.AsyncClient, processes: list[subprocess.Popen[bytes]], folder: Path) -> None:
    for _ in range(int(CALL_SECONDS / 0.25)):
        for process, service in zip(processes, SERVICES, strict=True):
            assert process.poll() is None, (folder / f"{service}.log").read_text()[-2000:]
        try:
            if (await http.get("/readyz")).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        await asyncio.sleep(0.25)
    raise AssertionError([(folder / f"{service}.log").read_text()[-1000:] for service in SERVICES])


async def test_each_service_does_all_its_work_with_the_permissions_it_has(cluster: Cluster, tmp_path: Path) -> None:
    ports = free_ports(len(SERVICES))
    processes = start_all(cluster, tmp_path, ports)
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{ports[-1]}", timeout=CALL_SECONDS) as http:
            await until_ready(http, processes, tmp_path)

            async def call(operation: str, **arguments: object) -> dict[str, object]:
                reply = await http.post(f"/api/{operation}", json=arguments)
                assert reply.status_code == 200, reply.text
                result: dict[str, object] = reply.json()
                return result

            await call("put_page", slug="people/ada", content="# Ada\n\nWorks at [[companies/acme]].")
            async with cluster.bus("ingest") as bus:
                await (await cluster.leader(bus)).kill()
            await call("put_page", slug="公司/甲", content="# 甲公司\n\n投资了 [[companies/acme]]。")
            await call("submit_job", name="rebuild", data={"projection": "graph"})
            status = await call("get_status", wait="links", timeout_seconds=30)
            assert status["reached"]
            found = await call("search", query="甲公司")
            assert found["hits"]
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=30)
    logs = "".join((tmp_path / f"{service}.log").read_text() for service in SERVICES)
    # Asked for and refused: only to make the streams of the log, by those that were there before ingest.
    refused = set(re.findall(r'permissions violation for \w+ to \\"([^"\\]+)', logs))
    assert refused <= {f"$js.api.stream.create.{name}" for name in ("pages", "dead_letters", "kv_leases")}
