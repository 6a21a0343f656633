"""The page of a run: a pure function of its record, ended or as it stands.

What an effect is about says which node it belongs to. Where nothing is said, a question belongs to the first thought
that came of it.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...core.strategy import Strategy, Thought
from ...core.text import first_words
from ...engine.journal import CALLER
from ...engine.record import Record
from ..run_report import TITLE_CHARS, Bullets, Grid, Heading, Prose, outline
from .page import (
    PageBlock,
    PageCall,
    PageCost,
    PageDocument,
    PageLimit,
    PageNode,
    PageNote,
    PageQuestion,
    PageReason,
    PageRound,
    PageSpend,
    PageStage,
    PageStep,
    PageStop,
    PageTable,
    PageVote,
    PromptLines,
    cost_of_dropped,
    plain,
    plain_or_none,
    sum_costs,
)
from .run_nodes import (
    DrawnCounts,
    SampleEntry,
    add_thoughts,
    first_nodes,
    is_active,
    leading_vote,
    read_shape,
    votes_in,
)
from .run_times import PLACES, Timed, critical_path

Entry = Mapping[str, Any]

_MOST_BUDGETS = 100
"""As many changes of the limits are told."""
_NOISE_USD = 1e-12
"""Differences this small come from float arithmetic."""


def run_page(
    record: Record,
    strategy: Strategy[Any, Any] | None,
    ended_at_ms: int | None = None,
    places: int = PLACES,
) -> PageDocument:
    """Return the page of a run, whole.

    Args:
        strategy: Its table, where it is still known.
        ended_at_ms: When it ended, if it did; UTC, milliseconds since 1970.
        places: How many effects of it are performed at once.
    """
    result, head = record.result, record.head
    document = result.document()
    maker = _Maker(record, document)
    maker.attach()
    used = maker.total
    begun = head.get("created_at_ms") or 0
    return PageDocument(
        kind="run",
        id=result.run_id,
        session_id=result.session_id,
        title=plain(first_words(str(document.get("title") or head["problem"]), TITLE_CHARS)),
        problem=plain(head["problem"]),
        strategy=plain(result.strategy),
        strategy_title=strategy.title if strategy else plain(result.strategy),
        mode="coached" if result.model == CALLER else "driven",
        model=plain(result.model),
        status=result.status,
        outcome=result.outcome,
        stage=plain(head["stage"]),
        reason=plain(document["termination"]["reason"]),
        detail=plain(document["termination"]["detail"]),
        code=document["termination"].get("code"),
        answer=plain_or_none(result.answer),
        best_answer=plain_or_none(result.best_answer),
        warnings=[*map(plain, result.warnings)],
        begun_at_ms=begun,
        ended_at_ms=None if is_active(document) else ended_at_ms or begun + result.duration_ms,
        duration_ms=result.duration_ms,
        table=table_of(strategy),
        path=_path(record.entries("path"), head["stage"]),
        spend=_spend(head.get("budget") or {}, used, maker, result.duration_ms, document),
        limits=[*_limits(head.get("budgets") or [])],
        votes=_votes(document),
        early_stop=_early_stop(document, maker.nodes.values()),
        rounds=_rounds(maker.questions),
        critical_path=critical_path(_timed_effects(maker), places),
        nodes=[*maker.nodes.values()],
        questions=maker.questions,
        calls=maker.calls,
        notes=maker.notes,
        texts=maker.lines.texts,
        prompts=maker.lines.prompts,
        outline=_blocks(document),
        forked_from=head.get("forked_from"),
        forked_at=head.get("forked_at"),
        reused=maker.reused,
    )


def effect_of(record: Record, name: str, *, only_questions: bool = False) -> str | None:
    """Return the id of the effect that a thing on the page is about first, or else came of; None: there is none.

    Args:
        name: The id of a question, of a call or of a node.
        only_questions: Whether calls do not count.
    """
    maker = _Maker(record, record.result.document())
    maker.attach()

    def counts(effect_id: str) -> bool:
        effect = maker.effects.get(effect_id)
        return effect is not None and (effect["kind"] == "ask" or not only_questions)

    if counts(name):
        return name
    node = maker.nodes.get(name)
    about = [] if node is None else [*filter(counts, (*node.questions, *node.calls))]
    origins = [origin for home, origin in maker.sources if home == name and counts(origin)]
    return min(
        about or origins, key=lambda effect_id: maker.places.get(effect_id, len(maker.places)), default=None
    )


def table_of(strategy: Strategy[Any, Any] | None) -> PageTable:
    """Return a strategy's stages and edges; none of no strategy."""
    if strategy is None:
        return PageTable()
    stages = [PageStage(stage.name, stage.description) for stage in strategy.stages]
    return PageTable(stages, [*strategy.edges])


