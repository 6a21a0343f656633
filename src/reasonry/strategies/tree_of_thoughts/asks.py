"""What a search asks: the prompts, the forms of the replies, and how they are read.

The prompts are those of the paper in general words. Its game of 24 proposes `2 + 8 = 10 (left: 8 10 14)`, and values a
candidate by trying what can follow before it says how likely it is (arXiv:2305.10601, section 4.1 and its code).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ...blocks.answers import OPEN_TASK, Answer
from ...core.effects import Ask
from ...core.strategy import inlined_schema
from ...reading.candidates import (
    ScoredThought,
    distinct,
    normal,
    parse_scored_thoughts,
    parse_scores,
    parse_thoughts,
)
from ...reading.fit import Unreadable
from ...reading.json_in_text import json_values
from .state import Node, Options, State, children

GENERATION_PROMPT = """\
You explore a problem step by step, as a tree: at each point several different steps are tried. You are shown the \
problem and the steps taken so far, and propose candidates for the step that comes next.

- A candidate is one short step that moves the solution on, with its result worked out. It ends with what is left \
after it, in parentheses: "2 + 8 = 10 (left: 8 10 14)", "Ann sits beside Ben (left: Cleo, Dan)".
- Candidates differ in substance, not in wording. None repeats a step already taken.
- Where a step completes the solution, state the result in it."""
"""The paper's propose prompt, whose `(left: …)` shows what is still to be done."""

EVALUATION_PROMPT = """\
You judge partial solutions of a problem. You are shown the problem, the steps taken so far and several candidates \
for the next step. For each candidate, judge how likely a full and correct solution is, once that step is taken.

- First check each candidate in words: whether its facts and its arithmetic are right, and, by trying what could \
follow, whether a solution can be reached from what is left.
- Then score it. 1 means it solves the problem; 0 means that the step is wrong or no solution can be reached from it; \
between them, the likelier the higher.
- Judge each candidate on its own merits, whatever its place in the list."""
"""The paper's value prompt, which looks ahead in words before it says sure, likely or impossible."""

FORMULATION_PROMPT = """\
You are shown a problem and the steps of the best solution that was found. Write down the answer the steps arrive at.

- First go over the steps: whether each is right, and whether they arrive at what the problem asks for. Where small \
gaps are left, close them.
- Then give the answer alone, complete and in the form the problem asks for, without retelling the steps. If the \
steps do not lead to a correct answer, the answer is null."""
"""The paper's last step, G(p, s, 1): the answer from the best path."""

SCORING_PROMPT = """\
- Score each candidate, after trying what could follow it. 1 means it solves the problem; 0 means that the step is \
wrong or no solution can be reached from what is left; between them, the likelier the higher."""
"""What the paper's value prompt asks, for those who value while they propose."""

_PROPOSALS = 'Reply with one JSON object: {"thoughts": ["first candidate", "second candidate"]}'
_SCORED_PROPOSALS = (
    'Reply with one JSON object: {"thoughts": [{"thought": "first candidate", "score": 0.7}, '
    '{"thought": "second candidate", "score": 0.2}]}'
)
_SCORES = (
    "Reply with one JSON object that first checks and then scores every candidate by its number, from 0 to 1: "
    '{"checks": {"1": "what was found", "2": "what was found"}, "scores": {"1": 0.7, "2": 0.2}}'
)
_ANSWER = (
    'Reply with one JSON object: {"reason": "how the steps arrive at the answer, or why they do not", '
    '"answer": "the answer"}; without an answer, "answer" is null. ' + OPEN_TASK
)


WANTED = '{"thoughts": ["first candidate", "second candidate"]}'
SCORED_WANTED = '{"thoughts": [{"thought": …, "score": 0.7}, …]}'
NONE_LEFT = 'If no step is left: {"thoughts": []}'
NO_THOUGHTS = "no thoughts could be read from it; send"
NOTHING_YET = "it proposes no step; propose a first one"
NO_SCORE = "give each candidate a score from 0 to 1:"
TRIED = "These steps were tried here and came to nothing; propose others:"
VALUED_0 = "It was valued 0: no solution can be reached from it."


