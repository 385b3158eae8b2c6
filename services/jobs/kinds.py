"""The kinds of jobs: what their data may say, and which work of which owner they come to. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from services.domain.errors import InvalidArgument

Owner = Literal["search", "graph"]
Task = Literal["rebuild", "embed"]
JobData = Mapping[str, str]

DATA_BYTES_MAX: Final = 64 * 1024
URL_CHARACTERS_MAX: Final = 2048

PROJECTIONS: Final[Mapping[str, Owner]] = MappingProxyType(
    {"search-lexical": "search", "search-vectors": "search", "graph": "graph"}
)
"""Every projection there is, in the order in which `all` builds them, and who owns it."""
EVERY: Final = "all"
SHORT_NAMES: Final[Mapping[str, str]] = MappingProxyType({"lexical": "search-lexical", "vectors": "search-vectors"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One piece of work for one owner. The same `work_id` is the same work, however often it is asked for."""

    work_id: str
    owner: Owner
    task: Task
    projection: str = ""
    to: str = ""
    """URL of the engine that the projection moves to; empty: it stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of job."""

    protected: bool
    """Whether only local callers may submit it."""
    read: Callable[[Mapping[str, object]], JobData]
    """Checks and normalises the data, so that equal jobs have equal data."""
    works: Callable[[int, JobData], tuple[Work, ...]]
    """What it comes to, in order."""


def read_data(kind: Kind, data_json: str) -> str:
    """The data as JSON with sorted keys, checked by its kind; empty means {}.

    Raises:
        InvalidArgument: It is too long, no JSON object, or the kind does not take it.
    """
    if len(data_json.encode("utf-8", "surrogatepass")) > DATA_BYTES_MAX:
        raise invalid("the data of a job is at most 64 KiB", "data", f"{len(data_json)} characters", "Send less.")
    try:
        data: object = json.loads(data_json) if data_json else {}
    except (ValueError, RecursionError) as error:
        raise invalid("the data of a job is a JSON object", "data", data_json, "Send an object, or {}.") from error
    if not isinstance(data, dict):
        raise invalid("the data of a job is a JSON object", "data", data_json, "Send an object, or {}.")
    return json.dumps(dict(kind.read(data)), sort_keys=True, separators=(",", ":"))


def works_of(kind: Kind, job_id: int, data: str) -> tuple[Work, ...]:
    """The work that a stored job comes to."""
    stored: dict[str, str] = json.loads(data)
    return kind.works(job_id, stored)


def read_rebuild(data: Mapping[str, object]) -> JobData:
    """`projection`: which one, by its name or its short name, or `all`."""
    refuse_others(data, {"projection"})
    given = data.get("projection")
    name = SHORT_NAMES.get(given, given) if isinstance(given, str) else ""
    if name != EVERY and name not in PROJECTIONS:
        choices = ", ".join((*SHORT_NAMES, "graph", EVERY))
        value = given if isinstance(given, str) else json.dumps(given)
        message = "a rebuild needs a projection" if given is None else f"no projection is called {value!r}"
        raise invalid(message, "data.projection", value, f"Send one of: {choices}.")
    return {"projection": name}


def rebuild_works(job_id: int, data: JobData) -> tuple[Work, ...]:
    """One for each projection, one after the other: two at once would share the machine with the readers."""
    wanted = data["projection"]
    if wanted != EVERY:
        return (Work(work_id=f"job-{job_id}", owner=PROJECTIONS[wanted], task="rebuild", projection=wanted),)
    return tuple(
        Work(work_id=f"job-{job_id}-{name}", owner=owner, task="rebuild", projection=name)
        for name, owner in PROJECTIONS.items()
    )


def read_move(data: Mapping[str, object]) -> JobData:
    """`projection`: which one; `to`: the URL of the engine it moves to. Jobs are listed, so it holds no password."""
    refuse_others(data, {"projection", "to"})
    checked = read_rebuild({key: value for key, value in data.items() if key == "projection"})
    if checked["projection"] == EVERY:
        raise invalid("each projection moves to an engine of its own", "data.projection", EVERY, "Name one of them.")
    url = data.get("to")
    if not isinstance(url, str) or "://" not in url or len(url) > URL_CHARACTERS_MAX:
        raise invalid("a move needs the URL of an engine", "data.to", "", "Send one such as bolt://host:7687.")
    if "@" in url:
        raise invalid("a job's data is shown, so the URL must not hold a password", "data.to", "", "Set it apart.")
    return {**checked, "to": url}


def move_works(job_id: int, data: JobData) -> tuple[Work, ...]:
    """Its owner fills a store there."""
    name = data["projection"]
    return (Work(work_id=f"job-{job_id}", owner=PROJECTIONS[name], task="rebuild", projection=name, to=data["to"]),)


def read_embed(data: Mapping[str, object]) -> JobData:
    """Nothing."""
    refuse_others(data, set())
    return {}


def embed_works(job_id: int, _: JobData) -> tuple[Work, ...]:
    """Search embeds what has no vector yet."""
    return (Work(work_id=f"job-{job_id}", owner="search", task="embed"),)


def refuse_others(data: Mapping[str, object], known: set[str]) -> None:
    """Raises InvalidArgument for a field that the kind does not know: a misspelt one must not be ignored."""
    for field in data:
        if field not in known:
            step = f"Use only: {', '.join(sorted(known))}." if known else "Leave it out; this kind takes no data."
            raise invalid("this kind of job has no such field", f"data.{field}", json.dumps(data[field]), step)


def invalid(message: str, field: str, value: str, next_step: str) -> InvalidArgument:
    """The refusal of a job that can never run."""
    return InvalidArgument("JOB_INVALID", message, field=field, value=value, next_step=next_step)


KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "rebuild": Kind(protected=False, read=read_rebuild, works=rebuild_works),
        # The whole brain goes to where the URL says, so nobody from outside may say where.
        "move": Kind(protected=True, read=read_move, works=move_works),
        "embed": Kind(protected=False, read=read_embed, works=embed_works),
    }
)