class _Maker:
    """Puts what the lists of a record hold onto the nodes they belong to."""

    def __init__(self, record: Record, document: dict[str, Any]) -> None:
        self.document = document
        self.effects: dict[str, Entry] = {effect["id"]: effect for effect in record.entries("effects")}
        self.origins: list[str] = [*record.entries("origins")]
        self.thoughts: list[Thought] = [*record.thoughts()]
        self.asked: list[Entry] = [*record.entries("questions")]
        self.events: dict[str, list[Entry]] = {}
        self.places: dict[str, int] = {}
        """How many events came before the latest one of an effect."""
        self.forked_at: int = record.head.get("forked_at") or 0
        self.reworded: Mapping[str, str] = record.head.get("reworded") or {}
        self.costs: dict[str, PageCost] = {}
        """What each effect took, but for answers that were taken over."""
        self.reused = PageCost() if self.forked_at else None
        self.sources: list[tuple[str, str]] = []
        """Nodes, each with an effect that was about it or that it came of."""
        for place, event in enumerate(record.entries("events")):
            if event["id"] is not None:
                self._add_event(event, place)
        abouts = [effect.get("about", "") for effect in self.effects.values()]
        self.nodes = first_nodes(document, record.head["problem"], abouts)
        self.root = next(iter(self.nodes))
        self.is_chain = len(self.nodes) == 1
        self.lines = PromptLines()
        self.questions: list[PageQuestion] = []
        self.calls: list[PageCall] = []
        self.notes: list[PageNote] = []
        usage = record.result.usage
        self.total = PageCost(usage.calls, usage.tokens, usage.usd)

    def attach(self) -> None:
        """Add thoughts, questions and calls, then costs and times."""
        owners = add_thoughts(self.nodes, self.thoughts, self.document) if self.is_chain else []
        self.owners = _Owners(owners, self.origins, self.places)
        if not self.is_chain:
            for number, thought in enumerate(self.thoughts, 1):
                self._attach_thought(number, thought)
        for asked in self.asked:
            self._attach_question(asked)
        for effect in self.effects.values():
            if effect["kind"] != "ask":
                self._attach_call(effect)
        self._set_times(owners)
        self._mark_reused(owners)
        known = sum((node.cost for node in self.nodes.values()), PageCost())
        root = self.nodes[self.root]
        root.cost += _difference(self.total, known)
        sum_costs(self.nodes.values())

    # -- thoughts of a run whose document has nodes

    def _attach_thought(self, number: int, thought: Thought) -> None:
        origin = self.origins[number - 1] if number <= len(self.origins) else ""
        own = self.nodes.get(str(thought.data.get("node_id", "")))
        node, text = own or self._node_of(origin), plain(thought.text)
        if own is not None and not own.stage:
            own.stage, own.branch = thought.stage, plain(thought.branch or "")
            own.round = self.effects.get(origin, {}).get("round")
            own.begun_at_ms, own.ended_at_ms = self._asked_at(origin), self._settled_at(origin)
            own.text = own.text or text
            self.sources.append((own.id, origin))
        if own is None or text != own.text:
            score = thought.score
            self.notes.append(
                PageNote(id=f"t{number}", node=node.id, stage=thought.stage, text=text, score=score)
            )

    def _node_of(self, effect_id: str) -> PageNode:
        """Return the node that an effect is about: that of its id, or the nearest one above."""
        about = str(self.effects.get(effect_id, {}).get("about", ""))
        while about and about not in self.nodes:
            about = about.rpartition("/")[0]
        return self.nodes[about or self.root]

    # -- questions and calls

    def _owner(self, effect_id: str) -> PageNode:
        if self.is_chain:
            return self.nodes[self.owners.of(effect_id) or self.root]
        return self._node_of(effect_id)

    def _attach_question(self, asked: Entry) -> None:
        effect_id, effect = asked["id"], self.effects.get(asked["id"], {})
        node, events = self._owner(effect_id), self.events.get(effect_id, [])
        cost = self.costs.get(effect_id, PageCost())
        node.cost += cost
        node.questions.append(effect_id)
        self.sources.append((node.id, effect_id))
        last = events[-1] if events else None
        failure = last if last is not None and last["type"] == "failed" else None
        status = "answered"
        if failure is not None:
            status = "cancelled" if failure.get("code") == "stopped" else "failed"
        elif last is None:
            status = "open" if is_active(self.document) else "cancelled"
        elif str(asked.get("read") or "").startswith("unreadable"):
            status = "unusable"
        self.questions.append(
            PageQuestion(
                id=effect_id,
                node=node.id,
                stage=asked["stage"],
                round=effect.get("round"),
                sample=effect.get("sample", 0),
                asked_at_ms=self._asked_at(effect_id),
                answered_at_ms=self._settled_at(effect_id),
                prompt=self.lines.add(asked["prompt"]),
                reply=plain_or_none(asked.get("reply")),
                status=status,
                error=None if failure is None else _why(failure),
                model=plain(str((last or {}).get("model") or "")),
                cost=cost,
                read=plain(str(asked.get("read") or "")),
                tries=[*map(plain, asked.get("tried") or ())],
                reused=self._is_reused(effect_id),
                reworded=effect_id in self.reworded,
            )
        )

    def _attach_call(self, effect: Entry) -> None:
        effect_id, is_tool = effect["id"], effect["kind"] == "call_tool"
        node, events = self._owner(effect_id), self.events.get(effect_id, [])
        node.cost += self.costs.get(effect_id, PageCost())
        node.calls.append(effect_id)
        self.sources.append((node.id, effect_id))
        last = events[-1] if events else {}
        failure = last if last.get("type") == "failed" else None
        arguments = effect.get("arguments") or {}
        text = "\n".join(f"{name}: {value}" for name, value in arguments.items())
        self.calls.append(
            PageCall(
                id=effect_id,
                node=node.id,
                kind="tool" if is_tool else "verifier",
                name=plain(effect.get("text", "")) if is_tool else "verifier",
                stage=effect["stage"],
                text=plain(text if is_tool else effect.get("text", "")),
                result=plain_or_none(_result_text(last)),
                error=None if failure is None else _why(failure),
                begun_at_ms=self._asked_at(effect_id),
                ended_at_ms=self._settled_at(effect_id),
                reused=self._is_reused(effect_id),
            )
        )

    # -- times

    def _asked_at(self, effect_id: str) -> int | None:
        effect = self.effects.get(effect_id)
        return None if effect is None else effect.get("at_ms", 0)

    def _settled_at(self, effect_id: str) -> int | None:
        events = self.events.get(effect_id)
        return events[-1].get("at_ms", 0) if events else None

    def _add_event(self, event: Entry, place: int) -> None:
        name, cost = event["id"], _event_cost(event)
        self.events.setdefault(name, []).append(event)
        self.places[name] = place
        if self.reused is not None and place < self.forked_at:
            self.reused += cost
        else:
            self.costs[name] = self.costs.get(name, PageCost()) + cost

    def _is_reused(self, effect_id: str) -> bool:
        """Whether what came of an effect was taken over from another run."""
        return self.places.get(effect_id, self.forked_at) < self.forked_at

    def _mark_reused(self, owners: Sequence[str]) -> None:
        """Mark the nodes that only have what was taken over."""
        sources = [*self.sources, *zip(owners, self.origins, strict=False)]
        own = {name for name, effect_id in sources if not self._is_reused(effect_id)}
        for name, _ in sources:
            self.nodes[name].reused = name not in own

    def _set_times(self, owners: Sequence[str]) -> None:
        """Give nodes the time from their first question to what came of their last one."""
        for name, origin in zip(owners, self.origins, strict=False):
            node = self.nodes[name]
            node.round = self.effects.get(origin, {}).get("round")
            node.begun_at_ms, node.ended_at_ms = self._asked_at(origin), self._settled_at(origin)
        for effect in (*self.questions, *self.calls):
            node = self.nodes[effect.node]
            begun, ended = self._asked_at(effect.id), self._settled_at(effect.id)
            node.begun_at_ms = _least(node.begun_at_ms, begun)
            node.ended_at_ms = _most(node.ended_at_ms, ended)


