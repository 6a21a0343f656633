"""docs/mcp.md describes every tool of the server and every argument of each."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..surfaces.mcp.raw import Raw

PAGE = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text("utf-8")
LISTED = {
    "REASONRY_MODEL": "offline",
    "REASONRY_VERIFIERS": "fits=json-schema:/srv/schema.json",
    "REASONRY_TOOLS": "sum=/srv/calc.py:add",
    "REASONRY_DOCUMENTS": "handbook=/srv/hand.pdf",
}


@pytest.fixture(scope="module")
def tools() -> Iterator[dict[str, Any]]:
    with Raw(DISABLE_THOUGHT_LOGGING="true", **LISTED) as raw:
        yield {tool["name"]: tool for tool in raw.ask("tools/list")["result"]["tools"]}


def words(text: str) -> set[str]:
    """Return what stands in code marks, word by word."""
    return {word for code in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"[\w-]+", code)}


def part_of(tool: str) -> str:
    """Return the section of a tool."""
    section = re.search(rf"^### `{tool}`\n(.*?)(?=^###? )", PAGE, re.MULTILINE | re.DOTALL)
    assert section is not None, f"the page has no section on {tool}"
    return section[1]


def test_there_are_five_tools_and_the_page_names_each(tools: dict[str, Any]) -> None:
    assert set(tools) == {"sequentialthinking", "sessions", "coach", "solve", "show"}
    assert set(tools) <= words(PAGE)


@pytest.mark.parametrize("tool", ["sequentialthinking", "sessions", "coach", "solve", "show"])
def test_every_argument_and_member_of_a_reply_is_described(tools: dict[str, Any], tool: str) -> None:
    described = words(part_of(tool))
    schema = tools[tool]["inputSchema"]["properties"]
    assert set(schema) <= described
    assert set(schema.get("action", {}).get("enum", ())) <= described
    assert set(tools[tool]["outputSchema"]["properties"]) - {"error"} <= described


def test_the_options_of_the_command_are_on_the_page() -> None:
    from dataclasses import fields

    from reasonry.surfaces.cli.settings import Listed

    assert {f"--{field.name}" for field in fields(Listed)} <= words(PAGE)
