"""What the stages of retrieval pass to each other: the query, the rows of the arms, candidates, hits and the trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum

from services.domain.page import ChunkKind


class Arm(StrEnum):
    """A retriever: each hands in one ranked list, and each can be switched off per call."""

    DENSE = "dense"
    LEXICAL_PAGES = "lexical_pages"
    LEXICAL_CHUNKS = "lexical_chunks"
    TITLE = "title"
    RELATIONAL = "relational"


class Stage(StrEnum):
    """A step after the fan-out. All but the first three and the last two can be switched off per call."""

    INTENT = "intent"
    CONFIDENCE = "confidence"
    FUSION = "fusion"
    COMPILED_TRUTH = "compiled_truth"
    SOURCE_TIER = "source_tier"
    BACKLINKS = "backlinks"
    RECENCY = "recency"
    TITLE_PHRASE = "title_phrase"
    FIRST_TIME = "first_time"
    NEAR_DUPLICATES = "near_duplicates"
    TYPE_DIVERSITY = "type_diversity"
    IDENTITY = "identity"
    EVIDENCE = "evidence"
    LIMIT = "limit"


class Language(StrEnum):
    """The language a question is asked in: that of the rules that read it and of the sentences that answer it."""

    ENGLISH = "en"
    CHINESE = "zh"


class Evidence(StrEnum):
    """Why a hit is here: the strongest reason that holds, strongest first."""

    ALIAS_HIT = "alias_hit"
    EXACT_TITLE_MATCH = "exact_title_match"
    RELATIONAL = "relational"
    HIGH_VECTOR_MATCH = "high_vector_match"
    KEYWORD_EXACT = "keyword_exact"
    WEAK_SEMANTIC = "weak_semantic"


class CreateSafety(StrEnum):
    """Whether a page for what was asked is there already, so that no agent reads a score to decide on creating one."""

    EXISTS = "exists"
    PROBABLE = "probable"
    UNKNOWN = "unknown"


class NameKind(StrEnum):
    """How a name led to a page in graph's table of names, surest first."""

    SLUG = "slug"
    REDIRECT = "redirect"
    TITLE = "title"
    ALIAS = "alias"
    SLUG_TAIL = "slug_tail"
    PART = "part"
    """A part of a title or an alias that only one page bears; graph's table does not have it."""


