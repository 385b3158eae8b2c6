"""The chart renders, fits the schemas of the newest Kubernetes versions, and keeps the rules an operator asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import pytest

from services.runtime.settings import load_settings
from tests.chart.rendering import CHART, EXAMPLES, example, of_kind, pods, render

KUBERNETES = ("1.35", "1.36", "1.37")
"""The three newest versions."""
FOREIGN = {"keda.sh/v1alpha1"}
"""Kinds that Kubernetes itself does not know; the real cluster's test holds them against their own definitions."""
SERVICES = ("ingest", "search", "graph", "jobs", "gateway")

every_example = pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)


def small() -> dict[str, Any]:
    return dict(example(CHART / "examples" / "small.yaml"))


def test_there_are_five_examples() -> None:
    assert [path.stem for path in EXAMPLES] == ["development", "engines", "external", "fleet", "small"]


@every_example
def test_helm_lint_finds_nothing(path: Path) -> None:
    report = helm_python.lint(CHART, dict(example(path)), strict=True, namespace="brain", kube_version="v1.37.0")
    assert report["errors"] == []
    assert [m for m in report["messages"] if "icon is recommended" not in m["error"]] == []


@every_example
@pytest.mark.parametrize("version", KUBERNETES)
def test_every_object_fits_the_schema(path: Path, version: str) -> None:
    for item in render(example(path)):
        if item["apiVersion"] not in FOREIGN:
            kubernetes_validate.validate(item, version, strict=True)


@every_example
def test_no_two_objects_share_a_name(path: Path) -> None:
    names = [(item["kind"], item["metadata"]["name"]) for item in render(example(path))]
    assert len(names) == len(set(names))


@every_example
def test_every_pod_is_restricted(path: Path) -> None:
    for name, spec in pods(render(example(path))):
        security = spec["securityContext"]
        assert security["runAsNonRoot"] is True, name
        assert security["runAsUser"] > 0, name
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["enableServiceLinks"] is False, name
        for container in spec["containers"]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False, name
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}, name


@every_example
def test_our_own_containers_write_to_volumes_only(path: Path) -> None:
    foreign = {"opensearch", "neo4j"}  # images of others, which write where they like
    for name, spec in pods(render(example(path))):
        for container in spec["containers"]:
            if container["name"] not in foreign:
                assert container["securityContext"]["readOnlyRootFilesystem"] is True, name


@every_example
def test_no_image_is_latest_or_without_a_tag(path: Path) -> None:
    for name, spec in pods(render(example(path))):
        for container in spec["containers"]:
            tag = container["image"].rsplit("/", 1)[-1].partition(":")[2]
            assert tag, name
            assert tag != "latest", name


@every_example
def test_every_container_says_what_it_needs_and_has_a_memory_limit(path: Path) -> None:
    for name, spec in pods(render(example(path))):
        for container in spec["containers"]:
            assert set(container["resources"]["requests"]) == {"cpu", "memory"}, name
            assert "memory" in container["resources"]["limits"], name


@every_example
def test_every_container_that_serves_has_its_three_probes(path: Path) -> None:
    for name, spec in pods(render(example(path))):
        for container in spec["containers"]:
            if spec.get("restartPolicy") != "Never":
                for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                    assert probe in container, (name, probe)


def test_a_projection_that_catches_up_is_alive_but_not_ready() -> None:
    for name, spec in pods(render(small())):
        (container,) = spec["containers"]
        if container["name"] in {"search", "graph"}:
            assert container["livenessProbe"]["grpc"]["service"] == "live", name
            assert "service" not in container["readinessProbe"]["grpc"], name


@every_example
def test_nobody_sets_replicas_beside_an_autoscaler(path: Path) -> None:
    objects = render(example(path))
    scalers = [*of_kind(objects, "HorizontalPodAutoscaler").values(), *of_kind(objects, "ScaledObject").values()]
    workloads = of_kind(objects, "Deployment") | of_kind(objects, "StatefulSet")
    scaled = [scaler["spec"]["scaleTargetRef"]["name"] for scaler in scalers]
    assert len(scaled) == len(set(scaled)), "two autoscalers pull at one workload"
    for target in scaled:
        assert "replicas" not in workloads[target]["spec"]


@every_example
def test_every_workload_has_a_budget_that_a_drain_can_keep(path: Path) -> None:
    objects = render(example(path))
    budgets = of_kind(objects, "PodDisruptionBudget")
    for service in (*SERVICES, *(["nats"] if example(path).get("nats", {}).get("bundled", True) else [])):
        assert budgets[f"fb-fleetbrain-{service}"]["spec"]["maxUnavailable"] == 1


