"""A real Neo4j Community server from jars alone."""

from tests.engines.neo4j.server import Neo4jServer, fetch, running

__all__ = ["Neo4jServer", "fetch", "running"]
