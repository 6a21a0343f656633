"""The docs hold: examples run, links resolve, generated parts are fresh, nothing public is left out."""

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest

import reasonry
from tests.forked import forking_python
from tests.in_process import call_command
from tests.releasing import load_script

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    ROOT / "tests" / "seeds" / "designs.md",
    *sorted(DOCS.rglob("*.md")),
]

SETS_UP = {"README.md": 2, "CONTRIBUTING.md": 1}
"""Blocks that set up a clone, first on their page; `.ci/run` runs those of the README."""

FENCE = re.compile(r"^(`{3,})(\S*)[^\n]*\n(.*?)^\1`*[ ]*$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)
LINK = re.compile(r"!?\[[^\]\n]*\]\(([^)\s]+)\)")


@cache
def load(name: str) -> ModuleType:
    """Return a program of the docs as a module."""
    return load_script(DOCS / f"{name}.py")


def generator() -> ModuleType:
    return load("generate")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """Return (line before it, text) of each block in a language."""
    text = page.read_text("utf-8")
    found = [one for one in FENCE.finditer(text) if one[2] == language]
    return [(text.count("\n", 0, one.start(3)), one[3]) for one in found]


def runs_in_a_shell(text: str) -> bool:
    """Whether a block is one of ours: it calls Reasonry, or a server that an earlier one has started."""
    return re.search(r"^reasonry |^(\w+=\$\()?curl .*\$API", text, re.MULTILINE) is not None


def at_their_lines(parts: list[tuple[int, str]]) -> str:
    """Join blocks so that each stands at the line it has on its page, where tracebacks find it."""
    script = ""
    for before, text in parts:
        script += "\n" * (before - script.count("\n")) + text
    return script


def run(command: list[str], folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=load("outputs").environment(folder) | environ,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def commands_of(page: Path) -> list[tuple[int, str]]:
    """Return the shell blocks to run; the worked example of a strategy is carried out where its page is generated."""
    written = generator().PROFILE.split(page.read_text("utf-8")) if page.parent.name == "strategies" else []
    worked = [*map(load("worked").command_of, written)]
    parts = blocks(page, "sh")[SETS_UP.get(page.name, 0) :]
    return [one for one in parts if runs_in_a_shell(one[1]) and one[1] not in worked]


TASKS = sorted((DOCS / "tasks").glob("*.md"))
WITH_PYTHON = [page for page in PAGES if page not in TASKS and blocks(page, "python")]
WITH_SHELL = [page for page in PAGES if page not in TASKS and commands_of(page)]


@pytest.fixture
def commands_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have shells find a `reasonry` that starts fast."""
    outputs = load("outputs")
    programs, of_a_shell = Path(forking_python()).parent, outputs.environment

    def environment(folder: Path) -> dict[str, str]:
        found = of_a_shell(folder)
        return {**found, "PATH": f"{programs}{os.pathsep}{found['PATH']}"}

    monkeypatch.setattr(outputs, "environment", environment)


@pytest.mark.usefixtures("commands_fork")
@pytest.mark.parametrize("page", TASKS, ids=name_of)
def test_the_examples_of_a_task_print_what_its_page_shows(page: Path, tmp_path: Path) -> None:
    outputs, text = load("outputs"), page.read_text("utf-8")
    now = outputs.printed(outputs.examples(text), tmp_path)
    assert outputs.rewritten(text, now) == text, "run: uv run python docs/outputs.py"
    assert any(one.shown for one in outputs.examples(text))


@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    script = tmp_path / f"page_{page.stem.replace('-', '_')}.py"  # A bare name would hide a module.
    script.write_text(at_their_lines(blocks(page, "python")), "utf-8")
    warned = "default,ignore::DeprecationWarning"
    done = run([forking_python(), str(script)], tmp_path, PYTHONWARNINGS=warned)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    assert "ResourceWarning" not in done.stderr, done.stderr[-3000:]


@pytest.mark.usefixtures("commands_fork")
@pytest.mark.parametrize("page", WITH_SHELL, ids=name_of)
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    parts = commands_of(page)
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    script = tmp_path / "commands.sh"
    script.write_text(at_their_lines(parts), "utf-8")
    done = run(["bash", "-euo", "pipefail", str(script)], tmp_path)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    assert "Traceback" not in done.stderr


def test_the_blocks_that_set_up_a_clone_come_first_and_are_those() -> None:
    for name, count in SETS_UP.items():
        first = [text for _, text in blocks(ROOT / name, "sh")[:count]]
        assert len(first) == count
        assert all(text.startswith("python3 -m venv .boot") and text.count("\n") == 1 for text in first)


def test_the_chart_is_drawn_from_what_was_measured() -> None:
    measured = (DOCS / "measured.txt").read_text("utf-8")
    assert load("pictures").draw(measured) == (DOCS / "chart.svg").read_text("utf-8")


def test_commands_in_code_blocks_are_commands_there_are() -> None:
    known = {" ".join(tokens) for tokens in load("reference").commands()}
    groups = {name.split(" ")[0] for name in known if " " in name}
    for page in PAGES:
        text = "\n".join(one[3] for one in FENCE.finditer(page.read_text("utf-8")) if one[2] in ("", "sh"))
        for first, second in re.findall(r"^reasonry ([a-z]+)(?: +([a-z]+))?", text, re.MULTILINE):
            name = f"{first} {second}" if first in groups else first
            assert name in known, f"{name_of(page)}: reasonry {name}"


def anchors(page: Path) -> set[str]:
    """Return the anchors GitHub gives a page's headings."""
    text = FENCE.sub("", page.read_text("utf-8"))
    titles = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in HEADING.findall(text)]
    return set(titles)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_links_of_a_page_resolve(page: Path) -> None:
    for link in LINK.findall(FENCE.sub("", page.read_text("utf-8"))):
        if link.startswith(("https://", "http://", "mailto:")):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads nowhere"
        assert target.is_relative_to(ROOT), f"{link} leaves the project"
        if anchor:
            assert anchor in anchors(target), f"{link}: there is no such heading"


def test_the_index_names_every_page() -> None:
    index = (DOCS / "README.md").read_text("utf-8")
    linked = {(DOCS / link).resolve() for link in LINK.findall(index) if "://" not in link}
    missing = {name_of(page) for page in DOCS.rglob("*.md") if page.resolve() not in linked}
    assert missing == {"docs/README.md"}, "name it in docs/navigation.toml and run docs/generate.py"


def test_no_generated_part_is_stale() -> None:
    # In a process of its own, as whoever writes the docs runs it: what other tests have set does not count.
    command = [sys.executable, str(DOCS / "generate.py"), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, f"run: uv run python docs/generate.py\n{checked.stdout}{checked.stderr}"


def test_markers_that_are_missing_are_an_error() -> None:
    with pytest.raises(ValueError, match="markers of 'help'"):
        generator().filled("# A page\n", "help", "text")


def test_the_table_for_agents_names_each_room() -> None:
    rows = re.findall(r"^\| (`src/reasonry/.*?) \|", (ROOT / "AGENTS.md").read_text("utf-8"), re.MULTILINE)
    named = [name.removeprefix("src/reasonry/") for row in rows for name in re.findall("`(.*?)`", row)]
    rooms = [path.name for path in (ROOT / "src" / "reasonry").iterdir() if path.name.strip("_") == path.name]
    assert sorted(named) == sorted(set(rooms) - {"__init__.py", "__main__.py", "py.typed"})


def test_every_strategy_has_a_page() -> None:
    pages = {generator().page_of(name) for name in reasonry.STRATEGIES}
    assert {page.stem for page in (DOCS / "strategies").glob("*.md")} == pages


@pytest.mark.parametrize("name", reasonry.STRATEGIES)
def test_the_page_of_a_strategy_shows_a_run_and_says_how_it_fails(name: str) -> None:
    text = generator().written_page(name)
    assert f"`{name}`" in text
    assert load("worked").command_of(text)
    wanted = ["When to use it, and when not", "A run, step by step", "What it costs", "How it fails"]
    assert [title for title in HEADING.findall(FENCE.sub("", text)) if title in wanted] == wanted
    assert re.search(
        r"^[\d,]+ calls?, .*\nabout .* tokens: \$0\.\d+ with .+$",
        text,
        re.MULTILINE,
    )


def test_a_step_of_a_worked_example_without_a_place_is_an_error() -> None:
    text = (DOCS / "strategies" / "tree_of_thoughts.md").read_text("utf-8")
    with pytest.raises(ValueError, match=r"3 steps and an end; the page shows \[1, 3\]"):
        load("worked").parts(text.replace("<!-- begin step 2 -->", ""))


def test_every_command_has_a_section() -> None:
    texts = [page.read_text("utf-8") for page in (DOCS / "commands").glob("*.md")]
    sections = [
        name for text in texts for name in re.findall(r"^##? `?reasonry ([a-z ]+)`?$", text, re.MULTILINE)
    ]
    assert sorted(sections) == sorted(" ".join(tokens) for tokens in load("reference").commands())
    assert "solve" in sections
    assert "runs resume" in sections


def test_each_schema_of_the_api_has_an_example_that_fits_it() -> None:
    from jsonschema import Draft202012Validator

    from reasonry.surfaces.http.openapi import describe_api
    from reasonry.surfaces.http.server import TABLE

    components, examples = describe_api(TABLE)["components"], load("reference").read_api_examples()
    assert set(examples) == set(components["schemas"])
    for name, example in examples.items():
        schema = {"$ref": f"#/components/schemas/{name}", "components": components}
        Draft202012Validator(schema).validate(example)


def test_every_public_name_is_explained() -> None:
    text = "".join((DOCS / page).read_text("utf-8") for page in ("python-reference.md", "agent-loops.md"))
    assert not [name for name in reasonry.__all__ if not re.search(rf"\b{name}\b", text)]


def test_every_error_code_and_outcome_is_listed_with_the_runs() -> None:
    from reasonry.surfaces.present import EXIT_CODES, OUTCOME_EXIT_CODES

    text = (DOCS / "runs.md").read_text("utf-8")
    assert not [code for code in {*EXIT_CODES, *OUTCOME_EXIT_CODES} if f"`{code}`" not in text]


def test_every_form_of_a_model_is_in_the_models_page() -> None:
    from reasonry.models.choose import FORMS

    text = (DOCS / "models.md").read_text("utf-8")
    assert not [form for form in FORMS if f"`{form.partition(' ')[0]}`" not in text]


@pytest.mark.parametrize(
    ("name", "answer"),
    [("best_of_n", "year % 400 == 0"), ("refine", "by tomorrow noon"), ("council", "5 instances")],
)
def test_a_page_of_a_strategy_that_judges_shows_a_judge_that_finds_the_right_draft(
    name: str, answer: str
) -> None:
    page = (ROOT / "docs" / "strategies" / f"{name}.md").read_text()
    assert answer in page.partition("<!-- begin end -->")[2].partition("<!-- end end -->")[0]


def test_the_readme_shows_how_its_first_command_ends(tmp_path: Path) -> None:
    command = ["solve", "Use 4, 9, 10 and 13 to make 24", "--model", "offline", "--store", "memory"]
    done = call_command(command, env=dict(os.environ), cwd=tmp_path)
    shown = next(text for _, text in blocks(ROOT / "README.md", "") if "├" in text)

    def ending(text: str) -> list[str]:
        lines = [line for line in text.splitlines() if line[0] not in "├│"]
        return [re.sub(r"[\d.]+ s · run \S+", "TIME · RUN", line) for line in lines[-4:]]

    assert ending(shown) == ending(done.stderr + done.stdout)
