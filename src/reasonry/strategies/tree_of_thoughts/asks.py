"""The questions of a search: the prompts, the forms of the replies, and the functions that read the replies.

The prompts generalize the paper's prompts for the game of 24 (arXiv:2305.10601, section 4.1 and its code). There, the
model proposes steps such as `2 + 8 = 10 (left: 8 10 14)`, and tries next steps before it states a likelihood.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ...blocks.answers import MARKED, Answer, answer_text
from ...core.effects import Ask
from ...core.readings import Unreadable
from ...core.type_schema import inlined_schema
from ...reading import verdicts
from ...reading.candidates import ScoredThought, distinct, parse_scored_thoughts
from ...reading.json_in_text import json_values
from .state import ROOT, Node, State, children

PROPOSER = "You explore a problem step by step."
JUDGE = "You judge steps towards a solution."
WRITER = "You write down the answer that the steps of a solution arrive at."

GENERATION_PROMPT = """\
The candidates differ in substance, not in wording, and repeat no step taken. Each is one short step with its \
result, and ends with what is left after it: "2 + 8 = 10 (left: 8 10 14)". A step that completes the solution states \
the result."""
"""A general form of the paper's propose prompt, in which `(left: …)` shows the remaining work."""

EVALUATION_PROMPT = """\
First check each candidate in words: is it right, and can a solution be reached from what is left? Then score it: 1 \
means solved, 0 wrong or hopeless."""
"""A general form of the paper's value prompt, which looks ahead in words, then says sure, likely or impossible."""

FORMULATION_PROMPT = """\
First go over the steps: is each right, and do they arrive at what the problem asks for? Close small gaps."""
"""The prompt for the paper's last step, G(p, s, 1), which writes the answer from the best path."""

MARKED_OR_NULL = f"{MARKED} If the steps do not lead to a correct answer, write <answer>null</answer>."

SCORING_PROMPT = """\
Score each after trying what could follow it: 1 means solved, 0 wrong or hopeless."""
"""The value prompt for a question that asks for proposals together with their scores."""

_SCORED_PROPOSALS = '{"thoughts": [{"thought": "…", "score": 0 to 1}, …]}'
_SCORES = 'Reply with one JSON object:\n{"checks": {"1": "…", …}, "scores": {"1": 0 to 1, …}}'


WANTED = '{"thoughts": ["…", …]}'
SCORED_WANTED = '{"thoughts": [{"thought": …, "score": 0.7}, …]}'
NO_THOUGHTS = "no thoughts could be read from it; send"
NOTHING_YET = "it proposes no step; propose a first one"
NO_SCORE = "give each candidate a score from 0 to 1:"
TRIED = "These steps were tried here and came to nothing; propose others:"
VALUED_0 = "It was valued 0: no solution can be reached from it."


class ScoredProposals(Struct, frozen=True):
    """The reply to generation with scores from 0 to 1."""

    thoughts: list[ScoredProposal]


class ScoredProposal(Struct, frozen=True):
    """A thought and its score."""

    thought: str
    score: float


class Scores(Struct, frozen=True, kw_only=True):
    """The reply to evaluation: the findings, then scores from 0 to 1 by position, id or text."""

    checks: dict[str, str] = {}
    scores: dict[str, float]


class Formulated(Struct, frozen=True, kw_only=True):
    """The reply to formulation. None means that the path does not solve the problem."""

    reason: str = ""
    answer: Answer | None

    @property
    def text(self) -> str | None:
        """The answer as text, or None if there is no answer."""
        text = answer_text(self.answer)
        return None if text.casefold() in ("", "null") else text


# -- G(p, s, k)


def ask_for_thoughts(s: State, parent: str) -> Ask:
    """Build the question for the next steps of a node."""
    options, path, tried = s.options, s.texts(parent), children(s.nodes, parent)
    count, left = options.branching_factor, options.max_depth - s.nodes[parent].depth
    wish = f"Propose {count} different candidates for the" if count > 1 else "Propose the"
    wish = f"{wish} {'next' if path else 'first'} step; {_steps(left)} left, with this one."
    prompts = [options.generation_prompt or GENERATION_PROMPT]
    prompts += [options.evaluation_prompt or SCORING_PROMPT] if options.proposes_scores else []
    none_left = "" if options.follows_seed else ", its list empty if no step is left"
    form = _SCORED_PROPOSALS if options.proposes_scores else WANTED
    facts = {"kind": "propose", "problem": s.problem, "path": [*path], "count": count, "steps_left": left}
    shown = _so_far(s.problem, path)
    if tried:
        facts["refuted"] = [child.content for child in tried]
        shown += f"\n\n{TRIED}"
        shown += "".join(f"\n- {_indent(child.content)}\n  {_indent(_fate(child))}" for child in tried)
    return Ask(
        shown,
        PROPOSER,
        task=f"{wish} {' '.join(prompts)} Reply with one JSON object{none_left}:\n{form}",
        facts=facts,
        by="drafter",
        retries=options.max_parse_retries,
        about=parent,
        form=inlined_schema(ScoredProposals) if options.proposes_scores else None,
    )


