"""The run on each strategy's page is a test: it passes as exported, and one changed word of a prompt fails it alone."""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

import reasonry
from reasonry.ext import replay
from tests.in_process import call_command

from .test_docs import ROOT, generator, load

PLAIN = ("direct", "cascade")
"""Strategies without a prompt of their own."""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the run of each page as a test."""
    folder = tmp_path_factory.mktemp("exported")
    env = {**os.environ, "REASONRY_STORE": str(folder / "runs.db")}
    for name in reasonry.STRATEGIES:
        command = load("worked").command_of(generator().written_page(name)).replace("\\\n", "")
        export = ["runs", "export", "last", "--as-test", str(folder / "tests"), "--name", name]
        for words in (shlex.split(command)[1:], export):
            done = call_command(words, env=env, cwd=ROOT)
            assert done.returncode == 0, done.stderr
    return folder / "tests"


def test_every_page_s_run_passes_as_a_test_and_one_changed_word_fails_its_test_alone(exported: Path) -> None:
    passed = run_tests(exported)
    assert passed.returncode == 0, passed.stdout
    assert f"{len(reasonry.STRATEGIES)} passed" in passed.stdout
    changed = exported / "conftest.py"
    changed.write_text(
        "from reasonry.strategies import step_back\n\n"
        'step_back.ABSTRACT = step_back.ABSTRACT.replace("the larger fact", "the bigger fact")\n',
        "utf-8",
    )
    try:
        failed = run_tests(exported)
    finally:
        changed.unlink()
    assert f"1 failed, {len(reasonry.STRATEGIES) - 1} passed" in failed.stdout, failed.stdout
    assert "FAILED test_step_back.py::test_step_back" in failed.stdout
    assert "step_back.jsonl: e1 of stage abstraction differs from the record" in failed.stdout
    assert re.search(r"recorded: +….*the larger fact that", failed.stdout), failed.stdout
    assert re.search(r"now: +….*the bigger fact that", failed.stdout), failed.stdout


def run_tests(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=.", "."]
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=110
    )


@pytest.mark.parametrize("name", [one.name for one in reasonry.STRATEGIES.values() if one.name not in PLAIN])
def test_changed_prompts_of_a_strategy_fail_the_tests_of_the_runs_with_it(
    exported: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = room_of(name)
    for place in [place for place in sys.modules if place == room or place.startswith(f"{room}.")]:
        for constant, text in [*vars(sys.modules[place]).items()]:
            if constant.isupper() and isinstance(text, str) and " " in text:
                monkeypatch.setattr(sys.modules[place], constant, text.replace(" ", " altered ", 1))
    failing = {other for other in reasonry.STRATEGIES if is_failing(exported / f"{other}.jsonl")}
    assert name in failing
    assert all(room in map(room_of, used_in(exported / f"{other}.jsonl")) for other in failing)


def room_of(name: str) -> str:
    """Return the module, or the package, of a strategy."""
    body = next(stage.body for stage in reasonry.STRATEGIES[name].stages if stage.body)
    return ".".join(body.__module__.split(".")[:3])


def used_in(file: Path) -> list[str]:
    """Return the strategies of a run."""
    begun = json.loads(file.read_text("utf-8").partition("\n")[0])["reply"]
    inner = begun[3].get("over") or getattr(reasonry.STRATEGIES[begun[1]].options(), "over", None)
    return [begun[1], *filter(None, [inner])]


def is_failing(file: Path) -> bool:
    try:
        replay(file)
    except AssertionError:
        return True
    return False


def test_a_replay_takes_less_than_a_second(exported: Path) -> None:
    for name in reasonry.STRATEGIES:
        began = time.process_time()
        replay(exported / f"{name}.jsonl")
        assert time.process_time() - began < 1, name


def test_a_line_of_a_test_is_a_question(exported: Path) -> None:
    _, *lines = map(json.loads, (exported / "react.jsonl").read_text("utf-8").splitlines())
    kinds = [line["reply"][2]["type"] for line in lines if "reply" in line]
    assert {*kinds} == {"answered", "tool_returned"}
    assert all({"stage", "text", "digest"} <= {*line} for line in lines)
