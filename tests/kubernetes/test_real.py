"""The whole brain as containers on one real node: agents write and ask while its operator does what operators do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from brain.v1.graph_service_pb2 import GetGraphStatsRequest
from brain.v1.graph_service_pb2_grpc import GraphServiceStub
from services.domain.context import OperationContext, Scope
from services.runtime.calls import operation
from services.runtime.channels import open_channel
from tests.kubernetes.kube import (
    NAMESPACE,
    RELEASE,
    VALUES,
    address,
    apply,
    get,
    helm,
    install,
    kubectl,
    make_volumes,
    merged,
    pods,
    ready,
    settled,
    token,
    upgrade,
    wait_for,
)
from tests.kubernetes.load import Brain, agents_at_work, lost

COUNTS = {"ingest": 2, "search": 2, "graph": 2, "jobs": 1, "gateway": 2, "nats": 3}
READER = OperationContext(principal="test", scopes=frozenset({Scope.READ}), read_sources=None)
WORK_SECONDS = 3.0
"""How long agents work before and after what is done to the brain."""


def everything_ready() -> bool:
    return all(settled(service, count)() for service, count in COUNTS.items())


@pytest.fixture(scope="module")
def installed() -> Iterator[float]:
    """Seconds from install to the first answered question."""
    make_volumes(16, local=True)
    apply(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
        }
    )
    began = time.monotonic()
    install(VALUES)
    asyncio.run(seed())
    yield time.monotonic() - began
    helm("uninstall", RELEASE)


async def seed() -> None:
    """The first page, and the first question."""
    brain = Brain(address(), token())
    try:
        page = "---\ntype: person\n---\n# Dana Weiss\n\nDana Weiss founded [[companies/loomwick]] in 2020.\n"
        await brain.call("put_page", slug="people/dana-weiss", content=page)
        await brain.call(
            "put_page", slug="companies/loomwick", content="---\ntype: company\n---\n# Loomwick\n\nLooms.\n"
        )
        reply = await brain.call("query", query="who founded Loomwick?")
        assert reply["hits"][0]["slug"] == "people/dana-weiss"
    finally:
        await brain.close()


@pytest.fixture(autouse=True)
def calm(installed: float) -> Iterator[None]:
    """Each test finds everything ready, and leaves it so."""
    wait_for(everything_ready, "a brain that is ready")
    yield
    wait_for(everything_ready, "a brain that is ready again")


def test_a_question_is_answered_within_a_minute_of_the_install(installed: float) -> None:
    print(f"\ninstall to first answered question: {installed:.1f} s")


async def test_an_mcp_client_writes_and_asks_through_the_service() -> None:
    async with (
        create_mcp_http_client(headers={"authorization": f"Bearer {token()}"}) as http,
        Client(streamable_http_client(f"{address()}/mcp", http_client=http)) as client,
    ):
        page = {"slug": "notes/through-mcp", "content": "# 青禾\n\n青禾机器人的笔记。\n"}
        put = await client.call_tool("put_page", page)
        assert not put.is_error
        found = await client.call_tool("query", {"query": "青禾机器人"})
        assert "notes/through-mcp" in str(found.content)


def test_helm_test_passes() -> None:
    helm("test", RELEASE)


def test_an_upgrade_and_a_rollback_under_load_fail_no_call() -> None:
    with agents_at_work(address(), token()) as tally:
        time.sleep(WORK_SECONDS)
        upgrade(merged(VALUES, {"podAnnotations": {"test/round": "2"}}))
        time.sleep(WORK_SECONDS)
        helm("rollback", RELEASE, "1", "--wait", "--timeout=240s", seconds=240)
        time.sleep(WORK_SECONDS)
    print(f"\nupgrade and rollback: {tally}")
    assert tally.failures == []
    assert tally.writes > 0
    assert tally.questions > 0
    assert asyncio.run(lost(address(), token(), tally)) == []


@pytest.mark.parametrize("service", ["ingest", "search", "graph", "jobs", "gateway", "nats"])
def test_a_killed_pod_loses_nothing_that_was_acknowledged(service: str) -> None:
    victim = pods(service)[0]["metadata"]["name"]
    with agents_at_work(address(), token()) as tally:
        time.sleep(WORK_SECONDS)
        kubectl("delete", "pod", victim, "--grace-period=0", "--force")
        took = wait_for(everything_ready, f"{service} again")
        time.sleep(WORK_SECONDS)
    print(f"\n{service} killed: ready again after {took:.1f} s; {tally}")
    assert tally.writes > 0
    assert asyncio.run(lost(address(), token(), tally)) == []


def test_a_process_that_runs_out_of_memory_is_started_again_and_nothing_is_lost() -> None:
    victim = pods("gateway")[0]["metadata"]["name"]
    hog = "import os\nif os.fork() == 0:\n    b = []\n    while True: b.append(bytearray(10_000_000))\nos.wait()"
    with agents_at_work(address(), token()) as tally:
        # The kernel ends whoever is largest in the pod's group; in the end the pod's own process goes on or comes back.
        kubectl("exec", victim, "--", "sh", "-c", f"python -c '{hog}' || true")
        time.sleep(WORK_SECONDS)
    wait_for(everything_ready, "the gateway again")
    assert tally.writes > 0
    assert asyncio.run(lost(address(), token(), tally)) == []


@pytest.mark.parametrize("service", ["ingest", "gateway", "graph", "search"])
def test_scaling_up_and_down_loses_nothing(service: str) -> None:
    kind = "statefulset" if service in {"graph", "search"} else "deployment"
    with agents_at_work(address(), token()) as tally:
        for count in (1, 3, COUNTS[service]):
            kubectl("scale", kind, f"{RELEASE}-fleetbrain-{service}", f"--replicas={count}")
            wait_for(settled(service, count), f"{count} of {service}")
            time.sleep(WORK_SECONDS)
    print(f"\n{service} scaled 2 -> 1 -> 3 -> 2: {tally}")
    assert asyncio.run(lost(address(), token(), tally)) == []


def test_a_fresh_replica_is_ready_only_with_all_that_the_others_hold() -> None:
    asyncio.run(fill(40))
    kubectl("scale", "statefulset", f"{RELEASE}-fleetbrain-graph", "--replicas=3")
    wait_for(settled("graph", 3), "a third graph")
    held = [asyncio.run(nodes_of(pod["status"]["podIP"])) for pod in pods("graph")]
    print(f"\nnodes in each graph replica: {held}")
    assert len(set(held)) == 1
    assert held[0] > 40
    kubectl("scale", "statefulset", f"{RELEASE}-fleetbrain-graph", "--replicas=2")
    wait_for(settled("graph", 2), "two graphs")


async def nodes_of(pod_address: str) -> int:
    """How many pages one replica holds in its own store, asked directly."""
    async with open_channel(f"{pod_address}:8613", service="brain.v1.GraphService", token=token()) as channel:
        with operation(READER, timeout_seconds=10):
            stats = await GraphServiceStub(channel).GetStats(GetGraphStatsRequest())
    return int(stats.pages)


async def fill(count: int) -> None:
    """Writes pages and waits until text and links show them."""
    brain = Brain(address(), token())
    try:
        for number in range(count):
            last = number == count - 1
            slug = f"fill/{time.time_ns()}-{number}"
            await brain.call("put_page", slug=slug, content=f"# {number}\n", wait="text" if last else "none")
    finally:
        await brain.close()


def test_all_pods_of_the_node_gone_at_once_lose_nothing() -> None:
    with agents_at_work(address(), token()) as tally:
        time.sleep(WORK_SECONDS)
        kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
        took = wait_for(everything_ready, "everything again")
        time.sleep(WORK_SECONDS)
    print(f"\nnode restarted: ready again after {took:.1f} s; {tally}")
    assert asyncio.run(lost(address(), token(), tally)) == []
    assert all(ready(pod) for pod in get("pods")["items"] if "deletionTimestamp" not in pod["metadata"])
