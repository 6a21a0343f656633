"""`reasonry strategies`: the tables, for people and for programs."""

from __future__ import annotations

import json as json_
from collections.abc import Mapping
from typing import Annotated, Any

from cyclopts import Parameter

from ...app.installed import installed_strategies, read_strategies
from ...core.describe import describe, diagram
from ...core.strategy import Strategy
from ...strategies import resolve
from .candidates import StrategyName
from .output import print_document, print_line, print_lines, print_text
from .tables import Column, print_table


def strategies(
    name: StrategyName | None = None,
    /,
    *,
    diagram: Annotated[bool, Parameter(negative=())] = False,
    strategies_dir: str | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
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
    json
        Print one JSON document on standard output and nothing else.
    """
    known = installed_strategies()
    if strategies_dir is not None:
        known = read_strategies(strategies_dir, known)
    if name is None:
        _list(known, json)
        return 0
    strategy = resolve(name, known)
    if json:
        print_document(describe(strategy) | ({"diagram": _diagram(strategy)} if diagram else {}))
    elif diagram:
        print_text(_diagram(strategy))
    else:
        _show(describe(strategy))
    return 0


def _diagram(strategy: Strategy[Any, Any]) -> str:
    return diagram(strategy)


def _list(known: Mapping[str, Strategy[Any, Any]], as_json: bool) -> None:
    if as_json:
        shown = ("name", "title", "source", "summary", "aliases", "driven")
        rows = [{key: describe(strategy)[key] for key in shown} for strategy in known.values()]
        print_document({"strategies": rows})
        return
    print_table(
        (Column("NAME"), Column("SOURCE", rank=1), Column("WHAT IT DOES", narrowest=40, wraps=True)),
        [(strategy.name, strategy.source, strategy.summary) for strategy in known.values()],
    )


def _show(document: dict[str, Any]) -> None:
    print_lines([f"{document['name']}: {document['title']}  [{document['source']}]", document["summary"], ""])
    for stage in document["stages"]:
        leads = ", ".join(stage["next"]) or "the end"
        lines = [f"  {stage['name']} → {leads}", f"      {stage['description']} {stage['guidance']}".rstrip()]
        requires = stage.get("requires", {}).items()
        print_lines([*lines, *(f"      requires {field}: {takes}" for field, takes in requires)])
    if document["options"]:
        print_line()
    print_table(
        (Column("OPTION"), Column("DEFAULT", narrowest=12), Column("MEANING", narrowest=20, wraps=True)),
        [
            (option["name"], _default(option["default"]), option["description"])
            for option in document["options"]
        ],
    )


def _default(value: Any) -> str:
    return "none" if value is None else value if isinstance(value, str) else json_.dumps(value)
