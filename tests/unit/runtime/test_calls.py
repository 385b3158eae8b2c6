"""What travels beside a call."""

from __future__ import annotations

import asyncio

import pytest

from services.domain.context import OperationContext, local_context
from services.domain.errors import Internal
from services.runtime.calls import checked_trace, child_trace, current_context, operation, remaining_seconds, trace_id


def test_outside_of_any_operation_there_is_no_caller() -> None:
    assert remaining_seconds() is None
    assert trace_id() == ""
    with pytest.raises(Internal):
        current_context()


async def test_an_operation_reaches_the_tasks_made_in_it_and_ends_with_its_block() -> None:
    outer, inner = local_context("outer"), OperationContext(principal="inner")

    async def seen() -> str:
        return current_context().principal

    with operation(outer, timeout_seconds=5):
        made = asyncio.create_task(seen())
        with operation(inner, timeout_seconds=1):
            assert current_context() == inner
            assert 0 < (remaining_seconds() or 0) <= 1
        assert current_context() == outer
        assert await made == "outer"
    assert remaining_seconds() is None


def test_time_that_ran_out_is_nothing_and_not_less() -> None:
    with operation(local_context(), timeout_seconds=-1):
        assert remaining_seconds() == 0


@pytest.mark.parametrize("trace", [None, "", "garbage", "00-xyz-1-01", "00-" + "A" * 32 + "-" + "b" * 16 + "-01"])
def test_a_trace_that_is_none_is_replaced(trace: str | None) -> None:
    made = checked_trace(trace)

    assert made != trace
    assert checked_trace(made) == made


def test_an_outgoing_call_keeps_the_trace_with_a_span_of_its_own() -> None:
    trace = checked_trace(None)
    child = child_trace(trace)

    assert child.split("-")[1] == trace.split("-")[1]
    assert child.split("-")[2] != trace.split("-")[2]
    assert checked_trace(child) == child
