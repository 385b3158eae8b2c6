"""The pipeline: the lists of the arms in, one explained answer out, every stage timed, traced and removable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import ne

from gateway.retrieval.boosts import (
    Boost,
    apply_factors,
    backlink_boost,
    compiled_truth_boost,
    factors,
    recency_boost,
    source_tier_boost,
    title_phrase_boost,
)
from gateway.retrieval.confidence import arm_weights, calibration
from gateway.retrieval.dedupe import diverse_types, falling, near_duplicates_last
from gateway.retrieval.evidence import ABSTAIN_JUDGED, Judged, abstention, judge
from gateway.retrieval.first_time import earliest_first
from gateway.retrieval.fusion import fuse
from gateway.retrieval.identity import asked_names, in_tiers, with_identities
from gateway.retrieval.intent import Intent, IntentKind, classify
from gateway.retrieval.model import (
    Answer,
    Arm,
    ArmResults,
    Candidate,
    Degraded,
    Hit,
    Query,
    Stage,
    StageTrace,
    Trace,
)
from gateway.retrieval.terms import QuestionTerms, question_terms

Clock = Callable[[], float]
"""Seconds that only grow, such as `time.perf_counter`."""

SEARCH_OFF: frozenset[Arm | Stage] = frozenset({Arm.RELATIONAL, Stage.INTENT, Stage.FIRST_TIME, Stage.RECENCY})
"""What the operation `search` leaves out: it is words and vectors fused, without intent or graph."""


@dataclass(slots=True, kw_only=True)
class _Run:
    """The candidates of one query on their way, with the trace they leave."""

    clock: Clock
    query: Query
    candidates: list[Candidate] = field(default_factory=list)
    stages: list[StageTrace] = field(default_factory=list)

    def stage(self, stage: Stage, change: Callable[[list[Candidate]], list[Candidate]], *, wanted: bool = True) -> None:
        """Runs a stage, or notes that the call switched it off; one that the question does not want leaves no trace."""
        if not wanted:
            return
        count = len(self.candidates)
        if not self.query.on(stage):
            self.note(stage, 0.0, count, count, "", skipped=True)
            return
        started = self.clock()
        before = self.candidates
        self.candidates = change(before)
        elapsed = self.clock() - started
        self.note(stage, elapsed, count, len(self.candidates), _difference(before, self.candidates))

    def note(
        self, stage: Stage, seconds: float, count_in: int, count_out: int, changed: str, *, skipped: bool = False
    ) -> None:
        self.stages.append(
            StageTrace(
                stage=stage,
                milliseconds=seconds * 1_000,
                count_in=count_in,
                count_out=count_out,
                changed=changed,
                skipped=skipped,
            )
        )


def read_intent(query: Query) -> Intent:
    """The intent as this call's switches let it be read. The fan-out needs it before the arms answer."""
    if not query.on(Stage.INTENT):
        plain = classify(query.text, relational=False)
        return Intent(kind=IntentKind.GENERAL, language=plain.language)
    return classify(query.text, relational=query.on(Arm.RELATIONAL))


def run_pipeline(query: Query, arms: ArmResults, *, clock: Clock, intent: Intent | None = None) -> Answer:
    """The answer to a query from what the arms brought.

    Args:
        query: The question and its switches. Rows of an arm that is off are ignored.
        arms: The lists, names, answers and counts of the fan-out.
        clock: For the trace.
        intent: What `read_intent` said before the fan-out; read again when None.
    """
    run = _Run(clock=clock, query=query)
    started = clock()
    intent = intent or read_intent(query)
    terms = question_terms(query.text)
    run.note(Stage.INTENT, clock() - started, 1, 1, _intent_words(intent), skipped=not query.on(Stage.INTENT))
    arms = _only_on(query, arms)

    started = clock()
    weights = arm_weights(arms, terms, intent, confident=query.on(Stage.CONFIDENCE))
    words = ", ".join(f"{arm.value} {weight:.2f}" for arm, weight in weights.items())
    run.note(
        Stage.CONFIDENCE, clock() - started, len(weights), len(weights), words, skipped=not query.on(Stage.CONFIDENCE)
    )
    started = clock()
    run.candidates = fuse(arms, weights=weights, limit=query.limit)
    rows = sum(map(len, arms.rows.values())) + len(arms.answers)
    run.note(Stage.FUSION, clock() - started, rows, len(run.candidates), "rows became pages")

    _boost(run, intent, terms, arms)
    run.stage(
        Stage.NEAR_DUPLICATES, lambda candidates: near_duplicates_last(candidates, limit=query.limit), wanted=True
    )
    run.stage(
        Stage.TYPE_DIVERSITY,
        lambda candidates: diverse_types(candidates, limit=query.limit),
        wanted=not query.types and intent.kind not in {IntentKind.RELATIONAL, IntentKind.FIRST_TIME},
    )
    # Runs after all that reorders by relevance, and before the tiers, which an exact name keeps in any case.
    run.stage(
        Stage.FIRST_TIME,
        lambda candidates: earliest_first(candidates, terms),
        wanted=intent.kind is IntentKind.FIRST_TIME,
    )
    names = asked_names(query.text, intent)
    parts = intent.kind in {IntentKind.ENTITY, IntentKind.EXACT_NAME}
    run.stage(
        Stage.IDENTITY,
        lambda candidates: in_tiers(
            with_identities(candidates, arms.names, names, parts=parts), intent, limit=query.limit
        ),
    )
    return _answer(run, query, intent, terms, arms, weights)


