"""Speaks to the test's cluster: kubectl, Helm, and what a test waits for. Runs inside the cluster's namespaces."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

NAMESPACE = "brain"
RELEASE = "fb"
CHART = Path(__file__).parents[2] / "deploy" / "chart"
WAIT_SECONDS = 120.0
LOOK_SECONDS = 0.2

REQUESTS = {"requests": {"cpu": "20m", "memory": "64Mi"}}
"""The machine has two cores; what a pod is promised is not what this test is about."""
VALUES: Mapping[str, Any] = {
    "auth": {"create": True},
    "image": {"repository": "localhost/fleetbrain", "tag": "new", "pullPolicy": "Never"},
    "embedder": {"url": "local:use"},
    "nats": {
        "storage": {"className": "local", "size": "5Gi"},
        "maxStore": "2Gi",
        "resources": {**REQUESTS, "limits": {"memory": "512Mi"}},
    },
    "ingest": {"resources": {**REQUESTS, "limits": {"memory": "768Mi"}}},
    "search": {
        "storage": {"className": "local", "size": "5Gi"},
        "resources": {**REQUESTS, "limits": {"memory": "2Gi"}},
    },
    "graph": {
        "storage": {"className": "local", "size": "5Gi"},
        "resources": {**REQUESTS, "limits": {"memory": "1Gi"}},
    },
    "jobs": {"resources": {**REQUESTS, "limits": {"memory": "512Mi"}}},
    "gateway": {"resources": {**REQUESTS, "limits": {"memory": "768Mi"}}},
}


class FailedError(Exception):
    """A command that ended badly, with what it said."""


def run(*command: str, stdin: str = "", seconds: float = WAIT_SECONDS) -> str:
    """The command's standard output; raises with its standard error."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=seconds, check=False)
    if done.returncode:
        raise FailedError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def kubectl(*arguments: str, stdin: str = "", namespace: str = NAMESPACE) -> str:
    """Kubectl's output."""
    return run(os.environ["K8S"], "kubectl", "--namespace", namespace, *arguments, stdin=stdin)


def get(*arguments: str) -> Any:
    """One object, or a list of objects, as kubectl prints them."""
    return json.loads(kubectl("get", *arguments, "--output", "json"))


def apply(*objects: Mapping[str, Any]) -> None:
    """Creates or changes objects."""
    listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    kubectl("apply", "--server-side", "--force-conflicts", "--filename", "-", stdin=json.dumps(listed))


def helm(verb: str, *arguments: str, values: Mapping[str, Any] | None = None, seconds: float = WAIT_SECONDS) -> str:
    """Helm's output; install and upgrade wait until everything is ready."""
    given = ["--values", "-"] if values is not None else []
    text = json.dumps(values) if values is not None else ""
    return run(
        os.environ["HELM"], verb, "--namespace", NAMESPACE, *arguments, *given, stdin=text, seconds=seconds + 10
    )  # fmt: skip


def install(values: Mapping[str, Any], *, seconds: float = WAIT_SECONDS) -> None:
    """Installs the chart and waits until every pod is ready."""
    helm("install", RELEASE, str(CHART), "--create-namespace", "--wait", f"--timeout={seconds:g}s", values=values)


def upgrade(values: Mapping[str, Any], *, seconds: float = 2 * WAIT_SECONDS) -> None:
    """Upgrades the release and waits until every pod is ready."""
    helm("upgrade", RELEASE, str(CHART), "--wait", f"--timeout={seconds:g}s", values=values, seconds=seconds)


def merged(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Values with changes laid over them, object by object, as Helm does."""
    result = dict(values)
    for key, value in changes.items():
        held = result.get(key)
        result[key] = merged(held, value) if isinstance(held, Mapping) and isinstance(value, Mapping) else value
    return result


def pods(component: str) -> list[Any]:
    """The pods of a service that are not on their way out."""
    found = get("pods", "--selector", f"app.kubernetes.io/component={component}")["items"]
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def ready(pod: Any) -> bool:
    """Whether a pod gets calls."""
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))


def settled(component: str, count: int) -> Callable[[], bool]:
    """Whether exactly so many pods of a service exist and all are ready."""

    def look() -> bool:
        found = pods(component)
        return len(found) == count and all(ready(pod) for pod in found)

    return look


def wait_for(condition: Callable[[], bool], what: str, *, seconds: float = WAIT_SECONDS) -> float:
    """Returns how many seconds it took until the condition held; fails after a bounded time."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"gave up waiting for {what}"
        time.sleep(LOOK_SECONDS)
    return time.monotonic() - began


def make_volumes(count: int, *, local: bool) -> None:
    """Persistent volumes of class `local`: folders of the one real node, or names only for fake nodes."""
    folder = Path(os.environ["FLEETBRAIN_TEST_VOLUMES"])
    binding = "WaitForFirstConsumer" if local else "Immediate"
    objects: list[Mapping[str, Any]] = [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": binding,
        }
    ]
    for number in range(count):
        path = folder / str(number)
        path.mkdir(parents=True, exist_ok=True)
        spec: dict[str, Any] = {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "persistentVolumeReclaimPolicy": "Retain",
        }
        if local:
            term = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["real-1"]}
            spec |= {
                "local": {"path": str(path)},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
            }
        else:
            spec["hostPath"] = {"path": str(path)}
        objects.append(
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"volume-{number}"}, "spec": spec}
        )
    apply(*objects)


def token() -> str:
    """The brain's bearer token."""
    return base64.b64decode(get("secret", f"{RELEASE}-fleetbrain-auth")["data"]["token"]).decode()


def address() -> str:
    """Where the gateway's Service answers, by name."""
    return f"http://{RELEASE}-fleetbrain-gateway.{NAMESPACE}.svc.cluster.local"
