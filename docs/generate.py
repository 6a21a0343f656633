"""Writes the parts of the docs that the program itself knows: `uv run python docs/generate.py [--check]`.

A page that holds more than that has markers, `<!-- begin NAME -->` and `<!-- end NAME -->`; what stands between them is
written here. With --check nothing is written, and the exit code is 1 if something is stale.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import sys
import time
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
sys.path.append(str(DOCS))
import reference  # noqa: E402
import scoreboard  # noqa: E402

PUZZLE = "Use 4, 9, 10 and 13 to make 24"

Schema = dict[str, Any]


# -- strategies: one page each


PLAIN_NODE = re.compile(r'^ +(\w+)\["\1"\]\n', re.MULTILINE)
"""A line of a diagram that names a node without a form of its own; an edge names it too."""
NEW_PAGE = "<!-- begin head -->\n<!-- end head -->\n\n<!-- begin table -->\n<!-- end table -->\n"
MOST_SHOWN = 4
"""Options that a page shows without folding them."""
PROFILE = re.compile(r"^(?=<!-- profile \w+ -->$)", re.MULTILINE)
"""Parts the page of the profiles."""


def page_of(name: str) -> str:
    """Return the name of a strategy's page, which profiles share."""
    from reasonry.strategies.profiles import PROFILES

    return "profiles" if name in [one.name for one in PROFILES] else name


def written_page(name: str) -> str:
    """Return a strategy's page as people wrote it; of the page of the profiles its part."""
    path = DOCS / "strategies" / f"{page_of(name)}.md"
    text = path.read_text("utf-8") if path.exists() else NEW_PAGE
    return next((part for part in PROFILE.split(text) if part.startswith(f"<!-- profile {name} ")), text)


def strategy_page(name: str) -> str:
    """Return the page of a strategy: what people wrote, with its table and its worked example carried out."""
    from worked import parts

    text = written_page(name)
    for part, written in {"head": strategy_head(name), "table": strategy_table(name)}.items():
        # The page of the profiles has one title of its own.
        deeper = written if page_of(name) == name else re.sub("^#", "##", written, flags=re.MULTILINE)
        text = filled(text, part, deeper)
    for part, written in parts(text).items():
        text = filled(text, part, written)
    return text


def strategy_pages() -> dict[Path, str]:
    """Return the pages of all strategies."""
    from reasonry.strategies import STRATEGIES

    found: dict[Path, str] = {}
    for name in STRATEGIES:
        path = DOCS / "strategies" / f"{page_of(name)}.md"
        start = "" if page_of(name) == name else PROFILE.split(path.read_text("utf-8"))[0]
        found[path] = found.get(path, start) + strategy_page(name)
    return found


def strategy_head(name: str) -> str:
    """Return how the page of a strategy begins."""
    from reasonry.app.strategy_table import describe
    from reasonry.strategies import STRATEGIES

    document = describe(STRATEGIES[name])
    names = ", ".join(f"`{each}`" for each in (name, *document["aliases"]))
    uses = "" if document["driven"] else " · guided use only"
    return "\n\n".join(
        [
            f"# {document['title']}",
            f"{names} · {_source(document['source'])}{uses}",
        ]
    )


def strategy_table(name: str) -> str:
    """Return a strategy's options, stages and details; options and details once for a page of several strategies."""
    from reasonry.app.strategy_table import describe, diagram
    from reasonry.strategies import STRATEGIES
    from reasonry.strategies.profiles import PROFILES

    strategy = STRATEGIES[name]
    options, details = _strategy_options(name), _details(strategy.details)
    first = PROFILES[0] if page_of(name) != name else strategy
    if first.name != name and (options, details) == (_strategy_options(first.name), _details(first.details)):
        options, details = f"Options and details are those of [{first.title}](#options).", ""
    else:
        options, details = f"## Options\n\n{options}", f"## Details of a result\n\n{details}"
    stages = f"```mermaid\n{_joined(PLAIN_NODE.sub('', diagram(strategy)))}```"
    parts = [
        options,
        *with_too_few_calls(strategy),
        "## Stages",
        _folded(f"{len(describe(strategy)['stages'])} stages", stages),
        details,
    ]
    return "\n\n".join(part for part in parts if part)


