"""Builds the page of a run as a pure function of the run's record, during the run or after its end.

An effect belongs to the node that its `about` names. If thoughts are the nodes, it belongs to the next thought.
"""

import itertools
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import structs

from ...app.run_thoughts import thought_rows
from ...blocks.programs import code_in
from ...blocks.why import find_answer
from ...core.bodies import Thought
from ...core.strategy import Strategy
from ...engine.journal import CALLER
from ...engine.record import Record
from ...guided.session_documents import thought_document
from ...text import shorten
from ..run_report import TITLE_CHARS, outline
from .page import (
    EVERYTHING,
    DrawnCounts,
    PageBounds,
    PageCall,
    PageCost,
    PageDocument,
    PageNode,
    PageNote,
    PageQuestion,
    PageReason,
    PageWhy,
    cost_of_dropped,
    finish_page,
    mark_path,
)
from .run_nodes import add_thoughts, first_nodes, is_active, read_part, votes_of

Entry = Mapping[str, Any]

_RECORDED = (
    *("strategy", "model", "status", "outcome", "answer", "best_answer", "duration_ms"),
    *("warnings", "problem", "stage", "budget", "forked_from"),
)
"""The members of the page that are copied from the result or the head of the record."""
_NOISE_USD = 1e-12
"""Differences in dollars up to this size are rounding errors."""


def run_page(
    record: Record,
    strategy: Strategy[Any, Any] | None,
    ended_at_ms: int | None = None,
    bounds: PageBounds = EVERYTHING,
) -> PageDocument:
    """Return the page of a run.

    Args:
        ended_at_ms: The end of the run in milliseconds since 1970 (UTC). Default: the start plus the duration.
    """
    result, head, document = record.result, record.head, record.result.document()
    maker = _Maker(record, document)
    usage, begun, recorded = result.usage, head["created_at_ms"], {**head, **structs.asdict(result)}
    counts: dict[str, float | None] = {
        **{"calls": usage.calls, "tokens": usage.tokens, "usd": usage.usd},
        **({"samples": usage.samples} if usage.extra_samples else {}),
        **{"seconds": result.duration_ms / 1000, "thoughts": len(maker.thoughts)},
        **({"nodes": len(maker.nodes)} if isinstance(document.get("tree"), Mapping) else {}),
    }
    for node in maker.nodes.values():
        # A draft without a thought of its own shows its answer.
        if node.kind in ("draft", "sample") and not node.text:
            node.text, node.score_text = node.score_text, ""
    page = PageDocument(
        kind="run",
        id=result.run_id,
        title=shorten(str(document.get("title") or head["problem"]), TITLE_CHARS, one_line=True),
        strategy_title=strategy.title if strategy else result.strategy,
        mode="coached" if result.model == CALLER else "driven",
        termination=document["termination"],
        answer_is_code=code_in(result.answer or "") is not None,
        why=maker.show_reason(),
        created_at_ms=begun,
        ended_at_ms=None if is_active(document) else ended_at_ms or begun + result.duration_ms,
        table=table_of(strategy),
        path=[*(edge[0] for edge in record.entries("path")), head["stage"]],
        used=counts,
        cost_of_dropped=cost_of_dropped(maker.nodes.values()),
        votes=read_part(lambda: votes_of(document), []),
        **{name: recorded[name] for name in _RECORDED if name in recorded},
        **structs.asdict(read_part(lambda: msgspec.convert(document, DrawnCounts), DrawnCounts())),
        nodes=[*maker.nodes.values()],
        questions=maker.questions,
        calls=maker.calls,
        notes=maker.notes,
        texts=[*maker.texts],
        outline=outline(document),
        reused=PageCost(**head["reused"]) if "reused" in head else None,
    )
    return finish_page(page, bounds)


def table_of(strategy: Strategy[Any, Any] | None) -> list[Mapping[str, Any]]:
    """Return a strategy's stages, each with its next stages. If there is no strategy, return an empty list."""
    stages = strategy.stages if strategy else ()
    return [{"name": stage.name, "description": stage.description, "next": [*stage.ways]} for stage in stages]


