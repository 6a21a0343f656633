"""The pure floors do nothing to the world: what import-linter cannot see is looked for in the syntax trees."""

import ast

import pytest

from .sources import SOURCE, tree_of

ROOMS = ("core", "blocks", "reading", "strategies", "puzzles")
PURE = sorted(
    [
        SOURCE / "errors.py",
        SOURCE / "machine.py",
        SOURCE / "compare" / "explore.py",
        SOURCE / "stages.py",
        SOURCE / "guided" / "session_choice.py",
        *(path for room in ROOMS for path in (SOURCE / room).rglob("*.py")),
    ]
)
FORBIDDEN = {"open", "print", "input", "eval", "exec", "compile", "__import__", "breakpoint"}


def test_a_pure_module_calls_nothing_that_touches_the_world() -> None:
    for path in PURE:
        calls = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)]
        named = {node.func.id for node in calls if isinstance(node.func, ast.Name)}
        assert not named & FORBIDDEN, path


def test_which_session_a_call_means_is_decided_without_a_store_or_a_loop() -> None:
    tree = tree_of(SOURCE / "guided" / "session_choice.py")
    imported = {
        alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    } | {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= {
        *("__future__", "collections.abc", "contextlib", "dataclasses", "functools", "typing", "msgspec"),
        *("errors", "ids", "records", "text", "lines", "thinking_tool"),
    }


def test_a_pure_module_keeps_no_state_between_calls() -> None:
    for path in PURE:
        nodes = ast.walk(tree_of(path))
        assert not [node for node in nodes if isinstance(node, ast.Global | ast.AsyncFunctionDef)], path


@pytest.mark.parametrize("room", ROOMS)
def test_the_pure_floors_were_found(room: str) -> None:
    assert len([path for path in PURE if SOURCE / room in path.parents]) > 5
