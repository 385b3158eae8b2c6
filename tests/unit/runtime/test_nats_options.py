"""What a NATS URL and a credentials file say, and what is refused without showing a password."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from services.domain.errors import InvalidArgument
from services.runtime.nats_options import parse_addresses, parse_credentials, read_signer

SEED_PREFIX = bytes([(18 << 3) | ((20 << 3) >> 5), 0])
"""A seed (S) of a user (U)."""
HOSTS = st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True)


def seed_of(raw: bytes) -> str:
    body = SEED_PREFIX + raw
    checked = body + binascii.crc_hqx(body, 0).to_bytes(2, "little")
    return base64.b32encode(checked).decode().rstrip("=")


@given(
    hosts=st.lists(st.tuples(HOSTS, st.integers(1, 65535)), min_size=1, max_size=16),
    scheme=st.sampled_from(["nats", "tls"]),
)
def test_every_host_is_known_with_its_port_and_the_one_scheme(hosts: list[tuple[str, int]], scheme: str) -> None:
    found = parse_addresses(f"{scheme}://u:p%40%3A@" + ",".join(f"{host}:{port}" for host, port in hosts))

    assert found.urls == tuple(f"{scheme}://{host}:{port}" for host, port in hosts)
    assert (found.user, found.password, found.tls) == ("u", "p@:", scheme == "tls")
    assert "p@" not in repr(found) + found.shown


def test_the_port_is_4222_where_none_is_said() -> None:
    assert parse_addresses("nats://a, b:1,nats://[::1]").urls == ("nats://a:4222", "nats://b:1", "nats://[::1]:4222")


@pytest.mark.parametrize(
    "url",
    [
        "http://a:secret@b",
        "nats://u:secret@a:port",
        "nats://u:secret@a,tls://b",
        "nats://u:secret@a,nats://v:secret@b",
        "nats://u:secret@",
        "nats://u:secret@a/path",
        "nats://u:secret@" + ",".join("abcdefghijklmnopq"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(InvalidArgument) as raised:
        parse_addresses(url)

    assert raised.value.field == "FLEETBRAIN_NATS_URL"
    assert "secret" not in raised.value.message + raised.value.value + raised.value.next_step


@given(raw=st.binary(min_size=32, max_size=32))
def test_a_seed_gives_the_public_key_that_nats_derives_and_signs_for_it(raw: bytes) -> None:
    signer = parse_credentials(seed_of(raw))

    public = base64.b32decode(signer.public_key + "=" * (-len(signer.public_key) % 8))
    assert signer.public_key.startswith("U")
    assert signer.jwt is None
    key = Ed25519PrivateKey.from_private_bytes(raw).public_key()
    assert public[1:33] == key.public_bytes_raw()
    key.verify(base64.b64decode(signer.sign("nonce")), b"nonce")


def test_a_creds_file_gives_its_jwt_and_signs_with_its_seed(tmp_path: Path) -> None:
    path = tmp_path / "user.creds"
    path.write_text(
        "-----BEGIN NATS USER JWT-----\neyJ0.eyJq.c2ln\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed_of(bytes(32))}\n------END USER NKEY SEED------\n"
    )

    signer = read_signer(path)

    assert signer.jwt is not None
    assert signer.jwt() == b"eyJ0.eyJq.c2ln"


@pytest.mark.parametrize("text", ["", "SU", "SUAAAA", "not a seed", seed_of(bytes(32))[:-1] + "A", "SU" + "1" * 56])
def test_a_file_without_a_users_seed_is_refused_by_its_setting(tmp_path: Path, text: str) -> None:
    (tmp_path / "seed").write_text(text)

    with pytest.raises(InvalidArgument) as raised:
        read_signer(tmp_path / "seed")

    assert raised.value.field == "FLEETBRAIN_NATS_CREDENTIALS_FILE"
