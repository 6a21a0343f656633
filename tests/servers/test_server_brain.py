"""The server in a process of its own takes its brain from a file."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.servers import ServerProcess

BRAIN = """
def echo(request):
    return f"{request.number}: {request.prompt}"
"""


def test_a_function_of_a_file_answers(tmp_path: Path) -> None:
    (tmp_path / "brain.py").write_text(BRAIN)
    with ServerProcess(brain=f"{tmp_path / 'brain.py'}:echo") as server:
        body = json.dumps({"messages": [{"role": "user", "content": "hello"}]}).encode()
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(f"{server.url}/chat/completions", data=body, timeout=30) as response:
            document = json.load(response)
    assert document["choices"][0]["message"]["content"] == "1: hello"


@pytest.mark.parametrize("brain", ["nonsense", "FILE:echo", "FILE:nothing", "missing.py:echo"])
def test_a_brain_that_is_not_there_is_a_clear_error(tmp_path: Path, brain: str) -> None:
    file = tmp_path / "brain.py"
    file.write_text(BRAIN)
    named = brain.replace("FILE", str(file) if "nothing" in brain else str(tmp_path / "brain.txt"))
    command = [sys.executable, "-m", "tests.servers", "--port", "0", "--brain", named]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert any(one in done.stderr for one in ("--brain takes", "no function", "No such file"))
