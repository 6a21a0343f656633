"""A session drawn in the terminal, readable at 80 columns."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console, Group
from rich.padding import Padding
from rich.text import Text

from ...core.text import inert
from .. import present

Document = dict[str, Any]


def draw(session: Document) -> None:
    """Draw the main line, and under the thought it left each branch."""
    console = Console(file=sys.stdout, highlight=False, soft_wrap=False)
    thoughts: list[Document] = session["thoughts"]
    head = f"{session['sessionId']}  {session['strategy']}  {len(thoughts)} thoughts"
    console.print(Text(inert(head), style="bold"))
    if session.get("purpose"):
        console.print(Text(present.clipped(session["purpose"], console.width), style="dim"))
    console.print(Group(*_line(thoughts, None, 0, set())))


def _line(
    thoughts: list[Document], branch: str | None, depth: int, drawn: set[str | None]
) -> list[Padding | Text]:
    drawn.add(branch)
    own = [one for one in thoughts if one.get("branchId") == branch]
    parts: list[Padding | Text] = []
    for thought in own:
        parts.append(Padding(_thought(thought), (0, 0, 0, 2 * depth)))
        for name in _leaving(thoughts, thought, branch):
            if name not in drawn:
                parts.append(Padding(_branch(name), (0, 0, 0, 2 * depth + 2)))
                parts += _line(thoughts, name, depth + 2, drawn)
    if depth == 0:
        for name in dict.fromkeys(one.get("branchId") for one in thoughts):
            if name not in drawn:
                parts.append(_branch(str(name)))
                parts += _line(thoughts, name, 1, drawn)
    return parts


def _branch(name: str) -> Text:
    return Text(f"⎇ {present.clipped(name, 40)}", style="magenta")


def _leaving(thoughts: list[Document], thought: Document, branch: str | None) -> list[str]:
    """Return the branches whose first thought leaves from this one."""
    names: list[str] = []
    seen: set[str] = set()
    for one in thoughts:
        name = one.get("branchId")
        if name is None or name == branch or name in seen:
            continue
        seen.add(name)
        if one.get("branchFromThought") == thought["thoughtNumber"]:
            names.append(name)
    return names


def _thought(thought: Document) -> Text:
    text = Text(f"{thought['thoughtNumber']:>3} ", style="bold")
    if thought.get("stage"):
        text.append(f"[{thought['stage']}] ", style="cyan")
    if thought.get("revisesThought"):
        text.append(f"↺ revises {thought['revisesThought']} ", style="yellow")
    if thought.get("mergeBranch"):
        text.append(f"⇠ takes in {present.clipped(thought['mergeBranch'], 30)} ", style="magenta")
    return text.append(inert(thought["thought"]), style="default")
