"""`reasonry strategies`: the tables, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from cyclopts import Parameter

from ...core.describe import describe
from ...core.diagram import diagram
from ...core.strategy import Strategy
from ...stores.tables import read_strategies
from ...strategies import STRATEGIES, resolve
from .. import present
from .output import print_document, print_line


def strategies(
    name: str | None = None,
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
    known = STRATEGIES if strategies_dir is None else read_strategies(strategies_dir, STRATEGIES)
    if name is None:
        _list(known, json)
        return 0
    strategy = resolve(name, known)
    if json:
        print_document(describe(strategy) | ({"diagram": _diagram(strategy)} if diagram else {}))
    elif diagram:
        print_line(_diagram(strategy))
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
    for strategy in known.values():
        print_line(f"{strategy.name:<18} {strategy.summary}  [{strategy.source}]")


def _show(document: dict[str, Any]) -> None:
    print_line(f"{document['name']}: {document['title']}  [{document['source']}]")
    print_line(document["summary"])
    print_line()
    for stage in document["stages"]:
        leads = ", ".join(stage["next"]) or "the end"
        print_line(f"  {stage['name']} → {leads}")
        print_line(f"      {stage['description']} {stage['guidance']}".rstrip())
        for field, takes in stage.get("requires", {}).items():
            print_line(f"      requires {field}: {takes}")
    if document["options"]:
        print_line()
    for option in document["options"]:
        text = present.clip(option["description"], 100)
        print_line(f"  --option {option['name']}={option['default']}   {text}")
