"""Renders the chart as Helm would, without a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import helm_python
import yaml

CHART = Path(__file__).parents[2] / "deploy" / "chart"
EXAMPLES = sorted((CHART / "examples").glob("*.yaml"))
"""The five typical sets of values, which are also what the chart's README shows."""

Object = Mapping[str, Any]


def render(values: Mapping[str, Any]) -> list[Object]:
    """Every object that an install with these values makes, tests and hooks included, in the order of their files.

    Raises:
        helm_python.HelmError: The values break the schema, or a template refuses them.
    """
    return _render(json.dumps(values))


@cache
def _render(values: str) -> list[Object]:
    with helm_python.Chart.load(str(CHART)) as chart:
        files = chart.render(values=json.loads(values), name="fb", namespace="brain", is_install=True)
    objects: list[Object] = []
    for name, text in sorted(files.items()):
        if name.endswith(".yaml"):
            objects += [part for part in yaml.safe_load_all(text) if part]
    return objects


def example(path: Path) -> Mapping[str, Any]:
    """The values of one example."""
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(values, dict)
    return values


def pods(objects: list[Object]) -> Iterator[tuple[str, Object]]:
    """Name and pod specification of everything that makes pods."""
    for item in objects:
        spec = item.get("spec", {})
        if item["kind"] == "Pod":
            yield item["metadata"]["name"], spec
        elif item["kind"] in {"Deployment", "StatefulSet", "Job"}:
            yield item["metadata"]["name"], spec["template"]["spec"]


def of_kind(objects: list[Object], kind: str) -> dict[str, Object]:
    """The objects of one kind, by name."""
    return {item["metadata"]["name"]: item for item in objects if item["kind"] == kind}
