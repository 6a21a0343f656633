"""The workflows hold to their laws: least rights, actions pinned, every system and Python, commands that exist."""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from ..releasing import ROOT, load_script

FOLDER = ROOT / ".github" / "workflows"
PATHS = sorted(FOLDER.glob("*.yml"))
WORKFLOWS: dict[str, dict[Any, Any]] = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in PATHS}
JOBS = [(stem, name, job) for stem, workflow in WORKFLOWS.items() for name, job in workflow["jobs"].items()]
PUBLISH = {("release", "pypi"), ("release", "registry")}
"""The jobs that publish; no other one may prove who it is."""

each_job = pytest.mark.parametrize(
    ("workflow", "name", "job"), JOBS, ids=lambda part: part if isinstance(part, str) else ""
)


def triggers(workflow: str) -> dict[str, Any]:
    return WORKFLOWS[workflow][True]  # `on` is a word for true in YAML 1.1.


def scripts(job: dict[str, Any]) -> Iterator[str]:
    for step in job.get("steps", ()):
        if "run" in step:
            yield step["run"]


def needed(name: str) -> set[str]:
    """Return the jobs of a release that must have passed before this one."""
    needs = WORKFLOWS["release"]["jobs"][name].get("needs", [])
    direct = [needs] if isinstance(needs, str) else needs
    return {*direct, *(further for one in direct for further in needed(one))}


def test_there_are_these_workflows_and_each_begins_without_rights() -> None:
    assert set(WORKFLOWS) == {"release", "test"}
    assert all(workflow["permissions"] == {} for workflow in WORKFLOWS.values())


@each_job
def test_a_job_has_the_least_rights(workflow: str, name: str, job: dict[str, Any]) -> None:
    rights = job["permissions"]
    assert rights.get("contents", "read") == "read"
    assert rights.get("id-token") == ("write" if (workflow, name) in PUBLISH else None)
    assert set(rights) <= {"contents", "id-token"}
    assert "secrets" not in job
    assert "timeout-minutes" in job or "uses" in job


@each_job
def test_a_job_runs_no_text_that_others_write(workflow: str, name: str, job: dict[str, Any]) -> None:
    """What stands in `${{ … }}` becomes part of the script; a title or a branch name would be run."""
    assert not [script for script in scripts(job) if "${{" in script]


@each_job
def test_a_checkout_leaves_no_credentials(workflow: str, name: str, job: dict[str, Any]) -> None:
    checkouts = [
        step for step in job.get("steps", ()) if step.get("uses", "").startswith("actions/checkout@")
    ]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_actions_are_pinned_to_commits_and_say_their_version(path: Path) -> None:
    used = re.findall(r"^\s*(?:- )?uses: (.+)$", path.read_text("utf-8"), re.MULTILINE)
    assert used
    for action in used:
        assert re.fullmatch(
            r"\./\.github/workflows/\w+\.yml|[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action
        )


def test_an_action_is_pinned_to_one_commit_everywhere() -> None:
    used = {one for path in PATHS for one in re.findall(r"uses: ([\w/-]+)@(\w+)", path.read_text("utf-8"))}
    assert len(used) == len({action for action, _ in used})


def test_every_system_runs_every_python_that_is_promised() -> None:
    job = WORKFLOWS["test"]["jobs"]["test"]
    matrix = job["strategy"]["matrix"]
    systems = {f"{system}-latest" for system in ("ubuntu", "macos", "windows")}
    pythons = load_script(ROOT / "packaging" / "platforms.py").PYTHONS
    assert set(product(matrix["system"], matrix["python"])) == set(product(systems, pythons))
    assert len(matrix["system"]) * len(matrix["python"]) == len(systems) * len(pythons)
    assert not {"include", "exclude"} & set(matrix)
    assert job["runs-on"] == "${{ matrix.system }}"
    assert job["env"]["UV_PYTHON"] == "${{ matrix.python }}"
    assert all(isinstance(python, str) for python in matrix["python"]), "3.10 would be the number 3.1"


def test_the_tests_are_run_as_the_readme_says() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    command = list(scripts(WORKFLOWS["test"]["jobs"]["test"]))[-1]
    assert f".boot/bin/{command}\n" in readme
    assert set(triggers("test")) == {"push", "pull_request", "workflow_call"}


@each_job
def test_what_a_job_runs_of_this_project_exists(workflow: str, name: str, job: dict[str, Any]) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    text = "\n".join(scripts(job))
    for target in re.findall(r"\bmake (\w+)", text):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for path in re.findall(r"\bpython ([\w./-]+)", text):
        assert (ROOT / path).exists(), path
    if "uses" in job:
        assert (ROOT / job["uses"]).is_file()


def test_only_a_tag_publishes_what_was_tested_built_and_checked() -> None:
    assert triggers("release") == {"push": {"tags": ["v*"]}}
    assert needed("pypi") == {"test", "build"}
    assert needed("registry") == {"test", "build", "pypi"}
    jobs = WORKFLOWS["release"]["jobs"]
    assert jobs["test"]["uses"] == "./.github/workflows/test.yml"
    assert list(scripts(jobs["build"])) == ['uv run python release --tag "$GITHUB_REF_NAME"']
    assert jobs["pypi"]["environment"]["name"] == "pypi"
    assert list(scripts(jobs["pypi"])) == [], "it has the right to publish: it runs nothing of this project"


def test_nothing_is_kept_as_a_secret_and_what_is_fetched_is_held_against_its_sum() -> None:
    for path in PATHS:
        text = path.read_text("utf-8")
        assert "secrets." not in text
        assert text.count("curl ") == text.count("sha256sum --check --strict")
    assert re.fullmatch(r"[0-9a-f]{64}", WORKFLOWS["release"]["jobs"]["registry"]["env"]["PUBLISHER_SHA256"])
