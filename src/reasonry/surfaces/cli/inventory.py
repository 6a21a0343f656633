"""`reasonry strategies`, `reasonry plugins` and `reasonry datasets`: lists for people and programs."""

import json as json_
from typing import Any, Literal

from ...app.installed import describe_plugins
from ...app.strategy_table import describe
from ...app.strategy_table import diagram as draw_diagram
from ...compare.datasets import DATASETS, LEVELS
from ...compare.gym import WHITELIST
from ...compare.problem_set import open_dataset
from ...core.registry import resolve
from ...strategies import COMPARED
from .output import columns_of, print_line, print_table, print_text
from .parameters import Count, WholeNumber
from .settings import Common, OutputOptions


def strategies(
    name: str | None = None,
    /,
    *,
    diagram: bool = False,
    strategies_dir: str | None = None,
    output: OutputOptions = OutputOptions(),
) -> int:
    """Show all strategies, or one strategy with its stages and options.

    Args:
        name: The name or an alias of a strategy.
        diagram: Show the stages of the strategy as a Mermaid diagram.
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
    rows = [{**row, "default": _default(row["default"])} for row in document["options"]]
    print_table(columns_of("name", "default", "description"), rows)


def _default(value: Any) -> str:
    return "none" if value is None else value if isinstance(value, str) else json_.dumps(value)


def plugins(*, output: OutputOptions = OutputOptions()) -> int:
    """List the strategies, tools, verifiers and models of installed packages, and whether each loads."""
    rows = describe_plugins()
    none = "No installed package has plugins for Reasonry."
    columns = columns_of("kind", "name", "version", "loaded", "why")
    return output.show({"plugins": rows}, lambda: print_table(columns, rows), "" if rows else none)


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
    """Show the data sets for `compare`, or some problems of one data set with their answers.

    Args:
        name: The name of a data set, or gym/NAME.
        show: How many problems to show.
        seed: Seed of the problems, as in `compare --seed`.
        level: Level of difficulty of the problems, from 1 (the easiest) to 3.
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
