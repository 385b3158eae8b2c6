"""The model's random histories against the real page log: ingest and NATS together decide as the model does."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from services.ingest.ports import PageLog
from services.runtime.bus import open_bus
from services.runtime.nats_child import nats_child
from tests.unit.ingest.log_machine import LogMachine


def test_ingest_over_the_real_log_decides_as_the_model_does(tmp_path: Path) -> None:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()

        async def open_log() -> PageLog:
            address = await stack.enter_async_context(nats_child(tmp_path / "nats"))
            return (await stack.enter_async_context(open_bus(address.url, name="test"))).page_log

        log = runner.run(open_log())
        examples = 0

        class RealLogMachine(LogMachine):
            kept_choices = (64,)

            def open_runner(self) -> asyncio.Runner:
                return runner

            def close_runner(self) -> None:
                """The server and its connection are the next example's too."""

            def open_log(self, kept: int) -> tuple[PageLog, str, int]:
                nonlocal examples
                examples += 1
                return log, f"example-{examples}/", runner.run(log.last_revision())

        try:
            run_state_machine_as_test(
                RealLogMachine, settings=settings(max_examples=20, stateful_step_count=30, deadline=None)
            )
        finally:
            runner.run(stack.aclose())
