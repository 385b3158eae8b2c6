"""What may be asked of the jobs service, and what is refused with field, value and next step."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.context import OperationContext, Scope, local_context
from services.domain.errors import InvalidArgument, PermissionDenied
from services.jobs.kinds import KINDS, Kind, works_of
from services.jobs.requests import Submission, check_allowed, read_submission


def submission(**changes: object) -> Submission:
    fields: dict[str, object] = {
        "name": "rebuild",
        "data_json": '{"projection": "graph"}',
        "queue": "",
        "priority": 0,
        "max_attempts": 0,
        "delay": timedelta(0),
        "timeout": None,
        "request_id": "8f0e",
    }
    return read_submission(KINDS, **{**fields, **changes})  # type: ignore[arg-type]


def test_what_is_left_out_gets_its_default() -> None:
    asked = submission()

    assert (asked.queue, asked.max_attempts, asked.timeout) == ("default", 3, timedelta(hours=1))


@pytest.mark.parametrize(
    ("given_name", "projection"),
    [("lexical", "search-lexical"), ("search-vectors", "search-vectors"), ("graph", "graph"), ("all", "all")],
)
def test_a_projection_goes_by_its_name_or_its_short_one(given_name: str, projection: str) -> None:
    asked = submission(data_json=json.dumps({"projection": given_name}))

    assert json.loads(asked.data) == {"projection": projection}


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({"name": "dream"}, "name", "JOB_INVALID"),
        ({"name": ""}, "name", "JOB_INVALID"),
        ({"data_json": ""}, "data.projection", "JOB_INVALID"),
        ({"data_json": '{"projection": "everything"}'}, "data.projection", "JOB_INVALID"),
        ({"data_json": '{"projection": ["graph"]}'}, "data.projection", "JOB_INVALID"),
        ({"data_json": '{"projection": "graph", "force": true}'}, "data.force", "JOB_INVALID"),
        ({"name": "embed", "data_json": '{"model": "x"}'}, "data.model", "JOB_INVALID"),
        ({"name": "move", "data_json": '{"projection": "all", "to": "bolt://host"}'}, "data.projection", "JOB_INVALID"),
        ({"name": "move", "data_json": '{"projection": "graph"}'}, "data.to", "JOB_INVALID"),
        ({"name": "move", "data_json": '{"projection": "graph", "to": "bolt://me:pw@host"}'}, "data.to", "JOB_INVALID"),
        ({"data_json": "[]"}, "data", "JOB_INVALID"),
        ({"data_json": "{"}, "data", "JOB_INVALID"),
        ({"data_json": "[" * 60_000}, "data", "JOB_INVALID"),
        ({"data_json": '{"projection": "' + "图" * 30_000 + '"}'}, "data", "JOB_INVALID"),
        ({"queue": "Night Shift"}, "queue", "FIELD_INVALID"),
        ({"queue": "夜班"}, "queue", "FIELD_INVALID"),
        ({"queue": "a.b"}, "queue", "FIELD_INVALID"),
        ({"priority": -101}, "priority", "FIELD_INVALID"),
        ({"max_attempts": -1}, "max_attempts", "FIELD_INVALID"),
        ({"max_attempts": 101}, "max_attempts", "FIELD_INVALID"),
        ({"delay": timedelta(days=31)}, "delay", "FIELD_INVALID"),
        ({"delay": timedelta(seconds=-1)}, "delay", "FIELD_INVALID"),
        ({"timeout": timedelta(0)}, "timeout", "FIELD_INVALID"),
        ({"timeout": timedelta(days=2)}, "timeout", "FIELD_INVALID"),
        ({"request_id": ""}, "request_id", "FIELD_REQUIRED"),
        ({"request_id": "x" * 37}, "request_id", "FIELD_INVALID"),
        ({"request_id": "编号"}, "request_id", "FIELD_INVALID"),
    ],
)
def test_what_can_never_be_done_is_refused_by_field(changes: dict[str, object], field: str, reason: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        submission(**changes)

    assert (refused.value.field, refused.value.reason) == (field, reason)
    assert refused.value.next_step


def test_the_order_of_keys_and_the_spelling_make_no_other_request() -> None:
    assert (
        submission(data_json='{"projection":"lexical"}').digest
        == submission(data_json='{ "projection" : "search-lexical" }').digest
    )
    assert submission().digest != submission(priority=1).digest


def test_everything_comes_to_one_work_for_each_projection_under_names_that_stay() -> None:
    works = works_of(KINDS["rebuild"], 7, '{"projection":"all"}')

    assert [(work.work_id, work.owner) for work in works] == [
        ("job-7-search-lexical", "search"),
        ("job-7-search-vectors", "search"),
        ("job-7-graph", "graph"),
    ]


def test_one_projection_is_one_work_under_the_name_of_the_job() -> None:
    (work,) = works_of(KINDS["rebuild"], 7, '{"projection":"graph"}')

    assert (work.work_id, work.owner, work.task) == ("job-7", "graph", "rebuild")


@given(number=st.integers(1, 2**63 - 1), name=st.sampled_from(sorted(KINDS)))
def test_every_work_id_fits_the_owners_contract(number: int, name: str) -> None:
    data = {"rebuild": '{"projection":"all"}', "move": '{"projection":"graph","to":"bolt://host"}'}.get(name, "{}")

    assert all(1 <= len(work.work_id) <= 64 for work in works_of(KINDS[name], number, data))


def test_only_administrators_submit() -> None:
    with pytest.raises(PermissionDenied) as refused:
        check_allowed(OperationContext(principal="agent", scopes=frozenset({Scope.WRITE})), KINDS["embed"], "embed")

    assert refused.value.reason == "SCOPE_MISSING"


def test_only_local_callers_say_where_a_projection_moves_to() -> None:
    remote = OperationContext(principal="operator", scopes=frozenset({Scope.ADMIN}), remote=True)

    with pytest.raises(PermissionDenied):
        check_allowed(remote, KINDS["move"], "move")


def test_a_protected_kind_is_for_local_callers_only() -> None:
    embed = KINDS["embed"]
    shell = Kind(protected=True, read=embed.read, works=embed.works)
    remote = OperationContext(principal="operator", scopes=frozenset({Scope.ADMIN}))

    check_allowed(local_context(), shell, "shell")
    with pytest.raises(PermissionDenied) as refused:
        check_allowed(remote, shell, "shell")

    assert (refused.value.reason, refused.value.value) == ("JOB_DENIED", "shell")
