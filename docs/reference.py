"""Writes the reference: commands from their help, the HTTP API from its OpenAPI document, Python from docstrings.

`generate.py` puts the parts into their pages.
"""

from __future__ import annotations

import inspect
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

Schema = dict[str, Any]


# -- the commands


class Help(NamedTuple):
    """The help of a command: its usage, its description, and its panels, each a list of (name, meaning)."""

    usage: str
    description: str
    panels: dict[str, list[tuple[str, str]]]


OWN = ("Arguments", "Parameters")
"""Panels of a command alone; all others are shared by several commands."""
PANEL = re.compile(r"^╭─ (?P<title>.+?) ─*╮\n(?P<rows>(?:│.*\n)*)╰─*╯\n?", re.MULTILINE)
ROW = re.compile(r"│ (?:\* +)?(\S.*?) {2,}(\S.*?) *│$|│ (?:\* +)?(\S.*?) *│$", re.MULTILINE)
CODE = re.compile(
    r"(?<![\w`:-])(?:--[a-z][a-z-]+|REASONRY_[A-Z_]+|[A-Z]+\([A-Z, =]+\)|[A-Z]{2,}(?:[=:./#][A-Za-z]+)+)(?![\w`])"
)
WIDTH = 3000
"""Columns of the help that is read here, so that each option is one line."""


def commands() -> list[tuple[str, ...]]:
    """Return every command and group of the command line, in its order."""
    from reasonry.surfaces.cli.commands import app

    found: list[tuple[str, ...]] = []
    for name in _names(app):
        found += [(name,), *((name, inner) for inner in _names(app[name]))]
    return found


def _names(app: Any) -> list[str]:
    return [name for name in app if not name.startswith("-")]


@cache
def help_of(tokens: tuple[str, ...]) -> Help:
    """Return the help of a command."""
    from rich.console import Console

    from reasonry.surfaces.cli.commands import app, complete_help

    console = Console(
        file=io.StringIO(), width=WIDTH, color_system=None, force_terminal=False, legacy_windows=False
    )
    complete_help(list(tokens))
    app.help_print(list(tokens), console=console)
    text = console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    panels = {
        panel["title"]: [(row[1] or row[3], row[2] or "") for row in ROW.finditer(panel["rows"])]
        for panel in PANEL.finditer(text)
    }
    usage, _, description = PANEL.sub("", text).strip().partition("\n")
    lines = [line.strip() for line in description.strip().splitlines()]
    return Help(usage.removeprefix("Usage: ").strip(), "\n".join(lines), panels)


def command_page(name: str) -> str:
    """Return the page of a command, or of a group with its commands."""
    parts = ["<!-- begin command -->", f"# reasonry {name}", *_command_parts((name,))]
    for tokens in commands():
        if len(tokens) == 2 and tokens[0] == name:
            parts += [f"## `reasonry {' '.join(tokens)}`", *_command_parts(tokens)]
    return "\n\n".join([*parts, "<!-- end command -->\n"])


def _command_parts(tokens: tuple[str, ...]) -> Iterator[str]:
    from reasonry.surfaces.cli.commands import read_examples

    found = help_of(tokens)
    yield _coded(found.description)
    if "Commands" in found.panels:
        return
    yield f"```text\n{found.usage}\n```"
    rows = [row for title in OWN for row in found.panels.get(title, ())]
    if rows:
        yield _option_table(rows)
    shared = [title for title in found.panels if title not in OWN]
    if shared:
        links = ", ".join(f"[{title}](options.md#{_anchor(title)})" for title in shared)
        yield f"Shared options: {links}."
    if example := read_examples().get(" ".join(tokens)):
        yield f"```console\n{example.rstrip()}\n```"


def shared_options() -> str:
    """Return the options that several commands share, each group once."""
    shared: dict[str, list[tuple[str, str]]] = {}
    for tokens in commands():
        shared |= help_of(tokens).panels
    titles = sorted(set(shared) - {*OWN, "Commands"})
    return "\n\n".join(f"## {title}\n\n{_option_table(shared[title])}" for title in titles)


