"""What graph refuses, what it coerces, and positions that travel as tokens."""

from __future__ import annotations

import json

import pytest

from services.domain.context import OperationContext, Scope, local_context
from services.domain.errors import InvalidArgument, PermissionDenied
from services.graph import messages
from services.graph.app import reading
from services.graph.ports import GraphStore, LinkPosition, UnresolvedPosition
from tests.contract.graph.pages import link, page

LOCAL = local_context()


async def test_a_list_is_read_page_by_page_and_a_page_larger_than_allowed_is_cut_to_it(store: GraphStore) -> None:
    await store.apply([page("a", *(link(f"p/{number:04d}") for number in range(1200)))])

    async def listed(page_size: int, after: LinkPosition | None = None) -> reading.Listed[object, LinkPosition]:
        found = await reading.list_links(
            store, LOCAL, source="", slug="a", arriving=False, link_types=(), page_size=page_size, after=after
        )
        return reading.Listed(list(found.items), found.next_after)

    first = await listed(0)
    largest = await listed(5000)
    rest = await listed(1000, largest.next_after)

    assert (len(first.items), len(largest.items), len(rest.items)) == (100, 1000, 200)
    assert rest.next_after is None


async def test_values_out_of_bounds_are_refused_by_field(store: GraphStore) -> None:
    with pytest.raises(InvalidArgument) as size:
        await reading.list_unresolved(store, LOCAL, source="", page_size=-1, after=None)
    with pytest.raises(InvalidArgument) as many:
        await reading.count_backlinks(store, LOCAL, ["x"] * 1001)
    with pytest.raises(InvalidArgument) as limit:
        await reading.search_names(store, LOCAL, source="", partial="a", limit=10**9)
    with pytest.raises(InvalidArgument) as empty:
        await reading.search_names(store, LOCAL, source="", partial=" \n", limit=1)
    with pytest.raises(InvalidArgument) as names:
        await reading.resolve_names(store, LOCAL, source="", names=["x"] * 101, every_source=False)

    fields = [refused.value.field for refused in (size, many, limit, empty, names)]
    assert fields == ["page_size", "page_ids", "limit", "partial", "names"]


async def test_who_may_not_read_is_refused(store: GraphStore) -> None:
    nobody = OperationContext(principal="x", read_sources=None)
    elsewhere = OperationContext(principal="x", scopes=frozenset({Scope.READ}), read_sources=frozenset({"team"}))

    with pytest.raises(PermissionDenied):
        await reading.count_backlinks(store, nobody, [])
    with pytest.raises(PermissionDenied):
        await reading.stats(store, elsewhere, source="default")


async def test_a_name_with_a_colon_is_a_source_if_there_is_such_a_page_and_else_a_title(store: GraphStore) -> None:
    await store.apply([page("x", title="re: plans"), page("plans", source="team"), page("plans")])

    async def found(name: str) -> list[str]:
        (matches,) = await reading.resolve_names(store, LOCAL, source="", names=[name], every_source=False)
        return [f"{match.page.source}:{match.page.slug}" for match in matches]

    assert await found("Re: plans") == ["default:x"]
    assert await found("team:plans") == ["team:plans"]
    assert await found("team: plans") == []
    assert await found("plans") == ["default:plans"]


def test_positions_come_back_as_they_were() -> None:
    at_link = LinkPosition("founded", "公司/星河", "id", 3)
    at_reference = UnresolvedPosition("default", "a/b", "id", 0)

    assert messages.link_position(messages.position_text(at_link)) == at_link
    assert messages.unresolved_position(messages.position_text(at_reference)) == at_reference


MADE_UP = [
    *("", "[]", "{}", "1", "null", '["a"]', '["a","b","c","d"]', "[" * 100),
    *('["a","b","c",-1]', '["a","b","c",true]', '["a","b","c",9223372036854775808]', '[1,"b","c",1]'),
    json.dumps(["a", "b", "\ud800", 1]),
]


@pytest.mark.parametrize("text", MADE_UP)
def test_a_position_somebody_made_up_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        messages.link_position(text)
    assert refused.value.reason == "PAGE_TOKEN_INVALID"
