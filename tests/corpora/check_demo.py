"""Check the demo corpus: counts, links, and that the questions agree with the pages.

Run as a script: ``python tests/corpora/check_demo.py``. Prints the counts; exit code 1 if anything is wrong.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import normpath
from typing import TypeGuard
from urllib.parse import unquote

HERE = Path(__file__).resolve().parent / "demo"
VAULT = HERE / "vault"

# Links whose page deliberately does not exist.
GHOSTS = frozenset({"people/otis-fenwright", "companies/vellum-atlas", "韩照野", "concepts/cold-start-tax"})

# Names that questions ask for and no page may contain.
ABSENT = (
    "Kestrelwind", "Loomworth", "Bettina Crowhurst", "Marlstone", "Anna Farrow",
    "望江速运", "林若汐", "白露机器人", "青苗机器人",
)  # fmt: skip

FOLDERS = frozenset(
    "people companies meetings concepts notes projects reading chat bookmarks writing archive code".split()
)
KINDS = {"plain": 20, "vague": 20, "exact_name": 16, "relational": 80, "first_time": 8, "unanswerable": 32}
FIELDS = frozenset("id question language kind right wrong link_type direction seed path note".split())
WORDS = range(70, 261)  # a Chinese character counts as 0.6 words
MIN_PAGES, MIN_QUESTIONS, MIN_CHINESE_QUESTIONS, MIN_EACH_WAY = 84, 170, 62, 40

# Frontmatter field -> (link type, the page itself is the source of the link).
RELATION_FIELDS = {
    "company": ("works_at", True),
    "works_at": ("works_at", True),
    "任职": ("works_at", True),
    "就职于": ("works_at", True),
    "key_people": ("works_at", False),
    "founded": ("founded", True),
    "founders": ("founded", False),
    "创始人": ("founded", False),
    "investors": ("invested_in", False),
    "投资方": ("invested_in", False),
    "invested_in": ("invested_in", True),
    "投资了": ("invested_in", True),
    "advises": ("advises", True),
    "advisors": ("advises", False),
    "顾问": ("advises", False),
    "attendees": ("attended", False),
    "参会人": ("attended", False),
    "related": ("related_to", True),
}
VERBS = {
    "attended": re.compile(r"\battended\b|参加", re.IGNORECASE),
    "founded": re.compile(r"found(ed|er)|started|创[立办始]"),
    "invested_in": re.compile(r"invest|back(ed|s)\b|raised from|funded|led the seed|cheque|投"),
    "advises": re.compile(r"advis|顾问"),
    "works_at": re.compile(
        r"work(s|ed) at|(engineer|analyst|rota|head of \w+) at|is CEO|CEO|CTO|executive|partner"
        r"|任职|就职|工作|首席|负责|合伙人|总经理",
        re.IGNORECASE,
    ),
    "worked_at": re.compile(r"worked (at|here|there).*until.*2024|(工作|任职)到 ?2024"),
}
CJK = re.compile(r"[\u3400-\u9fff]")
WIKILINK = re.compile(r"\[\[([^\]|#]+)(?:#[^\]|]*)?(?:\|[^\]]*)?\]\]")
MARKDOWN_LINK = re.compile(r"(?<!\!)\[[^\[\]]+\]\(([^()\s]+)\)")
SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。！？\n]")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


@dataclass
class Page:
    slug: str
    fields: dict[str, list[str]]
    body: str

    @property
    def title(self) -> str:
        return "".join(self.fields.get("title", []))

    @property
    def date(self) -> str:
        return "".join(self.fields.get("date", []))

    @property
    def words(self) -> int:
        prose = re.sub(r"\]\([^)]*\)|\[\[[^\]|]*\|", " ", self.body)
        return len(re.findall(r"[A-Za-zÀ-ÿ0-9][\w.,:'-]*", CJK.sub(" ", prose))) + round(0.6 * len(CJK.findall(prose)))

    @property
    def chinese(self) -> bool:
        return len(CJK.findall(self.body)) > len(re.findall(r"[A-Za-z]", self.body))


@dataclass
class Corpus:
    pages: dict[str, Page] = field(default_factory=dict)
    names: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    problems: list[str] = field(default_factory=list)

    def bad(self, text: str) -> None:
        self.problems.append(text)

    def resolve(self, target: str, base: str = "") -> str | None:
        """The slug behind a link target: path, title or alias; None if there is no page or more than one."""
        wanted = slugify(unquote(target).removesuffix(".md"))
        if base:
            wanted = slugify(normpath(f"{base.rsplit('/', 1)[0]}/{wanted}"))
        if wanted in self.pages:
            return wanted
        found = self.names.get(unicodedata.normalize("NFC", target).strip().casefold(), set())
        return next(iter(found)) if len(found) == 1 else None


def slugify(path: str) -> str:
    return re.sub(r"\s+", "-", unicodedata.normalize("NFC", path).strip().lower())


def values(text: str) -> list[str]:
    text = text.strip()
    items = text[1:-1].split(",") if text.startswith("[") and not text.startswith("[[") else [text]
    plain = (item.strip().strip("\"'") for item in items)
    return [WIKILINK.sub(r"\1", item) for item in plain if item]


def read_page(path: Path) -> Page:
    text = path.read_text(encoding="utf-8")
    fields: dict[str, list[str]] = {}
    relative = path.relative_to(VAULT).as_posix()
    if text.startswith("---\n"):
        head, text = text[4:].split("\n---\n", 1)
        key = ""
        for line in head.splitlines():
            if line.startswith("  - "):
                fields[key] += values(line[4:])
            else:
                key, _, rest = line.partition(":")
                fields[key] = values(rest)
    return Page(slugify(relative.removesuffix(".md")), fields, text)


def links(page: Page) -> Iterator[tuple[str, str, int]]:
    """(target, base for a relative path or "", offset) of every link outside code."""
    body = CODE.sub(lambda match: " " * len(match[0]), page.body)
    for match in WIKILINK.finditer(body):
        yield match[1].strip(), "", match.start()
    for match in MARKDOWN_LINK.finditer(body):
        if "://" not in match[1]:
            yield match[1], page.slug, match.start()


def load() -> Corpus:
    corpus = Corpus()
    for path in sorted(VAULT.rglob("*")):
        if not path.is_file():
            continue
        page = read_page(path)
        if page.slug in corpus.pages:
            corpus.bad(f"two files give the slug {page.slug}")
        corpus.pages[page.slug] = page
        for name in [page.title, *page.fields.get("aliases", [])]:
            if name:
                corpus.names[name.casefold()].add(page.slug)
    return corpus


def check_pages(corpus: Corpus) -> set[str]:
    markdown = [page for page in corpus.pages.values() if not page.slug.endswith(".py")]
    chinese = [page for page in markdown if page.chinese]
    print(f"pages {len(markdown)}, Chinese {len(chinese)} ({len(chinese) / len(markdown):.0%})")
    print("  " + ", ".join(f"{k} {n}" for k, n in Counter(s.split("/")[0] for s in corpus.pages).items()))
    if len(markdown) < MIN_PAGES:
        corpus.bad(f"only {len(markdown)} pages")
    if not 0.28 <= len(chinese) / len(markdown) <= 0.45:
        corpus.bad("Chinese share is not about a third")
    if {slug.split("/")[0] for slug in corpus.pages} != FOLDERS:
        corpus.bad("folders are not the expected ones")
    for name, slugs in corpus.names.items():
        if len(slugs) > 1:
            corpus.bad(f"name {name!r} belongs to {sorted(slugs)}")
    ghosts: set[str] = set()
    for page in markdown:
        if page.words not in WORDS:
            corpus.bad(f"{page.slug}: {page.words} words")
        if page.slug.startswith(("people/", "companies/")) and not re.search(
            r"^## (Timeline|时间线)\n\n- (\*\*\d{4}-\d\d-\d\d\*\* \| |\d{4}-\d\d-\d\d: )", page.body, re.MULTILINE
        ):
            corpus.bad(f"{page.slug}: no timeline")
        for target, base, _ in links(page):
            if corpus.resolve(target, base) is None:
                ghosts.add(target)
                if target not in GHOSTS:
                    corpus.bad(f"{page.slug}: no page for link {target!r}")
    if ghosts != GHOSTS:
        corpus.bad(f"ghosts never linked: {sorted(GHOSTS - ghosts)}")
    everything = "\n".join(page.title + page.body for page in corpus.pages.values())
    for name in ABSENT:
        if name in everything:
            corpus.bad(f"{name!r} should be unknown to the vault")
    return ghosts


Edges = set[tuple[str, str, str]]


def frontmatter_edges(corpus: Corpus) -> Edges:
    edges: Edges = set()
    for page in corpus.pages.values():
        for name, (link_type, outgoing) in RELATION_FIELDS.items():
            for value in page.fields.get(name, []):
                other = corpus.resolve(value)
                if other is None:
                    corpus.bad(f"{page.slug}: no page for {name}: {value!r}")
                else:
                    edges.add((page.slug, link_type, other) if outgoing else (other, link_type, page.slug))
    return edges


def text_edges(corpus: Corpus, link_type: str) -> Edges:
    """Pairs, both ways, of a page and what it links to in a sentence with a verb of this type."""
    edges: Edges = set()
    for page in corpus.pages.values():
        ends = [0, *(match.end() for match in SENTENCE_END.finditer(page.body)), len(page.body)]
        for target, base, offset in links(page):
            other = corpus.resolve(target, base)
            start = max(end for end in ends if end <= offset)
            sentence = page.body[start : min(end for end in ends if end > offset)]
            if other and VERBS[link_type].search(sentence):
                edges |= {(page.slug, link_type, other), (other, link_type, page.slug)}
    return edges


def walk(edges: Edges, start: set[str], step: str) -> set[str]:
    link_type, way = step.split(":")
    if way == "out":
        return {to for source, kind, to in edges if kind == link_type and source in start}
    return {source for source, kind, to in edges if kind == link_type and to in start}


def strings(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def check_question(corpus: Corpus, known: Edges, written: Edges, question: dict[str, object]) -> None:
    name = f"{question.get('id')} {question.get('question')}"
    right, wrong = question.get("right"), question.get("wrong", [])
    if not strings(right) or not strings(wrong) or not set(question) <= FIELDS:
        corpus.bad(f"{name}: malformed")
        return
    for slug in right + wrong:
        if slug not in corpus.pages:
            corpus.bad(f"{name}: no page {slug}")
    if set(right) & set(wrong) or len(set(right)) != len(right):
        corpus.bad(f"{name}: a page is right and wrong, or twice right")
    if bool(right) == (question["kind"] == "unanswerable"):
        corpus.bad(f"{name}: right pages do not fit the kind")
    if (question["language"] == "zh") and not CJK.search(str(question["question"])):
        corpus.bad(f"{name}: marked zh without a Chinese character")
    if question["kind"] == "first_time":
        first = max((corpus.pages[slug].date for slug in right if slug in corpus.pages), default="")
        later = [corpus.pages[slug].date for slug in wrong if slug in corpus.pages]
        if not first or any(date and date <= first for date in later):
            corpus.bad(f"{name}: the right page is not the earliest")
    if question["kind"] != "relational":
        return
    seed, way, path = str(question["seed"]), str(question["direction"]), question.get("path")
    steps = path if strings(path) else [f"{question['link_type']}:{way}"]
    if seed not in corpus.pages or (way == "two_hop") != (len(steps) == 2):
        corpus.bad(f"{name}: bad seed or path")
        return
    answer = {seed}
    for step in steps:
        answer = walk(known, answer, step)
    extra = set(right) - answer
    if answer - set(right):
        corpus.bad(f"{name}: the pages also say {sorted(answer - set(right))}")
    if extra:
        corpus.bad(f"{name}: no page says {sorted(extra)}")
    for step in steps[-1:]:
        for slug in right:
            if len(steps) == 1 and not {(seed, step.split(":")[0], slug)} & written:
                corpus.bad(f"{name}: no sentence says so for {slug}")


def check_questions(corpus: Corpus) -> None:
    lines = (HERE / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions: list[dict[str, object]] = [json.loads(line) for line in lines]
    kinds = Counter(str(question["kind"]) for question in questions)
    languages = Counter(str(question["language"]) for question in questions)
    ways = Counter(str(question["direction"]) for question in questions if "direction" in question)
    for title, counter in ((f"questions {len(questions)}", kinds), ("languages", languages), ("relational", ways)):
        print(f"{title}: " + ", ".join(f"{k} {n}" for k, n in counter.items()))
    if len(questions) < MIN_QUESTIONS or languages["zh"] < MIN_CHINESE_QUESTIONS or set(languages) != {"en", "zh"}:
        corpus.bad("too few questions")
    if set(kinds) != set(KINDS) or any(kinds[kind] < least for kind, least in KINDS.items()):
        corpus.bad(f"too few of a kind: {dict(kinds)}")
    if min(ways["in"], ways["out"]) < MIN_EACH_WAY or not ways["two_hop"]:
        corpus.bad(f"too few relational questions one way: {dict(ways)}")
    for key in ("id", "question"):
        for value, count in Counter(str(question[key]) for question in questions).items():
            if count > 1:
                corpus.bad(f"{key} {value!r} is there {count} times")

    written = {edge for link_type in VERBS for edge in text_edges(corpus, link_type)}
    # Former jobs, and meetings without frontmatter, are told in sentences only.
    told = {
        (source, kind, to)
        for source, kind, to in written
        if source.startswith("people/")
        and (
            (kind == "worked_at" and to.startswith("companies/") and (to, kind, source) in written)
            or (kind == "attended" and to.startswith("meetings/") and not corpus.pages[to].fields)
        )
    }
    known = frontmatter_edges(corpus) | told
    for question in questions:
        check_question(corpus, known, written, question)


def main() -> int:
    corpus = load()
    ghosts = check_pages(corpus)
    check_questions(corpus)
    print(f"deliberate ghosts {len(ghosts)}, problems {len(corpus.problems)}")
    for problem in corpus.problems:
        print("  " + problem)
    return 1 if corpus.problems else 0


if __name__ == "__main__":
    sys.exit(main())
