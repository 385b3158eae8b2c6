"""How many of the demo vault's questions find their page, by language and kind."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.brain import running_brain
from tests.bench.calls import McpClient
from tests.bench.tables import print_table

DEMO = Path(__file__).parent.parent / "corpora" / "demo"
TOP = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One question and what came back."""

    question: str
    language: str
    kind: str
    right: frozenset[str]
    wrong: frozenset[str]
    slugs: tuple[str, ...]
    abstained: bool

    @property
    def found(self) -> bool:
        """Whether a right page is among the first five."""
        return bool(self.right & set(self.slugs[:TOP]))

    @property
    def complete(self) -> bool:
        """Whether the first hits are exactly the right pages, in any order."""
        return set(self.slugs[: len(self.right)]) == self.right


def ask_all(client: McpClient) -> list[Answered]:
    """Asks every question of the demo once."""
    answered = []
    for line in (DEMO / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        asked = json.loads(line)
        reply = client.call("query", query=asked["question"], limit=20)
        answered.append(
            Answered(
                question=asked["question"],
                language=asked["language"],
                kind=asked["kind"],
                right=frozenset(asked["right"]),
                wrong=frozenset(asked.get("wrong", ())),
                slugs=tuple(hit["slug"] for hit in reply["hits"]),
                abstained=bool(reply.get("abstained")),
            )
        )
    return answered


def print_demo_questions(*, embedder: str, verbose: bool) -> None:
    """Imports the demo vault into a brain of its own and prints the shares."""
    with running_brain(embedder=embedder) as brain:
        brain.run("import", str(DEMO / "vault"))
        brain.run("status", "--wait", "all", "--timeout", "600")
        with McpClient(brain.http) as client:
            answered = ask_all(client)
    print_shares(answered, embedder)
    if verbose:
        print_misses(answered)


def print_shares(answered: Sequence[Answered], embedder: str) -> None:
    """Prints the right page in the top 5 and first, by language and by kind, and abstentions."""
    groups: dict[str, list[Answered]] = defaultdict(list)
    for one in answered:
        if one.kind == "unanswerable":
            groups[f"unanswerable, {one.language}"].append(one)
        else:
            groups["answerable, all"].append(one)
            groups[f"answerable, {one.language}"].append(one)
            groups[f"{one.kind}, {one.language}"].append(one)
    rows = []
    for name, members in sorted(groups.items()):
        asked = len(members)
        top = share(sum(m.found for m in members), asked)
        first = share(sum(bool(m.right & set(m.slugs[:1])) for m in members), asked)
        complete = share(sum(m.complete for m in members), asked)
        abstained = share(sum(m.abstained for m in members), asked)
        rows.append((name, str(asked), "" if "unansw" in name else top, first, complete, abstained))
    header = ("questions", "asked", f"top {TOP}", "first", "complete", "abstained")
    print_table(f"Demo questions, {embedder or 'default embedder'}", header, rows)


def print_misses(answered: Sequence[Answered]) -> None:
    """Prints what went wrong, for tuning."""
    for one in answered:
        wrong = one.abstained if one.kind != "unanswerable" else not one.abstained
        if wrong or (one.kind != "unanswerable" and not one.found):
            print(f"  {one.kind}/{one.language} {one.question!r} abstained={one.abstained}")
            print(f"    right {sorted(one.right)}\n    got   {list(one.slugs[:TOP])}")


def share(part: int, whole: int) -> str:
    """A percentage with one decimal."""
    return f"{100 * part / whole:.1f} %" if whole else "-"
