"""compose.yaml and the settings agree: each service would start with what its file says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.__main__ import SERVICES
from services.runtime.settings import load_settings

FILE = Path(__file__).parents[3] / "deploy" / "compose.yaml"
GIVEN = {"FLEETBRAIN_TOKEN": "t" * 40, "NEO4J_PASSWORD": "p" * 12}
"""What deploy/.env must say."""


def filled(value: str) -> str:
    """A value with its ${NAME}, ${NAME:-default} and ${NAME:?reason} filled in, as compose does."""

    def fill(match: re.Match[str]) -> str:
        name, default = match[1], match[3] if match[2] == "-" else None
        held = GIVEN.get(name, default)
        assert held is not None, f"{name} is neither in deploy/.env nor has it a default"
        return held

    return re.sub(r"\$\{(\w+)(?::([-?])([^}]*))?\}", fill, value)


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


@pytest.mark.parametrize("service", SERVICES)
def test_every_setting_of_a_service_is_one_that_it_takes(compose: dict[str, Any], service: str) -> None:
    described = compose["services"][service]
    assert described["command"] == ["--target", service]
    load_settings({name: filled(str(value)) for name, value in described["environment"].items()})


def test_only_the_gateway_can_be_reached_and_only_from_this_machine(compose: dict[str, Any]) -> None:
    ports = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert ports == {"gateway": ["127.0.0.1:8620:8620"]}


def test_every_volume_that_is_used_is_declared(compose: dict[str, Any]) -> None:
    used = {mount.split(":")[0] for service in compose["services"].values() for mount in service.get("volumes", [])}
    assert used == set(compose["volumes"])


def test_no_image_is_latest(compose: dict[str, Any]) -> None:
    assert all(service["image"].rpartition(":")[2] not in ("", "latest") for service in compose["services"].values())


def test_the_example_of_the_environment_names_what_must_be_given() -> None:
    example = (FILE.parent / "compose.env.example").read_text(encoding="utf-8")
    assert all(re.search(rf"^{name}=", example, re.MULTILINE) for name in GIVEN)
