"""What callers send, and what an operation gets."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.operations.arguments import Arguments, read_arguments
from gateway.operations.definition import Operation
from gateway.operations.json_value import JsonValue
from gateway.operations.parameters import Kind, Parameter, limit
from gateway.operations.registry import all_operations
from services.domain.errors import InvalidArgument

SLUG = Parameter(name="slug", kind=Kind.TEXT, description="A slug.", required=True, characters_max=100)
CONTENT = Parameter(name="content", kind=Kind.TEXT, description="A text.", required=True, blank_counts=True)
LIMIT = limit(50, 500, what="pages")
SINCE = Parameter(name="since", kind=Kind.TEXT, description="A date.", characters_max=32)
SOURCE = Parameter(name="source", kind=Kind.TEXT, description="A source.", aliases=("source_id",))
FLAG = Parameter(name="fuzzy", kind=Kind.FLAG, description="Whether.", default=False)
TYPES = Parameter(name="types", kind=Kind.TEXTS, description="Types.", items_max=3)
DATA = Parameter(name="data", kind=Kind.OBJECT, description="What to do.")
SORT = Parameter(name="sort", kind=Kind.TEXT, description="Order.", choices=("slug", "updated"), default="updated")
QUERY = Parameter(name="query", kind=Kind.TEXT, description="Words.", required=True, characters_max=20, keeps_end=True)
ANY = (LIMIT, SINCE, SOURCE, FLAG, TYPES, DATA, SORT)


def refused(raw: JsonValue, *parameters: Parameter) -> InvalidArgument:
    with pytest.raises(InvalidArgument) as caught:
        read_arguments(raw, parameters)
    assert caught.value.field
    assert caught.value.next_step
    return caught.value


@pytest.mark.parametrize("absent", [None, "", "  ", "null", "undefined"])
def test_null_and_empty_optional_arguments_are_absent(absent: str | None) -> None:
    """BC-142, BC-143."""
    arguments = read_arguments({"since": absent, "limit": absent, "types": absent, "source": absent}, ANY)

    assert arguments.text("since") == ""
    assert arguments.number("limit") == 50
    assert arguments.texts("types") == ()
    assert arguments.notes == []


def test_reserved_keys_of_the_protocol_are_no_arguments() -> None:
    """BC-142."""
    assert read_arguments({"_meta": {"progressToken": 1}, "cursor": None}, ANY).notes == []


def test_an_unknown_argument_is_named_with_the_nearest_one() -> None:
    """BC-142."""
    error = refused({"limits": 3}, *ANY)

    assert (error.reason, error.field) == ("ARGUMENT_UNKNOWN", "limits")
    assert "'limit'" in error.next_step


def test_an_alias_is_the_argument_and_two_different_values_are_refused() -> None:
    assert read_arguments({"source_id": "work"}, ANY).text("source") == "work"
    assert read_arguments({"source": None, "source_id": "work"}, ANY).text("source") == "work"
    assert refused({"source": "home", "source_id": "work"}, *ANY).field == "source"


def test_a_missing_required_argument_is_named() -> None:
    assert refused({}, SLUG).reason == "FIELD_REQUIRED"
    assert refused({"slug": ""}, SLUG).field == "slug"


def test_an_empty_text_counts_where_it_is_a_value() -> None:
    assert read_arguments({"content": ""}, (CONTENT,)).text("content") == ""


@pytest.mark.parametrize(("given_limit", "used"), [(0, 50), (7, 7), (10**9, 500), ("7", 7), (7.0, 7), ("+7", 7)])
def test_a_limit_is_taken_lowered_or_the_default_and_the_reply_says_so(given_limit: JsonValue, used: int) -> None:
    arguments = read_arguments({"limit": given_limit}, ANY)

    assert arguments.number("limit") == used
    assert bool(arguments.notes) is (given_limit != used)


@pytest.mark.parametrize("wrong", [-1, "-1", True, "seven", 1.5, [1], {"n": 1}, 10**30, "9" * 5000, "①"])
def test_what_is_no_usable_limit_is_refused(wrong: JsonValue) -> None:
    assert refused({"limit": wrong}, *ANY).field == "limit"


def test_a_number_without_a_default_tells_absent_from_zero() -> None:
    revision = Parameter(name="if_revision", kind=Kind.WHOLE_NUMBER, description="A revision.", minimum=0)

    assert read_arguments({}, (revision,)).optional_number("if_revision") is None
    assert read_arguments({"if_revision": 0}, (revision,)).optional_number("if_revision") == 0


@pytest.mark.parametrize(("written", "read"), [("true", True), ("FALSE", False), (1, True), ("0", False)])
def test_a_flag_that_came_as_text_is_read_with_a_note(written: JsonValue, read: bool) -> None:
    arguments = read_arguments({"fuzzy": written}, ANY)

    assert arguments.flag("fuzzy") is read
    assert arguments.notes


def test_a_list_that_came_as_text_is_read_with_a_note() -> None:
    for written in ('["person", "公司"]', "person, 公司", "person,公司,person"):
        arguments = read_arguments({"types": written}, ANY)
        assert arguments.texts("types") == ("person", "公司")
        assert arguments.notes


@pytest.mark.parametrize("wrong", [5, {"a": 1}, [1], [None], ["a", "b", "c", "d"]])
def test_what_is_no_list_of_texts_is_refused(wrong: JsonValue) -> None:
    assert refused({"types": wrong}, *ANY).field == "types"


def test_an_object_that_came_as_a_string_of_json_is_read_with_a_note() -> None:
    arguments = read_arguments({"data": '{"projection": "graph"}'}, ANY)

    assert arguments.object("data") == {"projection": "graph"}
    assert arguments.notes


def test_whole_arguments_that_came_as_a_string_of_json_are_read_with_a_note() -> None:
    arguments = read_arguments('{"slug": "people/ada"}', (SLUG,))

    assert arguments.text("slug") == "people/ada"
    assert arguments.notes


@pytest.mark.parametrize("wrong", [[], 5, "people/ada", True, "[1]"])
def test_arguments_that_are_no_object_are_refused(wrong: JsonValue) -> None:
    assert refused(wrong, SLUG).field == "arguments"


def test_a_choice_is_one_of_those_there_are() -> None:
    assert read_arguments({"sort": "Slug"}, ANY).text("sort") == "slug"
    assert "updated" in refused({"sort": "size"}, *ANY).next_step


def test_a_long_query_keeps_its_end_because_the_question_stands_there() -> None:
    """BC-101."""
    arguments = read_arguments({"query": "pasted " * 10_000 + "Who owns Acme?"}, (QUERY,))

    assert arguments.text("query").endswith("Who owns Acme?")
    assert len(arguments.text("query")) == 20
    assert "20" in arguments.notes[0]


def test_nul_characters_are_taken_out_of_a_query_with_a_note() -> None:
    """BC-164."""
    arguments = read_arguments({"query": "a\0b"}, (QUERY,))

    assert arguments.text("query") == "ab"
    assert arguments.notes


def test_half_a_surrogate_pair_is_refused_before_anything_is_sent() -> None:
    assert refused({"content": "a\ud800"}, CONTENT).reason == "ENCODING_INVALID"
    assert refused({"types": ["\udc00"]}, *ANY).reason == "ENCODING_INVALID"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(data=st.data())
def test_whatever_comes_is_read_or_refused_with_field_and_next_step(data: st.DataObject) -> None:
    operation = data.draw(st.sampled_from(list(all_operations().values())))
    names = [name for p in operation.parameters for name in (p.name, *p.aliases)] or ["none"]
    keys = st.sampled_from(names) | st.text(max_size=10)
    raw = data.draw(JSON | st.dictionaries(keys, JSON, max_size=5))
    outcome = read_or_refuse(raw, operation)

    if isinstance(outcome, InvalidArgument):
        assert outcome.field
        assert outcome.next_step
        assert len(outcome.value) <= 200
    else:
        assert set(outcome.values) == {p.name for p in operation.parameters}
        json.dumps(outcome.notes).encode()


def read_or_refuse(raw: JsonValue, operation: Operation) -> Arguments | InvalidArgument:
    try:
        return read_arguments(raw, operation.parameters)
    except InvalidArgument as error:
        return error
