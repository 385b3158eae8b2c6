"""The list of operations, as agents and clients see it."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from gateway.operations.definition import Operation
from gateway.operations.registry import all_operations
from gateway.operations.run import error_reply, find_operation
from gateway.operations.status_codes import http_status
from services.domain import errors
from services.domain.errors import BrainError, Conflict, InvalidArgument

OPERATIONS = all_operations()
TOOLS = {
    "put_page", "get_page", "delete_page", "restore_page", "move_page", "list_pages", "get_versions", "revert_version",
    "search", "query", "get_links", "get_backlinks", "traverse_graph", "resolve_slugs", "get_stats",
    "submit_job", "get_job", "list_jobs", "cancel_job",
}  # fmt: skip


def test_the_promised_operations_are_tools() -> None:
    assert {operation.name for operation in OPERATIONS.values() if operation.tool} == TOOLS


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_every_property_has_an_explicit_type_and_a_description(operation: Operation) -> None:
    """BC-140."""
    schema = operation.schema()

    Draft202012Validator.check_schema(schema)
    properties = schema["properties"]
    assert isinstance(properties, dict)
    for name, shown in properties.items():
        assert isinstance(shown, dict)
        assert shown["type"] in {"string", "integer", "boolean", "array", "object"}, name
        assert len(str(shown["description"])) > 10, name


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_names_of_parameters_are_unique_with_their_aliases(operation: Operation) -> None:
    names = [name for p in operation.parameters for name in (p.name, *p.aliases)]

    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", ["put_page", "delete_page", "move_page", "restore_page"])
def test_writes_can_wait_for_text_or_for_nothing(name: str) -> None:
    wait = next(p for p in OPERATIONS[name].parameters if p.name == "wait")

    assert wait.choices == ("none", "text")
    assert wait.default == "text"


def test_every_operation_takes_an_optional_source_unless_it_is_about_jobs() -> None:
    for operation in OPERATIONS.values():
        takes = any(p.name == "source" and not p.required for p in operation.parameters)
        assert takes is not operation.name.endswith(("job", "jobs")), operation.name


def test_an_unknown_operation_is_told_the_nearest_one() -> None:
    with pytest.raises(InvalidArgument, match="get_pages") as caught:
        find_operation(OPERATIONS, "get_pages")

    assert caught.value.reason == "OPERATION_UNKNOWN"
    assert "'get_page'" in caught.value.next_step


def test_what_is_no_tool_is_unknown_to_agents() -> None:
    with pytest.raises(InvalidArgument) as caught:
        find_operation(OPERATIONS, "get_status", tools_only=True)

    assert "get_status" not in caught.value.next_step


def test_an_error_says_what_failed_and_what_to_do_now() -> None:
    error = Conflict(
        "REVISION_CONFLICT",
        "the page has revision 12",
        field="if_revision",
        value=7,
        next_step="Read it again.",
        metadata={"revision": "12", "actor": "ada", "content_hash": "0012"},
    )

    assert error_reply(error) == {
        "error": {
            "reason": "REVISION_CONFLICT",
            "message": "the page has revision 12",
            "field": "if_revision",
            "value": "7",
            "next_step": "Read it again.",
            "details": {"revision": 12, "actor": "ada", "content_hash": "0012"},
        }
    }


@pytest.mark.parametrize(
    ("kind", "reason", "status"),
    [
        ("InvalidArgument", "FIELD_INVALID", 400),
        ("InvalidArgument", "PAGE_TOO_LARGE", 413),
        ("InvalidArgument", "OPERATION_UNKNOWN", 404),
        ("Unauthenticated", "TOKEN_INVALID", 401),
        ("PermissionDenied", "SCOPE_MISSING", 403),
        ("NotFound", "PAGE_NOT_FOUND", 404),
        ("AlreadyExists", "SLUG_TAKEN", 409),
        ("Conflict", "REVISION_CONFLICT", 409),
        ("NotReady", "INDEX_BEHIND", 503),
        ("Overloaded", "LIMIT_REACHED", 429),
        ("Unavailable", "PEER_UNAVAILABLE", 503),
        ("DeadlineExceeded", "DEADLINE_EXCEEDED", 504),
        ("Internal", "INTERNAL", 500),
    ],
)
def test_every_error_has_its_http_status(kind: str, reason: str, status: int) -> None:
    error: BrainError = vars(errors)[kind](reason, "it failed")

    assert http_status(error) == status