class _Maker:
    """Builds the nodes of a run's page, and assigns the record's thoughts, questions and calls to the nodes."""

    def __init__(self, record: Record, document: dict[str, Any]) -> None:
        self.document, self.reason = document, record.result.why
        self.effects: dict[str, Entry] = {effect["id"]: effect for effect in record.entries("effects")}
        self.thoughts: list[Thought] = [*record.thoughts()]
        self.last: dict[str, Entry] = {}
        self.places: dict[str, int] = {}
        """The position of each effect's latest event in the list of events. `last` has the event itself."""
        self.forked_at: int = record.head.get("forked_at") or 0
        self.reworded: Mapping[str, str] = record.head.get("reworded") or {}
        self.costs: dict[str, PageCost] = {}
        """The cost of each effect in this run. Answers copied from the original run of a fork cost nothing."""
        for place, event in enumerate(record.entries("events")):
            if (name := event["id"]) is not None:
                self.last[name], self.places[name] = event, place
                if place >= self.forked_at:
                    self.costs[name] = self.costs.get(name, PageCost()) + _event_cost(event)
        abouts = [effect.get("about", "") for effect in self.effects.values()]
        self.nodes = first_nodes(document, record.head["problem"], abouts)
        self.root = next(iter(self.nodes))
        origins: list[str] = [*record.entries("origins")]
        self.is_chain = len(self.nodes) == 1 and bool(self.thoughts)
        """Whether each thought is a node, since the result document describes no other nodes."""
        if self.is_chain:
            self._add_chain()
        self.recorded = [*itertools.accumulate((self.places.get(name, -1) for name in origins), max)]
        self.homes = list[str]()  # the id of each thought's node
        self.answered_by = find_answer(self.thoughts, document["answer"] or "")
        self.texts, self.questions = dict[str, int](), list[PageQuestion]()
        self.calls, self.notes = list[PageCall](), list[PageNote]()
        for number, thought in enumerate(self.thoughts, 1):
            self._attach_thought(number, thought, origins[number - 1] if number <= len(origins) else "")
        for asked in record.entries("questions"):
            self._attach_question(asked)
        for effect in self.effects.values():
            if effect["kind"] != "ask":
                self._attach_call(effect)
        usage = record.result.usage
        known = sum((node.cost for node in self.nodes.values()), PageCost())
        self.nodes[self.root].cost += _difference(PageCost(usage.calls, usage.tokens, usage.usd), known)

    def _add_chain(self) -> None:
        """Add a node for each thought. Mark the answer, and the path to the last thought of the main line."""
        end = add_thoughts(self.nodes, map(thought_document, thought_rows(self.thoughts)), 0)[""]
        if end != self.root:
            answer, is_open = self.document["answer"], is_active(self.document)
            mark_path(self.nodes, end, "open" if is_open else "on_path")
            if answer is not None and not is_open:
                self.nodes[f"t{find_answer(self.thoughts, answer)}"].state = "answer"

    def _attach_thought(self, number: int, thought: Thought, origin: str) -> None:
        name, text, score = f"t{number}", thought.text, thought.score
        own = self.nodes.get(name if self.is_chain else str(thought.data.get("node_id", "")))
        if own is not None and (self.is_chain or not own.stage):
            own.stage, own.branch = thought.stage, thought.branch or ""
            own.round = self.effects.get(origin, {}).get("round")
            own.text, own.origin = own.text or text, origin
            self._note_source(own, origin)
        node = own or self._node_of(origin)
        if own is None and number == self.answered_by:
            node = next((each for each in self.nodes.values() if each.state == "answer"), node)
        self.homes.append(node.id)
        if own is None or text != own.text:
            note = PageNote(id=name, node=node.id, stage=thought.stage, text=text, score=score, origin=origin)
            self.notes.append(note)

    def _node_of(self, effect_id: str) -> PageNode:
        """Return the node to which an effect belongs.

        In a chain of thoughts, return the first thought that was recorded after the effect's result.
        """
        if self.is_chain:
            last, place = len(self.thoughts), self.places.get(effect_id)
            number = last if place is None else min(bisect_left(self.recorded, place) + 1, last)
            return self.nodes[f"t{number}"]
        about = str(self.effects.get(effect_id, {}).get("about", ""))
        while about and about not in self.nodes:
            about = about.rpartition("/")[0]
        return self.nodes[about or self.root]

    def show_reason(self) -> PageWhy | None:
        """Return the reason for the result. If the reason names thoughts, add their numbers to the node labels."""
        why = self.reason
        if why is None:
            return None
        homes = {number: self.homes[number - 1] for number in why.thoughts}
        for name in dict.fromkeys(homes.values()):
            node, numbers = self.nodes[name], [str(number) for number, home in homes.items() if home == name]
            if node.kind != "problem" and not node.label.startswith("Thought"):
                node.label += f" · thought{'s' * (len(numbers) > 1)} {', '.join(numbers)}"
        return PageWhy(why.text, why.thoughts, nodes=[*homes.values()])

    # -- questions and calls

    def _attach(self, effect_id: str, stage: str) -> dict[str, Any]:
        """Add the cost of an effect to its node. Return the members of `PageEffect`."""
        node, last = self._node_of(effect_id), self.last.get(effect_id, {})
        node.cost += self.costs.get(effect_id, PageCost())
        is_failure = last.get("type") == "failed"
        return {
            "id": effect_id,
            "node": node.id,
            "stage": stage,
            "error": PageReason(str(last.get("code")), str(last.get("message"))) if is_failure else None,
            **self._note_source(node, effect_id),
        }

    def _note_source(self, node: PageNode, effect_id: str) -> dict[str, Any]:
        """Extend a node's time span to cover an effect. Return the times of the effect, and whether it was `reused`."""
        effect, last = self.effects.get(effect_id), self.last.get(effect_id)
        reused = self.places.get(effect_id, self.forked_at) < self.forked_at
        begun = None if effect is None else effect.get("at_ms", 0)
        ended = None if last is None else last.get("at_ms", 0)
        node.begun_at_ms = min((at for at in (begun, node.begun_at_ms) if at is not None), default=None)
        node.ended_at_ms = max((at for at in (ended, node.ended_at_ms) if at is not None), default=None)
        return {"begun_at_ms": begun, "ended_at_ms": ended, "reused": reused}

    def _attach_question(self, asked: Entry) -> None:
        effect, last = self.effects.get(asked["id"], {}), self.last.get(asked["id"], {})
        status, read = "answered", str(asked.get("read") or "")
        if last.get("type") == "failed":
            status = "cancelled" if last.get("code") == "stopped" else "failed"
        elif not last:
            status = "open" if is_active(self.document) else "cancelled"
        elif read.startswith("unreadable"):
            status = "unusable"
        question = PageQuestion(
            **self._attach(asked["id"], asked["stage"]),
            round=effect.get("round"),
            sample=effect.get("sample", 0),
            prompt=[self.texts.setdefault(part, len(self.texts)) for part in asked["prompt"].split("\n\n")],
            reply=asked.get("reply"),
            status=status,
            model=str(last.get("model") or ""),
            cost=self.costs.get(asked["id"], PageCost()),
            read=read,
            tried=[*(asked.get("tried") or ())],
            reworded=asked["id"] in self.reworded,
        )
        self.questions.append(question)

    def _attach_call(self, effect: Entry) -> None:
        is_tool, text = effect["kind"] == "call_tool", effect.get("text", "")
        arguments = (f"{name}: {value}" for name, value in (effect.get("arguments") or {}).items())
        call = PageCall(
            **self._attach(effect["id"], effect["stage"]),
            kind="tool" if is_tool else "verifier",
            name=text if is_tool else "verifier",
            text="\n".join(arguments) if is_tool else text,
            result=show_result(self.last.get(effect["id"], {})),
        )
        self.calls.append(call)


