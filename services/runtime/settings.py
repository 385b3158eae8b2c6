"""The settings of a process: the only reader of the environment. Everything else gets values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from services.domain.errors import InvalidArgument
from services.runtime.nats_options import NatsOptions
from services.runtime.tls import TlsFiles

PREFIX: Final = "FLEETBRAIN_"
KNOWN: Final = frozenset(
    PREFIX + name
    for name in (
        "DATA", "HTTP", "HTTP_HOSTS", "TOKEN", "LISTEN",
        "INGEST_ADDRESS", "SEARCH_ADDRESS", "GRAPH_ADDRESS", "JOBS_ADDRESS",
        "LEXICAL_URL", "VECTORS_URL", "GRAPH_URL", "NATS_URL",
        "LEXICAL_PASSWORD", "LEXICAL_PASSWORD_FILE", "GRAPH_PASSWORD", "GRAPH_PASSWORD_FILE",
        "EMBEDDER_URL", "EMBEDDER_KEY", "EMBEDDER_KEY_FILE",
        "COMPLETER_URL", "COMPLETER_KEY", "COMPLETER_KEY_FILE",
        "TLS_CERTIFICATE", "TLS_KEY", "TLS_CA", "TLS_CLIENTS", "HEALTH_LISTEN", "METRICS_LISTEN",
        "NATS_CA", "NATS_CERTIFICATE", "NATS_KEY", "NATS_CREDENTIALS_FILE",
        "NATS_REPLICAS", "NATS_TAGS", "NATS_ALLOW_SHRINK",
        "LOG_LEVEL",
    )
)  # fmt: skip
INJECTED: Final = re.compile(r"FLEETBRAIN_(.+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)")
"""What Kubernetes puts into every pod for Services named `fleetbrain…`: host, ports, and the old link variables."""
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
DEFAULT_HTTP: Final = "127.0.0.1:0"
"""Loopback on a free port, named in brain.json: two brains on one machine never fight for one."""
SECRET_BYTES_MAX: Final = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A key that knows where it came from, so that a refusal can say so. It is never printed."""

    value: str = field(repr=False)
    origin: str
    """The variable or file it was read from."""
    base_url: str = ""
    """Where it belongs to, as the environment says; empty for the provider's own address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of a process, checked. An empty URL or address means the embedded default under `data`."""

    data: Path
    http: str = DEFAULT_HTTP
    http_hosts: tuple[str, ...] = ()
    token: str = field(default="", repr=False)
    listen: str = ""
    ingest_address: str = ""
    search_address: str = ""
    graph_address: str = ""
    jobs_address: str = ""
    lexical_url: str = field(default="", repr=False)
    lexical_password: Secret | None = None
    vectors_url: str = ""
    graph_url: str = field(default="", repr=False)
    graph_password: Secret | None = None
    nats_url: str = field(default="", repr=False)
    nats: NatsOptions = field(default_factory=NatsOptions)
    embedder_url: str = ""
    embedder_base_url: str = ""
    """OPENAI_BASE_URL, where the embedder is asked by `openai://`; empty for the vendor's own address."""
    completer_url: str = ""
    embedder_key: Secret | None = None
    completer_key: Secret | None = None
    tls: TlsFiles | None = None
    health_listen: str = ""
    metrics_listen: str = ""
    log_level: str = "info"


