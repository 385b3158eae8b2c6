"""Logs and metrics: one JSON object a line on stderr, and one registry in Prometheus' text form."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Final, TextIO

import orjson
from prometheus_client import REGISTRY, Counter, Gauge, Histogram, generate_latest

from services.runtime.calls import trace_id

# The library's registry is the process's. It refuses two metrics of one name, so each is made once, here.
RPC_SECONDS: Final = Histogram(
    "brain_rpc_seconds",
    "Time a gRPC call took on the server.",
    ("method", "status"),
    buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 60),
)
PROJECTION_REVISION: Final = Gauge(
    "brain_projection_indexed_revision", "Everything up to it is applied.", ("projection",)
)
PROJECTION_PENDING: Final = Gauge("brain_projection_pending", "Messages not yet acknowledged.", ("projection",))
PROJECTION_APPLIED: Final = Counter("brain_projection_applied", "Records applied.", ("projection",))
PROJECTION_DEAD: Final = Counter("brain_projection_dead_letters", "Messages given up.", ("projection",))

STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""What every log record has; everything else came with `extra`."""


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, event, trace_id and the fields of `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "event": record.getMessage(),
        }
        if trace := trace_id():
            line["trace_id"] = trace
        line.update((key, value) for key, value in vars(record).items() if key not in STANDARD)
        if record.exc_info:
            line["stack"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def configure_logging(level: str, stream: TextIO | None = None) -> None:
    """Sets up the process's logging; called once, by a composition root."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for chatty in ("nats", "httpx", "asyncio", "uvicorn", "mcp"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def metrics_text() -> bytes:
    """All metrics of this process in Prometheus' text form."""
    return generate_latest(REGISTRY)