def _option_table(rows: Sequence[tuple[str, str]]) -> str:
    lines = [f"| `{_cell(name)}` | {_cell(_coded(text))} |" for name, text in rows]
    return "\n".join(["| option | meaning |", "|---|---|", *lines])


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-").replace(",", "")


def _coded(text: str) -> str:
    """Return a text of the help with its options, variables and forms of values marked as code."""
    return CODE.sub(r"`\g<0>`", text)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


# -- the HTTP API

TAGS = {
    "runs": "Runs",
    "sessions": "Sessions",
    "comparisons": "Comparisons",
    "catalog": "Catalog",
    "operation": "Operation",
    "openai": "OpenAI-compatible",
}
NAMED = "#/components/schemas/"
LARGEST = 2**53 - 1
"""The largest whole number of JSON: no bound of ours."""


def api_operations() -> str:
    """Return every operation of the API with its parameters, body and reply, and every schema that they name."""
    from reasonry.surfaces.http import server
    from reasonry.surfaces.http.openapi import describe_api

    document = describe_api(server.TABLE)
    parts: list[str] = []
    for tag, title in TAGS.items():
        parts.append(f"## {title}")
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if tag in operation["tags"]:
                    parts += _operation_parts(f"{method.upper()} {path}", operation)
    parts.append("## Schemas")
    examples = read_api_examples()
    for name, schema in document["components"]["schemas"].items():
        parts += _schema_parts(name, schema)
        parts.append(f"```json\n{json.dumps(examples[name], ensure_ascii=False, indent=2)}\n```")
    return "\n\n".join(parts)


def read_api_examples() -> dict[str, Any]:
    """Return an example of each schema; texts and lists are shortened."""
    return json.loads((Path(__file__).parent / "api-examples.json").read_text("utf-8"))


def _operation_parts(heading: str, operation: Schema) -> Iterator[str]:
    yield f"### `{heading}`"
    yield " ".join(f"{operation['summary']} {operation['description']}".split())
    rows = [
        f"| `{one['name']}` | {one['in']}{', required' if one['required'] else ''} | {_cell(kind_of(one['schema']))} |"
        for one in operation["parameters"]
    ]
    if rows:
        yield "\n".join(["| parameter | in | value |", "|---|---|---|", *rows])
    lines = [f"Body: {_content(operation['requestBody'])}"] if "requestBody" in operation else []
    for status, response in operation["responses"].items():
        if status < "300":
            lines.append(f"Reply {status}: {_content(response) or 'empty'}")
    yield "\n".join(f"- {line}" for line in lines)


def _content(holder: Schema) -> str:
    return ", ".join(
        kind_of(content["schema"]) if media == "application/json" else f"`{media}`"
        for media, content in holder.get("content", {}).items()
    )


def _schema_parts(name: str, schema: Schema) -> Iterator[str]:
    yield f"### {name}"
    described, members = _described(schema.get("description", ""))
    if described:
        yield described
    required = schema.get("required", ())
    rows = [
        f"| `{member}`{'' if member in required else ' (optional)'} | {_cell(kind_of(inner))} | "
        f"{_cell(inner.get('description') or members.get(member, ''))} |"
        for member, inner in schema.get("properties", {}).items()
    ]
    if rows:
        yield "\n".join(["| member | value | |", "|---|---|---|", *rows])
    elif "properties" not in schema:
        yield kind_of(schema)


