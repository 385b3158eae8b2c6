"""Where an OpenSearch cluster is: `opensearch://[user:password@]host:port[,host:port…]/[prefix]`, with TLS `opensearch+tls://`."""

from __future__ import annotations

from dataclasses import replace

from services.runtime.engine_url import EngineUrl, parse_engine_url
from services.runtime.settings import Secret

SCHEMES = frozenset({"opensearch", "opensearch+tls"})
PORT = 9200


def parse_address(text: str, *, password: Secret | None = None) -> EngineUrl:
    """Reads the URL; a password in it wins over the one that is set apart.

    Raises:
        InvalidArgument: It is no such URL. The error shows it without credentials.
    """
    url = parse_engine_url("FLEETBRAIN_LEXICAL_URL", text, SCHEMES, PORT, parameters=frozenset({"ca"}))
    return url if url.password is not None or password is None else replace(url, password=password)
