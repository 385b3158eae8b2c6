"""Random histories of the page log, and every way their messages may reach a store: the model is the oracle."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from hypothesis import strategies as st

from services.domain.records import PageRecord
from tests.contract.search.pages import record
from tests.page_log_model import PageLog, Record, Request, rebuild

SLUGS = ("a", "b", "c/d")
BODIES = ("# One\n\nalpha", "# Two\n\nbeta\n\ngamma", "# Drei\n\n数据库", "")

AFTER_EVERYTHING = 1_000_000
"""A revision above those of any history."""

Held = set[tuple[str, str, int]]
"""(slug, page id, revision) of the pages that a store holds."""


@dataclass(frozen=True, slots=True)
class History:
    """Requests in order, and how deliveries interleave with them."""

    requests: tuple[tuple[str, str, str, str, bool], ...]
    steps: tuple[int, ...]


def histories(requests_max: int = 12, steps_max: int = 40) -> st.SearchStrategy[History]:
    request = st.tuples(
        st.sampled_from(("put", "put", "put", "delete", "restore", "move")),
        st.sampled_from(SLUGS),
        st.sampled_from(BODIES),
        st.sampled_from(SLUGS),
        st.booleans(),
    )
    return st.builds(
        History,
        requests=st.lists(request, min_size=1, max_size=requests_max).map(tuple),
        steps=st.lists(st.integers(0, 99), max_size=steps_max).map(tuple),
    )


def submit(log: PageLog, number: int, request: tuple[str, str, str, str, bool]) -> None:
    operation, slug, body, new_slug, fresh = request
    current = log.newest(slug)
    log.submit(
        Request(
            operation=operation,  # type: ignore[arg-type]
            slug=slug,
            request_id=f"r{number}",
            body=body if operation == "put" else None,
            overwrite=True,
            if_revision=current.revision if current and fresh else None,
            new_slug=new_slug if operation == "move" else "",
        ),
        f"page-{number}",
    )


def as_page_record(made: Record) -> PageRecord:
    return record(made.slug, made.body, made.revision, page_id=made.page_id, kind=made.kind)


async def deliver(history: History, apply: Callable[[list[PageRecord]], Awaitable[None]]) -> PageLog:
    """Plays a history against a store: late, doubled and shuffled deliveries, deaths, several consumers at once.

    A delivery is the consumer's loop: read the newest, apply, read again, start over when it changed. It may stop
    after any step for as long as the history likes, also for good (a death): then its message comes again.
    """
    log = PageLog()
    pending: list[str] = []
    running: list[tuple[str, Record]] = []
    steps = iter(history.steps)
    for number, request in enumerate(history.requests):
        before = log.last_revision
        submit(log, number, request)
        pending += [slug for slug in SLUGS if (new := log.newest(slug)) and new.revision > before]
        for _ in range(3):
            step = next(steps, None)
            if step is None:
                break
            match step % 4:
                case 0 if pending:
                    slug = pending[step % len(pending)]
                    newest = log.newest(slug)
                    assert newest is not None
                    running.append((slug, newest))
                case 1 if running:
                    slug, seen = running.pop(step % len(running))
                    await apply([as_page_record(seen)])
                    newest = log.newest(slug)
                    assert newest is not None
                    if newest.revision != seen.revision:
                        running.append((slug, newest))
                case 2 if running:
                    batch = dict(running)
                    await apply([as_page_record(seen) for seen in batch.values()])
                case 3 if step > 70:
                    # A death: what was being applied is never looked at again by its consumer; its message comes again.
                    pending += [slug for slug, _ in running]
                    running.clear()
                case _:
                    pass
    for slug, seen in running:
        await apply([as_page_record(seen)])
        pending.append(slug)
    for slug in dict.fromkeys(pending):
        seen_revision = -1
        while (newest := log.newest(slug)) and newest.revision != seen_revision:
            await apply([as_page_record(newest)])
            seen_revision = newest.revision
    return log


def expected(log: PageLog) -> Held:
    """What a store built from the log alone holds."""
    held = rebuild(log).held
    return {(d.slug, key[1], d.revision) for key, d in held.items() if key[0] == "page"}
