"""A retry budget: retries are spent from what honest first attempts earn.

Each first attempt earns ``ratio`` of a retry. A small floor refills with time, so that a client
with little traffic may still retry now and then. When the budget is empty, callers give up at once
instead of adding to somebody else's outage.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class BudgetEmpty(RuntimeError):
    """No retries left; the original error is the cause."""


class RetryBudget:
    def __init__(
        self,
        ratio: float = 0.1,
        floor_per_minute: float = 3.0,
        cap: float = 20.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ratio = ratio
        self.floor_per_second = floor_per_minute / 60.0
        self.cap = cap
        self._clock = clock
        self._tokens = floor_per_minute
        self._last = clock()

    def _refill(self) -> None:
        now = self._clock()
        self._tokens = min(self.cap, self._tokens + (now - self._last) * self.floor_per_second)
        self._last = now

    def earn(self) -> None:
        """Call once for every first attempt."""
        self._refill()
        self._tokens = min(self.cap, self._tokens + self.ratio)

    def spend(self) -> bool:
        """Take one retry if there is one."""
        self._refill()
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


def call(budget: RetryBudget, work: Callable[[], T], pause: float = 0.2) -> T:
    """Run ``work``, retrying on OSError while the budget lasts."""
    budget.earn()
    while True:
        try:
            return work()
        except OSError as error:
            if not budget.spend():
                raise BudgetEmpty("retry budget is empty") from error
            time.sleep(pause)
            pause = min(pause * 2, 5.0)