class ScoredProposals(Struct, frozen=True):
    """What is replied to generation where thoughts are proposed with their scores, from 0 to 1."""

    thoughts: list[ScoredProposal]


class ScoredProposal(Struct, frozen=True):
    """A thought and its score."""

    thought: str
    score: float


class Scores(Struct, frozen=True, kw_only=True):
    """What is replied to evaluation: what was found, then scores from 0 to 1, by position, id or text."""

    checks: dict[str, str] = {}
    scores: dict[str, float]


class Formulated(Struct, frozen=True, kw_only=True):
    """What is replied to formulation; None: the path does not solve the problem."""

    reason: str = ""
    answer: Answer | None

    @property
    def text(self) -> str | None:
        """The answer as text; None if there is none."""
        return None if self.answer is None else str(self.answer).strip() or None


_SCORED_FORM = inlined_schema(ScoredProposals)


# -- G(p, s, k)


def ask_for_thoughts(s: State, parent: str) -> Ask:
    """Ask for the steps that may follow a node."""
    path, count = s.texts(parent), s.options.branching_factor
    left = s.options.max_depth - s.nodes[parent].depth
    kind = "next" if path else "first"
    wish = f"Propose {count} different {kind} steps." if count > 1 else f"Propose the {kind} step."
    tried = children(s.nodes, parent)
    listed = "".join(f"\n- {_indent(child.content)}\n  {_indent(_fate(child))}" for child in tried)
    return Ask(
        prompt=f"{_so_far(s.problem, path)}\n\n"
        + (f"{TRIED}{listed}\n\n" if tried else "")
        + f"{wish} {_steps(left)} left, this one included.",
        system=_generation(s.options),
        facts={
            "kind": "propose",
            "problem": s.problem,
            "path": list(path),
            "count": count,
            "steps_left": left,
        }
        | ({"refuted": [child.content for child in tried]} if tried else {}),
        by="drafter",
        retries=s.options.max_parse_retries,
        about=parent,
        form=_SCORED_FORM if s.options.proposes_scores else None,
    )


def _fate(child: Node) -> str:
    """Return what became of a step whose parent is asked for others."""
    if child.refuted:
        return f"Refuted: {child.why}"
    return VALUED_0 if child.score == 0 and not child.children else "Nothing that was tried after it led on."


def _generation(options: Options) -> str:
    prompt = options.generation_prompt or GENERATION_PROMPT
    none_left = "" if options.follows_seed else f" {NONE_LEFT}"
    if options.proposes_scores:
        return f"{prompt}\n{options.evaluation_prompt or SCORING_PROMPT}\n\n{_SCORED_PROPOSALS}{none_left}"
    return f"{prompt}\n\n{_PROPOSALS}{none_left}"


def read_thoughts(
    state: State, ask: Ask, texts: Sequence[str]
) -> tuple[list[str | ScoredThought], str] | Unreadable:
    """Read what was proposed; more than was asked for is left out, what is said twice counts once.

    A list that is empty says that no step is left; before the first step it is asked about once more. At the last try
    thoughts are taken without their scores.
    """
    is_last = len(texts) > ask.retries
    if _proposes_nothing(state, texts[-1]):
        is_first = not ask.facts["path"] and "refuted" not in ask.facts
        return Unreadable(NOTHING_YET) if is_first and not is_last else ([], "json")
    if state.options.proposes_scores:
        scored, mode = _scored_thoughts(state, texts[-1])
        if not scored:
            return Unreadable(f"{NO_THOUGHTS} {SCORED_WANTED}")
        is_whole = is_last or all(each.score is not None for each in scored)
        return ([*scored], mode) if is_whole else Unreadable(f"{NO_SCORE} {SCORED_WANTED}")
    thoughts, mode = parse_thoughts(texts[-1])
    if not thoughts:
        return Unreadable(f"{NO_THOUGHTS} {WANTED}")
    return [*distinct(thoughts)[: state.options.branching_factor]], mode


