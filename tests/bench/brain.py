"""A brain of its own for one figure: started and stopped through the command line, as a user does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

COMMAND_SECONDS_MAX = 1_800
"""The longest a single command may take: building the vectors of 17,000 pages is the longest of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brain:
    """A running brain and how to reach it."""

    data: Path
    environ: dict[str, str]

    def run(self, *arguments: str) -> str:
        """What a `fleetbrain` command prints; raises CalledProcessError when it fails."""
        command = [sys.executable, "-m", "gateway.cli.main", *arguments]
        done = subprocess.run(
            command, env=self.environ, check=True, stdout=subprocess.PIPE, text=True, timeout=COMMAND_SECONDS_MAX
        )
        return done.stdout

    @property
    def http(self) -> str:
        """The base address, such as `http://127.0.0.1:41234`."""
        return self.address("http")

    def address(self, name: str) -> str:
        """An address that brain.json names: `http`, `http_socket` or `grpc`."""
        addresses = self.described()["addresses"]
        assert isinstance(addresses, dict)
        return str(addresses[name])

    def anonymous_bytes(self) -> int:
        """Anonymous memory of every process of the brain, from smaps_rollup."""
        return sum(anonymous_of(pid) for pid in descendants(int(str(self.described()["pid"]))))

    def described(self) -> dict[str, object]:
        """What brain.json says."""
        described: dict[str, object] = json.loads((self.data / "brain.json").read_text())
        return described


@contextmanager
def running_brain(*, embedder: str) -> Iterator[Brain]:
    """A fresh brain in a temporary folder, taken down at the end."""
    with tempfile.TemporaryDirectory(prefix="fb-", dir="/tmp") as folder:
        clean = {key: value for key, value in os.environ.items() if not key.startswith("FLEETBRAIN_")}
        environ = clean | {"FLEETBRAIN_DATA": folder, "FLEETBRAIN_EMBEDDER_URL": embedder}
        brain = Brain(data=Path(folder), environ=environ)
        brain.run("up", "--http", "127.0.0.1:0")
        try:
            yield brain
        finally:
            brain.run("down")


def descendants(pid: int) -> list[int]:
    """The process and everything it started that still runs."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            found += [int(child) for child in task.read_text().split()]
    return found


def anonymous_of(pid: int) -> int:
    """Anonymous bytes of one process; 0 when it just ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Anonymous:"))
