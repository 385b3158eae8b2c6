"""The figures of one generated corpus: import rate, query latency, put latency, memory."""

from __future__ import annotations

import json
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.bench.brain import Brain, running_brain
from tests.bench.calls import McpClient
from tests.bench.corpus import GeneratedPage, write_vault
from tests.bench.tables import percentile, print_table

QUERIES = 300
WARM_UP_QUERIES = 30
WRITERS = 20
OFFERED_PUTS_PER_SECOND = 50
OFFERED_SECONDS = 20


def print_import(pages: int, seed: int) -> None:
    """Prints how fast a vault becomes searchable and linked without vectors."""
    with tempfile.TemporaryDirectory() as folder, running_brain(embedder="none") as brain:
        write_vault(Path(folder), pages, seed=seed)
        started = time.perf_counter()
        brain.run("import", folder, "--json")
        accepted = time.perf_counter() - started
        for what in ("text", "links"):
            brain.run("status", "--wait", what, "--timeout", "1200")
        seconds = time.perf_counter() - started
        stats = json.loads(brain.run("stats", "--json"))
        memory = brain.anonymous_bytes()
    rows = [
        (
            f"{pages:,}",
            f"{pages / accepted:.0f}",
            f"{pages / seconds:.0f}",
            f"{seconds:.1f}",
            f"{stats['pages']:,}",
            f"{memory / 1e6:.0f}",
        )
    ]
    header = ("pages", "accepted/s", "searchable and linked/s", "seconds", "pages held", "anonymous MB")
    print_table("Import, FLEETBRAIN_EMBEDDER_URL=none (goal: 300 pages/s)", header, rows)


def print_query_put_memory(pages: int, seed: int, embedder: str) -> None:
    """Prints query and put latency and memory with vectors complete."""
    with tempfile.TemporaryDirectory() as folder, running_brain(embedder=embedder) as brain:
        generated = write_vault(Path(folder), pages, seed=seed)
        started = time.perf_counter()
        brain.run("import", folder, "--json")
        brain.run("status", "--wait", "all", "--timeout", "1700")
        complete = time.perf_counter() - started
        memory = brain.anonymous_bytes()
        with McpClient(brain.http) as client:
            latencies = query_latencies(client, generated)
        answered = put_latencies(brain)
        after = brain.anonymous_bytes()
        throughput = closed_loop_puts_per_second(brain)
    name = f"{pages:,}"
    print_table(
        f"Query over MCP HTTP, one client, warm, vectors complete, {embedder} (goals: 12/25 ms, 18/40 ms)",
        ("pages", "queries", "p50 ms", "p95 ms", "max ms", "vectors complete after s"),
        [(name, str(len(latencies)), *milliseconds(latencies), f"{complete:.0f}")],
    )
    print_table(
        f"put_page over MCP, {WRITERS} writers offering {OFFERED_PUTS_PER_SECOND}/s (goal: answered p95 400 ms)",
        ("pages", "puts", "p50 ms", "p95 ms", "max ms", "closed loop puts/s"),
        [(name, str(len(answered)), *milliseconds(answered), f"{throughput:.0f}")],
    )
    print_table(
        "Anonymous memory of every process (goal at 17,000: 600 MB)",
        ("pages", "after import MB", "after queries and puts MB"),
        [(name, f"{memory / 1e6:.0f}", f"{after / 1e6:.0f}")],
    )


def query_latencies(client: McpClient, pages: Sequence[GeneratedPage]) -> list[float]:
    """Seconds of each query; every query is another one."""
    step = max(1, len(pages) // (QUERIES + WARM_UP_QUERIES))
    chosen = pages[::step][: QUERIES + WARM_UP_QUERIES]
    seconds = []
    for ordinal, page in enumerate(chosen):
        line = page.text.splitlines()[10 if ordinal % 2 else 12] or page.title
        question = page.title if ordinal % 5 == 0 else line[:80] if page.chinese else " ".join(line.split()[:9])
        started = time.perf_counter()
        client.call("query", query=question, limit=10)
        if ordinal >= WARM_UP_QUERIES:
            seconds.append(time.perf_counter() - started)
    return seconds


def put_latencies(brain: Brain) -> list[float]:
    """Seconds of each put_page when writers together offer a fixed rate, whatever the answers take."""
    began = time.perf_counter() + 0.5
    seconds: list[float] = []

    def write(writer: int) -> None:
        with McpClient(brain.http) as client:
            for ordinal in range(OFFERED_PUTS_PER_SECOND * OFFERED_SECONDS // WRITERS):
                due = began + (ordinal * WRITERS + writer) / OFFERED_PUTS_PER_SECOND
                time.sleep(max(0.0, due - time.perf_counter()))
                started = time.perf_counter()
                client.call("put_page", slug=f"bench/{writer}-{ordinal}", content=put_text(writer, ordinal))
                seconds.append(time.perf_counter() - started)

    run_writers(write)
    return seconds


def closed_loop_puts_per_second(brain: Brain) -> float:
    """Puts answered a second when every writer sends the next as soon as the last is answered."""
    each = 25
    started = time.perf_counter()

    def write(writer: int) -> None:
        with McpClient(brain.http) as client:
            for ordinal in range(each):
                client.call("put_page", slug=f"loop/{writer}-{ordinal}", content=put_text(writer, ordinal))

    run_writers(write)
    return WRITERS * each / (time.perf_counter() - started)


def run_writers(write: Callable[[int], None]) -> None:
    """Runs one thread per writer to its end."""
    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def put_text(writer: int, ordinal: int) -> str:
    """A small page with a link, never the same twice."""
    return f"# Writer {writer} note {ordinal}\n\nThe {uuid.uuid4()} turbine, see [[bench/{writer}-{ordinal - 1}]].\n"


def milliseconds(seconds: Sequence[float]) -> tuple[str, str, str]:
    """p50, p95 and the maximum."""
    p50, p95 = (percentile(seconds, share) * 1000 for share in (0.5, 0.95))
    return f"{p50:.1f}", f"{p95:.1f}", f"{max(seconds) * 1000:.1f}"
