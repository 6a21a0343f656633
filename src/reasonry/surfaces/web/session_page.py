"""Builds the page of a guided session, as a pure function of the session's exported document."""

from collections.abc import Sequence
from typing import Any

from ...core.strategy import Strategy
from ...guided.export import stages_of
from ...guided.transcripts import instant_ms
from ...text import shorten
from ..run_report import TITLE_CHARS
from .page import EVERYTHING, PageBounds, PageDocument, PageNode, finish_page, mark_path
from .run_nodes import ROOT, Document, add_thoughts
from .run_page import table_of


def session_page(
    session: Document, strategy: Strategy[Any, Any] | None, bounds: PageBounds = EVERYTHING
) -> PageDocument:
    """Return the page of a session. `session` is the exported document with all its thoughts."""
    thoughts: Sequence[Document] = session["thoughts"]
    begun, purpose = instant_ms(session["created_at"], 0), session.get("purpose") or ""
    root = PageNode(id=ROOT, parent=None, kind="problem", label="Session", text=purpose, state="on_path")
    nodes = {ROOT: root}
    add_thoughts(nodes, thoughts, begun)
    has_ended = bool(thoughts) and not thoughts[-1].get("next_thought_needed", True)
    if thoughts:
        mark_path(nodes, next(reversed(nodes)), "answer" if has_ended else "open")
    duration = max(node.ended_at_ms or 0 for node in nodes.values())
    name, status = str(session.get("strategy") or ""), str(session.get("status") or "active")
    page = PageDocument(
        kind="session",
        id=session["session_id"],
        title=shorten(purpose, TITLE_CHARS, one_line=True) or "Session",
        problem=purpose,
        strategy=name,
        strategy_title=strategy.title if strategy else name,
        mode="guided",
        status="ended" if has_ended and status == "active" else status,
        stage=str(thoughts[-1].get("stage") or "") if thoughts else "",
        termination={"reason": "ended", "detail": "marked as the last thought"} if has_ended else {},
        answer=thoughts[-1]["thought"] if has_ended else None,
        created_at_ms=begun,
        ended_at_ms=begun + duration if has_ended else None,
        duration_ms=duration,
        table=table_of(strategy),
        path=[stage for thought in thoughts for stage in stages_of(thought)],
        nodes=[*nodes.values()],
    )
    return finish_page(page, bounds)
