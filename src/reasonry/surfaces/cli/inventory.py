"""`reasonry strategies`, `plugins`, `tools` and `datasets`: lists for people and programs."""

from __future__ import annotations

import json as json_
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from ...app.installed import describe_plugins
from ...app.strategy_table import describe
from ...app.strategy_table import diagram as draw_diagram
from ...compare.datasets import DATASETS, LEVELS
from ...compare.gym import WHITELIST
from ...compare.problem_set import open_dataset
from ...core.registry import resolve
from ...errors import NotFoundError, UsageError
from ...plugins import has_extra
from ...strategies import COMPARED
from ...tools.execution import MAX_CODE_BYTES, ExecutionLimits
from ...tools.sandbox import SANDBOXES, describe_sandboxes, open_sandbox
from .. import present
from .output import Column, columns_of, print_line, print_note, print_table, print_text
from .parameters import Amount, Count, Text, WholeNumber, list_strategies, read_text
from .settings import Common, OutputOptions, run_async

_OPTIONS = (
    Column("OPTION", "name"),
    Column("DEFAULT", lambda row: _default(row["default"]), narrowest=12),
    Column("MEANING", "description", narrowest=20, wraps=True),
)
_TOOLS = (
    Column("NAME", "name"),
    Column(
        "STATE",
        lambda row: ("default" if row.get("default") else "usable") if row["usable"] else "not usable",
    ),
    Column("ABOUT", "description", narrowest=30, wraps=True),
)


def strategies(
    name: Annotated[str | None, Parameter(completer=list_strategies)] = None,
    /,
    *,
    diagram: bool = False,
    strategies_dir: str | None = None,
    output: OutputOptions = OutputOptions(),
) -> int:
    """Show the strategies, or one of them with its stages and options.

    Args:
        name: A strategy, by its name or an alias.
        diagram: Show its stages as a Mermaid diagram.
        strategies_dir: A folder with strategies of your own, as tables in TOML or JSON.
    """
    known = Common(strategies_dir=strategies_dir).strategies()
    if name is None:
        members = ("name", "title", "source", "summary", "aliases", "driven")
        rows = [{key: document[key] for key in members} for document in map(describe, known.values())]
        columns = columns_of("name", "source", "summary")
        return output.show({"strategies": rows}, lambda: print_table(columns, rows))
    document = describe(strategy := resolve(name, known))
    if diagram:
        drawn = draw_diagram(strategy)
        return output.show({**document, "diagram": drawn}, lambda: print_text(drawn))
    return output.show(document, lambda: _show_strategy(document))


def _show_strategy(document: dict[str, Any]) -> None:
    print_line(f"{document['name']}: {document['title']}  [{document['source']}]", document["summary"], "")
    for stage in document["stages"]:
        leads = ", ".join([stage["name"]] * stage["repeats"] + stage["to"]) or "the end"
        lines = [f"  {stage['name']} → {leads}", f"      {stage['description']} {stage['guidance']}".rstrip()]
        requires = stage.get("requires", {}).items()
        print_line(*lines, *(f"      requires {field}: {takes}" for field, takes in requires))
    if document["options"]:
        print_line("")
    print_table(_OPTIONS, document["options"])


def _default(value: Any) -> str:
    return "none" if value is None else value if isinstance(value, str) else json_.dumps(value)


def plugins(*, output: OutputOptions = OutputOptions()) -> int:
    """List the strategies, tools, verifiers and models of installed packages, and whether each loads."""
    rows = describe_plugins()
    none = "No installed package has plugins for Reasonry, or REASONRY_PLUGINS is off."
    columns = columns_of("kind", "name", "version", "loaded", "why")
    return output.show({"plugins": rows}, lambda: print_table(columns, rows), "" if rows else none)


# -- tools


def list_tools(*, output: OutputOptions = OutputOptions()) -> int:
    """List the tools that come with Reasonry, and the sandboxes."""
    sandboxes = run_async(describe_sandboxes())
    tools = _tools(sandboxes)
    rows = [{**row, "name": f"sandbox {row['name']}", "description": row["summary"]} for row in sandboxes]
    document = {"tools": tools, "sandboxes": sandboxes}
    return output.show(document, lambda: print_table(_TOOLS, [*tools, *rows]))


