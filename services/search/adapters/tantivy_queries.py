"""Filters and ranked lists in tantivy's terms. Every value is taken literally."""

from __future__ import annotations

from collections.abc import Sequence

from tantivy import FieldType, Occur, Query, Schema, Searcher

from services.search.values import PageFilter, Retriever, microseconds

PREFIX_REGEX_CHARACTERS_MAX = 256
"""Longer prefixes are looked up as terms first: the engine's automata have at most 1,000 states."""

PREFIX_SLUGS_MAX = 10_000
"""Slugs below a prefix that long; there are never so many."""

BITS_MAX = 24
"""Terms told apart in one look: a score is a 32-bit float, exact for whole numbers of 24 bits."""

ALIAS_WEIGHT = 0.9
"""A page that is called so ranks before one that is also called so."""

Clause = tuple[Occur, Query]


def filter_clauses(schema: Schema, searcher: Searcher, within: PageFilter) -> list[Clause] | None:
    """What a document must and must not be; None when nothing can be visible. They add nothing to a score."""
    if within.sources is not None and not within.sources:
        return None
    clauses: list[Clause] = []
    if within.sources is not None:
        clauses.append(must(terms_query(schema, "source", sorted(within.sources))))
    if not within.private:
        clauses.append((Occur.MustNot, Query.term_query(schema, "private", "1", "basic")))
    if within.types:
        clauses.append(must(terms_query(schema, "type", within.types)))
    clauses += [must(Query.term_query(schema, "tag", tag, "basic")) for tag in dict.fromkeys(within.tags)]
    if within.slug_prefix:
        clauses.append(must(prefix_query(schema, searcher, within.slug_prefix)))
    if within.updated_after is not None:
        clauses.append(must(range_query(schema, "updated", FieldType.Integer, low=microseconds(within.updated_after))))
    if within.since or within.until:
        low, high = within.since or 1, within.until or None
        clauses.append(must(range_query(schema, "date", FieldType.Unsigned, low=low, high=high)))
    return clauses


def confined(query: Query, clauses: Sequence[Clause]) -> Query:
    """The query within its filter."""
    return Query.boolean_query([(Occur.Must, query), *clauses]) if clauses else query


def ranking(schema: Schema, retriever: Retriever, terms: Sequence[str]) -> Query:
    """BM25 over the terms: any of them may match, each that does adds to the score."""
    if retriever is Retriever.TITLE:
        return Query.boolean_query([(Occur.Should, _title_query(schema, term)) for term in terms])
    return Query.boolean_query([(Occur.Should, Query.term_query(schema, "terms", term, "freq")) for term in terms])


def which_terms(schema: Schema, retriever: Retriever, terms: Sequence[str], key_field: str, keys: list[str]) -> Query:
    """Scores each of some documents by the sum of 2^n over the terms n that it holds. At most BITS_MAX terms."""
    assert len(terms) <= BITS_MAX, len(terms)
    holds = (
        Query.const_score_query(
            _title_query(schema, term)
            if retriever is Retriever.TITLE
            else Query.term_query(schema, "terms", term, "basic"),
            float(1 << number),
        )
        for number, term in enumerate(terms)
    )
    return Query.boolean_query([must(terms_query(schema, key_field, keys)), *((Occur.Should, q) for q in holds)])


def must(query: Query) -> Clause:
    """A condition: it scores nothing."""
    return Occur.Must, Query.const_score_query(query, 0.0)


def terms_query(schema: Schema, field: str, values: Sequence[str]) -> Query:
    """Documents with any of these values."""
    if len(values) == 1:
        return Query.term_query(schema, field, values[0], "basic")
    return Query.term_set_query(schema, field, list(values))


def prefix_query(schema: Schema, searcher: Searcher, prefix: str) -> Query:
    """Documents whose slug begins with the prefix, taken literally."""
    if len(prefix) <= PREFIX_REGEX_CHARACTERS_MAX:
        literal = "".join(c if c.isalnum() or ord(c) > 127 else f"\\{c}" for c in prefix)
        return Query.regex_query(schema, "slug", f"{literal}.*")
    slugs = [slug for slug, _ in searcher.terms_with_prefix("slug", prefix, None, PREFIX_SLUGS_MAX)]
    return Query.term_set_query(schema, "slug", slugs) if slugs else Query.empty_query()


def range_query(
    schema: Schema, field: str, kind: FieldType, *, low: int | None = None, high: int | None = None
) -> Query:
    """Documents with a value between two, both included."""
    return Query.range_query(schema, field, kind, lower_bound=low, upper_bound=high)


def _title_query(schema: Schema, term: str) -> Query:
    title = Query.term_query(schema, "title", term, "freq")
    alias = Query.boost_query(Query.term_query(schema, "alias", term, "freq"), ALIAS_WEIGHT)
    return Query.disjunction_max_query([title, alias])
