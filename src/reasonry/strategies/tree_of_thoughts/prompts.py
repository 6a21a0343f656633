"""What tree of thoughts asks. The parts that never change stand in `system`, the problem first in the prompt."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ...core.effects import Ask
from .options import Options

GENERATION_PROMPT = """\
You explore a problem step by step, as a tree: at each point several different steps are tried. You are shown the \
problem and the steps taken so far, and propose candidates for the step that comes next.

- A candidate is one step that moves the solution on, with its result worked out, and short.
- Candidates differ in substance, not in wording. None repeats a step already taken.
- Where a step completes the solution, state the result in it."""

EVALUATION_PROMPT = """\
You judge partial solutions of a problem. You are shown the problem, the steps taken so far and several candidates \
for the next step. For each candidate, judge how likely a full and correct solution is, once that step is taken.

- 1 means it solves the problem; 0 means no solution can be reached from it, or the step is wrong.
- Check each step's facts and arithmetic before you judge it. Use the range between: equal scores do not help.
- Judge each candidate on its own merits, whatever its place in the list."""

FORMULATION_PROMPT = """\
You are shown a problem and the steps of the best solution that was found. Write down the answer the steps arrive at.

- Give the answer alone, complete and in the form the problem asks for, without retelling the steps.
- Where small gaps are left, close them. If the steps do not lead to a correct answer, the answer is null."""

_PROPOSALS = 'Reply with one JSON object: {"thoughts": ["first candidate", "second candidate"]}'
_SCORES = (
    "Reply with one JSON object that scores every candidate by its number, from 0 to 1: "
    '{"scores": {"1": 0.7, "2": 0.2}}'
)
_ANSWER = 'Reply with one JSON object: {"answer": "the answer"}, or {"answer": null} if there is none.'


class Proposals(Struct, frozen=True):
    """What is replied to generation."""

    thoughts: list[str]


class Scores(Struct, frozen=True):
    """What is replied to evaluation: scores from 0 to 1 by position, id or text."""

    scores: dict[str, float]


class Formulated(Struct, frozen=True):
    """What is replied to formulation; None: the path does not solve the problem."""

    answer: str | None


def generation(options: Options, problem: str, path: Sequence[str], depth: int) -> Ask:
    """Ask for the steps that may follow the node at `depth` that `path` leads to."""
    count, left = options.branching_factor, options.max_depth - depth
    kind = "next" if path else "first"
    wish = f"Propose {count} different {kind} steps." if count > 1 else f"Propose the {kind} step."
    return Ask(
        prompt=f"{_so_far(problem, path)}\n\n{wish} {_steps(left)} left, this one included.",
        system=f"{options.generation_prompt or GENERATION_PROMPT}\n\n{_PROPOSALS}",
        facts={"kind": "propose", "problem": problem, "path": list(path), "count": count, "steps_left": left},
        by="drafter",
        retries=options.max_parse_retries,
    )


def evaluation(
    options: Options, problem: str, path: Sequence[str], depth: int, thoughts: Sequence[str], sample: int
) -> Ask:
    """Ask how promising `thoughts` are as the step after `path`, which leads to a node at `depth`."""
    left = options.max_depth - depth - 1
    listed = "\n".join(f"{number}. {_indented(text)}" for number, text in enumerate(thoughts, start=1))
    return Ask(
        prompt=f"{_so_far(problem, path)}\n\nCandidates for the next step:\n{listed}\n\n"
        f"Score every candidate, 1 to {len(thoughts)}. {_steps(left)} left after it.",
        system=f"{options.evaluation_prompt or EVALUATION_PROMPT}\n\n{_SCORES}",
        facts={
            "kind": "value",
            "problem": problem,
            "path": list(path),
            "thoughts": list(thoughts),
            "steps_left": left,
        },
        by="judge",
        sample=sample,
        retries=options.max_parse_retries,
    )


def formulation(options: Options, problem: str, path: Sequence[str]) -> Ask:
    """Ask for the answer that `path` arrives at."""
    return Ask(
        prompt=f"{_so_far(problem, path)}\n\nWrite the answer.",
        system=f"{options.formulation_prompt or FORMULATION_PROMPT}\n\n{_ANSWER}",
        facts={"kind": "answer", "problem": problem, "path": list(path)},
        retries=options.max_parse_retries,
    )


def _so_far(problem: str, path: Sequence[str]) -> str:
    steps = "\n".join(f"{number}. {_indented(text)}" for number, text in enumerate(path, start=1))
    return f"Problem:\n{problem}\n\n" + (
        f"Steps so far:\n{steps}" if steps else "No step has been taken yet."
    )


def _indented(text: str) -> str:
    return text.replace("\n", "\n   ")


def _steps(left: int) -> str:
    return "No step is" if left <= 0 else "1 step is" if left == 1 else f"{left} steps are"
