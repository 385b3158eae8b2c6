"""How long writers of the page log wait when a server of three goes, and whether anything acknowledged is lost."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.bench.tables import print_table
from tests.integration.nats_cluster.cluster import Node, three_servers
from tests.integration.nats_cluster.writers import WRITERS, writing

FAILURES: tuple[tuple[str, str, Callable[[Node], None]], ...] = (
    ("leader killed (-9)", "10", lambda node: os.kill(node.pid, signal.SIGKILL)),
    ("leader stopped in order (lame duck)", "2", lambda node: os.kill(node.pid, signal.SIGUSR2)),
    ("leader stands still (SIGSTOP)", "", lambda node: os.kill(node.pid, signal.SIGSTOP)),
)


def print_nats_failover() -> None:
    """Prints the longest append of each failure, each on servers of its own."""
    rows = [asyncio.run(fail(name, goal, how)) for name, goal, how in FAILURES]
    print_table(
        f"NATS of three, R=3, TLS, {WRITERS} writers: the longest that an append took",
        ("failure", "longest s", "goal s", "acknowledged", "lost"),
        rows,
    )


async def fail(name: str, goal: str, how: Callable[[Node], None]) -> tuple[str, ...]:
    """One failure of the leader under writers."""
    with tempfile.TemporaryDirectory() as folder:
        async with three_servers(Path(folder)) as cluster, cluster.bus("ingest") as bus, writing(bus) as writers:
            writers.longest_seconds = 0.0
            how(await cluster.leader(bus))
            await writers.go_on(more=200)
            lost = await writers.lost()
            return name, f"{writers.longest_seconds:.1f}", goal, str(len(writers.acknowledged)), str(len(lost))
