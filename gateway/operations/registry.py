"""All operations of a brain, by name: the one list that every edge is made from."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gateway.operations import brain, graph, jobs, page_lists, pages, recall
from gateway.operations.definition import Operation


def all_operations() -> Mapping[str, Operation]:
    """Every operation by its name, in the order in which agents should see them."""
    families = (recall, pages, page_lists, graph, brain, jobs)
    return MappingProxyType({operation.name: operation for family in families for operation in family.OPERATIONS})
