"""Reading names: which pages have one, and which come near a part of one."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import cast

from services.graph.adapters.neo4j.connection import Row, Statements, Value
from services.graph.adapters.neo4j.cypher import (
    CANDIDATES,
    OF_QUESTIONS,
    page,
    page_map,
    page_of,
    viewer_parameters,
    visible,
)
from services.graph.adapters.neo4j.grams import (
    GRAM_MAX,
    gram,
    grams_of,
    private_gram,
    query_of,
    source_gram,
    store_gram,
)
from services.graph.adapters.neo4j.schema import NAME, NAMES_INDEX, SLUG, STORE, mark_of
from services.graph.likeness import LIKENESS_MIN, likeness, pairs_of
from services.graph.naming import (
    CANDIDATES_MAX,
    Candidate,
    NameKind,
    choose,
    key_of,
    page_names,
    slug_names,
    strongest,
)
from services.graph.ports import GraphPage, NameMatch, NameQuestion, Viewer

SCANNED_MAX = 200
"""Pages whose names are compared in full; the rest share less with what was asked."""

CONTAINING_MAX = 4_000
"""Pages of which the shortest names are picked when a text of one or two characters is in almost every name."""

GRAMS_ASKED_MAX = 64
"""Of what was asked: nobody half remembers more than that."""

SEARCHED_KINDS = (NameKind.SLUG, NameKind.TITLE, NameKind.ALIAS, NameKind.SLUG_TAIL)


RESOLVE = f"""
    UNWIND $marks AS mark MATCH (k:{NAME} {{store: $store, mark: mark}})
    WITH k, {CANDIDATES} AS cs UNWIND cs AS c WITH k, c, c.page AS p
    RETURN k.mark AS mark, c.kind AS kind, c.name AS name, p.folder AS folder, {page_map("p")} AS page
"""
"""The candidates of many names."""


async def resolve_names(
    statements: Statements, store: str, questions: Sequence[NameQuestion], viewer: Viewer
) -> list[list[NameMatch]]:
    """See `GraphStore.resolve_names`."""
    everywhere: list[str] = []
    if any(question.source is None for question in questions):
        everywhere = await all_sources(statements, store)
    asked = [(question, marks_of(question, everywhere)) for question in questions]
    wanted = sorted({mark for _, marks in asked for mark in marks})
    parameters = {**viewer_parameters(viewer), **OF_QUESTIONS, "store": store, "marks": wanted}
    by_mark: dict[str, list[Candidate[GraphPage]]] = {}
    for row in await statements.run(RESOLVE, parameters):
        by_mark.setdefault(str(row["mark"]), []).append(candidate_of(row))
    return [
        chosen_of(question.name, [one for mark in marks for one in by_mark.get(mark, [])]) for question, marks in asked
    ]


async def all_sources(statements: Statements, store: str) -> list[str]:
    """Every source that ever had a name in this store."""
    rows = await statements.run(f"MATCH (st:{STORE} {{store: $store}}) RETURN st.sources AS sources", {"store": store})
    return cast("list[str]", rows[0]["sources"]) if rows else []


def marks_of(question: NameQuestion, everywhere: Sequence[str]) -> list[str]:
    """The names' nodes that a question is about, one for each source."""
    key = key_of(question.name)
    sources = everywhere if question.source is None else [question.source]
    return [mark_of(source, key) for source in sources] if key else []


def candidate_of(row: Row) -> Candidate[GraphPage]:
    """A page that has the name, as `choose` is given it."""
    return Candidate(
        page_of(row["page"]), NameKind(cast("int", row["kind"])), str(row["name"]), str(row["folder"]), private=False
    )