class _Owners:
    """Which thought of a chain a question belongs to."""

    def __init__(self, names: Sequence[str], origins: Sequence[str], places: Mapping[str, int]) -> None:
        self._places, self._names = places, names
        self._recorded = [*itertools.accumulate((places.get(origin, -1) for origin in origins), max)]

    def of(self, effect_id: str) -> str | None:
        """Return the node that an effect belongs to; None: no thought came after it."""
        if not self._names:
            return None
        place = self._places.get(effect_id)
        if place is None:
            return self._names[-1]
        index = bisect_left(self._recorded, place)
        return self._names[min(index, len(self._names) - 1)]


def _least(first: int | None, other: int | None) -> int | None:
    return other if first is None else first if other is None else min(first, other)


def _most(first: int | None, other: int | None) -> int | None:
    return other if first is None else first if other is None else max(first, other)


def _event_cost(event: Entry) -> PageCost:
    usage = event.get("usage")
    if usage is None:
        return PageCost(1 if event["type"] == "answered" else 0)
    calls = usage.get("calls", 1)
    return PageCost(calls, usage.get("input_tokens", 0) + usage.get("output_tokens", 0), usage.get("usd"))


def _difference(total: PageCost, known: PageCost) -> PageCost:
    """Return what no effect says it took: calls whose answer was lost, or that were cut off in flight."""
    left = 0.0 if total.usd is None else total.usd - (known.usd or 0.0)
    usd = left if left > _NOISE_USD else None
    return PageCost(total.calls - known.calls, total.tokens - known.tokens, usd)


