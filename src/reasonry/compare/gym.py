"""The data sets `gym/NAME`. A separate process makes the problems and judges the answers, with `reasoning-gym`.

Importing this package takes seconds and 300 MB, so only the separate process imports it. A data set is offered only if
its own answers get the full score and empty answers get almost no score; `bench/gym_whitelist.py` checks the list.
"""

import json
import subprocess
import sys
import weakref
from importlib import metadata
from pathlib import Path
from typing import Any

from ..errors import ReasonryError
from ..system.plugins import check_extra
from .grading import Item, Judge

WHITELIST = tuple(Path(__file__).with_name("gym.txt").read_text("utf-8").split())
"""The legal names after `gym/`."""

SERVER = """
import json, sys
out, sys.stdout = sys.stdout, sys.stderr
import reasoning_gym
name, seed, size = json.loads(sys.stdin.readline())
data = reasoning_gym.create_dataset(name, size=size, seed=seed)
print(json.dumps([[entry["question"], entry["answer"]] for entry in data]), file=out, flush=True)
for line in sys.stdin:
    index, answer = json.loads(line)
    try:
        score = data.score_answer(answer, data[index])
    except Exception:
        score = 0  # It expects another form of answer.
    print(json.dumps(score), file=out, flush=True)
"""
"""The program of the separate process. It prints all problems, and then the score of each answer that it reads."""


def open_gym(name: str, seed: int, size: int) -> tuple[list[Item], Judge]:
    """Start a process for a data set, and return the problems and their judge. The process ends with the judge.

    Raises:
        MissingExtraError: The package is not installed.
    """
    check_extra("gym", f"The data set gym/{name}")
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    )

    def ask(*question: Any) -> Any:
        try:
            print(json.dumps(question), file=process.stdin, flush=True)
            return json.loads(process.stdout.readline() if process.stdout else "")
        except (OSError, ValueError) as error:
            raise ReasonryError(f"reasoning-gym ended on gym/{name}") from error

    def judge(item: Item, answer: str) -> bool:
        return ask(int(str(item.id).rpartition("-")[2]), answer) == 1.0

    weakref.finalize(judge, process.__exit__, None, None, None)
    made, version = enumerate(ask(name, seed, size)), metadata.version("reasoning-gym")
    return [Item(text, answer, f"gym/{name}-{version}-{seed}-{at}") for at, (text, answer) in made], judge
