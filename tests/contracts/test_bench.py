"""The measurements can be run: all are listed, and all can be loaded with the package as it is."""

import re
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench"
SCRIPTS = {path.stem: path.read_text("utf-8") for path in BENCH.glob("[!_]*.py")}


def run(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=BENCH.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_script_is_a_measurement_that_is_listed_or_is_used_by_one() -> None:
    listed = {line.split()[0] for line in run("bench", "--list").splitlines()}
    used = {
        name
        for text in SCRIPTS.values()
        for name in re.findall(r"^(?:from|import) (\w+)", text, re.MULTILINE)
    }
    assert listed
    assert listed | (used & set(SCRIPTS)) == set(SCRIPTS)
    for name in listed:
        assert f"uv run python bench/{name}.py" in SCRIPTS[name], f"{name} does not say how it is run"


def test_every_script_can_be_loaded() -> None:
    code = f"import sys; sys.path.insert(0, 'bench'); import {', '.join(sorted(SCRIPTS))}"
    run("-c", code)
