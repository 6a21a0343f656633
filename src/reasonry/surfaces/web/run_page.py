"""The page of a run: a pure function of its record, ended or as it stands.

What an effect is about says which node it belongs to. Where nothing is said, a question belongs to the first thought
that came of it.
"""

from __future__ import annotations

import itertools
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...core.strategy import Strategy, Thought
from ...core.text import first_words
from ...engine.journal import CALLER
from ...engine.record import Record
from ..run_report import TITLE_CHARS, outline
from .page import (
    PageCall,
    PageCost,
    PageDocument,
    PageLimit,
    PageNode,
    PageNote,
    PagePath,
    PageQuestion,
    PageReason,
    PageSpend,
    PageStage,
    PageStop,
    PageTable,
    PageVote,
    PromptLines,
    change_texts,
    cost_of_dropped,
    plain,
    walked_steps,
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

Entry = Mapping[str, Any]

_MOST_BUDGETS = 100
"""As many changes of the limits are told."""
_NOISE_USD = 1e-12
"""Differences this small come from float arithmetic."""


def run_page(
    record: Record,
    strategy: Strategy[Any, Any] | None,
    ended_at_ms: int | None = None,
) -> PageDocument:
    """Return the page of a run, whole.

    Args:
        strategy: Its table, where it is still known.
        ended_at_ms: When it ended, if it did; UTC, milliseconds since 1970.
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
        answer=_plain_or_none(result.answer),
        best_answer=_plain_or_none(result.best_answer),
        warnings=[*map(plain, result.warnings)],
        begun_at_ms=begun,
        ended_at_ms=None if is_active(document) else ended_at_ms or begun + result.duration_ms,
        duration_ms=result.duration_ms,
        table=table_of(strategy),
        path=walked_steps([*(edge[0] for edge in record.entries("path")), head["stage"]]),
        spend=_spend(head.get("budget") or {}, used, maker, result.duration_ms, document),
        limits=[*_limits(head.get("budgets") or [])],
        votes=_votes(document),
        early_stop=_early_stop(document, maker.nodes.values()),
        critical_path=critical_path(maker.questions, maker.calls),
        nodes=[*maker.nodes.values()],
        questions=maker.questions,
        calls=maker.calls,
        notes=maker.notes,
        texts=maker.lines.texts,
        prompts=maker.lines.prompts,
        outline=change_texts(outline(document), plain),
        forked_from=head.get("forked_from"),
        reused=maker.reused,
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
        self.owners = owners
        self.recorded = [*itertools.accumulate((self.places.get(name, -1) for name in self.origins), max)]
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
        """Return the node that an effect belongs to: of a chain, the first thought that was recorded after it."""
        if not self.is_chain:
            return self._node_of(effect_id)
        if not self.owners:
            return self.nodes[self.root]
        last, place = len(self.owners) - 1, self.places.get(effect_id)
        return self.nodes[
            self.owners[last if place is None else min(bisect_left(self.recorded, place), last)]
        ]

    def _attach_question(self, asked: Entry) -> None:
        effect_id, effect = asked["id"], self.effects.get(asked["id"], {})
        node, events = self._owner(effect_id), self.events.get(effect_id, [])
        cost = self.costs.get(effect_id, PageCost())
        node.cost += cost
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
                reply=_plain_or_none(asked.get("reply")),
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
                result=_plain_or_none(_result_text(last)),
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


def _plain_or_none(text: str | None) -> str | None:
    return None if text is None else plain(text)


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


def critical_path(questions: Iterable[PageQuestion], calls: Iterable[PageCall]) -> PagePath | None:
    """Return what had to wait for one another; None where nothing has settled.

    Each waited for the one that was the last to settle before it was asked for.
    """
    asked = [question for question in questions if question.status != "cancelled"]
    spans = [(question.answered_at_ms, question.asked_at_ms, question.id) for question in asked]
    spans += [(call.ended_at_ms, call.begun_at_ms, call.id) for call in calls]
    settled = [(end, begun, name) for end, begun, name in spans if end is not None and begun is not None]
    path, ms, asked_at = list[str](), 0, sys.maxsize
    for end, begun, name in sorted(settled, reverse=True):
        if end <= asked_at:
            path.append(name)
            ms, asked_at = ms + max(0, end - begun), begun
    return PagePath(ms=ms, effects=path[::-1]) if path else None
