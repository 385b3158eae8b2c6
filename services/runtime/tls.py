"""TLS between the services: certificates from files, checked before anything listens, read again when they change."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from services.domain.errors import InvalidArgument

CERTIFICATE, KEY, AUTHORITY = "FLEETBRAIN_TLS_CERTIFICATE", "FLEETBRAIN_TLS_KEY", "FLEETBRAIN_TLS_CA"


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Where a process's certificate lies, and the authority whose certificates it believes. All PEM."""

    certificate: Path
    key: Path
    authority: Path
    clients_required: bool = False
    """Callers must show a certificate of the same authority."""


def check_files(files: TlsFiles, now: datetime) -> None:
    """Refuses files that no handshake could succeed with, before anything is served.

    Raises:
        InvalidArgument: Names the setting, the file and what is wrong: unreadable, no PEM, expired or not yet valid,
            or a key of another certificate.
    """
    certificate = _certificate(CERTIFICATE, files.certificate, now)
    _certificate(AUTHORITY, files.authority, now)
    try:
        key = load_pem_private_key(_read(KEY, files.key), password=None)
    except (ValueError, TypeError) as error:
        raise _refused(KEY, files.key, f"holds no private key in PEM without a password ({error})") from error
    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    if key.public_key().public_bytes(*form) != certificate.public_key().public_bytes(*form):
        raise _refused(KEY, files.key, f"is not the key of {files.certificate}")


def server_credentials(files: TlsFiles) -> grpc.ServerCredentials:
    """Credentials for a listening address; a renewed certificate is used from the next handshake on."""
    reader = _Renewed(files)
    return grpc.dynamic_ssl_server_credentials(
        reader.current, reader.renewed, require_client_authentication=files.clients_required
    )


def channel_credentials(files: TlsFiles) -> grpc.ChannelCredentials:
    """Credentials for calls: the authority decides whom to believe, the certificate is shown to who asks for it."""
    return grpc.ssl_channel_credentials(
        root_certificates=files.authority.read_bytes(),
        private_key=files.key.read_bytes(),
        certificate_chain=files.certificate.read_bytes(),
    )


class _Renewed:
    """Reads the files again when one of them is another than before."""

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._seen = self._stamps()
        self.current = self._load()

    def renewed(self) -> grpc.ServerCertificateConfiguration:
        """What gRPC asks for at each handshake; what it had before while a renewal is half written."""
        with suppress(OSError):
            stamps = self._stamps()
            if stamps != self._seen:
                self.current, self._seen = self._load(), stamps
        return self.current

    def _stamps(self) -> tuple[int, ...]:
        return tuple(p.stat().st_mtime_ns for p in (self._files.certificate, self._files.key, self._files.authority))

    def _load(self) -> grpc.ServerCertificateConfiguration:
        pair = self._files.key.read_bytes(), self._files.certificate.read_bytes()
        return grpc.ssl_server_certificate_configuration([pair], root_certificates=self._files.authority.read_bytes())


def _certificate(setting: str, path: Path, now: datetime) -> x509.Certificate:
    try:
        certificate = x509.load_pem_x509_certificate(_read(setting, path))
    except ValueError as error:
        raise _refused(setting, path, f"holds no certificate in PEM ({error})") from error
    if now > certificate.not_valid_after_utc:
        raise _refused(setting, path, f"expired at {certificate.not_valid_after_utc.isoformat()}")
    if now < certificate.not_valid_before_utc:
        raise _refused(setting, path, f"is not valid before {certificate.not_valid_before_utc.isoformat()}")
    return certificate


def _read(setting: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _refused(setting, path, f"cannot be read: {error.strerror}") from error


def _refused(setting: str, path: Path, why: str) -> InvalidArgument:
    return InvalidArgument(
        "FIELD_INVALID",
        f"{setting}={path} {why}",
        field=setting,
        value=str(path),
        next_step="Name the PEM files of a valid certificate, its key and its authority.",
    )
