"""Runs that a mind once answered by hand, played again: what it wrote is read, and the run ends with what it meant.

A line of `minds.jsonl` is a run: its strategy, problem and options, the replies by stage in the order they came, the
verifier's verdicts, and what has to stand in the answer (nothing: the mind found none). One reply was empty, since all
of it came as reasoning; one came as calls of tools in the form of OpenAI.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from reasonry.core.effects import Ask, CallTool, Verify
from reasonry.core.events import Answered, Event, Failed, ToolReturned, Verified
from reasonry.core.machine import Pending, advance, begin, open_effects
from reasonry.puzzles.reading import read_puzzle
from reasonry.strategies import STRATEGIES
from reasonry.tools.verifiers import judge

RUNS = [
    msgspec.json.decode(line)
    for line in Path(__file__).with_name("minds.jsonl").read_text("utf-8").splitlines()
]
RETURNED = {
    "search_documents": {
        "passages": [{"source": "policy.md", "text": "The rules.", "score": 0.1, "line": 1}]
    },
    "py_executor": {"status": "ok", "result": "28", "output": "28"},
}
ASKED_AGAIN = re.compile(r"It cannot be used: (.*)\.\n")

RIGHTLY_ASKED_AGAIN = (
    "236800 + 37888 is 274688, not",
    "the reply was empty",
    "is not the answer that was checked",
)
"""A false equation, no reply at all, and a check that says yes and gives another number."""


class Played(NamedTuple):
    answer: str | None
    again: list[str]
    thoughts: list[str]


class Mind:
    """Gives the recorded replies, each stage's in their order."""

    def __init__(self, run: dict[str, Any]) -> None:
        self.puzzle = read_puzzle(run["problem"])
        self.verdicts = iter(run.get("verdicts", ()))
        self.replies: dict[str, list[str]] = defaultdict(list)
        for reply in run["replies"]:
            self.replies[reply["stage"]].append(reply["text"])

    def settle(self, waiting: Pending) -> Event:
        match waiting.effect:
            case Ask():
                left = self.replies[waiting.stage]
                return Answered(left.pop(0)) if left else Failed("output_invalid", "no reply is left")
            case CallTool(tool=tool):
                return ToolReturned(RETURNED.get(tool, {"verdict": "unknown", "detail": "it has no form"}))
            case Verify() as claim if self.puzzle is not None:
                return judge(self.puzzle, claim)
            case _:
                return Verified(next(self.verdicts, "unknown"))


def play(run: dict[str, Any]) -> Played:
    strategy, mind = STRATEGIES[run["strategy"]], Mind(run)
    options = msgspec.convert(run["options"], strategy.options, strict=False)
    step = begin(strategy, run["problem"], options, strategies=STRATEGIES)
    again: list[str] = []
    thoughts = [thought.text for thought in step.thoughts]
    while waiting := open_effects(step.snapshot):
        first = waiting[0]
        if isinstance(first.effect, Ask):
            again += ASKED_AGAIN.findall(first.effect.prompt)[-1:]
        step = advance(strategy, step.snapshot, first.id, mind.settle(first), strategies=STRATEGIES)
        thoughts += [thought.text for thought in step.thoughts]
    return Played(strategy.conclude(step.snapshot.state).answer, again, thoughts)


@pytest.mark.parametrize("run", RUNS, ids=[f"{number}-{run['strategy']}" for number, run in enumerate(RUNS)])
def test_a_run_ends_with_the_answer_its_mind_gave(run: dict[str, Any]) -> None:
    played = play(run)
    missing = [part for part in run["answer"] if part not in (played.answer or "")]
    assert not missing, played.answer
    again = [why for why in played.again if not any(rightly in why for rightly in RIGHTLY_ASKED_AGAIN)]
    # The search that found nothing, and code with its explanation where a verifier takes code alone.
    assert len(again) <= (1 if not run["answer"] or "verdicts" in run else 0), again


def test_an_essay_comes_back_word_for_word() -> None:
    (run,) = (run for run in RUNS if run["answer"] == ["Why Bridges Fail"])
    (reply,) = run["replies"]
    played = play(run)
    assert played.answer == reply["text"].strip()
    assert len((played.answer or "").split()) == 1_886
