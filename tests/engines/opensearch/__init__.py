"""A real OpenSearch server from jars alone."""

from tests.engines.opensearch.server import OpenSearchServer, fetch, running

__all__ = ["OpenSearchServer", "fetch", "running"]