def _strategy_options(name: str) -> str:
    """Return the options that are a strategy's own, and the names of the others."""
    from reasonry.app.strategy_table import describe
    from reasonry.strategies import STRATEGIES

    every = describe(STRATEGIES[name])["options"]
    own = [one for one in every if one["name"] not in shared_options()]
    shared = [f"`{one['name']}`" for one in every if one["name"] in shared_options()]
    parts = [
        _folded(f"{len(own)} of its own", _options(own)) if len(own) > MOST_SHOWN else _options(own),
        f"[Shared options](../choosing.md#shared-options): {', '.join(shared)}." if shared else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _joined(drawn: str) -> str:
    """Join the edges of a diagram: of one stage with `&`, and of a chain in a line."""
    head: list[str] = []
    lines: list[str] = []
    targets: dict[str, list[str]] = {}
    for line in drawn.splitlines():
        start, arrow, end = line.strip().partition(" --> ")
        if arrow:
            targets.setdefault(start, []).append(end)
        else:
            head.append(line)
    for start, ends in targets.items():
        joins = bool(lines) and lines[-1].endswith(f"> {start}") and len(lines[-1]) + len(start) < 90
        line = f"{lines.pop() if joins else f'    {start}'} --> {' & '.join(ends)}"
        lines.append(line)
    return "\n".join([*head, *lines, ""])


def with_too_few_calls(strategy: Any) -> list[str]:
    """Say how many calls a strategy needs, if it needs several."""
    if strategy.close is type(strategy).close or strategy.least_calls < 2:
        return []
    fewer = "; with fewer it is refused" if strategy.needs_least else ""
    return [f"[Least calls](../runs.md#an-answer-at-every-budget): {strategy.least_calls}{fewer}."]


def _folded(summary: str, *parts: str) -> str:
    return "\n\n".join([f"<details markdown>\n<summary>{summary}</summary>", *parts, "</details>"])


@cache
def shared_options() -> dict[str, Schema]:
    """Return the options that more than three strategies have, in the words that most of them have."""
    from reasonry.app.strategy_table import describe
    from reasonry.strategies import STRATEGIES

    found: dict[str, list[Schema]] = {}
    for strategy in STRATEGIES.values():
        for one in describe(strategy)["options"]:
            found.setdefault(one["name"], []).append(one)
    return {name: max(same, key=same.count) for name, same in found.items() if len(same) > 3}


def _source(source: str) -> str:
    paper = re.fullmatch(r"arXiv:(\S+)", source)
    return f"[{source}](https://arxiv.org/abs/{paper[1]})" if paper else source


def _options(options: Iterable[Schema]) -> str:
    return "\n".join(
        f"- `{one['name']}` = {_default(one['default'])} ({_kind(one)}): {_line(one['description'])}"
        for one in options
    )


def _default(value: Any) -> str:
    if value is None or (isinstance(value, str | list | tuple | dict) and not value):
        return "none"
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _line(text: str) -> str:
    return text.replace("\n", " ")


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|")


def _details(kind: Any) -> str:
    own = {name: one for name, one in _members(kind).items() if name not in shared_details()}
    shared = [f"`{name}`" for name in _members(kind) if name in shared_details()]
    parts = [
        f"`result.details`: `{kind.__name__}` (`{kind.__module__}`).",
        _detail_rows(own),
        f"[Shared details](../choosing.md#shared-details): {', '.join(shared)}." if shared else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _members(kind: Any) -> dict[str, Schema]:
    """Return the members of a strategy's details that not every strategy has."""
    from reasonry.core.strategy import Details
    from reasonry.core.type_schema import inlined_schema

    common = inlined_schema(Details)["properties"]
    return {name: one for name, one in inlined_schema(kind)["properties"].items() if name not in common}


@cache
def shared_details() -> dict[str, Schema]:
    """Return the details that more than three strategies have in the same words."""
    from reasonry.strategies import STRATEGIES

    found = [each for one in STRATEGIES.values() for each in _members(one.details).items()]
    return {name: one for name, one in found if found.count((name, one)) > 3}


def _detail_rows(details: dict[str, Schema]) -> str:
    return "\n".join(
        f"- `{name}` ({_kind(one)}): {_line(one['description'])}" for name, one in details.items()
    )


def _kind(schema: Schema) -> str:
    """Say in words what a JSON schema lets pass."""
    if "enum" in schema:
        return ", ".join(
            f"`{json.dumps(one) if not isinstance(one, str) else one}`" for one in schema["enum"]
        )
    if "anyOf" in schema:
        kinds = [_kind(one) for one in schema["anyOf"] if one.get("type") != "null"]
        return " or ".join([*kinds, *(["none"] if len(kinds) < len(schema["anyOf"]) else [])])
    kinds = schema.get("type", "any")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return " or ".join("none" if one == "null" else _one_kind(one, schema) for one in kinds)


def _one_kind(kind: str, schema: Schema) -> str:
    within = schema.get("items" if kind == "array" else "additionalProperties")
    if kind in ("array", "object") and isinstance(within, dict) and within:
        kind = f"{'list' if kind == 'array' else 'object'} of {_kind(within)}"
    kind = {"array": "list", "integer": "whole number", "string": "text", "boolean": "true, false"}.get(
        kind, kind
    )
    unit = "Items" if schema.get("type") == "array" else ""
    low = schema.get(f"min{unit}" if unit else "minimum")
    high = schema.get(f"max{unit}" if unit else "maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    bounds = [
        *([f"{low} to {high}"] if None not in (low, high) else []),
        *([f"at least {low}"] if low is not None and high is None else []),
        *([f"at most {high}"] if high is not None and low is None else []),
        *([f"above {above}"] if above is not None else []),
        *([f"below {below}"] if below is not None else []),
    ]
    if not bounds:
        return kind
    return f"{kind}, {' and '.join(bounds)} of them" if unit else " and ".join(bounds)


# -- codes


EXITS = {
    0: "the run has its answer, or the command did its work",
    1: "any other failure",
    2: "the command cannot be carried out as written",
    3: "not there, or not as it was recorded",
    4: "not allowed",
    5: "in conflict with the state of a run or session",
    6: "the store failed",
    7: "a limit or a rate",
    8: "the model or its provider failed",
    9: "a tool or sandbox failed",
    10: "a limit or a person stopped the run",
    11: "no answer was found",
    130: "Ctrl-C",
    141: "a closed pipe (`\\| head`)",
}


def exit_codes() -> str:
    """Return every exit code with its meaning, its outcomes and its error codes."""
    from reasonry.surfaces.present import EXIT_CODES, OUTCOME_EXIT_CODES

    rows = ["| exit code | meaning | outcome | error codes |", "|---|---|---|---|"]
    for number, meaning in EXITS.items():
        outcomes = [f"`{name}`" for name, code in OUTCOME_EXIT_CODES.items() if code == number]
        codes = [f"`{name}`" for name, code in EXIT_CODES.items() if code == number]
        outcomes += ["`error`"] if number == 1 or (codes and number != 130) else []
        rows.append(f"| {number} | {meaning} | {', '.join(outcomes)} | {', '.join(codes)} |")
    assert set(EXITS) >= {*EXIT_CODES.values(), *OUTCOME_EXIT_CODES.values()}
    return "\n".join(rows)


# -- the index


def index() -> str:
    """Return the pages of navigation.toml, section by section."""
    from build_site import sections

    parts: list[str] = []
    for section in sections():
        rows = [
            f"- [{page.title}]({_from_docs(page.source)}): {page.about}"
            for page in section.pages
            if page.group != "Commands"
        ]
        if section.title == "Reference":
            names = dict.fromkeys(tokens[0] for tokens in reference.commands())
            names["options"] = None
            rows.append(f"- Commands: {', '.join(f'[{name}](commands/{name}.md)' for name in names)}")
        if section.title == "Tasks":
            rows = [f"- [{page.title}]({_from_docs(page.source)})" for page in section.pages]
        if section.title == "Strategies":
            rows = strategy_rows()
        parts += [f"## {section.title}", "\n".join(rows)]
    return "\n\n".join(parts)


def _from_docs(page: Path) -> str:
    return page.relative_to(DOCS).as_posix() if page.is_relative_to(DOCS) else f"../{page.name}"


def strategy_rows() -> list[str]:
    """Return the strategies with a link to each one's page."""
    from reasonry.strategies import STRATEGIES

    return [f"- [`{name}`](strategies/{page_of(name)}.md): {one.summary}" for name, one in STRATEGIES.items()]


DESIGNS = (
    ("Base Sequential", "linear"),
    ("Chain of Thought", "chain_of_thought"),
    ("ReAct", "react"),
    ("ReWOO", "rewoo"),
    ("Scratchpad", "scratchpad"),
    ("Self-Ask", "self_ask"),
    ("Self-Consistency", "self_consistency"),
    ("Step-Back", "step_back"),
    ("Tree of Thoughts", "tree_of_thoughts"),
)
"""The strategies of the flow engine, as it has them and as they are called here."""


def stage_rows() -> str:
    """Return the stages of the flow engine's strategies, each with those that may come next."""
    from reasonry.strategies import STRATEGIES

    rows: list[str] = []
    for title, name in DESIGNS:
        steps = [
            f"`{stage.name}`" + (f" → {', '.join(f'`{to}`' for to in stage.to)}" if stage.to else "")
            for stage in STRATEGIES[name].stages
        ]
        rows.append(f"| {title} | `{name}`: {'; '.join(steps)} | `reasonry strategies {name} --diagram` |")
    return "\n".join(["| there | here | a line |", "|---|---|---|", *rows])


# -- choosing


def kind_rows() -> str:
    """Return the kinds of problem in the order they are tried, each with the strategy that is taken for it."""
    from reasonry.strategies import STRATEGIES
    from reasonry.strategies.choice import KINDS

    suits = (next(each.name for each in STRATEGIES.values() if kind.name in each.suits) for kind in KINDS)
    rows = [
        f"| {number} | {_cell(kind.why)} | `{kind.name}` | `{name}` |"
        for number, (kind, name) in enumerate(zip(KINDS, suits, strict=True), 1)
    ]
    return "\n".join(["| # | you give | kind | strategy |", "|---|---|---|---|", *rows])


def call_rows() -> str:
    """Return what each strategy takes where all goes well, as `bench/calls.py` measures it."""
    sys.path.append(str(Path(__file__).parents[1] / "bench"))
    from calls import cost
    from worked import PRICED, priced_on

    from reasonry.strategies import STRATEGIES

    rows: list[str] = []
    for name, strategy in STRATEGIES.items():
        if strategy.is_driven:
            took, _ = cost(strategy)
            rows.append(f"| `{name}` | {took.calls} | {took.rounds} | {took.tokens:,} |")
    heads = ["| strategy | calls | rounds | tokens |", "|---|---|---|---|"]
    dollars = f"The strategy pages give dollars with {PRICED}, at the prices of {priced_on()}."
    return "\n".join([*heads, *rows, "", dollars])


# -- agents


def agent_rows() -> str:
    """Return the agents that can be set up, each with its files."""
    from reasonry.surfaces.setup.agents import AGENTS

    rows = [
        f"| {one.title} | `{one.name}` | {_places(one.places)} | "
        f"{', '.join(f'`{_place(place)}`' for place in one.skills) or '-'} |"
        for one in AGENTS
    ]
    heads = ["| agent | name | its file | skills |", "|---|---|---|---|"]
    return "\n".join([*heads, *rows])


FOLDERS = {
    "Linux": {"{config}": "~/.config"},
    "Darwin": {"{config}": "~/Library/Application Support"},
    "Windows": {"{config}": "%APPDATA%", "{local}": "%LOCALAPPDATA%"},
}
SYSTEMS = {"Linux": "Linux", "Darwin": "macOS", "Windows": "Windows"}


def _place(place: str, system: str = "Linux") -> str:
    for name, folder in {**FOLDERS[system], "{home}": "~", "{xdg}": "~/.config"}.items():
        place = place.replace(name, folder)
    return place


def _places(places: Any) -> str:
    by_system = {system: places.get(system) or places["*"] for system in SYSTEMS}
    texts = {
        system: ", ".join(f"`{_place(place, system)}`" for place in found)
        for system, found in by_system.items()
    }
    if len(set(texts.values())) == 1:
        return texts["Linux"]
    return "<br>".join(f"{SYSTEMS[system]}: {text}" for system, text in texts.items())


def native_lines() -> str:
    """Return the commands that agents themselves have for adding a server."""
    from reasonry.surfaces.setup.agents import AGENTS, NAME

    rows = [
        f"| {one.title} | `{one.native.format(name=NAME, command='uvx reasonry mcp')}` |"
        for one in AGENTS
        if one.native
    ]
    return "\n".join(["| agent | line |", "|---|---|", *rows])


SHORT_LIST = re.compile(r"\[\n[^\[\]]*\]")
"""A list of texts over several lines of JSON."""


def _on_a_line(found: re.Match[str]) -> str:
    return json.dumps(json.loads(found[0]))


def entry_forms() -> str:
    """Return what an entry looks like, for the agents of each form."""
    from reasonry.surfaces.setup.agents import AGENTS, NAME, Launch
    from reasonry.surfaces.setup.config_file import edit_text

    forms: dict[tuple[str, str], list[str]] = {}
    for one in AGENTS:
        entry = Launch("uvx", ("reasonry", "mcp")).entry(one.shape, NAME)
        text = SHORT_LIST.sub(_on_a_line, edit_text(one.format, "", (*one.keys, NAME), entry))
        forms.setdefault((one.format, text), []).append(one.title)
    return "\n\n".join(
        f"{', '.join(titles)}:\n\n```{form}\n{text}```" for (form, text), titles in forms.items()
    )


# -- the picture


def picture() -> str:
    """Return a solved puzzle as the live view shows it, as SVG."""
    from rich.console import Console
    from rich.text import Text

    from reasonry import Budget
    from reasonry.surfaces.cli.watch import Live
    from reasonry.surfaces.python.solving import solve_sync

    budget = Budget(calls=20)
    live = Live()
    live.console = Console(
        file=io.StringIO(),
        record=True,
        width=84,
        height=40,
        force_terminal=True,
        color_system="truecolor",
        no_color=False,
    )
    with contextlib.redirect_stderr(io.StringIO()) as printed:
        result = solve_sync(PUZZLE, model="offline", store="memory", budget=budget, observer=live)
    # A run has another id and takes another time each time.
    live.since = time.monotonic()
    header = printed.getvalue().replace(result.run_id, "0195f3a2-5c1e-7000-8a4b-2d1f6e9c0b37")
    live.console.print(Text(f'$ reasonry solve "{PUZZLE}" --model offline --max-calls 20', style="bold"))
    live.console.print(Text(header.strip()))
    live.console.print(live.draw())
    live.console.print(Text(str(result.answer), style="bold green"))
    svg = live.console.export_svg(title="reasonry", unique_id="reasonry", code_format=_svg_format())
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def _svg_format() -> str:
    """Return rich's SVG template without fonts that a reader's browser would have to fetch."""
    from rich._export_format import CONSOLE_SVG_FORMAT

    return re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


# -- all of it

PARTS = {
    "api-reference.md": {"operations": reference.api_operations},
    "python-reference.md": {"names": reference.python_names},
    "runs.md": {"exits": exit_codes},
    "README.md": {"index": index},
    "scoreboard.md": {"tables": scoreboard.tables},
    "../tests/seeds/designs.md": {"stages": stage_rows},
    "setup.md": {"agents": agent_rows, "native": native_lines, "entries": entry_forms},
    "choosing.md": {
        "kinds": kind_rows,
        "calls": call_rows,
        "options": lambda: _options(shared_options().values()),
        "details": lambda: _detail_rows(shared_details()),
    },
}
"""Pages with markers, and what stands between them."""


def filled(text: str, name: str, part: str) -> str:
    """Return a page with what stands between the markers `name` replaced.

    Raises:
        ValueError: The page has no such markers.
    """
    pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"the markers of {name!r} are missing")
    return pattern.sub(lambda found: f"{found[1]}\n{part}\n\n{found[2]}", text)


def pages() -> dict[Path, str]:
    """Return every generated file and what it should hold."""
    wanted = strategy_pages()
    wanted[DOCS / "picture.svg"] = picture()
    names = dict.fromkeys(tokens[0] for tokens in reference.commands())
    wanted |= {DOCS / "commands" / f"{name}.md": reference.command_page(name) for name in names}
    wanted[DOCS / "commands" / "options.md"] = (
        f"# Shared options\n\n`STR...` may be repeated.\n\n{reference.shared_options()}\n"
    )
    for page, parts in PARTS.items():
        text = (DOCS / page).read_text("utf-8")
        for name, part in parts.items():
            text = filled(text, name, part())
        wanted[DOCS / page] = text
    return wanted


def stale(wanted: dict[Path, str], *, is_check: bool = False) -> list[Path]:
    """Return the files that are not what they should be, and pages of strategies and commands that are no more.

    Args:
        is_check: Whether the scoreboard may lack tables of new files, as in a contribution that is a file alone.
    """
    different = [
        path for path, text in wanted.items() if not path.exists() or path.read_text("utf-8") != text
    ]
    if is_check and (page := DOCS / "scoreboard.md") in different:
        there, whole = (text.split("\n### ") for text in (page.read_text("utf-8"), wanted[page]))
        if {part.strip() for part in there} <= {part.strip() for part in whole}:
            different.remove(page)
    generated = [*(DOCS / "strategies").glob("*.md"), *(DOCS / "commands").glob("*.md")]
    return different + [path for path in generated if path not in wanted]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write what is stale, or with --check only name it."""
    parser = argparse.ArgumentParser(description="Write the generated parts of the docs.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 if something is stale"
    )
    check = parser.parse_args(arguments).check
    wanted = pages()
    found = stale(wanted, is_check=check)
    for path in found:
        sys.stdout.write(f"{'stale' if check else 'written'}: docs/{path.relative_to(DOCS)}\n")
        if check:
            continue
        if path in wanted:
            path.parent.mkdir(exist_ok=True)
            path.write_text(wanted[path], "utf-8")
        else:
            path.unlink()
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())
