"""The embedded NATS server's configuration, and how to know one server's from another's."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import orjson

MAX_PAYLOAD_BYTES: Final = 8 * 1024 * 1024
"""A page of 5,000,000 bytes with everything its record carries, with room."""
MEMORY_LIMIT: Final = "200MiB"
"""For Go's collector. Without it a replay grew to 650 MB; with it nothing got slower (measured)."""
STORE_BYTES_MAX: Final = 1 << 50
"""More than any disk. By itself the server takes three quarters of what is free when it starts, and refuses every
stream whose limits do not fit into that: a brain would not start with 1 GB free. How much room there really is, is
looked at before each write (`nats_storage`)."""
USER: Final = "brain"
ENVIRONMENT: Final[Mapping[str, str]] = MappingProxyType({"PATH": os.defpath, "GOMEMLIMIT": MEMORY_LIMIT})


def server_config(folder: Path, *, port: int, password: str) -> str:
    """The configuration file's text. Port -1 lets the server choose one."""
    quoted = orjson.dumps(str(folder)).decode()
    return f"""# Written anew at each start.
listen: "127.0.0.1:{port}"
server_name: fleetbrain
max_payload: {MAX_PAYLOAD_BYTES}
max_pending: {64 * 1024 * 1024}
max_connections: 256
write_deadline: "10s"
ports_file_dir: {quoted}
pid_file: {orjson.dumps(str(folder / "server.pid")).decode()}
logfile: {orjson.dumps(str(folder / "server.log")).decode()}
logfile_size_limit: {16 * 1024 * 1024}
logfile_max_num: 2
authorization {{ user: {USER}, password: "{password}" }}
jetstream {{
  store_dir: {quoted}, sync_interval: always
  max_memory_store: {64 * 1024 * 1024}, max_file_store: {STORE_BYTES_MAX}
}}
"""


def config_digest(folder: Path) -> str:
    """Stands for everything a server of ours runs with, but for its port and password."""
    text = server_config(folder, port=0, password="") + orjson.dumps(dict(ENVIRONMENT)).decode()
    return hashlib.sha256(text.encode()).hexdigest()
