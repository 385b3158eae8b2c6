"""Runs one real Neo4j Community server as a child process: a class path, a config file and its own main class.

Knows nothing of the graph's model; tests connect with the driver.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Template
from urllib.parse import urlsplit

from tests.engines.child import free_port, start, stop
from tests.engines.jars import fetch_jars

HERE = Path(__file__).parent
USER = "neo4j"
PASSWORD = "of-this-test-run"
HEAP = "384m"
START_SECONDS_MAX = 120.0
"""It takes 6 s alone on two cores and four times that beside other work."""
STOP_SECONDS_MAX = 20.0
LOG_TAIL_CHARACTERS = 2_000

# Magic, then four proposals: Bolt 5.0 to 5.8, 4.4, 4.3, none. The server answers four bytes.
BOLT_HANDSHAKE = bytes.fromhex("6060b017") + struct.pack(">4I", 0x00080805, 0x0404, 0x0304, 0)
# Netty and the page cache reach into these packages; Java 17 refuses without the flags.
OPENS = [f"--add-opens=java.base/{p}=ALL-UNNAMED" for p in ("java.nio", "java.io", "sun.nio.ch")]
# First-tier compiler only: half the CPU to start (6 s, not 11), slower at its peak.
FLAGS = [*OPENS, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Xmx{HEAP}", "-Dlog4j2.disable.jmx=true"]


class Neo4jServer:
    """A server on a loopback port of its own, with its data in a folder; it can be killed and started again."""

    def __init__(self, home: Path, jars: Path) -> None:
        self.port = free_port()
        self._home = home
        self._jars = jars
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """With its credentials, as `FLEETBRAIN_GRAPH_URL` takes it."""
        return f"bolt://{USER}:{PASSWORD}@127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts it on new or existing data; returns when Bolt answers.

        Raises:
            RuntimeError: The process ended, or Bolt stayed silent; the message ends with its log.
        """
        conf = self._home / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        text = Template((HERE / "neo4j.conf.in").read_text())
        (conf / "neo4j.conf").write_text(text.substitute(port=self.port, auth="true"))
        java = ["java", *FLAGS, "-cp", f"{self._jars}/*"]
        if not (self._home / "data").exists():
            # Works only before the first start.
            admin = ["org.neo4j.server.startup.Neo4jAdminCommand", "dbms", "set-initial-password", PASSWORD]
            environment = {**os.environ, "NEO4J_HOME": str(self._home), "NEO4J_CONF": str(conf)}
            subprocess.run([*java, *admin], env=environment, check=True, capture_output=True, timeout=START_SECONDS_MAX)
        command = [*java, entry_point(self._jars), f"--home-dir={self._home}", f"--config-dir={conf}"]
        self._process = start(command, self._home / "console.log")
        try:
            self._wait_for_bolt(self._process)
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

    def _wait_for_bolt(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline and process.poll() is None:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
                    connection.sendall(BOLT_HANDSHAKE)
                    if len(connection.recv(4)) == 4:
                        return
            except OSError:
                time.sleep(0.1)
        logs = (self._home / "logs" / "neo4j.log", self._home / "console.log")
        tail = "\n".join(log.read_text(errors="replace")[-LOG_TAIL_CHARACTERS:] for log in logs if log.exists())
        raise RuntimeError(f"Neo4j gave no Bolt answer (exit code {process.poll()}):\n{tail}")


def fetch() -> Path:
    """The folder of the jars, fetched when they are missing."""
    return fetch_jars("neo4j", HERE / "pom.xml")


@contextmanager
def running(folder: Path) -> Iterator[Neo4jServer]:
    """A server with its data in a folder, until the block ends."""
    server = Neo4jServer(folder, fetch())
    server.start()
    try:
        yield server
    finally:
        server.stop()


def address_of(url: str) -> tuple[str, str, str]:
    """A URL's address, user and password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}:{parts.port or 7687}", parts.username or "", parts.password or ""


def entry_point(jars: Path) -> str:
    """The main class, read from the jar: its name differs between 5.26 and 2026.x."""
    (jar,) = jars.glob("neo4j-[0-9]*.jar")
    with zipfile.ZipFile(jar) as opened:
        return opened.read("META-INF/services/org.neo4j.server.startup.EntryPoint").decode().split()[0]