def _event_cost(event: Entry) -> PageCost:
    usage = event.get("usage")
    if usage is None:
        return PageCost(1 if event["type"] == "answered" else 0)
    calls = usage.get("calls", 1)
    return PageCost(calls, usage.get("input_tokens", 0) + usage.get("output_tokens", 0), usage.get("usd"))


def _difference(total: PageCost, known: PageCost) -> PageCost:
    """Return the cost in `total` that is not in `known`, such as the cost of cancelled calls."""
    left = 0.0 if total.usd is None else total.usd - (known.usd or 0.0)
    usd = left if left > _NOISE_USD else None
    return PageCost(total.calls - known.calls, total.tokens - known.tokens, usd)


def _plain(value: Any) -> str:
    return value.strip() if isinstance(value, str) else msgspec.json.encode(value).decode()


def show_result(event: Entry) -> str | None:
    """Return the result of a tool or a verifier as text for display, or None if the event is not a result."""
    match event.get("type"):
        case "tool_returned":
            value = event.get("value")
            named = value if isinstance(value, dict) else {}
            lines = (
                f"{name}: {_plain(each)}" for name, each in named.items() if each not in (None, False, "")
            )
            return "\n".join(lines) or _plain(value)
        case "verified":
            word = {"right": "confirmed", "wrong": "refuted", "unknown": "undecided"}[event["verdict"]]
            words = event.get("answer") or event.get("detail")
            return f"{word}: {words}" if words else word
        case _:
            return None
