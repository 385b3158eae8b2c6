"""The chart on a control plane with fake nodes in three zones: what the scheduler and the controllers make of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest
import yaml

from tests.kubernetes.kube import (
    CHART,
    NAMESPACE,
    RELEASE,
    VALUES,
    FailedError,
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
    upgrade,
    wait_for,
)

SERVICES = ("ingest", "search", "graph", "jobs", "gateway", "nats")


@pytest.fixture(scope="module", autouse=True)
def release() -> Iterator[None]:
    make_volumes(12, local=False)
    apply(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
        }
    )
    install(VALUES)
    yield
    helm("uninstall", RELEASE)


def test_every_pod_is_admitted_to_a_restricted_namespace() -> None:
    for service, count in zip(SERVICES, (2, 2, 2, 1, 2, 3), strict=True):
        assert settled(service, count)(), service


@pytest.mark.parametrize("service", ["ingest", "gateway", "nats"])
def test_replicas_are_spread_over_zones(service: str) -> None:
    nodes = {node["metadata"]["name"]: node["metadata"]["labels"] for node in get("nodes")["items"]}
    zones = Counter(nodes[pod["spec"]["nodeName"]]["topology.kubernetes.io/zone"] for pod in pods(service))
    assert max(zones.values()) - min(zones.values()) <= 1
    assert len(zones) >= 2


def test_a_drain_moves_one_pod_at_a_time_and_comes_to_an_end() -> None:
    node = pods("nats")[0]["spec"]["nodeName"]
    kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=60s")
    try:
        assert not [pod for pod in get("pods")["items"] if pod["spec"].get("nodeName") == node]
        for service, count in zip(SERVICES, (2, 2, 2, 1, 2, 3), strict=True):
            wait_for(settled(service, count), f"{service} elsewhere")
    finally:
        kubectl("uncordon", node)


def test_a_second_eviction_at_once_is_refused_by_the_budget() -> None:
    nodes = [node["metadata"]["name"] for node in get("nodes")["items"]]
    first, second, _ = [pod["metadata"]["name"] for pod in pods("nats")]
    kubectl("cordon", *nodes)  # so that what is evicted cannot come back
    try:
        evict(first)
        wait_for(lambda: len([pod for pod in pods("nats") if ready(pod)]) == 2, "one NATS less")
        with pytest.raises(FailedError, match="disruption budget"):
            evict(second)
    finally:
        kubectl("uncordon", *nodes)
    wait_for(settled("nats", 3), "three NATS again")


def evict(pod: str) -> None:
    """Asks for a pod's eviction, as a drain does."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": NAMESPACE}}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction"
    kubectl("create", "--raw", path, "--filename", "-", stdin=json.dumps(body))


def test_the_autoscaler_takes_the_replicas_over_and_an_upgrade_leaves_them_alone() -> None:
    scaled = merged(
        VALUES, {"gateway": {"autoscaling": {"enabled": True, "minReplicas": 2, "maxReplicas": 5, "cpu": 50}}}
    )
    upgrade(scaled)
    for pod in pods("gateway"):
        # What a fake node reports as used: more than the request of 20m.
        kubectl("annotate", "pod", pod["metadata"]["name"], "kwok.x-k8s.io/usage-cpu=100m", "--overwrite")
    wait_for(lambda: len(pods("gateway")) > 2, "more gateways under load")
    upgrade(scaled)
    assert len(pods("gateway")) > 2
    upgrade(VALUES)


def test_the_keda_option_makes_objects_of_the_form_that_its_operator_reads() -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "scaledobjects.keda.sh"},
        "spec": {
            "group": "keda.sh",
            "scope": "Namespaced",
            "names": {"kind": "ScaledObject", "plural": "scaledobjects", "singular": "scaledobject"},
            "versions": [{"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCALED}}],
        },
    }
    apply(definition)
    kubectl("wait", "crd/scaledobjects.keda.sh", "--for=condition=Established", "--timeout=30s")
    rendered = helm("template", RELEASE, str(CHART), values=merged(VALUES, {"keda": {"enabled": True}}))
    scaled = [item for item in yaml.safe_load_all(rendered) if item and item["kind"] == "ScaledObject"]
    kubectl("create", "--filename", "-", stdin=json.dumps(scaled[0]))
    made = get("scaledobjects.keda.sh", f"{RELEASE}-fleetbrain-jobs")
    assert made["spec"]["triggers"][0]["metadata"]["consumer"] == "workers"
    assert made["spec"]["scaleTargetRef"] == {"kind": "Deployment", "name": f"{RELEASE}-fleetbrain-jobs"}
    broken = merged(scaled[0], {"metadata": {"name": "broken"}, "spec": {"maxReplicaCount": "four"}})
    with pytest.raises(FailedError, match="maxReplicaCount"):
        kubectl("create", "--filename", "-", stdin=json.dumps(broken))


SCALED = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["scaleTargetRef", "triggers"],
            "properties": {
                "scaleTargetRef": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {name: {"type": "string"} for name in ("apiVersion", "kind", "name")},
                },
                "minReplicaCount": {"type": "integer"},
                "maxReplicaCount": {"type": "integer"},
                "triggers": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["type", "metadata"],
                        "properties": {
                            "type": {"type": "string"},
                            "metadata": {"type": "object", "additionalProperties": {"type": "string"}},
                        },
                    },
                },
            },
        }
    },
}
"""The part of KEDA's own definition that the chart uses: fields, their types, and strings for every metadata value."""


@pytest.mark.parametrize("name", ["small", "fleet", "engines", "development"])
def test_the_api_server_takes_every_example(name: str) -> None:
    values = yaml.safe_load((CHART / "examples" / f"{name}.yaml").read_text(encoding="utf-8"))
    rendered = helm("template", "other", str(CHART), values=values)
    said = kubectl("apply", "--server-side", "--dry-run=server", "--filename", "-", stdin=rendered)
    assert "other-fleetbrain-gateway serverside-applied" in said


def test_values_of_another_form_are_refused_before_anything_is_made() -> None:
    with pytest.raises(FailedError, match="nats"):
        upgrade(merged(VALUES, {"nats": {"replicas": 2}}))
    assert settled("nats", 3)()
