"""The words that every reading statement shares: what a viewer sees, where a link leads for it, and rows as values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from services.domain.page import LinkProvenance
from services.domain.records import PageId
from services.graph.adapters.neo4j.connection import Row, Value
from services.graph.adapters.neo4j.schema import NAME, PAGE, SLUG
from services.graph.naming import CANDIDATES_MAX, NameKind
from services.graph.ports import GraphPage, Link, Viewer

PROVENANCES = (LinkProvenance.FRONTMATTER, LinkProvenance.MANUAL, LinkProvenance.TEXT, LinkProvenance.MENTION)
"""By weight as evidence: what is stated counts more than what is said, and that more than what is only named."""
PROVENANCE_CODES = {provenance: code for code, provenance in enumerate(PROVENANCES)}
MENTION = PROVENANCE_CODES[LinkProvenance.MENTION]


def page_of(value: Value) -> GraphPage:
    """A page from the map that `page_map` makes."""
    row = cast("Mapping[str, Value]", value)
    return GraphPage(
        source=str(row["source"]),
        slug=str(row["slug"]),
        page_id=PageId(str(row["page_id"])),
        title=str(row["title"]),
        type=str(row["type"]),
        revision=cast("int", row["revision"]),
    )


def page_map(alias: str) -> str:
    """A page's columns as `page_of` reads them."""
    return f"{alias} {{.source, .slug, .page_id, .title, .type, .revision}}"


LINK_MAP = "l {.provenance, .type, .name, .ordinal, .line, .fragment, .embed, .context}"


def link_of(value: Value, from_page: GraphPage, to_page: GraphPage, *, made_by: PageId, fits: list[Value]) -> Link:
    """A link from its columns, its ends and the pages that its name fits when they are several."""
    row = cast("Mapping[str, Value]", value)
    candidates = sorted((page_of(one) for one in fits), key=lambda page: (page.source, page.slug, page.page_id))
    return Link(
        from_page=from_page,
        to_page=to_page,
        link_type=str(row["type"]),
        provenance=PROVENANCES[cast("int", row["provenance"])],
        name=str(row["name"]),
        made_by=made_by,
        context=str(row["context"]),
        line=cast("int", row["line"]),
        fragment=str(row["fragment"]),
        embed=bool(row["embed"]),
        ambiguous=len(candidates) > 1,
        candidates=tuple(candidates[:CANDIDATES_MAX]) if len(candidates) > 1 else (),
    )


def ends_of(row: Row) -> list[Value]:
    """The pages that a link's name fits."""
    return cast("list[Value]", row["fits"])


def visible(alias: str) -> str:
    """The condition that the viewer sees a page: the one predicate, in every statement, never a filter afterwards.

    Who the viewer is are parameters, so that a statement has one text and one plan for all of them.
    """
    return f"({readable(alias)} AND ($private OR NOT {alias}.private))"


def readable(alias: str) -> str:
    """The condition that the viewer may read the source of a node."""
    return f"($sources IS NULL OR {alias}.source IN $sources)"


def viewer_parameters(viewer: Viewer) -> dict[str, object]:
    """What `visible` and `readable` ask for."""
    return {"sources": None if viewer.sources is None else sorted(viewer.sources), "private": viewer.private}


def page(alias: str, key: str) -> str:
    """The pattern of the page with an id."""
    return f"({alias}:{PAGE} {{store: $store, page_id: {key}}})"


CANDIDATES = f"""
    COLLECT {{
      MATCH (k)<-[g:GIVES|CALLED]-(x) WHERE g.kind <= $kind_max AND {readable("k")}
      MATCH {page("c", "x.page_id")} WHERE {visible("c")}
      RETURN {{page: c, kind: g.kind, name: coalesce(g.name, x.slug)}}
    }}
"""
"""The pages that have the name `k`, with the kind and the spelling: what `naming.choose` is given.

Whoever gives a name, a slug or the page itself, says which page it is for.
"""

OF_LINKS = {"kind_max": int(NameKind.FORMER_TAIL)}
OF_QUESTIONS = {"kind_max": int(NameKind.UNDATED_TAIL)}
"""Links do not know the kinds of names that are for questions alone."""

_ADDRESS = int(NameKind.REDIRECT)
"""The weakest kind of name that is an address."""

_STRONGEST = (
    "[c IN pool WHERE c.kind = reduce(best = 9, o IN pool | CASE WHEN o.kind < best THEN o.kind ELSE best END)]"
)

RESOLVED = f"""
    WITH *, CASE
      WHEN size(cs) = 1 THEN CASE WHEN l.titled OR cs[0].kind <= {_ADDRESS} THEN cs ELSE [] END
      WHEN any(c IN cs WHERE c.kind <= {_ADDRESS} AND c.name = l.spelled)
        THEN [c IN cs WHERE c.kind <= {_ADDRESS} AND c.name = l.spelled]
      WHEN any(c IN cs WHERE c.kind = {int(NameKind.SLUG)}) THEN [c IN cs WHERE c.kind = {int(NameKind.SLUG)}]
      WHEN any(c IN cs WHERE c.kind = {_ADDRESS}) THEN [c IN cs WHERE c.kind = {_ADDRESS}]
      WHEN NOT l.titled THEN []
      WHEN m.source = k.source AND any(c IN cs WHERE c.page.folder = m.folder)
        THEN head([pool IN [[c IN cs WHERE c.page.folder = m.folder]] | {_STRONGEST}])
      ELSE head([pool IN [cs] | {_STRONGEST}])
    END AS chosen
    WITH *, CASE WHEN size(chosen) < 2 THEN [c IN chosen | c.page]
      ELSE reduce(found = [], c IN chosen | CASE WHEN c.page IN found THEN found ELSE found + [c.page] END) END AS ends
"""
"""`naming.choose` for the link `l` that `m` makes to the name `k` with the candidates `cs`: the pages `ends`.

One page is where it leads, several make it ambiguous. A contract test holds it to the rule in Python.
"""


def written_here(condition: str) -> str:
    """The links that the page `m` in scope makes itself, each with its `ends`."""
    return f"""
        MATCH (m)-[l:LINKS]->(k:{NAME}) WHERE {condition}
        WITH *, {CANDIDATES} AS cs {RESOLVED}
    """


def written_there(condition: str) -> str:
    """The links that other pages `m` make to the page `h` in scope, by whichever of its names."""
    return f"""
        CALL (h) {{
          MATCH (s:{SLUG} {{store: $store, page_id: h.page_id}})-[:GIVES]->(k:{NAME}) RETURN k
          UNION MATCH (h)-[:CALLED]->(k:{NAME}) RETURN k
        }}
        WITH h, k, {CANDIDATES} AS cs
        MATCH (k)<-[l:LINKS]-(m:{PAGE}) WHERE m <> h AND {visible("m")} AND {condition}
        {RESOLVED} WHERE ends = [h]
    """
