"""Runs one real OpenSearch node as a child process, from jars and the launcher beside this file.

Knows nothing of pages; tests connect with the client.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.engines.child import free_port, start, stop
from tests.engines.jars import fetch_jars

HERE = Path(__file__).parent
LAUNCHER = HERE / "OpenSearchNode.java"
START_SECONDS_MAX = 120.0
"""It takes 5 to 10 s alone on two cores and several times that beside other work."""
STOP_SECONDS_MAX = 20.0
COMPILE_SECONDS_MAX = 120.0
LOG_TAIL_CHARACTERS = 4_000

# First-tier compiler only: half the CPU to start, slower at its peak.
FLAGS = ("-Xms384m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class OpenSearchServer:
    """A node on a loopback port of its own, with its data in a folder; it can be killed and started again."""

    def __init__(self, home: Path, jars: Path, *settings: str) -> None:
        """Describes it; `settings` are OpenSearch's own, such as `node.name=a`."""
        self.port = free_port()
        self._home = home
        self._jars = jars
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """As `FLEETBRAIN_LEXICAL_URL` takes it, without a prefix."""
        return f"opensearch://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts it on new or existing data; returns when it serves.

        Raises:
            RuntimeError: The process ended, or it stayed silent; the message ends with its log.
        """
        self._home.mkdir(parents=True, exist_ok=True)
        ports = self._home / "logs" / "http.ports"
        ports.unlink(missing_ok=True)
        classes = f"{self._jars}/*:{launcher(self._jars)}"
        settings = [f"path.home={self._home}", f"http.port={self.port}", *self._settings]
        self._process = start(["java", *FLAGS, "-cp", classes, "OpenSearchNode", *settings], self._home / "console.log")
        try:
            self._wait_until_it_serves(self._process, ports)
        except BaseException:
            self.stop()
            raise

    def kill(self) -> None:
        """Ends it as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """Ends it in its own order."""
        if self._process is not None:
            stop(self._process, STOP_SECONDS_MAX)

    def _wait_until_it_serves(self, process: subprocess.Popen[bytes], ports: Path) -> None:
        health = f"http://127.0.0.1:{self.port}/_cluster/health?wait_for_status=yellow&timeout=1s"
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline and process.poll() is None:
            if ports.exists():  # the server renames it into place, so the node listens
                try:
                    with urllib.request.urlopen(health, timeout=5) as answer:
                        if not json.load(answer)["timed_out"]:
                            return
                except (urllib.error.URLError, TimeoutError):
                    pass  # 503 until a cluster manager is elected, 408 on its own time-out
            time.sleep(0.1)
        log = self._home / "console.log"
        tail = log.read_text(errors="replace")[-LOG_TAIL_CHARACTERS:]
        raise RuntimeError(f"OpenSearch does not serve (exit code {process.poll()}):\n{tail}")


def fetch() -> Path:
    """The folder of the jars, fetched when they are missing, with the launcher compiled beside it."""
    jars = fetch_jars("opensearch", HERE / "pom.xml")
    compile_launcher(jars)
    return jars


def launcher(jars: Path) -> Path:
    """Where the compiled launcher lies: another source has another folder."""
    return jars.parent / f"launcher-{hashlib.sha256(LAUNCHER.read_bytes()).hexdigest()[:12]}"


def compile_launcher(jars: Path) -> None:
    """Compiles the launcher, unless it is there; half of it is never left.

    Raises:
        RuntimeError: The compiler is missing or failed; the message says what to do.
    """
    made = launcher(jars)
    if made.exists():
        return
    if shutil.which("javac") is None:
        raise RuntimeError("javac is needed to run a real opensearch; on Debian: apt-get install default-jdk-headless")
    part = made.with_name(f".{made.name}-{time.time_ns()}")
    command = ["javac", "-cp", f"{jars}/*", "-d", str(part), str(LAUNCHER)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_SECONDS_MAX, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the launcher of opensearch does not compile:\n{done.stderr[-LOG_TAIL_CHARACTERS:]}")
    try:
        part.rename(made)
    except OSError:  # another test worker was first
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def running(folder: Path, *settings: str) -> Iterator[OpenSearchServer]:
    """A server with its data in a folder, until the block ends."""
    server = OpenSearchServer(folder, fetch(), *settings)
    server.start()
    try:
        yield server
    finally:
        server.stop()