@every_example
def test_every_pod_goes_on_answering_while_it_is_taken_out_of_its_service(path: Path) -> None:
    for _, spec in pods(render(example(path))):
        (container,) = spec["containers"]
        if container["name"] in SERVICES:
            assert container["lifecycle"]["preStop"]["sleep"]["seconds"] >= 3
            assert spec["terminationGracePeriodSeconds"] > container["lifecycle"]["preStop"]["sleep"]["seconds"] + 10


@every_example
def test_secrets_are_references(path: Path) -> None:
    for name, spec in pods(render(example(path))):
        for container in spec["containers"]:
            for variable in container.get("env", []):
                if variable["name"].endswith(("PASSWORD", "TOKEN", "EMBEDDER_KEY")):
                    assert "secretKeyRef" in variable["valueFrom"], (name, variable["name"])


@every_example
def test_only_graph_may_reach_neo4j_and_nothing_comes_in_by_default(path: Path) -> None:
    policies = of_kind(render(example(path)), "NetworkPolicy")
    default = policies["fb-fleetbrain-default"]["spec"]
    assert default["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in default
    if "fb-fleetbrain-neo4j" in policies:
        (rule,) = policies["fb-fleetbrain-neo4j"]["spec"]["ingress"]
        (peer,) = rule["from"]
        assert peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "graph"


@every_example
def test_each_policy_speaks_of_pods_and_ports_that_there_are(path: Path) -> None:
    objects = render(example(path))
    components: dict[str, set[str]] = {}
    for item in objects:
        template = item["spec"]["template"] if item["kind"] in {"Deployment", "StatefulSet"} else item
        if item["kind"] in {"Deployment", "StatefulSet", "Pod"}:
            component = template["metadata"]["labels"]["app.kubernetes.io/component"]
            ports = [port for c in template["spec"]["containers"] for port in c.get("ports", [])]
            components[component] = {str(p["name"]) for p in ports} | {str(p["containerPort"]) for p in ports}
    for name, policy in of_kind(objects, "NetworkPolicy").items():
        own = policy["spec"]["podSelector"]["matchLabels"].get("app.kubernetes.io/component")
        assert own is None or own in components, name
        for rule in policy["spec"].get("ingress", []):
            for port in rule["ports"]:
                assert str(port["port"]) in components[str(own)], (name, port)


def test_the_page_log_outlives_the_release() -> None:
    nats = of_kind(render(small()), "StatefulSet")["fb-fleetbrain-nats"]
    assert nats["spec"]["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}


def test_a_changed_nats_configuration_rolls_its_pods() -> None:
    def checksum(store: str) -> str:
        values = small()
        values["nats"] = {**values["nats"], "maxStore": store}
        nats = of_kind(render(values), "StatefulSet")["fb-fleetbrain-nats"]
        return str(nats["spec"]["template"]["metadata"]["annotations"]["checksum/config"])

    assert checksum("3Gi") != checksum("4Gi")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"serach": {}}, "serach"),
        ({"image": {"repository": "fleetbrain", "tag": "latest"}}, "tag"),
        ({"logLevel": "loud"}, "logLevel"),
        ({"nats": {"bundled": True, "replicas": 2}}, "replicas"),
        ({"engines": {"graph": {"url": "http://neo4j:7474"}}}, "graph"),
        ({"auth": {"create": False}, "nats": {"existingSecret": "passwords"}}, "auth.existingSecret"),
        ({"nats": {"bundled": False}}, "nats.url"),
        ({"gateway": {"ingress": {"enabled": True}}}, "gateway.ingress.host"),
    ],
)
def test_values_that_cannot_work_are_refused_by_name(change: dict[str, Any], named: str) -> None:
    with pytest.raises(helm_python.HelmError, match=named):
        render({**small(), **change})


def test_a_tag_that_looks_like_a_number_is_a_tag() -> None:
    _, pod = next(pods(render({**small(), "image": {"repository": "fleetbrain", "tag": 2}})))
    assert pod["containers"][0]["image"] == "fleetbrain:2"


@every_example
def test_every_setting_of_a_container_is_one_that_its_service_takes(path: Path) -> None:
    for name, spec in pods(render(example(path))):
        for container in spec["containers"]:
            if container["name"] in SERVICES:
                given = {e["name"]: str(e.get("value", "from-a-secret")) for e in container["env"]}
                settings = load_settings({key: value for key, value in given.items() if not key.startswith("NATS_")})
                assert settings.token, name
