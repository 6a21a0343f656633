"""`reasonry strategies` and `reasonry plugins`: the tables, and what packages bring, for people and programs."""

from __future__ import annotations

import json as json_
from typing import Annotated, Any

from cyclopts import Parameter

from ...app.installed import describe_plugins
from ...core.describe import describe
from ...core.describe import diagram as draw_diagram
from ...plugins import KINDS
from ...strategies import resolve
from .arguments import list_strategies
from .output import print_line, print_lines, print_text
from .settings import Common, OutputOptions
from .tables import Column, print_table

_STRATEGIES = (
    Column("NAME", "name"),
    Column("SOURCE", "source", rank=1),
    Column("WHAT IT DOES", "summary", narrowest=40, wraps=True),
)
_OPTIONS = (
    Column("OPTION", "name"),
    Column("DEFAULT", lambda row: _default(row["default"]), narrowest=12),
    Column("MEANING", "description", narrowest=20, wraps=True),
)
_PLUGINS = (
    Column("KIND", lambda row: KINDS[row["kind"]]),
    Column("NAME", "name"),
    Column("VERSION", "version", rank=1),
    Column("LOADED", lambda row: "yes" if row["loaded"] else f"no: {row['why']}", narrowest=20, wraps=True),
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

    Parameters
    ----------
    name
        A strategy, by its name or an alias.
    diagram
        Show its stages as a Mermaid diagram.
    strategies_dir
        A folder with strategies of your own, as TOML tables.
    """
    known = Common(strategies_dir=strategies_dir).strategies()
    if name is None:
        members = ("name", "title", "source", "summary", "aliases", "driven")
        rows = [{key: describe(strategy)[key] for key in members} for strategy in known.values()]
        return output.show_rows({"strategies": rows}, _STRATEGIES, rows)
    document = describe(strategy := resolve(name, known))
    if diagram:
        drawn = draw_diagram(strategy)
        return output.show({**document, "diagram": drawn}, lambda: print_text(drawn))
    return output.show(document, lambda: _show(document))


def _show(document: dict[str, Any]) -> None:
    print_lines([f"{document['name']}: {document['title']}  [{document['source']}]", document["summary"], ""])
    for stage in document["stages"]:
        leads = ", ".join(stage["next"]) or "the end"
        lines = [f"  {stage['name']} → {leads}", f"      {stage['description']} {stage['guidance']}".rstrip()]
        requires = stage.get("requires", {}).items()
        print_lines([*lines, *(f"      requires {field}: {takes}" for field, takes in requires)])
    if document["options"]:
        print_line()
    print_table(_OPTIONS, document["options"])


def _default(value: Any) -> str:
    return "none" if value is None else value if isinstance(value, str) else json_.dumps(value)


def plugins(*, output: OutputOptions = OutputOptions()) -> int:
    """List the strategies, tools, verifiers and models that installed packages bring, each loaded once to see."""
    rows = describe_plugins()
    none = "No installed package brings anything for Reasonry, or REASONRY_PLUGINS is off."
    return output.show({"plugins": rows}, (lambda: print_table(_PLUGINS, rows)) if rows else none)
