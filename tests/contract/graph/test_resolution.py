"""Links and names say, whatever came in whatever order, what resolving every name at the moment of asking says."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from services.domain.page import LinkProvenance, LinkReference
from services.domain.records import PageId, PageKey
from services.graph.ports import PageEntry, SlugChange, Viewer
from tests.contract.graph.engines import OpenGraph
from tests.contract.graph.oracle import Oracle, assert_same
from tests.engines.selection import examples

SOURCES = ["a", "b"]
SLUGS = ["x", "p/x", "q/x", "p/2025-09-24-x", "p/straße", "p/strasse"]
NAMES = ["x", "X", "p/x", "q/X", "The X", "the ｘ", "Strasse", "straße", "p/straße", "nobody"]
PAGES = {source: [PageId(f"{source}-{n}") for n in range(3)] for source in SOURCES}
VIEWERS = [
    Viewer(sources=sources, private=private)
    for sources in (None, frozenset({"a"}), frozenset({"a", "b"}), frozenset[str]())
    for private in (True, False)
]


@st.composite
def entries(draw: st.DrawFn) -> PageEntry:
    """A page's words; each link tells its own place by its line, so that evidence can be compared."""
    made = draw(
        st.lists(
            st.tuples(
                st.sampled_from(NAMES),
                st.sampled_from(["a", "a", "b"]),
                st.sampled_from(["knows", "owns"]),
                st.sampled_from([LinkProvenance.TEXT, LinkProvenance.FRONTMATTER]),
                st.booleans(),
                st.booleans(),
            ),
            max_size=4,
        )
    )
    links = tuple(
        LinkReference(
            name=name, source=source, link_type=kind, provenance=provenance, inward=inward, titled=titled, line=line
        )
        for line, (name, source, kind, provenance, inward, titled) in enumerate(made)
    )
    return PageEntry(
        title=draw(st.sampled_from(["X", "The X", "Strasse", "Other"])),
        type="note",
        private=draw(st.booleans()),
        aliases=tuple(draw(st.lists(st.sampled_from(["x", "the x", "Nick"]), max_size=2))),
        links=links,
    )


@st.composite
def histories(draw: st.DrawFn) -> list[list[SlugChange]]:
    """Batches of changes: any page under any slug, revisions in any order, some delivered again."""
    revisions = draw(st.permutations(range(1, 11)))
    changes: list[SlugChange] = []
    for revision in revisions[: draw(st.integers(1, 10))]:
        kind = draw(st.sampled_from(["page", "page", "page", "redirect", "delete"]))
        source = draw(st.sampled_from(SOURCES))
        changes.append(
            SlugChange(
                key=PageKey(source, draw(st.sampled_from(SLUGS))),
                revision=revision,
                page_id=draw(st.sampled_from(PAGES[source])),
                leads=kind != "delete",
                page=draw(entries()) if kind == "page" else None,
            )
        )
    changes += draw(st.lists(st.sampled_from(changes), max_size=4))
    batches: list[list[SlugChange]] = [[]]
    for change in changes:
        if draw(st.booleans()) or any(change.key == other.key for other in batches[-1]):
            batches.append([])
        batches[-1].append(change)
    return batches


@settings(max_examples=examples(30))
@given(history=histories())
async def test_every_viewer_reads_what_resolving_when_asked_would_say(
    open_graph: OpenGraph, history: Sequence[Sequence[SlugChange]]
) -> None:
    oracle = Oracle()
    with tempfile.TemporaryDirectory() as folder:
        async with open_graph(Path(folder)) as store:
            for batch in history:
                await store.apply(batch)
                for change in batch:
                    oracle.apply(change)
            for viewer in VIEWERS:
                await assert_same(store, oracle, viewer, NAMES, SOURCES)
            held = {(row.key, row.page_id) for row in [row async for row in store.held()] if row.revision}
            assert held == {(key, page_id) for key, (page_id, _, _) in oracle.slugs.items()} | {
                (page.key, page_id) for page_id, page in oracle.pages.items()
            }