def chosen_of(name: str, found: list[Candidate[GraphPage]]) -> list[NameMatch]:
    """The pages a name leads to, of all who have it."""
    found.sort(key=lambda one: (one.page.source, one.page.slug, one.page.page_id, one.kind))
    chosen: list[Candidate[GraphPage]] = []
    for source in dict.fromkeys(candidate.page.source for candidate in found):
        within = [candidate for candidate in found if candidate.page.source == source]
        chosen.extend(choose(within, name=name, titled=True, folder=None))
    if chosen:
        chosen = strongest(chosen)
    return [NameMatch(candidate.page, candidate.kind, candidate.name) for candidate in chosen[:CANDIDATES_MAX]]


FIND = f"""
    MATCH (s:{SLUG} {{store: $store, source: $source, slug: $slug}}) MATCH {page("p", "s.page_id")}
    WHERE {visible("p")} RETURN {page_map("p")} AS page
"""
"""The page that a slug leads to."""

SEARCH = f"""
    CALL db.index.fulltext.queryNodes('{NAMES_INDEX}', $query, {{limit: $pages}}) YIELD node AS p, score
    WITH p, score ORDER BY CASE WHEN $shortest THEN toFloat(p.names_size) ELSE -score END, p.slug LIMIT $limit
    RETURN {page_map("p")} AS page, p.aliases AS aliases
"""
"""Pages whose names have some grams; the query holds our own words alone, and who may see what is part of it."""


async def search_names(statements: Statements, store: str, partial: str, viewer: Viewer, limit: int) -> list[NameMatch]:
    """See `GraphStore.search_names`."""
    asked = key_of(partial)
    if not asked or viewer.sources == frozenset():
        return []
    seen = [[store_gram(store)]]
    if viewer.sources is not None:
        seen.append([source_gram(source) for source in sorted(viewer.sources)])
    if not viewer.private:
        seen.append([private_gram(False)])
    runs = grams_of([asked])
    whole = [gram(run) for run in runs if len(run) == GRAM_MAX][:GRAMS_ASKED_MAX] or [gram(runs[-1])]
    # One ideograph tells as much as three letters.
    telling = [gram(run) for run in runs if len(run) == GRAM_MAX or not run.isascii()][:GRAMS_ASKED_MAX]
    containing = query_of(must=[*seen, *([one] for one in whole)], any_of=[])
    best = matches_of(await found(statements, containing, pages=CONTAINING_MAX, shortest=True), asked)
    if len(best) < limit and telling:
        held = {match.page.page_id for _, match in best}
        sharing = query_of(must=seen, any_of=telling)
        near = matches_of(await found(statements, sharing, pages=SCANNED_MAX, shortest=False), asked)
        best.extend(scored for scored in near if scored[1].page.page_id not in held)
    best.sort(key=lambda scored: (-scored[0], scored[1].kind, len(scored[1].name), scored[1].page.slug))
    return [match for _, match in best[:limit]]


async def found(statements: Statements, query: str, *, pages: int, shortest: bool) -> list[Row]:
    """The first pages of a query: the best, or of as many as are looked at those with the shortest names."""
    parameters = {"query": query, "pages": pages, "shortest": shortest, "limit": SCANNED_MAX}
    return await statements.run(SEARCH, parameters)


def matches_of(rows: Sequence[Row], asked: str) -> list[tuple[float, NameMatch]]:
    """For each page its name most like the text, with the likeness; pages with none alike are left out."""
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(asked)
    pairs = pairs_of(asked)
    best = []
    for row in rows:
        shown = page_of(row["page"])
        scores = []
        for kind, key, name in searched_names(shown, row["aliases"]):
            score = likeness(matcher, asked, pairs, key)
            if score >= LIKENESS_MIN:
                scores.append((-score, kind, name))
        if scores:
            score, kind, name = min(scores)
            best.append((-score, NameMatch(shown, kind, name)))
    return best


def searched_names(shown: GraphPage, aliases: Value) -> list[tuple[NameKind, str, str]]:
    """Kind, key and spelling of the names that a page is searched by."""
    own = page_names(shown.title, cast("list[str]", aliases))
    slugs = [(kind, key, shown.slug) for kind, key in slug_names(shown.slug, redirect=False)]
    return [name for name in (*own, *slugs) if name[0] in SEARCHED_KINDS]
