"""The family of operations that find pages: `search`, words and vectors fused, and `query`, the whole pipeline."""

from __future__ import annotations

from gateway.operations import parameters as p
from gateway.operations.definition import Call, Operation
from gateway.operations.json_value import JsonObject, JsonValue
from gateway.operations.page_lists import SLUG_PREFIX, TAGS, TYPES, page_filter
from gateway.operations.parameters import Kind, Parameter
from gateway.recall import Question
from gateway.retrieval.model import Answer, Arm, Hit, Query, Stage, StageTrace
from gateway.retrieval.pipeline import SEARCH_OFF
from services.domain.context import Scope
from services.domain.errors import InvalidArgument

HITS_DEFAULT = 10
HITS_MAX = 100
"""More hits than anybody reads; past them the order of a fused list says nothing."""
OFFSET_MAX = 100
SNIPPET_MAX = 2000
QUERY_CHARACTERS_MAX = 8192
"""What search takes; a longer text is a paste, and the question stands at its end."""

PARTS = {part.value: part for part in (*Arm, *Stage)}
FIXED = frozenset({Stage.FUSION, Stage.EVIDENCE, Stage.LIMIT})
"""Stages without which there is no answer: they cannot be switched off."""


async def search(call: Call) -> JsonObject:
    """Finds pages by words and meaning."""
    return await _recall(call, frozenset(SEARCH_OFF), uses_graph=False)


async def query(call: Call) -> JsonObject:
    """Finds pages by the whole pipeline."""
    off: set[Arm | Stage] = set()
    if call.arguments.optional_flag("relational") is False:
        off.add(Arm.RELATIONAL)
    return await _recall(call, frozenset(off), uses_graph=True)


async def _recall(call: Call, off: frozenset[Arm | Stage], *, uses_graph: bool) -> JsonObject:
    args = call.arguments
    text = args.text("query").strip()
    if not text:
        raise InvalidArgument(
            "QUERY_EMPTY", "the query has no text", field="query", next_step="Say in words what you want to find."
        )
    offset, limit = args.number("offset"), args.number("limit")
    recency = args.text("recency") if "recency" in args.values else ""
    wanted = Query(
        text=text,
        limit=offset + limit,
        types=frozenset(args.texts("types")),
        off=off | {PARTS[name] for name in args.texts("without")},
        recency={"on": True, "strong": True, "off": False}.get(recency),
    )
    recalled = await call.recall.answer(
        Question(
            query=wanted,
            filter=page_filter(call),
            min_revision=args.number("min_revision"),
            snippet_characters=args.number("snippet_chars"),
            uses_graph=uses_graph,
        )
    )
    return answer_reply(recalled.answer, offset=offset, explain=args.flag("explain")) | {
        "indexed_revision": recalled.indexed_revision
    }


def answer_reply(answer: Answer, *, offset: int, explain: bool) -> JsonObject:
    """An answer as JSON: the hits, whether it is one, and what did not take part in it."""
    reply: JsonObject = {
        "hits": [hit_reply(hit) for hit in answer.hits[offset:]],
        "abstained": answer.abstained,
        "intent": answer.intent,
    }
    if answer.abstained:
        reply["abstained_because"] = answer.abstained_because
    if answer.missing:
        reply["missing"] = [{"arm": missing.arm.value, "reason": missing.reason} for missing in answer.missing]
    if answer.degraded:
        reply["degraded"] = [{"code": note.code, "message": note.message} for note in answer.degraded]
    if explain:
        reply["trace"] = {
            "arms": {arm.value: rows for arm, rows in answer.trace.arms.items()},
            "weights": {arm.value: round(weight, 4) for arm, weight in answer.trace.weights.items()},
            "stages": [_stage_reply(stage) for stage in answer.trace.stages],
        }
    return reply


