"""The page of a guided session: a pure function of its whole document, as `export` gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.strategy import Strategy
from ...core.text import first_words
from ...guided.export import stages_of
from ...guided.transcripts import instant_ms
from ..run_report import TITLE_CHARS
from .page import EVERYTHING, PageBounds, PageDocument, PageNode, finish_page, mark_path
from .run_page import table_of

ROOT = "root"

Document = Mapping[str, Any]


def session_page(
    session: Document, strategy: Strategy[Any, Any] | None, bounds: PageBounds = EVERYTHING
) -> PageDocument:
    """Return the page of a session.

    Args:
        session: The session's document, with all of its `thoughts`.
        strategy: Its table, if it has one that is still known.
    """
    thoughts: Sequence[Document] = session["thoughts"]
    begun = instant_ms(session["created_at"], 0)
    lines = _SessionNodes(begun)
    for thought in thoughts:
        lines.add(thought)
    purpose = session.get("purpose") or ""
    root = PageNode(id=ROOT, parent=None, kind="problem", label="Session", text=purpose, state="on_path")
    nodes = [root, *lines.nodes.values()]
    has_ended = bool(thoughts) and not thoughts[-1].get("next_thought_needed", True)
    last = next(reversed(lines.nodes), None)
    if last is not None:
        mark_path(lines.nodes, last, "answer" if has_ended else "open")
    times = [node.ended_at_ms for node in nodes if node.ended_at_ms is not None]
    name, status = str(session.get("strategy") or ""), str(session.get("status") or "active")
    detail = "the last thought said that no other is needed"
    page = PageDocument(
        kind="session",
        id=session["session_id"],
        session_id=session["session_id"],
        title=first_words(purpose, TITLE_CHARS) or "Session",
        problem=purpose,
        strategy=name,
        strategy_title=strategy.title if strategy else name,
        mode="guided",
        status="ended" if has_ended and status == "active" else status,
        stage=str(thoughts[-1].get("stage") or "") if thoughts else "",
        termination={"reason": "ended", "detail": detail} if has_ended else {},
        answer=lines.nodes[last].text if has_ended and last else None,
        created_at_ms=begun,
        ended_at_ms=begun + max(times, default=0) if has_ended else None,
        duration_ms=max(times, default=0),
        table=table_of(strategy),
        path=[stage for thought in thoughts for stage in stages_of(thought)],
        nodes=nodes,
    )
    return finish_page(page, bounds)


class _SessionNodes:
    """The thoughts as nodes, each on the thought before it on its line."""

    def __init__(self, begun_at_ms: int) -> None:
        self.begun_at_ms = begun_at_ms
        self.nodes: dict[str, PageNode] = {}
        self.ends: dict[str, str] = {}
        self._numbers: dict[int, str] = {}

    def add(self, thought: Document) -> None:
        """Take the next thought."""
        name, branch = f"t{thought['seq']}", thought.get("branch_id") or ""
        left = self._find_thought(thought, "branch_from_seq", "branch_from_thought")
        parent = self.ends.get(branch) or left or self.ends.get("") or ROOT
        number, data = thought["thought_number"], thought.get("data") or {}
        score = thought.get("score", data.get("score"))
        score = score if isinstance(score, int | float) else None
        at = instant_ms(thought["at"], 0) - self.begun_at_ms if "at" in thought else None
        before = self.nodes.get(parent)
        node = PageNode(
            id=name,
            parent=parent,
            kind="thought",
            label=f"Thought {number}",
            text=thought["thought"],
            stage=" → ".join(stages_of(thought)),
            branch=branch,
            score=score,
            score_text="" if score is None else f"{score:g}",
            begun_at_ms=at if before is None or before.ended_at_ms is None else before.ended_at_ms,
            ended_at_ms=None if at is None else max(at, 0),
            revises=self._find_thought(thought, "revises_seq", "revises_thought"),
            data=data,
        )
        merged = thought.get("merge_branch")
        if merged is not None and merged in self.ends:
            node.merges.append(self.ends[merged])
        self.nodes[name] = node
        self.ends[branch] = self._numbers[number] = name

    def _find_thought(self, thought: Document, seq: str, number: str) -> str | None:
        """Return the thought referred to: by its `seq`, or by its number where the record has no more."""
        named = f"t{thought[seq]}" if seq in thought else self._numbers.get(thought.get(number, 0))
        return named if named in self.nodes else None