def load_settings(environ: Mapping[str, str]) -> Settings:
    """The settings that an environment says. An empty variable counts as not set.

    Raises:
        InvalidArgument: A variable is unknown or its value is not usable; the error names it and what to do.
    """
    for name in sorted(environ):
        if name.startswith(PREFIX) and not known(name):
            raise invalid(name, "", "is not a setting", f"Remove it, or use one of: {', '.join(sorted(KNOWN))}.")
    get = {name: environ.get(name, "").strip() for name in KNOWN}
    token = get["FLEETBRAIN_TOKEN"]
    http, listen = get["FLEETBRAIN_HTTP"] or DEFAULT_HTTP, get["FLEETBRAIN_LISTEN"]
    for name, address in (("FLEETBRAIN_HTTP", http), ("FLEETBRAIN_LISTEN", listen)):
        if address and not address.startswith("unix:"):
            check_exposure(name, check_address(name, address), token)
    for name in ("FLEETBRAIN_HEALTH_LISTEN", "FLEETBRAIN_METRICS_LISTEN"):
        if get[name]:
            check_address(name, get[name])
    level = get["FLEETBRAIN_LOG_LEVEL"].lower() or "info"
    if level not in LOG_LEVELS:
        raise invalid("FLEETBRAIN_LOG_LEVEL", level, "is no level", f"Use one of: {', '.join(LOG_LEVELS)}.")
    embedder_url = check_url("FLEETBRAIN_EMBEDDER_URL", get, ("local:", "openai://"), words=("none",))
    completer_url = check_url("FLEETBRAIN_COMPLETER_URL", get, ("anthropic://", "openai://"), words=("none",))
    return Settings(
        data=data_folder(environ),
        http=http,
        http_hosts=tuple(host.strip() for host in get["FLEETBRAIN_HTTP_HOSTS"].split(",") if host.strip()),
        token=token,
        listen=listen,
        ingest_address=get["FLEETBRAIN_INGEST_ADDRESS"],
        search_address=get["FLEETBRAIN_SEARCH_ADDRESS"],
        graph_address=get["FLEETBRAIN_GRAPH_ADDRESS"],
        jobs_address=get["FLEETBRAIN_JOBS_ADDRESS"],
        lexical_url=check_url("FLEETBRAIN_LEXICAL_URL", get, ("opensearch://", "opensearch+tls://")),
        lexical_password=load_password(get, "FLEETBRAIN_LEXICAL_PASSWORD"),
        vectors_url=check_url("FLEETBRAIN_VECTORS_URL", get, ("http://", "https://")),
        graph_url=check_url("FLEETBRAIN_GRAPH_URL", get, ("bolt://", "bolt+s://", "neo4j://", "neo4j+s://")),
        graph_password=load_password(get, "FLEETBRAIN_GRAPH_PASSWORD"),
        nats_url=check_url("FLEETBRAIN_NATS_URL", get, ("nats://", "tls://")),
        nats=load_nats(get),
        embedder_url=embedder_url,
        embedder_base_url=check_base_url(environ) if embedder_url.startswith("openai://") else "",
        completer_url=completer_url,
        embedder_key=load_key(environ, "FLEETBRAIN_EMBEDDER_KEY", embedder_url),
        completer_key=load_key(environ, "FLEETBRAIN_COMPLETER_KEY", completer_url),
        tls=load_tls(get),
        health_listen=get["FLEETBRAIN_HEALTH_LISTEN"],
        metrics_listen=get["FLEETBRAIN_METRICS_LISTEN"],
        log_level=level,
    )


def known(name: str) -> bool:
    """Whether a variable with our prefix may be there: a setting, a test's own, or one that Kubernetes injects."""
    return name in KNOWN or name.startswith("FLEETBRAIN_TEST_") or INJECTED.fullmatch(name) is not None


def data_folder(environ: Mapping[str, str]) -> Path:
    """Where everything of the brain lives, absolute."""
    named = environ.get("FLEETBRAIN_DATA", "").strip()
    if named:
        return Path(named).expanduser().absolute()
    base = environ.get("XDG_DATA_HOME", "").strip()
    # The XDG specification: a relative path there is invalid and is to be ignored.
    folder = Path(base) if base and Path(base).is_absolute() else home(environ) / ".local" / "share"
    return folder / "fleetbrain"


def home(environ: Mapping[str, str]) -> Path:
    """The user's home folder."""
    return Path(environ["HOME"]) if environ.get("HOME") else Path.home()


def load_key(environ: Mapping[str, str], name: str, url: str) -> Secret | None:
    """The key for a model endpoint: the variable, else the file it names, else the provider's usual variable."""
    base_url = environ.get("OPENAI_BASE_URL", "").strip() if url.startswith("openai://") else ""
    value = environ.get(name, "").strip()
    if value:
        return Secret(value=value, origin=name, base_url=base_url)
    path = environ.get(f"{name}_FILE", "").strip()
    if path:
        return Secret(value=read_secret(f"{name}_FILE", path), origin=f"{name}_FILE ({path})", base_url=base_url)
    usual = "OPENAI_API_KEY" if url.startswith("openai://") else "ANTHROPIC_API_KEY"
    value = environ.get(usual, "").strip()
    if not value or not url.startswith(("openai://", "anthropic://")):
        return None
    return Secret(value=value, origin=usual, base_url=base_url)


def load_password(values: Mapping[str, str], name: str) -> Secret | None:
    """An engine's password: the variable, else the file that it names; None when its URL may hold one."""
    if values[name]:
        return Secret(value=values[name], origin=name)
    path = values[f"{name}_FILE"]
    return Secret(value=read_secret(f"{name}_FILE", path), origin=f"{name}_FILE ({path})") if path else None


def check_base_url(environ: Mapping[str, str]) -> str:
    """OPENAI_BASE_URL, which must be one of http when it is set; a password in it would end up in messages."""
    value = environ.get("OPENAI_BASE_URL", "").strip().rstrip("/")
    if value and re.fullmatch(r"https?://[^\s/@?#]+(/[^\s@?#]*)?", value) is None:
        shown = re.sub(r"//[^/@]*@", "//…@", value)
        raise invalid("OPENAI_BASE_URL", shown, "is no address of http", "Use for example http://127.0.0.1:8080/v1.")
    return value


