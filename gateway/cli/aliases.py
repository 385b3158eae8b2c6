"""GBrain's verbs, for people and scripts that know them: init, serve, graph-query, extract."""

from __future__ import annotations

from argparse import Namespace

from gateway.cli import agents, lifecycle, output
from gateway.cli.graph import add_walk, far_end, walk
from gateway.cli.options import Commands, add_source, command
from gateway.cli.session import Session
from gateway.operations.json_value import JsonObject

PAGES_MAX = 1000
"""Pages of a list that are followed: a million references are more than anybody reads."""


def add(commands: Commands) -> None:
    """Declares the commands."""
    parser = command(commands, "init", "start a brain (same as up)", lifecycle.up, json=True)
    parser.add_argument("--http", metavar="HOST:PORT")
    parser.set_defaults(foreground=False)

    command(commands, "serve", "serve an agent over standard input and output (same as mcp)", agents.serve)

    parser = command(commands, "graph-query", "walk the links from a page, one edge a line", graph_query, json=True)
    add_walk(parser, direction="out", depth=5)

    parser = command(commands, "extract", "count what was extracted, and list what leads nowhere", extract, json=True)
    parser.add_argument("what", choices=("links", "timeline", "all"))
    add_source(parser)


def graph_query(session: Session, options: Namespace) -> None:
    """Prints the walk, one edge a line."""
    reply = walk(session, options)
    if session.as_json:
        output.document(reply)
        return
    for link in output.objects(reply["links"]):
        arrow = f"<-{link['link_type']}--" if link["inward"] else f"--{link['link_type']}->"
        output.line(f"{arrow} {far_end(link)} (depth {link['depth']})")
    if reply["truncated"]:
        output.message("There are more links: raise --limit.")


def extract(session: Session, options: Namespace) -> None:
    """Counts what is extracted from pages as they are written, and lists references that lead nowhere."""
    status = session.call("get_status", wait="links", timeout_seconds=20, source=options.source)
    counts = session.call("get_stats", source=options.source)
    reply: JsonObject = {"complete": status["reached"]}
    if options.what in {"links", "all"}:
        unresolved = list(_unresolved(session, options.source))
        reply |= {"links": counts["links"], "by_link_type": counts["by_link_type"], "unresolved": [*unresolved]}
    if options.what in {"timeline", "all"}:
        reply["timeline_entries"] = counts["timeline_entries"]
    if session.as_json:
        output.document(reply)
        return
    if "links" in reply:
        output.line(f"Links: {reply['links']}")
        by_type = reply["by_link_type"]
        for name, count in by_type.items() if isinstance(by_type, dict) else ():
            output.line(f"  {name}: {count}")
        found = output.objects(reply["unresolved"])
        output.line(f"Unresolved: {len(found)}")
        for link in found:
            where = f":{link['line']}" if "line" in link else ""
            output.line(f"  {link['from_slug']}{where} -> {link.get('name') or link['to_slug']}: {link['reason']}")
    if "timeline_entries" in reply:
        output.line(f"Timeline entries: {reply['timeline_entries']}")
    if not reply["complete"]:
        output.message("The graph has not read everything yet; the numbers may grow.")


def _unresolved(session: Session, source: str | None) -> list[JsonObject]:
    found: list[JsonObject] = []
    token = None
    for _ in range(PAGES_MAX):
        reply = session.call("list_unresolved", limit=1000, page_token=token, source=source)
        found += output.objects(reply["links"])
        token = reply.get("next_page_token")
        if not token:
            break
    return found
