"""One command checks everything: style, types, floors and tests."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RULE = re.compile(r"^([a-z]+):([^#\n]*)(?:##[^\n]*)?\n((?:\t[^\n]*\n)*)", re.MULTILINE)


def rules() -> dict[str, tuple[list[str], list[str]]]:
    """Return what each target of the Makefile needs first, and its commands."""
    text = (ROOT / "Makefile").read_text("utf-8")
    return {
        name: (needs.split(), [line.strip() for line in recipe.splitlines()])
        for name, needs, recipe in RULE.findall(text)
    }


RULES = rules()
CHECKS = [line for target in ("lint", "types", "floors") for line in RULES[target][1]]


def test_the_checks_are_style_format_types_and_floors() -> None:
    assert CHECKS == [
        "$(UV) run ruff check .",
        "$(UV) run ruff format --check .",
        "$(UV) run basedpyright",
        "$(UV) run lint-imports --no-cache",
    ]


def commands(target: str) -> list[str]:
    """Return all that a target runs, that of the targets it needs included."""
    needs, recipe = RULES[target]
    return [line for need in needs for line in commands(need)] + recipe


def test_everything_is_checked_by_make_and_by_the_ci() -> None:
    assert commands("check") == [*CHECKS, "$(UV) run pytest -n auto"]
    ci = (ROOT / ".ci" / "run").read_text("utf-8")
    assert "make lint types floors " in ci
    assert ".boot/bin/uv run pytest -n auto" in (ROOT / "README.md").read_text("utf-8")


def test_every_target_of_the_makefile_exists_and_says_what_it_does() -> None:
    text = (ROOT / "Makefile").read_text("utf-8")
    declared = re.search(r"^\.PHONY:(.*)$", text, re.MULTILINE)
    assert declared is not None
    assert sorted(declared[1].split()) == sorted(RULES)
    for name, (needs, recipe) in RULES.items():
        assert set(needs) <= set(RULES), name
        assert needs or recipe, name
        assert re.search(rf"^{name}:.*## \S", text, re.MULTILINE), name


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize("target", RULES)
def test_make_knows_every_target(target: str) -> None:
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
