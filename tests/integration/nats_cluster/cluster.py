"""Three real NATS servers on loopback with the configuration of deploy/nats, TLS and a user for each service."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import secrets
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from services.runtime.bus import Bus, open_bus
from services.runtime.nats_options import NatsOptions
from services.runtime.nats_process import find_binary, signal_quietly

ROOT = Path(__file__).parents[3]
USERS = ("ingest", "search", "graph", "jobs", "system")
SIZE = 3
UP_SECONDS = 30.0
"""Three servers find each other and elect a leader within ten seconds."""


@dataclass(slots=True, kw_only=True)
class Node:
    """One server, and what it is started with."""

    name: str
    port: int
    folder: Path
    environ: dict[str, str] = field(repr=False)
    process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    async def start(self) -> None:
        with (self.folder / "server.log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                find_binary(), "--config", str(ROOT / "deploy/nats/nats.conf"), env=self.environ, stdout=log, stderr=log
            )

    async def kill(self, signum: signal.Signals = signal.SIGKILL) -> None:
        """Sends a signal and waits for the end."""
        assert self.process is not None
        signal_quietly(self.pid, signum)
        await self.process.wait()

    async def end(self) -> None:
        """Ends it however it is."""
        if self.process is not None and self.process.returncode is None:
            await self.kill()


@dataclass(slots=True, kw_only=True)
class Cluster:
    """The servers, and how to reach them as one of the services."""

    nodes: list[Node]
    passwords: dict[str, str] = field(repr=False)
    options: NatsOptions

    def url(self, user: str, *, password: str = "") -> str:
        hosts = [f"localhost:{node.port}" for node in self.nodes]
        hosts[0] = f"{user}:{password or self.passwords[user]}@{hosts[0]}"
        return f"tls://{','.join(hosts)}"

    @asynccontextmanager
    async def bus(self, user: str = "ingest", *, patience_seconds: float = UP_SECONDS) -> AsyncIterator[Bus]:
        opened = open_bus(self.url(user), name=user, patience_seconds=patience_seconds, options=self.options)
        async with opened as bus:
            yield bus

    async def leader(self, bus: Bus, stream: str = "PAGES") -> Node:
        """The server that leads a stream now."""
        cluster = (await bus.connection.api(f"STREAM.INFO.{stream}"))["cluster"]
        assert isinstance(cluster, dict)
        return next(node for node in self.nodes if node.name == cluster["leader"])

    async def caught_up(self, bus: Bus, stream: str = "PAGES") -> None:
        """Returns when every replica of a stream is current."""
        async with asyncio.timeout(UP_SECONDS):
            while True:
                cluster = (await bus.connection.api(f"STREAM.INFO.{stream}"))["cluster"]
                assert isinstance(cluster, dict)
                replicas = cluster.get("replicas") or []
                if len(replicas) == SIZE - 1 and all(r["current"] and not r.get("lag") for r in replicas):
                    return
                await asyncio.sleep(0.05)


@asynccontextmanager
async def three_servers(folder: Path, *, verify_clients: bool = False) -> AsyncIterator[Cluster]:
    """A cluster of empty servers; all of them are gone when the block ends."""
    authority, certificate, key = make_certificates(folder)
    ports = free_ports(3 * SIZE)
    passwords = {user: f"p{secrets.token_hex(12)}" for user in USERS}
    nodes: list[Node] = []
    for at in range(SIZE):
        place = folder / f"nats-{at + 1}"
        place.mkdir()
        environ = {
            "NATS_NAME": f"nats-{at + 1}",
            "NATS_LISTEN": f'"127.0.0.1:{ports[at]}"',
            "NATS_CLUSTER_LISTEN": f'"127.0.0.1:{ports[SIZE + at]}"',
            "NATS_MONITOR": f'"127.0.0.1:{ports[2 * SIZE + at]}"',
            **{f"NATS_ROUTE_{to + 1}": f'"tls://localhost:{ports[SIZE + to]}"' for to in range(SIZE)},
            "NATS_STORE": f'"{place}"',
            "NATS_STORE_MAX": "2GB",
            "NATS_SYNC": '"1s"',
            "NATS_TAG": '"disk:ssd"',
            "NATS_CERTIFICATE": f'"{certificate}"',
            "NATS_KEY": f'"{key}"',
            "NATS_CA": f'"{authority}"',
            "NATS_VERIFY_CLIENTS": str(verify_clients).lower(),
            "GOMEMLIMIT": "100MiB",
            **{f"NATS_{user.upper()}_PASSWORD": f'"{password}"' for user, password in passwords.items()},
        }
        nodes.append(Node(name=f"nats-{at + 1}", port=ports[at], folder=place, environ=environ))
    shown = (certificate, key) if verify_clients else (None, None)
    options = NatsOptions(authority=authority, certificate=shown[0], key=shown[1])
    try:
        for node in nodes:
            await node.start()
        yield Cluster(nodes=nodes, passwords=passwords, options=options)
    finally:
        for node in nodes:
            await node.end()
        # The client library leaves a connection half open where a server that stands still took it; it is closed when
        # it is collected, which must be while the loop runs.
        gc.collect()


def make_certificates(folder: Path) -> tuple[Path, Path, Path]:
    """An authority, and a certificate of it for this machine with its key."""
    now = datetime.now(UTC)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fleetbrain test authority")])
    authority = (
        x509.CertificateBuilder(authority_name, authority_name, authority_key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .add_extension(KEY_USAGE_OF_AUTHORITY, critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder(
            authority_name,
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]),
            key.public_key(),
            x509.random_serial_number(),
        )
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    paths = folder / "ca.pem", folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(authority.public_bytes(Encoding.PEM))
    paths[1].write_bytes(certificate.public_bytes(Encoding.PEM))
    paths[2].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return paths


KEY_USAGE_OF_AUTHORITY = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens at."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()