def _why(failure: Entry) -> PageReason:
    return PageReason(plain(str(failure.get("code"))), plain(str(failure.get("message"))))


def _result_text(event: Entry) -> str | None:
    match event.get("type"):
        case "tool_returned":
            value = event.get("value")
            return value if isinstance(value, str) else str(value)
        case "verified":
            parts = (event["verdict"], event.get("detail"), event.get("answer"))
            return ": ".join(part for part in parts if part)
        case _:
            return None


# -- what stands beside the nodes


def _path(edges: Iterable[Sequence[str]], stage: str) -> list[PageStep]:
    steps: list[PageStep] = []
    for name in [*(edge[0] for edge in edges), stage]:
        if steps and steps[-1].stage == name:
            steps[-1].times += 1
        elif name:
            steps.append(PageStep(name, 1))
    return steps


def _spend(
    budget: Entry, used: PageCost, maker: _Maker, duration_ms: int, document: Mapping[str, Any]
) -> list[PageSpend]:
    dropped = cost_of_dropped(maker.nodes.values())
    tree = document.get("tree")
    took: dict[str, tuple[float | None, float | None]] = {
        "calls": (used.calls, dropped.calls),
        "tokens": (used.tokens, dropped.tokens),
        "usd": (used.usd, None if used.usd is None else dropped.usd or 0.0),
        "seconds": (duration_ms / 1000, None),
        "thoughts": (len(maker.thoughts), None),
        **({"nodes": (len(maker.nodes), None)} if isinstance(tree, Mapping) else {}),
    }
    return [
        PageSpend(name=name, used=spent, limit=budget.get(name), on_dropped=on_dropped)
        for name, (spent, on_dropped) in took.items()
    ]


