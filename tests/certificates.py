"""Certificates for tests: an authority, and what it signs."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from services.runtime.tls import TlsFiles

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs certificates for 127.0.0.1 and localhost."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def issue(self, folder: Path, *, begins: datetime, ends: datetime, clients_required: bool = False) -> TlsFiles:
        """Writes a new certificate, its key and this authority into the folder, over what lay there."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        certificate = (
            builder("brain", "tests' authority", key, begins, ends)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        folder.mkdir(exist_ok=True)
        files = TlsFiles(
            certificate=folder / "tls.crt",
            key=folder / "tls.key",
            authority=folder / "ca.crt",
            clients_required=clients_required,
        )
        files.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
        files.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        files.authority.write_bytes(self.certificate.public_bytes(Encoding.PEM))
        return files

    def valid(self, folder: Path, *, clients_required: bool = False) -> TlsFiles:
        """A certificate for yesterday, today and tomorrow."""
        now = datetime.now(UTC)
        return self.issue(folder, begins=now - DAY, ends=now + DAY, clients_required=clients_required)


def make_authority() -> Authority:
    """A new authority that nobody else believes."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    certificate = (
        builder("tests' authority", "tests' authority", key, now - 2 * DAY, now + 2 * DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Authority(key, certificate)


def builder(
    subject: str, issuer: str, key: ec.EllipticCurvePrivateKey, begins: datetime, ends: datetime
) -> x509.CertificateBuilder:
    """A certificate without extensions, not yet signed."""
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
    )
