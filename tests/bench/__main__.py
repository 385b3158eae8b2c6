"""Prints the figures that README's table promises: `make bench`, or `python -m tests.bench --only import`.

Everything is compared within one run on one machine; nothing here fails because a machine is slow.
"""

from __future__ import annotations

import argparse

from tests.bench.demo_questions import print_demo_questions
from tests.bench.figures import print_import, print_query_put_memory
from tests.bench.nats_failover import print_nats_failover
from tests.bench.put_acknowledged import print_put_acknowledged
from tests.bench.tables import print_header

FIGURES = ("import", "query", "acknowledged", "nats", "demo")


def main() -> None:
    """Runs the figures asked for, the smallest corpus first."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", action="append", choices=FIGURES, help="run this figure only; may be repeated")
    parser.add_argument("--pages", default="2400,17000", help="sizes of the generated corpora")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--embedder", default="local:use", help="for query, put, memory and the demo questions")
    parser.add_argument("--verbose", action="store_true", help="print each demo question that missed")
    arguments = parser.parse_args()
    figures = arguments.only or FIGURES
    sizes = [int(size) for size in arguments.pages.split(",")]
    print_header(arguments.seed)
    for pages in sizes:
        if "import" in figures:
            print_import(pages, arguments.seed)
        if "query" in figures:
            print_query_put_memory(pages, arguments.seed, arguments.embedder)
    if "acknowledged" in figures:
        print_put_acknowledged()
    if "nats" in figures:
        print_nats_failover()
    if "demo" in figures:
        print_demo_questions(embedder=arguments.embedder, verbose=arguments.verbose)


if __name__ == "__main__":
    main()
