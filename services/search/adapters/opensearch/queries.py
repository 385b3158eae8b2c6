"""Filters and ranked lists in OpenSearch's terms. Every value is a term, taken literally; none is ever parsed."""

from __future__ import annotations

from collections.abc import Sequence

from services.search.adapters.opensearch.connection import Body
from services.search.adapters.tantivy_queries import ALIAS_WEIGHT
from services.search.values import PageFilter, Retriever, microseconds


def filters(within: PageFilter) -> list[Body] | None:
    """What a document must be; None when nothing can be visible. They add nothing to a score."""
    if within.sources is not None and not within.sources:
        return None
    clauses: list[Body] = []
    if within.sources is not None:
        clauses.append(any_of("source", sorted(within.sources)))
    if not within.private:
        clauses.append({"term": {"private": False}})
    if within.types:
        clauses.append(any_of("type", within.types))
    clauses += [{"term": {"tag": tag}} for tag in dict.fromkeys(within.tags)]
    if within.slug_prefix:
        clauses.append({"prefix": {"slug": within.slug_prefix}})
    if within.updated_after is not None:
        clauses.append({"range": {"updated": {"gte": microseconds(within.updated_after)}}})
    if within.since or within.until:
        bounds = {"gte": within.since or 1} | ({"lte": within.until} if within.until else {})
        clauses.append({"range": {"date": bounds}})
    return clauses


def any_of(field: str, values: Sequence[str]) -> Body:
    """Documents with any of these values."""
    return {"terms": {field: list(values)}}


def ranking(retriever: Retriever, terms: Sequence[str]) -> list[Body]:
    """BM25 over the terms, each named by its number, so that a hit says which it holds."""
    if retriever is Retriever.TITLE:
        return [_title(term, number) for number, term in enumerate(terms)]
    return [{"term": {"terms": {"value": term, "_name": str(number)}}} for number, term in enumerate(terms)]


def ranked(retriever: Retriever, terms: Sequence[str], clauses: Sequence[Body], without: Sequence[str] = ()) -> Body:
    """Documents within a filter that hold any of the terms, without those of some pages."""
    inside: dict[str, object] = {
        "should": ranking(retriever, terms),
        "minimum_should_match": 1,
        "filter": list(clauses),
    }
    if without:
        inside["must_not"] = [any_of("page_id", without)]
    return {"bool": inside}


def _title(term: str, number: int) -> Body:
    title = {"term": {"title": {"value": term}}}
    alias = {"term": {"alias": {"value": term, "boost": ALIAS_WEIGHT}}}
    return {"dis_max": {"queries": [title, alias], "_name": str(number)}}