def load_nats(values: Mapping[str, str]) -> NatsOptions:
    """How to reach a NATS that others run, and how many copies it is to keep."""
    if bool(values["FLEETBRAIN_NATS_CERTIFICATE"]) != bool(values["FLEETBRAIN_NATS_KEY"]):
        name = "FLEETBRAIN_NATS_KEY" if values["FLEETBRAIN_NATS_CERTIFICATE"] else "FLEETBRAIN_NATS_CERTIFICATE"
        raise invalid(name, "", "is missing", "Set both FLEETBRAIN_NATS_CERTIFICATE and FLEETBRAIN_NATS_KEY, or none.")
    replicas = values["FLEETBRAIN_NATS_REPLICAS"] or "0"
    if replicas not in ("0", "1", "3", "5"):
        raise invalid("FLEETBRAIN_NATS_REPLICAS", replicas, "is not 1, 3 or 5", "Leave it out for 3 in a cluster.")
    shrink = values["FLEETBRAIN_NATS_ALLOW_SHRINK"].lower() or "false"
    if shrink not in ("true", "false"):
        raise invalid("FLEETBRAIN_NATS_ALLOW_SHRINK", shrink, "is neither true nor false", "Use one of them.")

    def path(name: str) -> Path | None:
        return Path(values[name]).expanduser() if values[name] else None

    return NatsOptions(
        authority=path("FLEETBRAIN_NATS_CA"),
        certificate=path("FLEETBRAIN_NATS_CERTIFICATE"),
        key=path("FLEETBRAIN_NATS_KEY"),
        credentials=path("FLEETBRAIN_NATS_CREDENTIALS_FILE"),
        replicas=int(replicas),
        tags=tuple(tag.strip() for tag in values["FLEETBRAIN_NATS_TAGS"].split(",") if tag.strip()),
        allow_shrink=shrink == "true",
    )


def load_tls(values: Mapping[str, str]) -> TlsFiles | None:
    """The files for TLS between the services: all three or none."""
    names = ("FLEETBRAIN_TLS_CERTIFICATE", "FLEETBRAIN_TLS_KEY", "FLEETBRAIN_TLS_CA")
    clients = values["FLEETBRAIN_TLS_CLIENTS"] or "any"
    if clients not in ("any", "required"):
        raise invalid("FLEETBRAIN_TLS_CLIENTS", clients, "is neither any nor required", "Use one of them.")
    if not any(values[name] for name in names):
        return None
    for name in names:
        if not values[name]:
            raise invalid(name, "", "is missing", f"Set all of {', '.join(names)}, or none.")
    certificate, key, authority = (Path(values[name]) for name in names)
    required = clients == "required"
    return TlsFiles(certificate=certificate, key=key, authority=authority, clients_required=required)


def read_secret(name: str, path: str) -> str:
    """The one line of a file that holds a key."""
    try:
        with Path(path).expanduser().open("rb") as file:
            value = file.read(SECRET_BYTES_MAX).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise invalid(name, path, f"cannot be read: {error}", "Name a readable file that holds the key.") from error
    if not value:
        raise invalid(name, path, "is an empty file", "Put the key into the file.")
    return value


def check_address(name: str, address: str) -> str:
    """The host of a `HOST:PORT`, which must be one."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not int(port) <= 65535:
        raise invalid(name, address, "is not HOST:PORT", "Use for example 127.0.0.1:7432; port 0 takes a free one.")
    return host


def check_exposure(name: str, host: str, token: str) -> None:
    """Refuses an address that others can reach while nobody has to say who they are."""
    if not token and not loopback(host):
        raise invalid(
            name, host, "can be reached from other machines and there is no token",
            "Set FLEETBRAIN_TOKEN, or use 127.0.0.1.",
        )  # fmt: skip


def loopback(host: str) -> bool:
    """Whether an address is reached from this machine only."""
    return host in {"localhost", "[::1]"} or re.fullmatch(r"127(\.\d{1,3}){3}", host) is not None


def check_url(name: str, values: Mapping[str, str], schemes: tuple[str, ...], *, words: tuple[str, ...] = ()) -> str:
    """The value, which must be empty, one of the words, or begin with one of the schemes."""
    value = values[name]
    if value and value not in words and not value.startswith(schemes):
        shown = re.sub(r"//[^/@]*@", "//…@", value)  # a URL may hold a password
        raise invalid(name, shown, "has no scheme known here", f"Use one of: {', '.join((*words, *schemes))}.")
    return value


def invalid(name: str, value: str, why: str, next_step: str) -> InvalidArgument:
    """A setting that stops the start."""
    shown = f"{name}={value}" if value else name
    return InvalidArgument("FIELD_INVALID", f"{shown} {why}", field=name, value=value, next_step=next_step)