def _limits(budgets: Sequence[tuple[int, Entry]]) -> Iterator[PageLimit]:
    """Yield the limits that were changed, each with what it was at first, of the latest changes."""
    latest = budgets[-_MOST_BUDGETS:]
    for name in dict.fromkeys(name for _, budget in latest for name in budget):
        values = [(at_ms, budget.get(name)) for at_ms, budget in latest]
        steps = [next(group) for _, group in itertools.groupby(values, key=lambda value: value[1])]
        if len(steps) > 1:
            yield from (PageLimit(at_ms=at_ms, name=name, limit=limit) for at_ms, limit in steps)


def _votes(document: Mapping[str, Any]) -> list[PageVote]:
    leader = leading_vote(document)
    samples = read_shape(document.get("samples"), list[SampleEntry]) or []
    return [
        PageVote(
            answer=plain(vote.answer),
            count=vote.count,
            nodes=[sample.id for sample in samples if sample.vote == vote.answer],
            leads=vote.answer == leader,
        )
        for vote in votes_in(document)
    ]


def _early_stop(document: Mapping[str, Any], nodes: Iterable[PageNode]) -> PageStop | None:
    """Return when the votes that were in settled the vote; None where every sample was drawn, or none was."""
    counts = read_shape(document, DrawnCounts)
    voters = {name for vote in _votes(document) for name in vote.nodes}
    settled = [node.ended_at_ms for node in nodes if node.id in voters and node.ended_at_ms is not None]
    if counts is None or not counts.samples_saved or not settled:
        return None
    return PageStop(
        at_ms=max(settled),
        counted=counts.samples_used,
        spared=counts.samples_saved,
        confidence=counts.confidence,
    )


def _timed_effects(maker: _Maker) -> Iterator[Timed]:
    for effect in (*maker.questions, *maker.calls):
        if isinstance(effect, PageQuestion):
            asked_at, settled_at = effect.asked_at_ms, effect.answered_at_ms
        else:
            asked_at, settled_at = effect.begun_at_ms, effect.ended_at_ms
        is_cancelled = isinstance(effect, PageQuestion) and effect.status == "cancelled"
        if asked_at is not None and settled_at is not None and not is_cancelled:
            yield Timed(effect.id, asked_at, settled_at)


def _rounds(questions: Iterable[PageQuestion]) -> list[PageRound]:
    rounds: dict[int, PageRound] = {}
    for question in questions:
        if question.round is None:
            continue
        number = question.round
        found = rounds.setdefault(
            number, PageRound(number=number, begun_at_ms=None, ended_at_ms=None, questions=[])
        )
        found.questions.append(question.id)
        found.begun_at_ms = _least(found.begun_at_ms, question.asked_at_ms)
        found.ended_at_ms = _most(found.ended_at_ms, question.answered_at_ms)
    return [rounds[number] for number in sorted(rounds)]


def _blocks(document: Mapping[str, Any]) -> list[PageBlock]:
    blocks: list[PageBlock] = []
    for block in outline(document):
        match block:
            case Heading(text, level):
                blocks.append(PageBlock("heading", plain(text), level))
            case Prose(text):
                blocks.append(PageBlock("prose", plain(text)))
            case Bullets(items):
                blocks.append(PageBlock("bullets", items=[*map(plain, items)]))
            case Grid(heads, rows, chosen):
                cells = [[*map(plain, row)] for row in rows]
                blocks.append(PageBlock("table", heads=[*heads], rows=cells, chosen=chosen))
    return blocks