def hit_reply(hit: Hit) -> JsonObject:
    """One page of an answer, with why it is there."""
    reply: JsonObject = {
        "slug": hit.slug,
        "title": hit.title,
        "source": hit.source,
        "type": hit.type,
        "revision": hit.revision,
        "rank": hit.rank,
        "score": hit.score,
        "snippet": hit.snippet,
        "matched_by": {arm.value: rank for arm, rank in hit.matched_by.items()},
        "chunk_kind": hit.chunk_kind.value if hit.chunk_kind else None,
        "evidence": hit.evidence.value,
        "evidence_sentence": hit.evidence_sentence,
        "create_safety": hit.create_safety.value,
    }
    if hit.date:
        reply["date"] = hit.date
    if hit.heading:
        reply["heading"] = hit.heading
    if hit.path:
        path: list[JsonValue] = [
            {"from_slug": step.from_slug, "link_type": step.link_type, "to_slug": step.to_slug, "context": step.context}
            for step in hit.path
        ]
        reply["path"] = path
    if hit.boosts:
        reply["boosts"] = {stage: round(factor, 4) for stage, factor in hit.boosts.items()}
    return reply


def _stage_reply(stage: StageTrace) -> JsonObject:
    return {
        "stage": stage.stage.value,
        "milliseconds": round(stage.milliseconds, 3),
        "in": stage.count_in,
        "out": stage.count_out,
        "changed": stage.changed,
        "skipped": stage.skipped,
    }


QUERY = Parameter(
    name="query",
    kind=Kind.TEXT,
    description=(
        "What to find, in plain words of any language. There is no query syntax: every character is searched "
        "for as it is."
    ),
    required=True,
    characters_max=QUERY_CHARACTERS_MAX,
    keeps_end=True,
)

_COMMON = (
    p.limit(HITS_DEFAULT, HITS_MAX, what="hits"),
    Parameter(
        name="offset",
        kind=Kind.WHOLE_NUMBER,
        description="Leave out this many hits first.",
        default=0,
        minimum=0,
        maximum=OFFSET_MAX,
        lowered=True,
    ),
    TYPES,
    TAGS,
    SLUG_PREFIX,
    Parameter(
        name="since",
        kind=Kind.TEXT,
        description="Only pages dated at or after this: 2026, 2026-03 or 2026-03-01.",
        characters_max=32,
    ),
    Parameter(
        name="until",
        kind=Kind.TEXT,
        description="Only pages dated at or before this, the whole year, month or day included.",
        characters_max=32,
    ),
    Parameter(
        name="snippet_chars",
        kind=Kind.WHOLE_NUMBER,
        description=f"Length of a snippet in characters. Default 240, at most {SNIPPET_MAX}.",
        default=240,
        minimum=0,
        maximum=SNIPPET_MAX,
        lowered=True,
        zero_is_default=True,
    ),
    Parameter(
        name="explain",
        kind=Kind.FLAG,
        description="Add the trace: what every arm and stage found and changed.",
        default=False,
    ),
    Parameter(
        name="without",
        kind=Kind.TEXTS,
        description="Arms and stages to leave out, to see what they are worth.",
        choices=tuple(name for name, part in PARTS.items() if part not in FIXED),
        items_max=len(PARTS),
    ),
    p.MIN_REVISION,
    p.SOURCE,
)

OPERATIONS = (
    Operation(
        name="query",
        title="Ask the memory",
        description=(
            "Ask long-term memory a question, before answering from your own knowledge. Uses words, meaning, names and "
            "the graph: who invested in X, where does X work, when did I first read about X, in English and "
            "Chinese. Every "
            "hit says why it matched (evidence) and whether the page exists already (create_safety). abstained "
            "means that "
            "nothing found answers the question: say so instead of guessing. Read a hit in full with get_page."
        ),
        parameters=(
            QUERY,
            *_COMMON,
            Parameter(
                name="recency",
                kind=Kind.TEXT,
                description="Whether newer pages rise. Leave out to let the question decide.",
                choices=("off", "on", "strong"),
            ),
            Parameter(
                name="relational",
                kind=Kind.FLAG,
                description="Whether the graph may answer relational questions.",
                default=True,
            ),
        ),
        scope=Scope.READ,
        handler=query,
    ),
    Operation(
        name="search",
        title="Search passages",
        description=(
            "Search by words and meaning, fused, without reading the question's intent and without the graph. Use"
            " query "
            "for questions; use search for finding passages that hold certain words."
        ),
        parameters=(QUERY, *_COMMON),
        scope=Scope.READ,
        handler=search,
    ),
)
