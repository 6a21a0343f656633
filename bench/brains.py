"""Who answers in the measurements: brains for the loopback model server, for `ServerProcess(brain=brain("vote"))`.

All of them are deterministic: the same questions get the same answers, whoever asks and in whichever order.
"""

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

from loopback import ChatRequest, Player
from msgspec.structs import replace

HERE = Path(__file__)

QUESTIONS, MOST_SAMPLES = 40, 40
ACCURACIES = (0.9, 0.7, 0.5, 0.35)
"""How often a single sample is right, ten questions each."""

_WRONG = ("17", "23", "31", "47", "59")
_drawn: Counter[int] = Counter()


def brain(name: str) -> str:
    """Return one of these brains as a server process takes it."""
    return f"{HERE}:{name}"


def question(number: int) -> str:
    return f"Question {number}: what is {number} times {number + 1}?"


def right_answer(number: int) -> str:
    return str(number * (number + 1))


def draw(number: int, sample: int) -> str:
    """Return what the n-th sample of a question answers."""
    chance = random.Random(f"{number}/{sample}")
    accuracy = ACCURACIES[number * len(ACCURACIES) // QUESTIONS]
    return right_answer(number) if chance.random() < accuracy else chance.choice(_WRONG)


def vote(request: ChatRequest) -> Any:
    """Answer a question; the n-th time it is asked since the last reset, with its n-th sample."""
    if (request.number, request.sample) == (1, 0):
        _drawn.clear()
    found = re.search(r"Question (\d+):", request.prompt)
    assert found, request.prompt
    number = int(found[1])
    _drawn[number] += 1
    return {"reasoning": "I multiply the two numbers.", "answer": draw(number, _drawn[number] - 1)}


CALLS = (
    ("#E1", "Who wrote the first report?"),
    ("#E2", "When was the bridge opened?"),
    ("#E3", "Which river does it cross?"),
    ("#E4", "How long is it?"),
    ("#E5", "Compare #E1 and #E2."),
    ("#E6", "Sum up #E3, #E4 and #E5."),
)
"""Six calls of evidence: four that need nothing, one that needs two of them, one that needs that one."""


def evidence(request: ChatRequest) -> Any:
    """Plan six calls, answer each, and solve."""
    wanted = (request.form or {}).get("properties", {})
    if "calls" in wanted:
        return {"calls": [{"id": name, "plan": text, "tool": "LLM", "input": text} for name, text in CALLS]}
    if "result" in wanted:
        return {"result": f"found for: {request.prompt[-60:]}"}
    return {"answer": "the bridge"}


noisy_player = Player(width=8, noise=0.2)
_asked: Counter[str] = Counter()


def noisy(request: ChatRequest) -> Any:
    """Play a number puzzle, but miss the good moves, or misvalue a candidate, one time in five.

    The n-th time a prompt comes since the last reset it is another draw, as it is with a model.
    """
    if (request.number, request.sample) == (1, 0):
        _asked.clear()
    _asked[request.prompt] += 1
    return noisy_player(replace(request, sample=_asked[request.prompt] - 1))


sure = Player(width=8)