class Direction(StrEnum):
    """Which end of a link the known page is."""

    OUT = "out"
    """The known page makes the link: of X, what X invested in."""
    IN = "in"
    """The known page is what the link names: of X, who invested in X."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One question with everything that changes its answer."""

    text: str
    limit: int = 10
    """At most this many hits, at least 1; the caller has checked its bounds."""
    types: frozenset[str] = frozenset()
    """Only pages of these types were asked for; empty means all. The arms have filtered already."""
    since: date | None = None
    until: date | None = None
    off: frozenset[Arm | Stage] = frozenset()
    """Arms and stages that this call leaves out: the ablation."""
    recency: bool | None = None
    """Whether newer pages rise; None lets the intent decide."""
    today: date | None = None
    """The day recency counts from; None switches recency off, because pure code has no clock."""

    def on(self, part: Arm | Stage) -> bool:
        """Whether this call uses the arm or stage."""
        return part not in self.off


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRef:
    """What every arm says about the page of a row."""

    page_id: str
    source: str
    slug: str
    title: str
    type: str = ""
    revision: int = 0
    aliases: tuple[str, ...] = ()
    date: str = ""
    """ISO 8601 with the precision that is known; empty when unknown."""
    update_time: datetime | None = None
    """When the shown revision was accepted; recency falls back on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRow:
    """One row of an arm's list, best first. Page-grained arms leave ordinal, kind and heading empty."""

    page: PageRef
    score: float = 0.0
    """In the arm's own unit (BM25, cosine): compared within the list, and by `confidence` with a calibration."""
    ordinal: int | None = None
    chunk_kind: ChunkKind | None = None
    heading: str = ""
    text: str = ""
    """The passage or a snippet of it; may be empty for a page-grained row."""
    matched_tokens: tuple[str, ...] = ()
    """Tokens of the query that the whole document holds, as the engine analysed them; the text shows only a part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameMatch:
    """A page that graph's table of names gives for a name, exactly: no likeness, no prefix."""

    name: str
    """The name as it was asked for."""
    kind: NameKind
    page: PageRef
    text: str = ""
    """A passage to show; may be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """One link on the way from the named page to an answer, in the direction the link itself has."""

    from_slug: str
    link_type: str
    to_slug: str
    context: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationalAnswer:
    """One page that graph answers a relational question with."""

    page: PageRef
    path: tuple[PathStep, ...]
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingArm:
    """An arm that should have answered and did not; the reply names it."""

    arm: Arm
    reason: str
    """Such as `deadline`, `unavailable`, `no_embedder`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Degraded:
    """Something that made the answer less than asked for, without failing it."""

    code: str
    """Lower snake case, such as `stopwords_only`, `query_shortened`."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmResults:
    """Everything the fan-out brings home."""

    rows: Mapping[Arm, tuple[ArmRow, ...]] = field(default_factory=dict)
    """Per arm but the relational one, its list, best first."""
    names: tuple[NameMatch, ...] = ()
    answers: tuple[RelationalAnswer, ...] = ()
    """Of the relational arm, best first."""
    backlinks: Mapping[str, int] | None = None
    """Links to a page by page id, mentions left out; None when graph did not count them."""
    missing: tuple[MissingArm, ...] = ()
    degraded: tuple[Degraded, ...] = ()
    embedder: str = ""
    """The signature of the embedder behind the dense arm, for its calibration; empty when there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A page on its way through the stages, with the passage that speaks for it."""

    page: PageRef
    score: float
    """Fused and boosted, comparable within one query only."""
    matched_by: Mapping[Arm, int]
    """Arm to the page's rank in it, from 1."""
    passage: ArmRow | None = None
    cosine: float | None = None
    """The best of the page in the dense arm, in the embedder's own scale."""
    boosts: Mapping[str, float] = field(default_factory=dict)
    """Stage to factor, only where it is not 1."""
    path: tuple[PathStep, ...] = ()
    identity: NameKind | None = None
    """Set when the question names this page exactly."""
    matched_name: str = ""

    def boosted(self, score: float, boosts: Mapping[str, float]) -> Candidate:
        """This candidate with another score; `dataclasses.replace` does the same in four times the time."""
        return Candidate(
            page=self.page,
            score=score,
            matched_by=self.matched_by,
            passage=self.passage,
            cosine=self.cosine,
            boosts=boosts,
            path=self.path,
            identity=self.identity,
            matched_name=self.matched_name,
        )

    @property
    def text(self) -> str:
        """The passage's text, or empty."""
        return self.passage.text if self.passage else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One page of an answer, with why it is there."""

    slug: str
    title: str
    source: str
    type: str
    revision: int
    page_id: str
    date: str
    score: float
    """In 0..1, strictly falling with rank; relative to this answer, not a probability."""
    rank: int
    """From 1."""
    snippet: str
    heading: str
    matched_by: Mapping[Arm, int]
    chunk_kind: ChunkKind | None
    evidence: Evidence
    evidence_sentence: str
    create_safety: CreateSafety
    path: tuple[PathStep, ...] = ()
    boosts: Mapping[str, float] = field(default_factory=dict)
    cosine: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTrace:
    """What one stage did: `explain` returns it and the workbench draws it."""

    stage: Stage
    milliseconds: float
    count_in: int
    count_out: int
    changed: str = ""
    """What it changed, in words, always English; empty when nothing."""
    skipped: bool = False
    """True when the call switched it off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The stages in the order they ran, with the weights the arms had."""

    stages: tuple[StageTrace, ...]
    arms: Mapping[Arm, int]
    """Arm to the number of its rows."""
    weights: Mapping[Arm, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The reply to a query."""

    hits: tuple[Hit, ...]
    intent: str
    language: Language
    abstained: bool
    """True when nothing found is relevant by our rules; hits that are there all the same are the nearest misses."""
    abstained_because: str
    """One sentence in the query's language; empty unless abstained."""
    missing: tuple[MissingArm, ...]
    degraded: tuple[Degraded, ...]
    trace: Trace
