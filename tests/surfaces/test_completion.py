"""The Tab key in real shells: commands, options, strategies and the ids there are."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.forked import forking_python

from .test_cli import PUZZLE, Shell

BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMPREPLY=()
$(complete -p reasonry | sed 's/.*-F \\([^ ]*\\).*/\\1/') reasonry "${@: -1}" "${@: -2:1}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
FISH = 'source $argv[1]; complete -C "$argv[2]"'


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    shell = Shell(tmp_path_factory.mktemp("shell"))
    shell.environ["PATH"] = f"{Path(forking_python()).parent}{os.pathsep}{os.environ['PATH']}"
    shell.run("solve", PUZZLE, "--model", "offline")
    return shell


def written(shell: Shell, name: str) -> Path:
    path = shell.folder / f"completion.{name}"
    if not path.exists():
        path.write_text(shell.run("completion", "show", name).stdout, "utf-8")
    return path


def offered(shell: Shell, command: list[str]) -> list[str]:
    done = subprocess.run(
        command, env=shell.environ, cwd=shell.folder, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
    return [line.partition("\t")[0] for line in done.stdout.splitlines() if line]


@pytest.mark.skipif(os.name == "nt", reason="bash on Windows has other paths than its Python")
def test_bash_completes_commands_options_strategies_and_ids(shell: Shell) -> None:
    script = str(written(shell, "bash"))

    def complete(*words: str) -> list[str]:
        return offered(shell, ["bash", "--norc", "-c", BASH, "bash", script, *words])

    assert complete("reasonry", "ru") == ["runs"]
    assert set(complete("reasonry", "runs", "re")) == {"resume", "replay"}
    assert "--max-calls" in complete("reasonry", "solve", "--max-c")
    assert complete("reasonry", "solve", "--strategy", "tr") == ["tree_of_thoughts"]
    run_id = shell.json("runs", "list")["runs"][0]["run_id"]
    assert complete("reasonry", "runs", "show", run_id[:4]) == [run_id[:8]]
    assert complete("reasonry", "setup", "cur") == ["cursor"]


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish here")
def test_fish_completes_commands_strategies_and_ids(shell: Shell) -> None:
    script = str(written(shell, "fish"))
    assert offered(shell, ["fish", "-c", FISH, script, "reasonry ru"]) == ["runs"]
    assert offered(shell, ["fish", "-c", FISH, script, "reasonry sessions show la"]) == ["last"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh here")
def test_zsh_takes_the_script(shell: Shell) -> None:
    folder = shell.folder / "functions"
    folder.mkdir()
    shutil.copy(written(shell, "zsh"), folder / "_cyclopts_reasonry")
    load = 'fpath=("$1" $fpath); autoload -Uz compinit && compinit -u -d "$1/dump" && print $_comps[reasonry]'
    assert offered(shell, ["zsh", "-fc", load, "zsh", str(folder)]) == ["_cyclopts_reasonry"]
    subprocess.run(["zsh", "-n", str(folder / "_cyclopts_reasonry")], check=True)


def test_asking_for_ids_makes_no_store(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "none.db"
    asked = shell.run("__complete", "runs", "show", "--store", str(path), "")
    assert asked.returncode == 0
    assert "last" not in asked.stdout
    assert not path.exists()


def test_installing_writes_the_script_and_has_the_shell_load_it(shell: Shell, tmp_path: Path) -> None:
    shell.environ["HOME"] = str(tmp_path)
    document = shell.json("completion", "install", "bash")
    assert Path(document["path"]).is_relative_to(tmp_path)
    assert "reasonry" in Path(document["path"]).read_text("utf-8")
    assert document["path"] in (tmp_path / ".bashrc").read_text("utf-8")
    assert shell.run("completion", "install", "tcsh").returncode == 2
