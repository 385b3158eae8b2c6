"""Figures of reading pages alone: `python -m tests.bench.bench_domain` parses and analyses the generated corpus.

Times are processor times of this process, the shortest of some rounds: what else runs on the machine counts little.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from services.domain.body import Halves, split_body
from services.domain.chunker import chunk_page
from services.domain.frontmatter import Frontmatter, read_frontmatter
from services.domain.inference import About, infer
from services.domain.links import extract_links
from services.domain.markdown import Layout, scan
from services.domain.page import ParsedPage
from services.domain.parser import parse_page
from services.domain.text import analyze
from tests.bench.corpus import GeneratedPage, generate_pages
from tests.bench.tables import print_header, print_table

SOURCE = "default"
ROUNDS = 5
"""Of each figure the best counts."""


class Read(NamedTuple):
    """A page with what each step of reading it needs."""

    chinese: bool
    path: str
    slug: str
    body: bytes
    text: str
    front: Frontmatter
    layout: Layout
    halves: Halves
    about: About
    page: ParsedPage


def read(generated: GeneratedPage) -> Read:
    """The page after every step, each taken once."""
    path, text = generated.path, generated.text
    slug, body = path.removesuffix(".md"), text.encode()
    front = read_frontmatter(text)
    layout = scan(text, front.body_start)
    return Read(
        chinese=generated.chinese,
        path=path,
        slug=slug,
        body=body,
        text=text,
        front=front,
        layout=layout,
        halves=split_body(layout),
        about=infer(slug, path, front, layout),
        page=parse_page(SOURCE, slug, body, path=path),
    )


def whole(read: Read) -> object:
    return parse_page(SOURCE, read.slug, read.body, path=read.path)


def lay(read: Read) -> object:
    front = read_frontmatter(read.text)
    return split_body(scan(read.text, front.body_start))


def inference(read: Read) -> object:
    return infer(read.slug, read.path, read.front, read.layout)


def links(read: Read) -> object:
    return extract_links(
        source=SOURCE, slug=read.slug, path=read.path, about=read.about, front=read.front, layout=read.layout
    )


def chunks(read: Read) -> object:
    return chunk_page(read.layout, read.halves, read.about.title)


def analysis(read: Read) -> object:
    return [analyze(read.page.title), *(analyze(chunk.text) for chunk in read.page.chunks)]


STEPS: tuple[tuple[str, Callable[[Read], object]], ...] = (
    ("parse, all of it", whole),
    ("  frontmatter, layout", lay),
    ("  title, type, date", inference),
    ("  links", links),
    ("  chunks", chunks),
    ("analysis of chunks", analysis),
)


def milliseconds(step: Callable[[Read], object], pages: Sequence[Read]) -> float:
    """Processor time of a step for one page, the best of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        for page in pages:
            step(page)
        best = min(best, time.process_time() - started)
    return best / len(pages) * 1000


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=600, help="pages of the corpus (600)")
    parser.add_argument("--seed", type=int, default=7, help="seed of the corpus (7)")
    options = parser.parse_args()
    pages = [read(page) for page in generate_pages(options.pages, seed=options.seed)]
    groups = (
        ("all", pages),
        ("English", [page for page in pages if not page.chinese]),
        ("Chinese", [page for page in pages if page.chinese]),
    )
    print_header(options.seed)
    count = len(pages)
    print(f"pages: {count}, {sum(len(page.body) for page in pages) / count:,.0f} bytes each, "
          f"{sum(len(page.page.links) for page in pages) / count:.1f} links, "
          f"{sum(len(page.page.chunks) for page in pages) / count:.1f} chunks")  # fmt: skip
    rows = []
    for name, step in STEPS:
        cells = [name]
        for _, group in groups:
            took = milliseconds(step, group)
            rate = sum(len(page.body) for page in group) / len(group) / took / 1000
            cells += [f"{took:.2f}", f"{rate:.1f}"]
        rows.append(cells)
    header = ["step", *(f"{name} {unit}" for name, _ in groups for unit in ("ms/page", "MB/s"))]
    print_table("Reading pages", header, rows)


if __name__ == "__main__":
    main()