def _described(text: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into its description and the descriptions of members."""
    about, *rest = re.split(
        r"^(?:Args|Attributes):\n", inspect.cleandoc(text), maxsplit=1, flags=re.MULTILINE
    )
    members = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", "".join(rest), re.MULTILINE)
    return " ".join(about.split()), {name: " ".join(meaning.split()) for name, meaning in members}


def kind_of(schema: Schema) -> str:
    """Say in words which values a schema allows, with a link where it is a named schema."""
    match schema:
        case {"$ref": reference}:
            name = reference.removeprefix(NAMED)
            return f"[{name}](#{name.lower()})"
        case {"enum": values}:
            return ", ".join(f"`{value}`" for value in values)
        case {"const": value}:
            return f"`{value}`"
        case {"anyOf": kinds} | {"oneOf": kinds}:
            return " or ".join(dict.fromkeys(kind_of(kind) for kind in kinds))
        case {"type": "array", "items": inner}:
            return f"list of {kind_of(inner)}" if inner else "list"
        case {"type": "object", "additionalProperties": dict(inner)} if inner:
            return f"object of {kind_of(inner)}"
        case {"type": kind}:
            words = {"integer": "whole number", "string": "text", "boolean": "true or false", "array": "list"}
            return words.get(kind, kind) + _bounds(schema)
        case _:
            return "any JSON value"


def _bounds(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    high = None if high == LARGEST else high
    if low is not None and high is not None:
        return f", {low} to {high}"
    return f", at least {low}" if low is not None else f", at most {high}" if high is not None else ""


# -- Python

GROUPS: Mapping[str, Sequence[str]] = {
    "Solving": ("solve", "solve_sync", "select", "stream", "Result", "Termination", "Usage"),
    "Limits": ("Budget", "Policy", "RateLimits"),
    "Coached runs": ("coach", "Coaching"),
    "Guided thinking": (
        "thinking_tool",
        "loop_limit",
        "get_session",
        "list_sessions",
        "clear_session",
        "clear_all_sessions",
    ),
    "Tables of strategies": (
        *(
            "strategy",
            "ask",
            "ask_all",
            "STRATEGIES",
            "Strategy",
            "Stage",
            "Field",
            "Thought",
            "Conclusion",
            "stages",
            "machine",
            "tree_machine",
        ),
        "ext",
    ),
    "Errors": ("ReasonryError", "UsageError", "WorldError"),
}
OWN_TEXTS = {
    "STRATEGIES": "The built-in strategies: a mapping from each name to its [`Strategy`](#strategy).",
    "solve_sync": "Call [`solve`](#solve) in a program without an event loop. It takes the same arguments.",
}
"""Names whose docstring is missing, or repeats another."""


def python_names() -> str:
    """Return every public name with its signature and docstring.

    Raises:
        ValueError: A public name is in no group, or a group names another.
    """
    import reasonry

    if sorted(name for names in GROUPS.values() for name in names) != sorted(reasonry.__all__):
        raise ValueError("docs/reference.py: GROUPS and reasonry.__all__ differ")
    parts: list[str] = []
    for title, names in GROUPS.items():
        parts.append(f"## {title}")
        for name in names:
            parts += [f"### `{name}`", *_python_parts(name, getattr(reasonry, name))]
    return "\n\n".join(parts)


def _python_parts(name: str, value: Any) -> Iterator[str]:
    if name in OWN_TEXTS:
        yield OWN_TEXTS[name]
        return
    if callable(value):
        yield f"```text\n{_signature(name, value)}\n```"
    text = re.sub(r"^(\w+):\n\n?(?=[ ]{4})", r"**\1**\n\n", inspect.getdoc(value) or "", flags=re.MULTILINE)
    yield re.sub(r"^ {4}(\w+): ", r"- `\1`: ", re.sub(r"\n {8}", " ", text), flags=re.MULTILINE)


def _signature(name: str, value: Callable[..., Any]) -> str:
    """Return the call of a name, an argument a line; `=…` marks those with a default."""
    signature = inspect.signature(value)
    parts: list[str] = []
    for one in signature.parameters.values():
        if one.kind is one.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        default = "" if one.default is one.empty else f" = {_default(one.default)}"
        stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        parts.append(f"{stars}{one.name}{default}")
    line = f"{name}({', '.join(parts)})"
    if inspect.iscoroutinefunction(value):
        line = f"await {line}"
    return (
        line if len(line) <= 100 else line.replace("(", "(\n    ", 1).replace(", ", ",\n    ")[:-1] + ",\n)"
    )


def _default(value: Any) -> str:
    text = repr(value)
    return "…" if " at 0x" in text or text.startswith("<") else text
