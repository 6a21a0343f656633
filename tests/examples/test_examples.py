"""Every example runs: as it stands, without a key and without a network."""

import ast
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from reasonry.errors import ToolError
from reasonry.tools.catalog import Catalog
from reasonry.tools.mcp_client import mcp_tools
from tests.forked import forking_python

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "OLLAMA_HOST": "127.0.0.1:9"}
    environ["PYTHONWARNINGS"] = "default,ignore::DeprecationWarning"
    command = [forking_python(), str(EXAMPLES / name)]
    return subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=False
    )


def test_every_example_is_run_by_a_test() -> None:
    files = Path(__file__).parent.glob("test_*.py")
    tests = "\n".join(file.read_text("utf-8") for file in files).replace("'", '"')
    pages = [page.read_text("utf-8") for page in (EXAMPLES.parent / "docs" / "tasks").glob("*.md")]
    commands = "\n".join(
        block for page in pages for block in re.findall(r"^```sh\n(.*?)^```$", page, re.M | re.S)
    )
    names = [path.name for path in EXAMPLES.iterdir() if path.is_file()]
    assert not [name for name in names if f'"{name}"' not in tests and f"examples/{name}" not in commands]


LOOPS = {
    "phase_machine.py": [
        "analyze_code: 1 thoughts, at most 1 steps",
        "research: 2 thoughts, at most 15 steps",
        "design: 3 thoughts, at most 20 steps",
        "plan_complete: one session with 6 thoughts",
    ],
    "explore_sub_agent.py": ["parent: 2 thoughts; sub-agent: 2 of its own", "answer: settings.py"],
    "external_agent.py": ["First the order.", "The order stands.", "one session with 3 thoughts"],
    "three_agents.py": [
        "architect: architect 1, architect 2, architect 3; Design API: done",
        "planner: planner 1, planner 2, planner 3; Plan tasks: done",
        "validator: validator 1, validator 2, validator 3; Review PR: done",
        "3 sessions",
    ],
    "mcp_agent_loop.py": [
        "tools: coach, sequentialthinking, sessions, show",
        "GET, POST, PATCH: Sequential thinking complete: 3 thoughts processed across 0 branches.",
        "kept: 3 thoughts",
    ],
}
"""What the examples of seed 003 print; their loop and their scripted brain are in "agent_loop.py"."""


@pytest.mark.parametrize("name", LOOPS)
def test_an_agents_loop_thinks_in_the_sessions_it_says(name: str, tmp_path: Path) -> None:
    done = run(name, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout.splitlines() == LOOPS[name]
    assert not list(tmp_path.iterdir()), "sessions in memory leave nothing behind"


def test_the_middleware_sends_only_what_was_accepted_to_the_approval_queue(tmp_path: Path) -> None:
    done = run("analysis_as_middleware.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "ResourceWarning" not in done.stderr
    queues = [line.split(" (")[0] for line in done.stdout.splitlines()]
    assert queues == ["T-1 -> approval", "T-2 -> revision", "T-3 -> a person"]
    assert "focused_answer_failed" in done.stdout.splitlines()[2]


def test_the_die_is_thought_about_along_a_plan_to_216_of_431(tmp_path: Path) -> None:
    """Seed 001's own problem; the brain is scripted, the fraction computed."""
    done = run("die_in_thoughts.py", tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("Thought ")] == [f"Thought {n}" for n in range(1, 6)]
    doubt = "- [Verification Needed] Write the equations (after 3, 4 a 3 leads to q, not to the start)"
    assert doubt in lines
    assert "  - [Done] After 3: q = 1/6 (1-r) + 1/6 (1-q) + 4/6 (1-p)" in lines
    assert "- [Done] Conclusion: 216/431" in lines
    assert lines[-1] == "Solution: 216/431"


def test_a_key_value_service_stores_a_session_as_one_document(tmp_path: Path) -> None:
    done = run("key_value_store.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1 document, 2 thoughts\n"


@pytest.mark.anyio
async def test_the_weather_server_serves_two_tools() -> None:
    async with mcp_tools([f"{sys.executable} {EXAMPLES / 'weather_server.py'}"]) as tools:
        catalog = Catalog(tools)
        assert [card.name for card in catalog.cards()] == ["climate", "fahrenheit"]
        found = await catalog.call("climate", {"city": "bergen", "month": "OCTOBER"})
        assert found == {"city": "Bergen", "month": "October", "high_c": 11, "rain_days": 22}
        assert await catalog.call("fahrenheit", {"celsius": 11}) == 51.8
        with pytest.raises(ToolError, match="the cities are: Bergen, Cairo, Lisbon, Rome"):
            await catalog.call("climate", {"city": "Atlantis", "month": "July"})
        with pytest.raises(ToolError, match="the months are: January"):
            await catalog.call("climate", {"city": "Rome", "month": "May"})


PROGRAMS = {
    "checked_tool_use.py": "2750000 after 3 calls",
    "draft_and_critic.py": "A song of rain",
    "resume_and_fan_out.py": "cut: stopped resumed: (9 - (13 - 10)) * 4 = 24",
    "langgraph_node.py": "{'answer': '(9 - (13 - 10)) * 4 = 24'}",
    "pydantic_ai_agent.py": "Step 1. Step 2. GET, POST, PATCH",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_whole_program_prints_its_end_and_is_as_short_as_its_page_says(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (EXAMPLES / name).read_text("utf-8")
    page = (EXAMPLES.parent / "docs" / "python.md").read_text("utf-8")
    assert f"[{name}](../examples/{name}) | {_lines_of_code(text)} |" in page
    if name == "langgraph_node.py":
        pytest.importorskip("langgraph", reason="langgraph is not installed")
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    runpy.run_path(str(EXAMPLES / name))
    assert PROGRAMS[name] in capsys.readouterr().out


def _lines_of_code(text: str) -> int:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    docstrings = [
        node.body[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, documented) and ast.get_docstring(node) is not None
    ]
    prose = {line for each in docstrings for line in range(each.lineno, (each.end_lineno or 0) + 1)}
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    return sum(bool(line) and not line.startswith("#") and number not in prose for number, line in lines)
