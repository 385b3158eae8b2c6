"""The commands that find: search and query."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from gateway.cli import output
from gateway.cli.options import Commands, add_narrowing, command
from gateway.cli.session import Session
from gateway.operations.json_value import JsonObject


def add(commands: Commands) -> None:
    """Declares the commands."""
    _add_recall(command(commands, "search", "search passages by words and meaning", search, json=True))
    parser = command(commands, "query", "ask the memory a question", query, json=True)
    parser.add_argument("--recency", choices=("off", "on", "strong"), help="whether newer pages rise")
    _add_recall(parser)


def _add_recall(parser: ArgumentParser) -> None:
    parser.add_argument("query", nargs="+", help="what to find, in plain words")
    parser.add_argument("--explain", action="store_true", help="print what every arm and stage found and changed")
    parser.add_argument("--since", metavar="DATE", help="only pages dated at or after this")
    parser.add_argument("--until", metavar="DATE", help="only pages dated at or before this")
    parser.add_argument("--without", action="append", metavar="PART", help="leave out an arm or a stage")
    parser.add_argument("--offset", type=int, metavar="N", help="leave out this many hits first")
    add_narrowing(parser)


def search(session: Session, options: Namespace) -> None:
    """Searches passages."""
    show_answer(session, session.call("search", **_arguments(options)), explain=options.explain)


def query(session: Session, options: Namespace) -> None:
    """Asks a question."""
    reply = session.call("query", recency=options.recency, **_arguments(options))
    show_answer(session, reply, explain=options.explain)


def _arguments(options: Namespace) -> JsonObject:
    return {
        "query": " ".join(options.query),
        "explain": options.explain or None,
        "since": options.since,
        "until": options.until,
        "without": options.without,
        "offset": options.offset,
        "limit": options.limit,
        "types": options.type,
        "tags": options.tag,
        "source": options.source,
    }


def show_answer(session: Session, reply: JsonObject, *, explain: bool) -> None:
    """Prints an answer: ranked pages with why each is there, and the trace as a table."""
    if session.as_json:
        output.document(reply)
        return
    if reply["abstained"]:
        output.line(f"I don't know. {reply.get('abstained_because', '')}")
    hits = output.objects(reply["hits"])
    if reply["abstained"] and hits:
        output.line("The nearest pages:")
    for hit in hits:
        show_hit(hit)
    for missing in output.objects(reply.get("missing")):
        output.message(f"left out: {missing['arm']} ({missing['reason']})")
    for note in output.objects(reply.get("degraded")):
        output.message(f"note: {note['message']}")
    if explain:
        show_trace(reply)


def show_hit(hit: JsonObject) -> None:
    """Prints one hit in a few lines."""
    dated = f"  {hit['date']}" if hit.get("date") else ""
    output.line(f"{hit['rank']:>2}. {hit['title']}  [{hit['slug']}]{dated}")
    output.line(f"    {hit['evidence']}: {hit['evidence_sentence']}")
    for step in output.objects(hit.get("path")):
        output.line(f"    {step['from_slug']} --{step['link_type']}-> {step['to_slug']}")
    snippet = " ".join(str(hit["snippet"]).split())
    if snippet:
        output.line(f"    {snippet[:240]}")


def show_trace(reply: JsonObject) -> None:
    """Prints the trace as a table."""
    trace = reply.get("trace")
    if not isinstance(trace, dict):
        return
    output.line()
    arms, weights = trace["arms"], trace["weights"]
    assert isinstance(arms, dict)
    assert isinstance(weights, dict)
    rows = [(arm, str(count), output.text_of(weights.get(arm))) for arm, count in arms.items()]
    output.table(rows, header=("ARM", "ROWS", "WEIGHT"))
    output.line()
    stages = [
        (
            str(stage["stage"]),
            "off" if stage["skipped"] else f"{stage['milliseconds']:.3f}",
            str(stage["in"]),
            str(stage["out"]),
            str(stage["changed"]),
        )
        for stage in output.objects(trace["stages"])
    ]
    output.table(stages, header=("STAGE", "MS", "IN", "OUT", "CHANGED"))