def _fate(child: Node) -> str:
    """Return why a step failed, as text for the question that asks for other steps."""
    if child.refuted:
        return f"Refuted: {child.why}"
    return VALUED_0 if child.score == 0 and not child.children else "Nothing that was tried after it led on."


def read_thoughts(
    state: State, ask: Ask, texts: Sequence[str]
) -> tuple[Sequence[str | ScoredThought], str] | Unreadable:
    """Read at most `branching_factor` proposals, without duplicates.

    An empty list means that no step is left. If there is no first step yet, the model is asked again. Under the preset
    `seed`, `expand` treats an empty list as an error. At the last try, thoughts without scores are accepted.
    """
    if _proposes_nothing(texts[-1]):
        is_over = ask.facts["path"] or "refuted" in ask.facts or state.options.follows_seed
        return ([], "json") if is_over else Unreadable(NOTHING_YET, in_part=([], "json"))
    proposed, mode = parse_scored_thoughts(texts[-1])
    found, has_scores = distinct(proposed)[: state.options.branching_factor], state.options.proposes_scores
    if not found:
        return Unreadable(f"{NO_THOUGHTS} {SCORED_WANTED if has_scores else WANTED}")
    if not has_scores:
        return [each.thought for each in found], mode
    is_whole = all(each.score is not None for each in found)
    return (found, mode) if is_whole else Unreadable(f"{NO_SCORE} {SCORED_WANTED}", in_part=(found, mode))


def _proposes_nothing(text: str) -> bool:
    """Whether the last JSON of a reply is an empty list, or an object whose only list is empty."""
    values = [value for value, rung in json_values(text) if rung != "repaired"]
    last = values[-1] if values else None
    lists = [item for item in last.values() if isinstance(item, list)] if isinstance(last, dict) else [last]
    return lists == [[]]


# -- V(p, S)


def ask_for_scores(s: State, group: Sequence[Node], sample: int) -> Ask:
    """Build the question that asks for scores of a group of thoughts, which are children of one node."""
    parent, thoughts = group[0].parent or ROOT, [child.content for child in group]
    path, left = s.texts(parent), s.options.max_depth - group[0].depth
    facts = {"kind": "value", "problem": s.problem, "path": [*path], "thoughts": thoughts, "steps_left": left}
    return Ask(
        f"{_so_far(s.problem, path)}\n\nCandidates for the next step:\n{_number(thoughts)}",
        JUDGE,
        task=f"{s.options.evaluation_prompt or EVALUATION_PROMPT} {_steps(left)} left after it. {_SCORES}",
        facts=facts,
        by="judge",
        sample=sample,
        retries=s.options.max_parse_retries,
        about=parent,
    )


def read_scores(state: State, ask: Ask, texts: Sequence[str]) -> tuple[list[float | None], str] | Unreadable:
    """Read a score for every candidate. A later reply may add scores that an earlier reply lacks."""
    names = [(f"t{number}", text) for number, text in enumerate(ask.facts["thoughts"], start=1)]
    found = verdicts.read_scores(texts, names, shown=ask.prompt)
    if isinstance(found, Unreadable):
        return found
    scores: list[float | None] = [found.scores.get(name) for name, _ in names]
    return Unreadable(found.missing, in_part=(scores, found.mode)) if found.missing else (scores, found.mode)


# -- the answer


def ask_for_answer(s: State, last: str) -> Ask:
    """Build the question that asks for the answer of the path to the node `last`."""
    path = s.texts(last)
    return Ask(
        _so_far(s.problem, path),
        WRITER,
        MARKED_OR_NULL,
        s.options.formulation_prompt or FORMULATION_PROMPT,
        wants_value=True,
        facts={"kind": "answer", "problem": s.problem, "path": list(path)},
        retries=s.options.max_parse_retries,
        about=last,
    )


def _so_far(problem: str, path: Sequence[str]) -> str:
    return f"Problem:\n{problem}" + (f"\n\nSteps so far:\n{_number(path)}" if path else "")


def _number(texts: Sequence[str]) -> str:
    return "\n".join(f"{number}. {_indent(text)}" for number, text in enumerate(texts, start=1))


def _indent(text: str) -> str:
    return text.replace("\n", "\n   ")


def _steps(left: int) -> str:
    return "No step is" if left <= 0 else "1 step is" if left == 1 else f"{left} steps are"