def run_tool(
    name: str,
    /,
    *,
    code: Text,
    sandbox: Literal["monty", "bubblewrap"] | None = None,
    max_seconds: Amount = 10.0,
    max_memory_mb: WholeNumber = 512,
    max_output_bytes: WholeNumber = 64 * 1024,
    output: OutputOptions = OutputOptions(),
) -> int:
    """Run code in a sandbox and show its result.

    Args:
        name: The tool: py_executor.
        code: A file with the code; `-` reads standard input.
        sandbox: Where to run it.
        max_seconds: Wall-clock seconds until the code is stopped.
        max_memory_mb: MiB of memory for the code.
        max_output_bytes: Bytes to keep of the output, and of the value.
    """
    if name != "py_executor":
        raise NotFoundError(f"tools run runs py_executor, not {name[:60]!r}", choices=["py_executor"])
    text = read_text(code, "code", MAX_CODE_BYTES)
    if not text.strip():
        raise UsageError("the code is empty", option="code")
    limits = ExecutionLimits(max_seconds, max_memory_mb, max_output_bytes)
    document = run_async(open_sandbox(sandbox).run(text, limits)).document()
    output.show(document, lambda: _show_value(document))
    return 0 if document["status"] == "ok" else present.EXIT_CODES["sandbox_denied"]


def _tools(sandboxes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    usable = [row["name"] for row in sandboxes if row["usable"]]
    executor = SANDBOXES[usable[0] if usable else "monty"].description
    claim = "Prove or refute a formal claim with Z3."
    search = "Find passages in the documents given with --context."
    return [
        {"name": "py_executor", "description": executor, "usable": bool(usable)},
        {"name": "check_claim", "description": claim, "usable": has_extra("logic")},
        {"name": "search_documents", "description": search, "usable": True, "pdf": has_extra("documents")},
    ]


def _show_value(document: dict[str, Any]) -> None:
    is_ok = document["status"] == "ok"
    values = [str(document["value"])] if is_ok else []
    print_line(*filter(None, [document["stdout"].rstrip("\n")]), *values)
    if not is_ok:
        print_note(f"{document['status']}: {document['error']}")
    cut = ", cut" if document["truncated"] else ""
    print_note(f"[{document['sandbox']}, {document['duration_ms']} ms{cut}]")


# -- data sets


def datasets(
    name: str | None = None,
    /,
    *,
    show: Count = 3,
    seed: WholeNumber = 1,
    level: Literal[1, 2, 3] = 1,
    output: OutputOptions = OutputOptions(),
) -> int:
    """Show the data sets for `compare`, or problems of a data set with their answers.

    Args:
        name: A data set, or gym/NAME.
        show: Number of problems to show.
        seed: Seed of the problems, as in `compare --seed`.
        level: Level of the problems, from 1, the easiest, to 3.
    """
    if name is None:
        rows = [
            {key: getattr(dataset, key) for key in ("name", "summary", "measures", "version")}
            | {"levels": LEVELS, "strategies": COMPARED[dataset.needs].split(",")}
            for dataset in DATASETS.values()
        ]
        document = {"datasets": [*rows], "gym": [f"gym/{known}" for known in WHITELIST]}
        about = (
            f"problems of reasoning-gym (the extra `gym`): {len(WHITELIST)} names, in --json, among them deduction "
            "(knights_knaves, zebra_puzzles), exact work (number_sorting, letter_counting) and induction (arc_1d)"
        )
        rows.append({"name": "gym/NAME", "summary": about})
        columns = columns_of("name", "measures", "summary")
        return output.show(document, lambda: print_table(columns, rows))
    items = open_dataset(f"{name}:{show}", seed, level).items
    shown = [{"id": item.id, "problem": item.problem, "answer": item.expected} for item in items]
    text = "\n\n".join(f"{row['id']}\n{row['problem']}\n→ {row['answer']}" for row in shown)
    return output.show({"name": name, "problems": shown}, text)
