"""Drives the work of one run: asks each owner in turn, joins again when a stream breaks, and adds up how far it is."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing

from services.domain.errors import BrainError, DeadlineExceeded, NotReady, Unavailable
from services.jobs.kinds import Work
from services.jobs.ports import Owners, WorkState

log = logging.getLogger(__name__)

REJOINS_MAX = 8
"""Tries in a row without a word from the owner, about 20 s in all: a restart takes less. Then the job is put off."""
REJOIN_SECONDS = 0.1
REJOIN_SECONDS_MAX = 8.0
AWAY_REASONS = frozenset({"INDEX_BEHIND", "JOB_STATE"})
CANCEL_TRIES_MAX = 5
"""Together some seconds; then the job says that its owner could not be told."""

Report = Callable[[int, int, str], Awaitable[None]]
"""Called with finished, total and unit of the whole job."""


class OwnerAwayError(Exception):
    """The owner did not answer for so long that others should have the worker; the work may go on there."""

    def __init__(self, cause: BrainError) -> None:
        super().__init__(cause.message)
        self.cause = cause


def interrupted(error: BrainError) -> bool:
    """Whether the owner is only away: it does not answer, is starting, or ended the work because it stops itself."""
    return isinstance(error, Unavailable | DeadlineExceeded) or error.reason in AWAY_REASONS


class Drive:
    """One run of one job."""

    def __init__(self, owners: Owners, works: Sequence[Work], report: Report) -> None:
        self._owners = owners
        self._works = works
        self._report = report
        self._states: dict[str, WorkState] = {}
        self._stopping = False

    async def run(self) -> str:
        """Does all of it and returns the result as JSON.

        Raises:
            OwnerAwayError: An owner stays away.
            BrainError: An owner refused or failed.
        """
        outcomes: dict[str, object] = {}
        for work in self._works:
            try:
                state = await self._follow(work)
            except NotReady as error:
                # Of everything there is, what is switched off is left out and named; asked for alone, it is an error.
                if error.reason != "FEATURE_OFF" or len(self._works) == 1:
                    raise
                outcomes[work.projection] = {"skipped": error.reason, "message": error.message}
                continue
            outcomes[work.projection] = {
                "finished": state.finished,
                "total": state.total,
                "unit": state.unit,
                "store_id": state.store_id,
            }
        # Work on no projection in particular is alone, and its outcome is the whole.
        whole = outcomes.get("", {"projections": outcomes})
        return json.dumps(whole, separators=(",", ":"), ensure_ascii=False)

    async def stop(self) -> str:
        """Ends the work at its owners; returns what could not be done, in words, or nothing."""
        self._stopping = True
        notes = [note for work in self._works if (note := await self._cancel(work))]
        return "; ".join(notes)

    async def _follow(self, work: Work) -> WorkState:
        silent = 0
        while True:
            error: BrainError
            try:
                async with aclosing(self._owners.do(work)) as states:
                    async for state in states:
                        silent = 0
                        await self._reported(work, state)
                        if state.done:
                            return state
                error = Unavailable("PEER_UNAVAILABLE", f"{work.owner} ended its stream before the work was done")
            except BrainError as broken:
                if not interrupted(broken):
                    raise
                error = broken
            silent += 1
            log.info("work is joined again", extra={"work": work.work_id, "cause": error.message, "tries": silent})
            if self._stopping or silent > REJOINS_MAX:
                raise OwnerAwayError(error)
            await asyncio.sleep(min(REJOIN_SECONDS * 2 ** (silent - 1), REJOIN_SECONDS_MAX))

    async def _reported(self, work: Work, state: WorkState) -> None:
        self._states[work.work_id] = state
        states = self._states.values()
        units = {known.unit for known in states if known.unit}
        unit = units.pop() if len(units) == 1 else "units" if units else ""
        await self._report(sum(known.finished for known in states), sum(known.total for known in states), unit)

    async def _cancel(self, work: Work) -> str:
        for tries in range(1, CANCEL_TRIES_MAX + 1):
            try:
                await self._owners.cancel(work)
                return ""
            except BrainError as error:
                log.warning("work could not be ended", extra={"work": work.work_id, "cause": error.message})
                note = f"{work.owner} could not be told: {error.message}"
            await asyncio.sleep(min(REJOIN_SECONDS * 2 ** (tries - 1), REJOIN_SECONDS_MAX))
        return note