def _proposes_nothing(state: State, text: str) -> bool:
    """Whether the last JSON of a reply is an empty list, or an object whose only list is empty."""
    if state.options.follows_seed:
        return False
    values = [value for value, rung in json_values(text) if rung != "repaired"]
    last = values[-1] if values else None
    lists = [item for item in last.values() if isinstance(item, list)] if isinstance(last, dict) else [last]
    return lists == [[]]


def _scored_thoughts(state: State, text: str) -> tuple[list[ScoredThought], str]:
    proposed, mode = parse_scored_thoughts(text)
    by_text = {normal(each.thought): each.score for each in reversed(proposed)}
    thoughts = distinct(each.thought for each in proposed)[: state.options.branching_factor]
    return [ScoredThought(thought, by_text[normal(thought)]) for thought in thoughts], mode


# -- V(p, S)


def ask_for_scores(s: State, parent: str, group: Sequence[Node], sample: int) -> Ask:
    """Ask how promising the children of a node are."""
    path, thoughts = s.texts(parent), [child.content for child in group]
    left = s.options.max_depth - s.nodes[parent].depth - 1
    listed = "\n".join(f"{number}. {_indent(text)}" for number, text in enumerate(thoughts, start=1))
    return Ask(
        prompt=f"{_so_far(s.problem, path)}\n\nCandidates for the next step:\n{listed}\n\n"
        f"Check and score every candidate, 1 to {len(thoughts)}. {_steps(left)} left after it.",
        system=f"{s.options.evaluation_prompt or EVALUATION_PROMPT}\n\n{_SCORES}",
        facts={
            "kind": "value",
            "problem": s.problem,
            "path": list(path),
            "thoughts": thoughts,
            "steps_left": left,
        },
        by="judge",
        sample=sample,
        retries=s.options.max_parse_retries,
        about=parent,
    )


def read_scores(state: State, ask: Ask, texts: Sequence[str]) -> tuple[list[float | None], str] | Unreadable:
    """Read a score for every candidate; a later reply may fill in what an earlier one left out.

    At the last try, those that there are will do.
    """
    thoughts: list[str] = ask.facts["thoughts"]
    *before, (found, mode) = (parse_scores(text, thoughts) for text in texts)
    scores: dict[str, float] = {}
    for earlier, how in before:
        # Such a reply may have been cut off in the middle of a number; what was put right could be half of one.
        scores |= earlier if how != "repaired" else {}
    scores |= found
    missing = [str(number) for number in range(1, len(thoughts) + 1) if f"t{number}" not in scores]
    if missing and not (scores and len(texts) > ask.retries):
        return Unreadable(f"there is no score from 0 to 1 in it for candidate {', '.join(missing)}")
    return [scores.get(f"t{number}") for number in range(1, len(thoughts) + 1)], mode


# -- the answer


def ask_for_answer(s: State, last: str) -> Ask:
    """Ask for the answer that the path to a node arrives at."""
    path = s.texts(last)
    return Ask(
        prompt=f"{_so_far(s.problem, path)}\n\nWrite the answer.",
        system=f"{s.options.formulation_prompt or FORMULATION_PROMPT}\n\n{_ANSWER}",
        facts={"kind": "answer", "problem": s.problem, "path": list(path)},
        retries=s.options.max_parse_retries,
        about=last,
    )


def _so_far(problem: str, path: Sequence[str]) -> str:
    steps = "\n".join(f"{number}. {_indent(text)}" for number, text in enumerate(path, start=1))
    return f"Problem:\n{problem}\n\n" + (
        f"Steps so far:\n{steps}" if steps else "No step has been taken yet."
    )


def _indent(text: str) -> str:
    return text.replace("\n", "\n   ")


def _steps(left: int) -> str:
    return "No step is" if left <= 0 else "1 step is" if left == 1 else f"{left} steps are"
