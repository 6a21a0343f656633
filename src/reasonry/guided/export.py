"""Export a whole session as JSON data that can be imported, or as Markdown.

Thoughts are untrusted text. In Markdown, lists, headings, emphasis and fenced code keep their meaning; links, images,
tags and invisible control characters are escaped. JSON keeps a session unchanged.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from ..text import inline_text, lazy_pattern, prose_lines

Format = Literal["json", "markdown"]
KIND = "reasonry.session"
VERSION = 1

Document = Mapping[str, Any]

_WORD = lazy_pattern(r"[\w.:-]+")


# -- Markdown


def markdown(session: Document) -> str:
    """Return a session as a Markdown page: the main line, then the branches in order of creation."""
    thoughts: Sequence[Document] = session["thoughts"]
    strategy: str = session.get("strategy", "")
    strategy = strategy if _WORD.fullmatch(strategy) else inline_text(strategy)
    lines = [
        f"# {inline_text(session['purpose'] or 'Session')}",
        "",
        f"- Session: {_code(session['session_id'])}",
        *([f"- Strategy: {strategy}"] if strategy else []),
        f"- Begun: {session['created_at']}, last used: {session['used_at']}",
        f"- Thoughts: {len(thoughts)}",
    ]
    # The main line comes first.
    branches = dict.fromkeys(thought.get("branch_id") for thought in thoughts)
    for branch in sorted(branches, key=lambda name: name is not None):
        own = [thought for thought in thoughts if thought.get("branch_id") == branch]
        left = own[0].get("branch_from_thought")
        point = "" if left is None else f" (from thought {left})"
        lines += ["", "## Main line" if branch is None else f"## Branch {inline_text(branch)}{point}"]
        for thought in own:
            lines += ["", *_thought_lines(thought)]
    return "\n".join(lines) + "\n"


def _thought_lines(thought: Document) -> Iterator[str]:
    total = f"/{thought['total_thoughts']}" if "total_thoughts" in thought else ""
    yield f"### Thought {thought['thought_number']}{total}{_remarks(thought)}"
    yield ""
    yield from (f"> {line}".rstrip() for line in prose_lines(thought["thought"]))
    data: Mapping[str, Any] = thought.get("data") or {}
    if data:
        yield ""
    for name, value in data.items():
        yield f"- {inline_text(str(name))}: {inline_text(plain_value(value))}"


def _remarks(thought: Document) -> str:
    stages = " → ".join(map(_code, stages_of(thought)))
    remarks = [stages] if stages else []
    if "revises_thought" in thought:
        remarks.append(f"revises thought {thought['revises_thought']}")
    elif thought.get("is_revision"):
        remarks.append("a revision")
    if "merge_branch" in thought:
        remarks.append(f"takes in branch {inline_text(thought['merge_branch'])}")
    if "score" in thought:
        remarks.append(f"score {thought['score']:g}")
    if not thought.get("next_thought_needed", True):
        remarks.append("the end")
    return f" ({', '.join(remarks)})" if remarks else ""


def _code(text: str) -> str:
    return f"`{text}`" if _WORD.fullmatch(text) else inline_text(text)


def stages_of(thought: Document) -> Sequence[str]:
    """Return the stages of an exported thought, in order. The result is empty if the thought has no stage."""
    return thought.get("stages") or [*filter(None, [thought.get("stage")])]


# -- data as text: semicolons separate items, a colon follows a member's name, parentheses enclose nested data


def plain_value(value: Any) -> str:
    """Format JSON data as text, such as `a; b`, `x: 1, y: 2` or `yes`. Nested data is in parentheses."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case dict():
            return ", ".join(f"{name}: {_inside(part)}" for name, part in value.items()) or "none"
        case list() | tuple():
            return "; ".join(map(_inside, value)) or "none"
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _inside(value: Any) -> str:
    text = plain_value(value)
    return f"({text})" if isinstance(value, dict | list | tuple) and value else text
