"""The commands on links: graph, an indented tree, and links and backlinks as lists."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from gateway.cli import output
from gateway.cli.options import Commands, add_source, command
from gateway.cli.session import Session
from gateway.operations.json_value import JsonObject


def add(commands: Commands) -> None:
    """Declares the commands."""
    parser = command(commands, "graph", "walk the links from a page, as an indented tree", graph, json=True)
    add_walk(parser, direction="both", depth=2)
    for name, help_text, run in (
        ("links", "list the links that leave a page", links),
        ("backlinks", "list the links that arrive at a page", backlinks),
    ):
        parser = command(commands, name, help_text, run, json=True)
        parser.add_argument("slug")
        parser.add_argument("--type", action="append", metavar="TYPE", help="only links of this type")
        parser.add_argument("--limit", type=int, metavar="N")
        add_source(parser)


def add_walk(parser: ArgumentParser, *, direction: str, depth: int) -> None:
    """The options of a walk."""
    parser.add_argument("slug")
    parser.add_argument("--direction", choices=("out", "in", "both"), default=direction)
    parser.add_argument("--depth", type=int, default=depth, metavar="N", help="how many links away, at most 10")
    parser.add_argument("--type", action="append", metavar="TYPE", help="only links of this type; may be repeated")
    parser.add_argument("--limit", type=int, metavar="N", help="at most this many links")
    add_source(parser)


def walk(session: Session, options: Namespace) -> JsonObject:
    """The walk that the options ask for."""
    return session.call(
        "traverse_graph",
        slug=options.slug,
        direction=options.direction,
        depth=options.depth,
        link_type=options.type,
        limit=options.limit,
        source=options.source,
    )


def graph(session: Session, options: Namespace) -> None:
    """Prints the links from a page as a tree."""
    reply = walk(session, options)
    if session.as_json:
        output.document(reply)
        return
    root = reply["root"]
    assert isinstance(root, dict)
    output.line(f"{root['slug']}  {root['title']}")
    children: dict[str, list[JsonObject]] = {}
    for link in output.objects(reply["links"]):
        children.setdefault(near_end(link), []).append(link)
    _branch(children, str(root["slug"]), depth=1)
    if reply["truncated"]:
        output.message("There are more links: raise --limit.")


def _branch(children: dict[str, list[JsonObject]], slug: str, *, depth: int) -> None:
    """Prints what hangs on a page. A page's own links hang where the walk first reached it, so no cycle comes back."""
    for link in children.get(slug, ()):
        if link["depth"] != depth:
            continue
        arrow = f"<-{link['link_type']}--" if link["inward"] else f"--{link['link_type']}->"
        ghost = "" if link["exists"] else "  (no such page)"
        output.line(f"{'  ' * depth}{arrow} {far_end(link)}{ghost}")
        if link["tree"]:
            _branch(children, far_end(link), depth=depth + 1)


def near_end(link: JsonObject) -> str:
    """The page from which the walk followed a link."""
    return str(link["to_slug"] if link["inward"] else link["from_slug"])


def far_end(link: JsonObject) -> str:
    """The page to which the walk followed a link."""
    return str(link["from_slug"] if link["inward"] else link["to_slug"])


def links(session: Session, options: Namespace) -> None:
    """Lists the links that leave a page."""
    _show_links(session, options, "get_links", other="to_slug")


def backlinks(session: Session, options: Namespace) -> None:
    """Lists the links that arrive at a page."""
    _show_links(session, options, "get_backlinks", other="from_slug")


def _show_links(session: Session, options: Namespace, operation: str, *, other: str) -> None:
    reply = session.call(
        operation, slug=options.slug, link_type=options.type, limit=options.limit, source=options.source
    )
    if session.as_json:
        output.document(reply)
        return
    rows = [
        (str(link["link_type"]), str(link[other]), str(link["provenance"]), str(link.get("context", ""))[:100])
        for link in output.objects(reply["links"])
    ]
    output.table(rows, header=("TYPE", "PAGE", "PROVENANCE", "CONTEXT"))
