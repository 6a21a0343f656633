"""`gym/NAME`: problems of the package `reasoning-gym`, made and judged by a process of their own.

The package takes seconds to import and brings 300 MB, so this process never imports it. Only those data sets are
offered whose own answers get the full score and whose empty answers get none; `bench/gym_whitelist.py` checks the list.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from ..errors import ReasonryError, UsageError
from ..extras import check_extra
from ..reading.names import did_you_mean
from .judging import Candidate, Item

WHITELIST = tuple(Path(__file__).with_name("gym.txt").read_text("utf-8").split())
"""The names that may stand behind `gym/`."""

SERVER = """
import json, sys
import reasoning_gym
made = {}
for line in sys.stdin:
    name, seed, size, index, answer = json.loads(line)
    data = made.get(name) or made.setdefault(name, reasoning_gym.create_dataset(name, size=size, seed=seed))
    entry = data[index]
    reply = [entry["question"], entry["answer"]] if answer is None else data.score_answer(answer, entry)
    print(json.dumps(reply), flush=True)
"""
"""The process: a line asks for a problem, or for the score of an answer to one."""


class Gym:
    """One data set of the package, of a size and a seed.

    Raises:
        UsageError: The name is not on the whitelist.
        MissingExtraError: The package is not installed.
    """

    def __init__(self, name: str, size: int, seed: int) -> None:
        if name not in WHITELIST:
            raise UsageError(
                f"There is no data set 'gym/{name[:60]}'.{did_you_mean(name, WHITELIST)}",
                option="dataset",
                choices=[f"gym/{known}" for known in WHITELIST],
            )
        check_extra("gym", f"The data set gym/{name}")
        self._asked = (name, seed, size)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )
        made = [self._ask(index) for index in range(size)]
        self.items = [Item(made[i][0], made[i][1], f"gym/{name}-{seed}-{i}") for i in range(size)]

    def judge(self, item: Item, candidate: Candidate) -> bool:
        """Whether the package gives an answer its full score."""
        return self._ask(int(str(item.id).rpartition("-")[2]), candidate.answer) == 1.0

    def _ask(self, index: int, answer: str | None = None) -> Any:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps([*self._asked, index, answer]) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())
        except (OSError, ValueError) as error:
            raise ReasonryError(f"reasoning-gym ended on problem {index} of gym/{self._asked[0]}") from error

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
