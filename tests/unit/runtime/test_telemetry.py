"""Logs are one JSON object a line and metrics are Prometheus' text."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import orjson
import pytest

from services.domain.context import local_context
from services.runtime.calls import operation
from services.runtime.telemetry import configure_logging, metrics_text


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    written = io.StringIO()
    configure_logging("info", written)
    yield written
    root.handlers[:] = before
    root.setLevel(level)


def test_a_line_has_its_event_its_fields_and_the_trace_of_its_operation(stream: io.StringIO) -> None:
    trace = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    with operation(local_context(), timeout_seconds=1, trace=trace):
        logging.getLogger("x").info("page stored", extra={"page_id": "p1", "odd": {1: object}})
    logging.getLogger("x").debug("not shown")

    (line,) = stream.getvalue().splitlines()
    read = orjson.loads(line)
    assert (read["event"], read["level"], read["page_id"], read["trace_id"]) == ("page stored", "INFO", "p1", "a" * 32)


def test_an_error_is_one_line_with_its_stack(stream: io.StringIO) -> None:
    try:
        raise ValueError("why")
    except ValueError:
        logging.getLogger("x").exception("failed\nbadly")

    (line,) = stream.getvalue().splitlines()
    assert "ValueError: why" in orjson.loads(line)["stack"]


def test_metrics_are_in_prometheus_text() -> None:
    assert b"# TYPE brain_rpc_seconds histogram" in metrics_text()
