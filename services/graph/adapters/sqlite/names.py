"""Reading names: which pages have one, and which come near a part of one."""

# ruff: noqa: S608  (statements are put together from our own words; every value is a parameter)

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from services.graph.adapters.sqlite.naming_rows import mark_of, searchable
from services.graph.adapters.sqlite.rows import (
    Parameters,
    json_list,
    page_columns,
    page_of,
    readable,
    viewer_parameters,
    visible,
)
from services.graph.likeness import LIKENESS_MIN, likeness, pairs_of
from services.graph.naming import CANDIDATES_MAX, Candidate, NameKind, choose, folder_of, key_of, strongest
from services.graph.ports import GraphPage, Link, NameMatch, NameQuestion, Viewer

SCANNED_MAX = 200
"""Pages whose names are compared in full; the rest share less with what was asked."""

TRIGRAMS_MAX = 64
"""Of what was asked, for near names: nobody half remembers more than that."""

CONTAINED_TRIGRAMS = 3
"""The rarest trigrams of what is looked for inside names: then few texts are left."""

SHARING_MAX = 4_000
"""Pages that near names are picked from: a trigram that many more have tells nothing about a name."""

SOURCES_MAX = 10_000
"""Sources a name without one is looked up in; a brain has some dozens."""

SEARCHED_KINDS = (NameKind.SLUG, NameKind.TITLE, NameKind.ALIAS, NameKind.SLUG_TAIL)


def candidates_of(
    connection: sqlite3.Connection, key: str, viewer: Viewer, *, source: str | None
) -> list[Candidate[GraphPage]]:
    """The visible pages that have a name with this key, by source and slug."""
    if not key:
        return []
    sources = [source] if source is not None else all_sources(connection)
    statement = f"""
        SELECT n.kind, n.name, p.folder, {page_columns("p")}
        FROM json_each(:marks) j JOIN names n ON n.mark = j.value JOIN pages p ON p.page_id = n.page_id
        WHERE n.key = :key AND n.source IN (SELECT value FROM json_each(:names_in))
          AND {readable("n", viewer)} AND {visible("p", viewer)}
        ORDER BY p.source, p.slug, p.page_id, n.kind
    """
    parameters: Parameters = {
        **viewer_parameters(viewer),
        "key": key,
        "marks": json_list(mark_of(source, key) for source in sources),
        "names_in": json_list(sources),
    }
    found = []
    for kind, name, folder, *page_row in connection.execute(statement, parameters):
        page = page_of(page_row)
        assert page is not None
        found.append(Candidate(page, NameKind(kind), name, folder, private=False))
    return found


def all_sources(connection: sqlite3.Connection) -> list[str]:
    """Every source that has a name, each found by one step in the index."""
    sources: list[str] = []
    while len(sources) < SOURCES_MAX:
        after = sources[-1] if sources else ""
        (found,) = connection.execute("SELECT MIN(source) FROM slugs WHERE source > ?", (after,)).fetchone()
        if found is None:
            break
        sources.append(str(found))
    return sources


def resolve_name(connection: sqlite3.Connection, question: NameQuestion, viewer: Viewer) -> list[NameMatch]:
    """See `GraphStore.resolve_names`, for one name."""
    candidates = candidates_of(connection, key_of(question.name), viewer, source=question.source)
    chosen: list[Candidate[GraphPage]] = []
    for source in dict.fromkeys(candidate.page.source for candidate in candidates):
        within = [candidate for candidate in candidates if candidate.page.source == source]
        chosen.extend(choose(within, name=question.name, titled=True, folder=None))
    if chosen:
        chosen = strongest(chosen)
    return [NameMatch(candidate.page, candidate.kind, candidate.name) for candidate in chosen[:CANDIDATES_MAX]]


def candidates_of_link(connection: sqlite3.Connection, link: Link, maker: GraphPage, viewer: Viewer) -> list[GraphPage]:
    """The pages that an ambiguous link's name fits, by slug."""
    ghost = link.to_page if link.to_page.ghost else link.from_page
    named = candidates_of(connection, key_of(link.name), viewer, source=ghost.source)
    candidates = [candidate for candidate in named if candidate.kind is not NameKind.UNDATED_TAIL]
    folder = folder_of(maker.slug) if maker.source == ghost.source else None
    # Written as a path or not: an ambiguous link has the answer of its own kind, and paths have addresses alone.
    chosen = choose(candidates, name=link.name, titled=True, folder=folder)
    return [candidate.page for candidate in chosen[:CANDIDATES_MAX]]