def _boost(run: _Run, intent: Intent, terms: QuestionTerms, arms: ArmResults) -> None:
    """All boosts: each stage gives its factors, and they meet the scores once, so that their product has a bound."""
    query = run.query
    recent = intent.recency if query.recency is None else query.recency
    wanted: list[tuple[Stage, Boost]] = []
    if intent.kind in {IntentKind.ENTITY, IntentKind.EXACT_NAME}:
        wanted.append((Stage.COMPILED_TRUTH, compiled_truth_boost))
    wanted.append((Stage.SOURCE_TIER, source_tier_boost(asks_for_chat=intent.asks_for_chat)))
    if arms.backlinks is not None:
        wanted.append((Stage.BACKLINKS, backlink_boost(arms.backlinks)))
    if recent and query.today is not None:
        wanted.append((Stage.RECENCY, recency_boost(query.today)))
    wanted.append((Stage.TITLE_PHRASE, title_phrase_boost(terms)))
    columns: list[tuple[Stage, list[float]]] = []
    for stage, boost in wanted:
        started = run.clock()
        column = factors(run.candidates, boost) if query.on(stage) else []
        scaled = sum(1 for factor in column if factor != 1.0)
        count = len(run.candidates)
        run.note(
            stage,
            run.clock() - started,
            count,
            count,
            f"{scaled} scaled" if scaled else "",
            skipped=not query.on(stage),
        )
        if scaled:
            columns.append((stage, column))
    if columns:
        run.candidates = apply_factors(run.candidates, columns)


def _answer(
    run: _Run,
    query: Query,
    intent: Intent,
    terms: QuestionTerms,
    arms: ArmResults,
    weights: dict[Arm, float],
) -> Answer:
    """Evidence, abstention and limit: what is left becomes hits."""
    started = run.clock()
    scale = calibration(arms.embedder)
    ordered = falling(run.candidates[: max(query.limit, ABSTAIN_JUDGED)])
    judged = [judge(candidate, terms, scale, language=intent.language) for candidate in ordered]
    resolved = tuple(match.name for match in arms.names)
    graph_answered = all(missing.arm is not Arm.RELATIONAL for missing in arms.missing)
    because = (
        abstention(judged, terms, scale, intent, named=resolved, graph_answered=graph_answered)
        if query.on(Stage.EVIDENCE)
        else ""
    )
    run.note(
        Stage.EVIDENCE,
        run.clock() - started,
        len(judged),
        len(judged),
        because and "abstained",
        skipped=not query.on(Stage.EVIDENCE),
    )
    hits = tuple(_hit(hit, rank) for rank, hit in enumerate(judged[: query.limit], start=1))
    run.note(Stage.LIMIT, 0.0, len(run.candidates), len(hits), "")
    return Answer(
        hits=hits,
        intent=intent.kind.value,
        language=intent.language,
        abstained=bool(because),
        abstained_because=because,
        missing=arms.missing,
        degraded=_degraded(arms, terms, intent.language.value),
        trace=Trace(
            stages=tuple(run.stages), arms={arm: len(rows) for arm, rows in arms.rows.items()}, weights=weights
        ),
    )


def _hit(judged: Judged, rank: int) -> Hit:
    candidate = judged.candidate
    page, passage = candidate.page, candidate.passage
    return Hit(
        slug=page.slug,
        title=page.title,
        source=page.source,
        type=page.type,
        revision=page.revision,
        page_id=page.page_id,
        date=page.date,
        score=round(candidate.score, 6),
        rank=rank,
        snippet=candidate.text,
        heading=passage.heading if passage else "",
        matched_by=candidate.matched_by,
        chunk_kind=passage.chunk_kind if passage else None,
        evidence=judged.evidence,
        evidence_sentence=judged.sentence,
        create_safety=judged.create_safety,
        path=candidate.path,
        boosts=candidate.boosts,
        cosine=candidate.cosine,
    )


def _only_on(query: Query, arms: ArmResults) -> ArmResults:
    """The results without the arms that this call switched off, in case the fan-out asked them all the same."""
    return ArmResults(
        rows={arm: rows for arm, rows in arms.rows.items() if query.on(arm) and arm is not Arm.RELATIONAL},
        names=arms.names,
        answers=arms.answers if query.on(Arm.RELATIONAL) else (),
        backlinks=arms.backlinks,
        missing=tuple(missing for missing in arms.missing if query.on(missing.arm)),
        degraded=arms.degraded,
        embedder=arms.embedder,
    )


def _degraded(arms: ArmResults, terms: QuestionTerms, language: str) -> tuple[Degraded, ...]:
    """What the fan-out reported, and that a question of stop words alone was searched by them (BC-100)."""
    if not terms.stopwords_only or any(note.code == "stopwords_only" for note in arms.degraded):
        return arms.degraded
    message = (
        "问题只含常用词，按标题和含义检索。"
        if language == "zh"
        else "The question has only common words; titles and meaning decided."
    )
    return (*arms.degraded, Degraded(code="stopwords_only", message=message))


def _intent_words(intent: Intent) -> str:
    words = intent.kind.value
    if intent.plan is not None:
        hops = " then ".join(f"{'/'.join(hop.link_types)} {hop.direction.value}" for hop in intent.plan.hops)
        return f"{words}: {hops} of {' | '.join(' + '.join(reading) for reading in intent.plan.readings)}"
    return f"{words}: {intent.subject}" if intent.subject else words


def _difference(before: Sequence[Candidate], after: Sequence[Candidate]) -> str:
    """What a stage changed, in a few words: how many came in, how many moved, and who stands first now."""
    old = [candidate.page.page_id for candidate in before]
    new = [candidate.page.page_id for candidate in after]
    words = []
    if len(new) > len(old):
        words.append(f"{len(new) - len(old)} added")
    moved = sum(map(ne, old, new))
    if moved:
        words.append(f"{moved} moved")
    if old and new and new[0] != old[0]:
        words.append(f"first is now {after[0].page.slug}")
    return ", ".join(words)
