"""Over MCP an agent names what the operator listed, sees the names, and nothing else is touched."""

import os
import subprocess
from typing import Any

import pytest

from tests.forked import forking_python

from .raw import COMMAND, Raw

PUZZLE = "Use 4, 9, 10 and 13 to make 24"


def schemas(raw: Raw) -> dict[str, Any]:
    return {name: tool["inputSchema"]["properties"] for name, tool in raw.tools().items()}


def test_the_input_schema_lists_the_legal_names() -> None:
    listed = {
        "REASONRY_MODEL": "offline",
        "REASONRY_MODELS": "fast=openai-compatible:http://127.0.0.1:9/v1#m,openai:gpt-6-luna",
        "REASONRY_VERIFIERS": "fits=json-schema:/srv/schema.json",
        "REASONRY_TOOLS": "sum=/srv/calc.py:add",
        "REASONRY_DOCUMENTS": "handbook=/srv/hand.pdf",
        "REASONRY_API_KEY": "sk-canary",
    }
    with Raw(**listed) as raw:
        shown = schemas(raw)
        for tool in ("solve", "coach"):
            assert shown[tool]["tools"]["items"]["enum"] == ["sum"]
            assert shown[tool]["documents"]["items"]["enum"] == ["handbook"]
            assert shown[tool]["verifier"]["anyOf"][1]["enum"] == ["fits"]
        assert shown["solve"]["model"]["enum"] == ["offline", "fast", "openai:gpt-6-luna"]
        assert "model" not in shown["coach"]
        assert not any(secret in str(shown) for secret in ("/srv", "127.0.0.1", "sk-canary"))
    with Raw(REASONRY_MODELS="offline") as raw:
        shown = schemas(raw)
        assert shown["solve"]["model"]["enum"] == ["offline"]
        assert not {"tools", "documents"} & set(shown["solve"])


def test_a_list_that_cannot_be_ends_the_server_with_a_word_of_why() -> None:
    environ = {**os.environ, "REASONRY_STORE": "memory", "REASONRY_MODELS": "fast=gpt"}
    done = subprocess.run(
        [forking_python(), *COMMAND[1:]],
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "REASONRY_MODELS: there is no model 'gpt'" in done.stderr
    assert done.stdout == ""


def test_the_command_takes_the_list_as_options(monkeypatch: pytest.MonkeyPatch) -> None:
    from reasonry.surfaces.cli import run
    from reasonry.surfaces.mcp import serve

    taken: list[dict[str, str]] = []
    monkeypatch.setattr(serve, "main", lambda store, environ, **_: taken.append(dict(environ)))
    monkeypatch.setenv("REASONRY_MODELS", "openai:old")
    monkeypatch.setenv("REASONRY_VERIFIERS", "old=python:old.py")
    command = (
        "mcp --model offline --models a=openai:x --models openai:y --tools sum=c.py:add --documents d.md"
    )
    assert run(command.split()) == 0
    named = {name: taken[0].get(f"REASONRY_{name}") for name in ("MODEL", "MODELS", "VERIFIERS", "TOOLS")}
    assert named == {
        "MODEL": "offline",
        "MODELS": "a=openai:x,openai:y",
        "VERIFIERS": "old=python:old.py",
        "TOOLS": "sum=c.py:add",
    }
    assert taken[0]["REASONRY_DOCUMENTS"] == "d.md"