def search_names(connection: sqlite3.Connection, partial: str, viewer: Viewer, limit: int) -> list[NameMatch]:
    """See `GraphStore.search_names`."""
    asked = key_of(partial)
    if not asked:
        return []
    best = matches_of(connection, pages_containing(connection, asked, viewer), asked)
    contained = {match.page.page_id for _, match in best}
    if len(best) < limit:
        near = matches_of(connection, pages_sharing(connection, asked, viewer), asked)
        best.extend(scored for scored in near if scored[1].page.page_id not in contained)
    best.sort(key=lambda scored: (-scored[0], scored[1].kind, len(scored[1].name), scored[1].page.slug))
    return [match for _, match in best[:limit]]


def pages_containing(connection: sqlite3.Connection, asked: str, viewer: Viewer) -> list[GraphPage]:
    """Visible pages with a name that contains the text, those with the shortest names first."""
    text = searchable(asked)
    trigrams = trigrams_of(text)
    condition = "instr(name_text.text, :text) > 0"
    parameters: Parameters = {"text": text}
    if trigrams:  # What is shorter than a run of three is looked for in the texts themselves.
        counts = documents_with(connection, trigrams)
        if len(counts) < len(trigrams):
            return []
        # The rarest leave few texts to look into; the common ones would only be long lists to cut against each other.
        parameters["phrase"] = " AND ".join(quoted(term) for term, _ in counts[:CONTAINED_TRIGRAMS])
        condition = f"name_text MATCH :phrase AND {condition}"
    return found_pages(connection, condition, "length(name_text.text), p.slug", parameters, viewer)


def pages_sharing(connection: sqlite3.Connection, asked: str, viewer: Viewer) -> list[GraphPage]:
    """Visible pages whose names share the most telling parts with the text."""
    telling: list[str] = []
    room = SHARING_MAX
    for term, documents in documents_with(connection, trigrams_of(searchable(asked))):
        if telling and documents > room:
            break
        telling.append(term)
        room -= documents
    if not telling:
        return []
    phrase = " OR ".join(map(quoted, telling))
    return found_pages(connection, "name_text MATCH :phrase", "bm25(name_text), p.slug", {"phrase": phrase}, viewer)


def trigrams_of(text: str) -> list[str]:
    """The runs of three characters of a text, each once; of a long text those of its beginning."""
    return list(dict.fromkeys(text[at : at + 3] for at in range(min(len(text) - 2, TRIGRAMS_MAX))))


def documents_with(connection: sqlite3.Connection, trigrams: Sequence[str]) -> list[tuple[str, int]]:
    """Which trigrams are in any page's names, and in how many pages', the rarest first."""
    counts = connection.execute(
        "SELECT term, doc FROM name_parts WHERE term IN (SELECT value FROM json_each(?)) ORDER BY doc, term",
        (json_list(trigrams),),
    )
    return counts.fetchall()


def found_pages(
    connection: sqlite3.Connection, condition: str, order: str, parameters: Parameters, viewer: Viewer
) -> list[GraphPage]:
    """The first pages in an order whose searchable text fulfils a condition."""
    statement = f"""
        SELECT {page_columns("p")} FROM name_text JOIN pages p ON p.id = name_text.rowid
        WHERE {condition} AND {visible("p", viewer)} ORDER BY {order} LIMIT {SCANNED_MAX}
    """
    rows = connection.execute(statement, {**viewer_parameters(viewer), **parameters})
    return [page for row in rows if (page := page_of(row)) is not None]


def matches_of(connection: sqlite3.Connection, pages: Iterable[GraphPage], asked: str) -> list[tuple[float, NameMatch]]:
    """For each page its name most like the text, with the likeness; pages with none alike are left out."""
    by_id = {page.page_id: page for page in pages}
    statement = f"""
        SELECT kind, key, name, page_id FROM names WHERE page_id IN (SELECT value FROM json_each(:pages))
        AND kind IN ({", ".join(str(int(kind)) for kind in SEARCHED_KINDS)})
    """
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(asked)
    pairs = pairs_of(asked)
    best: dict[str, tuple[float, NameMatch]] = {}
    for kind, key, name, page_id in connection.execute(statement, {"pages": json_list(by_id)}):
        score = likeness(matcher, asked, pairs, key)
        match = NameMatch(by_id[page_id], NameKind(kind), name)
        held = best.get(page_id)
        if score >= LIKENESS_MIN and (held is None or (-score, kind) < (-held[0], held[1].kind)):
            best[page_id] = (score, match)
    return list(best.values())


def quoted(text: str) -> str:
    """The text as a phrase of the index's query language, whatever characters it has."""
    return '"' + re.sub('"', '""', text) + '"'


def resolve_names(
    connection: sqlite3.Connection, questions: Sequence[NameQuestion], viewer: Viewer
) -> list[list[NameMatch]]:
    """See `GraphStore.resolve_names`."""
    return [resolve_name(connection, question, viewer) for question in questions]
