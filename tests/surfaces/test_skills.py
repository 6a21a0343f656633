"""What the skills tell an agent is true: their calls are made of a real server, their commands are run in a shell."""

import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import reasonry
from reasonry.surfaces.present import EXIT_CODES
from tests.forked import forking_python

from .mcp.raw import Raw

DOCS = Path(__file__).parents[2] / "docs"
COMMANDS = [DOCS / "command-line.md", *sorted((DOCS / "commands").glob("*.md"))]
SKILLS = Path(reasonry.__file__).parent / "surfaces" / "setup" / "skills"
PAGES = sorted(SKILLS.glob("*/SKILL.md"))
FRONT = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

pytestmark = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)


def front_matter(page: Path) -> dict[str, Any]:
    found = FRONT.match(page.read_text("utf-8"))
    assert found is not None
    return yaml.safe_load(found[1])


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(page.read_text("utf-8")) if kind == language]


def calls(page: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return each call that the skill shows: the tool and its arguments."""
    lines = [line for block in blocks(page, "text") for line in block.splitlines()]
    return [(line.partition(" ")[0], json.loads(line.partition(" ")[2])) for line in lines]


@cache
def replies(page: Path) -> list[dict[str, Any]]:
    """Make the calls of the skill, in their order, on one connection."""
    with Raw() as client:
        return [client.call(tool, **arguments) for tool, arguments in calls(page)]


def test_a_skill_has_the_form_of_agent_skills(page: Path) -> None:
    front = front_matter(page)
    assert set(front) <= {"name", "description", "license"}
    assert front["name"] == page.parent.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", front["name"])
    assert len(front["name"]) <= 64
    assert 0 < len(front["description"]) <= 1024
    assert "Use it" in front["description"]
    assert "Trigger words" in front["description"]
    assert "Reasonry" in front["description"]


def test_a_skill_is_short_and_reads_the_same_on_every_system(page: Path) -> None:
    raw = page.read_bytes()
    assert b"\r" not in raw
    assert raw.endswith(b"\n")
    assert len(raw.decode("utf-8").splitlines()) < 80
    assert "](" not in raw.decode("utf-8"), "a skill is copied elsewhere, where links lead nowhere"


def test_every_call_of_a_skill_is_taken(page: Path) -> None:
    heard = replies(page)
    assert len(heard) >= 5
    assert [reply["error"] for reply in heard if "error" in reply] == []
    unasked = [notice["reason"] for reply in heard for notice in reply.get("notices", ())]
    assert set(unasked) <= {"session_begun"}, "an argument is unknown, or a number does not fit"


def test_what_a_skill_says_of_the_replies_is_so(page: Path) -> None:
    heard = replies(page)
    if page.parent.name == "think-it-through":
        assert "cache" in json.dumps(heard[4]["leftOpen"]), "the branch that was not merged"
        assert heard[5]["nextStages"][0]["guidance"]
        assert heard[7]["stage"] == "branch_evaluation"
        assert heard[8]["session_id"] == heard[7]["sessionId"]
        assert heard[9]["matches"]
    else:
        (question,) = heard[0]["questions"]
        assert (question["id"], question["count"]) == ("e1,e2,e3,e4", 4)
        assert re.fullmatch(r"\[#\w+\]", question["answer_schema"])
        assert heard[0]["shared"]
        assert heard[1]["status"] == "done"
        assert heard[1]["result"]["answer"] == "42"


def test_the_commands_of_a_skill_run(page: Path, tmp_path: Path) -> None:
    if (shell := shutil.which("bash")) is None or sys.platform == "win32":
        pytest.skip("needs bash")
    environment = {
        "PATH": f"{Path(forking_python()).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "REASONRY_STORE": str(tmp_path / "store.db"),
    }
    (script,) = blocks(page, "sh")
    done = subprocess.run(
        [shell, "-euo", "pipefail", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if page.parent.name == "think-it-through":
        assert "It is the path." in done.stdout
    else:
        assert '"answer": "42"' in done.stdout


def names_in(value: Any) -> set[str]:
    """Return the names that a JSON schema or document has, and the values of its enumerations."""
    if isinstance(value, dict):
        return set(value) | {name for part in value.values() for name in names_in(part)}
    if isinstance(value, list):
        return {name for part in value for name in names_in(part)}
    return {value} if isinstance(value, str) else set()


def test_every_word_in_code_is_a_word_of_the_tools(page: Path) -> None:
    with Raw() as client:
        known = names_in(client.ask("tools/list")["result"]["tools"])
        known |= names_in(client.call("coach", action="start", problem="x", strategy="nosuch"))
    known |= names_in(replies(page)) | set(reasonry.STRATEGIES) | set(EXIT_CODES)
    options = [re.findall(r"--[a-z-]+", text.read_text("utf-8")) for text in COMMANDS]
    known |= {option for found in options for option in found} | {"refused", "requires"}
    text = BLOCK.sub("", FRONT.sub("", page.read_text("utf-8")))
    spoken = [
        word for word in re.findall(r"`([^`\n]+)`", text) if re.fullmatch(r"-{0,2}[a-z][A-Za-z_-]*", word)
    ]
    assert len(spoken) > 10
    assert [word for word in spoken if word not in known and word != "last"] == []


def test_the_table_names_every_strategy(page: Path) -> None:
    if page.parent.name == "think-it-through":
        assert set(re.findall(r"\| `([a-z_]+)`", page.read_text("utf-8"))) == set(reasonry.STRATEGIES)
    else:
        assert set(re.findall(r'"strategy": "(\w+)"', page.read_text("utf-8"))) <= set(reasonry.STRATEGIES)
