"""The Tab key in a real shell: commands and options."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.forked import forking_python

from .test_cli import Shell

BASH = """
source "$HOME/.bashrc"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMPREPLY=()
$(complete -p reasonry | sed 's/.*-F \\([^ ]*\\).*/\\1/') reasonry "${@: -1}" "${@: -2:1}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(os.name == "nt", reason="bash on Windows has other paths than its Python")
def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.environ["PATH"] = f"{Path(forking_python()).parent}{os.pathsep}{os.environ['PATH']}"
    assert shell.run("--install-completion", "--shell", "bash").returncode == 0
    assert shell.run("--install-completion", "--shell", "tcsh").returncode == 2

    def complete(*words: str) -> set[str]:
        command = ["bash", "--norc", "-c", BASH, "bash", "reasonry", *words]
        done = subprocess.run(
            command, env=shell.environ, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
        )
        assert done.stderr == ""
        return {line.partition("\t")[0] for line in done.stdout.splitlines() if line}

    assert complete("ru") == {"runs"}
    assert complete("runs", "re") == {"resume", "replay"}
    assert "--max-calls" in complete("solve", "--max-c")
