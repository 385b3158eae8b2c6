"""Whatever order the messages of a real history arrive in, the graph ends as one built from the log alone.

The model of the page log writes the history; deliveries are shuffled, doubled and late, several consumers work at once
on one store, and die between applying and their last look.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from services.domain.parser import PageParser
from services.domain.records import PageId, PageRecord, RecordKind
from services.graph.consumer import GraphProjection
from services.graph.ports import GraphStore, HeldRevision, NameQuestion
from tests.contract.graph.engines import OpenGraph
from tests.contract.graph.pages import EVERYTHING, WORLD
from tests.engines.selection import examples
from tests.page_log_model import PageLog, Record, Request, rebuild
from tests.records import put

SLUGS = ("a", "f/b", "f/c")
BODIES = (
    "# One\n\n[[f/b]] [[Two]] [[c]]",
    "# Two\n\n[[a]] [[One]] [[f/c]]",
    "---\nvisibility: private\n---\n# Two\n\n[[b]]",
)
PARSER = PageParser()


def record(made: Record) -> PageRecord:
    whole = put(made.slug, made.body or "", page_id=made.page_id)
    body = None if made.body is None else whole.body
    return replace(whole, kind=RecordKind(made.kind), body=body, revision=made.revision, moved_to=made.moved_to)


def newest(log: PageLog, slug: str) -> PageRecord:
    found = log.newest(slug)
    assert found is not None
    return record(found)


def submit(log: PageLog, number: int, operation: str, slug: str, body: str, new_slug: str, fresh: bool) -> None:
    current = log.newest(slug)
    request = Request(
        operation=operation,  # type: ignore[arg-type]
        slug=slug,
        request_id=f"r{number}",
        body=body if operation == "put" else None,
        overwrite=True,
        if_revision=current.revision if current and fresh else None,
        new_slug=new_slug if operation == "move" else "",
    )
    log.submit(request, f"page-{number}")


async def told(store: GraphStore) -> list[object]:
    """All that a store says of the pages of a history."""
    said: list[object] = [row async for row in store.held()]
    ids = sorted({row.page_id for row in said if isinstance(row, HeldRevision)})
    for viewer in (EVERYTHING, WORLD):
        said += [
            await store.list_links(page_id, viewer, arriving=arriving, link_types=(), after=None, limit=100)
            for page_id in ids
            for arriving in (False, True)
        ]
        said.append(await store.count_backlinks(ids, viewer))
        said.append(await store.list_unresolved(viewer, makers=None, after=None, limit=100))
        said.append(await store.search_names("two", viewer, 10))
        said.append(await store.stats(viewer, makers=None))
    return said


REQUESTS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "delete", "restore", "move", "move"]),
        st.sampled_from(SLUGS),
        st.sampled_from(BODIES),
        st.sampled_from(SLUGS),
        st.booleans(),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=examples(40))
@given(requests=REQUESTS, data=st.data())
async def test_any_order_of_deliveries_ends_in_what_the_log_says(
    open_graph: OpenGraph, requests: list[tuple[str, str, str, str, bool]], data: st.DataObject
) -> None:
    log = PageLog()
    messages: list[str] = []
    in_hand: list[PageRecord] = []
    with tempfile.TemporaryDirectory() as folder:
        async with open_graph(Path(folder) / "one") as store, open_graph(Path(folder) / "built") as built:
            graph = GraphProjection(store, PARSER)
            for number, request in enumerate(requests):
                before = log.last_revision
                submit(log, number, *request)
                messages += [slug for slug in log.kept if newest(log, slug).revision > before]
                for step in data.draw(st.lists(st.sampled_from(["take", "apply", "batch", "again"]), max_size=3)):
                    if step == "take" and messages:
                        in_hand.append(newest(log, data.draw(st.sampled_from(messages))))
                    elif step == "apply" and in_hand:
                        taken = in_hand.pop(data.draw(st.integers(0, len(in_hand) - 1)))
                        await graph.apply([taken])  # its consumer dies before the last look: the message comes again
                        messages.append(taken.slug)
                    elif step == "batch" and in_hand:
                        await graph.apply(list({one.slug: one for one in in_hand}.values()))
                    elif step == "again" and messages:
                        messages.append(data.draw(st.sampled_from(messages)))
            await graph.apply(list({one.slug: one for one in in_hand}.values()))
            messages += [one.slug for one in in_hand]
            for slug in data.draw(st.permutations(sorted(set(messages)))):
                await graph.apply([newest(log, slug)])

            whole = data.draw(st.permutations(sorted(log.kept)))
            await GraphProjection(built, PARSER).apply([newest(log, slug) for slug in whole])
            assert await told(store) == await told(built)

            model = rebuild(log)
            names = {document.slug: PageId(document.value) for key, document in model.held.items() if key[0] == "name"}
            live = {key[1]: document for key, document in model.held.items() if key[0] == "page"}
            held = {row async for row in store.held()}
            assert {(row.key.slug, row.page_id) for row in held} == set(names.items())
            assert {row.page_id for row in held if row.page_id in live} == set(live)
            for slug, page_id in names.items():
                (matches,) = await store.resolve_names([NameQuestion(slug, "default")], EVERYTHING)
                expected = model.resolve(slug)
                assert expected == (page_id if page_id in live else None)
                assert expected is None or [match.page.page_id for match in matches] == [expected]
