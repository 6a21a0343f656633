"""Tree of thoughts: several candidates at every step, each valued, the promising ones followed.

Yao et al. 2023, "Tree of Thoughts: Deliberate Problem Solving with Large Language Models", arXiv:2305.10601; the stages
are those of seed 000, the options, statuses and reasons to end those of seed 004.

    The paper's algorithm                           the stage that does it
    S0 = {x}                                        problem_reception
    S't = {[s, z] | s in St-1, z in G(p, s, k)}     approach_exploration (first step), branch_development (later ones)
    Vt = V(p, S't)                                  branch_evaluation
    St = arg max over S in S't of sum of Vt(s)      branch_selection
    t = t + 1, or return                            continuation_decision
    G(p, arg max of VT(s), 1)                       solution_formulation

In its symbols k is `branching_factor`, b is `beam_width` (with `expand_width` the same), T is `max_depth`; the set-up
for the game of 24 is `bfs` with b = 5.

Differs from the paper. One question values all children of a node together, relative to one another, rather than each
alone. Nodes may be expanded best first, over all levels, as seed 004 does. A search also ends on a score, on
convergence, on a count of nodes or on time; after each round these are looked at in the order max_nodes, max_duration,
threshold, converged, max_depth. A verifier, where there is one, sees every thought before it is valued: what it refutes
is pruned, what it proves ends the search at any depth. The answer is formulated from the best path, and may be that
there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...core.answering import Answer
from ...core.effects import Ask, Verify
from ...core.events import Failed, Reply, Verified
from ...core.fit import Unreadable
from ...core.proposal import distinct, parse_thoughts
from ...core.score import parse_scores
from ...core.strategy import Body, Field, Move, Stage, Strategy, Thought, fail, go, request
from .frontier import Open, has_converged, push, take, trim
from .result import outcome, progress
from .state import ROOT, Options, State, note_replies
from .tree import Node, grow, path_to, rank

__all__ = ["EVALUATION_PROMPT", "GENERATION_PROMPT", "TREE_OF_THOUGHTS", "Options", "State"]

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

    answer: Answer | None

    @property
    def text(self) -> str | None:
        """The answer as text."""
        return None if self.answer is None else str(self.answer).strip()


UNKNOWN = 0.5
"""The score of a thought whose score could not be read."""

NO_ANSWER = "There is no answer."


def begin(problem: str, options: Options) -> State:
    """S_0 = {x}."""
    return State(options=options, nodes={ROOT: Node(ROOT, problem)})


# -- G(p, s, k)


def expand(to: str) -> Callable[[State], Body]:
    """S'_t = {[s, z] | s in S_{t-1}, z in G(p, s, k)}; the first step is proposed before its branches are opened."""

    def stage(s: State) -> Body:
        if s.fresh:
            return go(s, to)
        replies = yield request(s, *(_generation(s, parent) for parent in s.expanding), give_failures=True)
        s = note_replies(s, "generation", replies)
        if lost := next((reply for reply in replies if isinstance(reply, Failed)), None):
            notes = ("thoughts_parse_failed",) if lost.code == "output_invalid" else ()
            return fail(replace(s, errors=(*s.errors, *notes)), "error", lost.message, lost.code)
        fresh: list[Node] = []
        thoughts: list[Thought] = []
        for parent, reply in zip(s.expanding, replies, strict=True):
            line = s.branch(parent)
            for place, text in enumerate(reply.value, start=1):
                number = len(s.nodes) + len(fresh) + 1
                fresh.append(Node(f"node_{number}", text, parent, s.nodes[parent].depth + 1))
                branch = f"{line}.{place}" if line else f"{place}"
                thoughts.append(Thought(text, branch=branch, leaves=line, data={"node_id": fresh[-1].id}))
        return go(replace(s, fresh=tuple(fresh)), to, *thoughts)

    return stage


def _generation(s: State, parent: str) -> Ask:
    """Ask for the steps that may follow a node."""
    path, count = s.texts(parent), s.options.branching_factor
    left = s.options.max_depth - s.nodes[parent].depth
    kind = "next" if path else "first"
    wish = f"Propose {count} different {kind} steps." if count > 1 else f"Propose the {kind} step."
    return Ask(
        prompt=f"{_so_far(s.problem, path)}\n\n{wish} {_steps(left)} left, this one included.",
        system=f"{s.options.generation_prompt or GENERATION_PROMPT}\n\n{_PROPOSALS}",
        facts={
            "kind": "propose",
            "problem": s.problem,
            "path": list(path),
            "count": count,
            "steps_left": left,
        },
        by="drafter",
        retries=s.options.max_parse_retries,
    )


def read_thoughts(state: State, _: Ask, texts: Sequence[str]) -> tuple[list[str], str] | Unreadable:
    """Read what was proposed; more than was asked for is left out, what is said twice counts once."""
    thoughts, mode = parse_thoughts(texts[-1])
    if not thoughts:
        return Unreadable("no thoughts could be read from it")
    return distinct(thoughts)[: state.options.branching_factor], mode


# -- V(p, S)


def evaluate(s: State) -> Body:
    """V_t = V(p, S'_t): what is proved wrong is pruned, what is proved right ends the search, the rest is valued."""
    if s.options.verify:
        claims = [Verify(s.problem, (*s.texts(child.parent or ROOT), child.content)) for child in s.fresh]
        verdicts = yield request(s, *claims, give_failures=True)
        s = _prune(note_replies(s, "verification", verdicts), verdicts)
        if s.winner is not None:
            return _end_of_round(s, s.fresh)
        if lost := next((verdict for verdict in verdicts if isinstance(verdict, Failed)), None):
            return fail(s, "error", lost.message, lost.code)
    rounds = list(_evaluations(s))
    if not rounds:
        return _end_of_round(s, s.fresh)
    replies = yield request(s, *(_evaluation(s, *asked) for asked in rounds), give_failures=True)
    s = note_replies(s, "evaluation", replies)
    scores: dict[str, list[float]] = {}
    for (_, group, _), reply in zip(rounds, replies, strict=True):
        for child, score in _scores_of(group, reply):
            scores.setdefault(child.id, []).append(score)
    failed = [reply for reply in replies if isinstance(reply, Failed)]
    fatal = next((lost for lost in failed if lost.code != "output_invalid"), None)
    fresh = [_value(child, scores.get(child.id), guess=fatal is None) for child in s.fresh]
    if fatal is not None:
        return fail(_plant(s, fresh), "error", fatal.message, fatal.code)
    return _end_of_round(replace(s, errors=(*s.errors, *(["scores_parse_failed"] * len(failed)))), fresh)


def _prune(s: State, verdicts: Sequence[Verified | Failed]) -> State:
    """Mark what is proved wrong; end the search with the first that is proved right."""
    judged = [
        (child, Verified("unknown") if isinstance(verdict, Failed) else verdict)
        for child, verdict in zip(s.fresh, verdicts, strict=True)
    ]
    fresh = tuple(
        replace(child, refuted=True, score=0.0) if verdict.verdict == "wrong" else child
        for child, verdict in judged
    )
    s = replace(s, fresh=fresh)
    for child, verdict in judged:
        if verdict.verdict == "right":
            solved = tuple(replace(each, score=1.0) if each.id == child.id else each for each in fresh)
            return replace(s, fresh=solved, reason="verified", winner=child.id, answer=verdict.answer)
    return s


def _evaluations(s: State) -> Iterator[tuple[str, list[Node], int]]:
    """Yield what is asked in a round: a node, those of its children that are to be valued, the sample."""
    for parent in s.expanding:
        group = [child for child in s.fresh if child.parent == parent and not child.refuted]
        if group:
            yield from ((parent, group, sample) for sample in range(s.options.samples_per_evaluation))


def _evaluation(s: State, parent: str, group: Sequence[Node], sample: int) -> Ask:
    """Ask how promising the children of a node are."""
    path, thoughts = s.texts(parent), [child.content for child in group]
    left = s.options.max_depth - s.nodes[parent].depth - 1
    listed = "\n".join(f"{number}. {_indent(text)}" for number, text in enumerate(thoughts, start=1))
    return Ask(
        prompt=f"{_so_far(s.problem, path)}\n\nCandidates for the next step:\n{listed}\n\n"
        f"Score every candidate, 1 to {len(thoughts)}. {_steps(left)} left after it.",
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
    )


def read_scores(state: State, ask: Ask, texts: Sequence[str]) -> tuple[list[float], str] | Unreadable:
    """Read a score for every candidate; a later reply may fill in what an earlier one left out."""
    thoughts: list[str] = ask.facts["thoughts"]
    latest, mode = parse_scores(texts[-1], thoughts)
    scores = _scores_in(thoughts, texts[:-1]) | latest
    missing = [str(number) for number in range(1, len(thoughts) + 1) if f"t{number}" not in scores]
    if missing:
        return Unreadable(f"there is no score from 0 to 1 in it for candidate {', '.join(missing)}")
    return [scores[f"t{number}"] for number in range(1, len(thoughts) + 1)], mode


def _scores_in(thoughts: Sequence[str], unusable: Sequence[str]) -> dict[str, float]:
    """Return what scores there are in replies that could not be used as a whole, later ones before earlier ones."""
    scores: dict[str, float] = {}
    for text in unusable:
        found, mode = parse_scores(text, thoughts)
        # Such a reply may have been cut off in the middle of a number; what was put right could be half of one.
        if mode != "repaired":
            scores |= found
    return scores


def _scores_of(group: Sequence[Node], answer: Reply | Failed) -> Iterator[tuple[Node, float]]:
    """Yield the scores of one answer; from replies that could not be read whole, those that could be read."""
    if isinstance(answer, Reply):
        yield from zip(group, answer.value, strict=True)
        return
    scores = _scores_in([child.content for child in group], answer.replies)
    yield from ((child, scores[f"t{n}"]) for n, child in enumerate(group, start=1) if f"t{n}" in scores)


def _value(child: Node, scores: Sequence[float] | None, *, guess: bool) -> Node:
    if child.refuted:
        return child
    if scores:
        return replace(child, score=sum(scores) / len(scores))
    return replace(child, score=UNKNOWN, guessed=True) if guess else child


def _plant(state: State, fresh: Sequence[Node]) -> State:
    """Put the new thoughts that are valued or refuted into the tree."""
    ended = bool(state.reason)
    ready = [child for child in fresh if ended or child.score is not None]
    left = tuple(child for child in fresh if not ended and child.score is None)
    return replace(state, nodes=grow(state.nodes, ready), fresh=left)


def _end_of_round(state: State, fresh: Sequence[Node]) -> Move:
    state = _plant(state, fresh)
    alive = [child for child in fresh if not child.refuted]
    if alive:
        best = max(
            (*state.best_scores[-1:], *(child.score for child in alive if child.score is not None)),
            default=0.0,
        )
        state = replace(state, best_scores=(*state.best_scores, best))
    if not state.reason:
        reason, winner = _why_stop(state, alive)
        state = replace(state, reason=reason, winner=winner)
    return go(state, "branch_selection", *_valuations(state, fresh))


def _why_stop(state: State, alive: Sequence[Node]) -> tuple[str, str | None]:
    """Return why the search ends after this round, and the node that ended it; nothing if it goes on.

    A round in which everything was refuted has valued nothing, so that only the caps can end the search after it.
    """
    options = state.options
    if len(state.nodes) >= options.max_nodes:
        return "max_nodes", None
    if options.max_duration_ms is not None and state.at_ms >= options.max_duration_ms:
        return "max_duration", None
    threshold, depth = options.early_success_threshold, options.min_depth
    if winners := rank(child for child in alive if (child.score or 0) >= threshold and child.depth >= depth):
        return "threshold", winners[0].id
    if alive and has_converged(state.best_scores, options.convergence_window, options.min_score_improvement):
        return "converged", None
    if options.traversal_strategy == "best_first" and any(
        child.depth >= options.max_depth for child in alive
    ):
        return "max_depth", None
    return "", None


def _valuations(state: State, fresh: Sequence[Node]) -> Iterator[Thought]:
    """Yield, for every node of the round, how its children were valued."""
    for parent in state.expanding:
        group = [child for child in fresh if child.parent == parent]
        scores = {state.branch(child.id) or "": child.score for child in group}
        valuations = [
            f"{name}: {'refuted' if child.refuted else 'not valued' if child.score is None else f'{child.score:.2f}'}"
            for name, child in zip(scores, group, strict=True)
        ]
        best = max((child.score for child in group if child.score is not None), default=None)
        yield Thought(
            "Scores: " + ", ".join(valuations),
            branch=state.branch(parent),
            score=best,
            data={"scores": scores},
        )


# -- S_t, and on or out


def select(s: State) -> Move:
    """S_t = arg max over S in S'_t of sum of V_t(s)."""
    s = s if s.reason else _next_round(s)
    if s.reason:
        text = "Nothing is left to follow." if s.chosen is None else f"Best: {_label(s, s.chosen)}"
        return go(s, "continuation_decision", text)
    following = "; ".join(_label(s, s.nodes[node_id]) for node_id in s.expanding)
    return go(s, "continuation_decision", f"Follow {following}")


def _next_round(state: State) -> State:
    options = state.options
    born = [state.nodes[child] for parent in state.expanding for child in state.nodes[parent].children]
    fresh = [
        Open(child.id, child.score or 0.0)
        for child in born
        if not child.refuted and child.depth < options.max_depth
    ]
    frontier = push(state.frontier, fresh, options.traversal_strategy)
    following, rest = take(trim(frontier, options.beam_width, list(state.nodes)), options.expand_width)
    if not following:
        deep = any(node.depth >= options.max_depth for node in state.nodes.values())
        return replace(state, frontier=(), reason="max_depth" if deep else "exhausted")
    jumps = any(state.nodes[node_id].parent not in state.expanding for node_id in following)
    return replace(state, expanding=following, frontier=rest, new_branch=jumps)


def decide(s: State) -> Move:
    """T = t + 1, or return."""
    if s.reason:
        return go(s, "solution_formulation", f"Conclude: {s.reason}.")
    if s.new_branch:
        return go(s, "branch_creation", "Turn to another branch.")
    return go(s, "branch_development", "Go deeper.")


# -- the answer


def formulate(s: State) -> Body:
    """G(p, arg max of V_T(s), 1), and what a verifier says of it; a proof may have brought the answer along."""
    best = s.chosen
    if best is None or s.answer is not None:
        return go(s, "path_justification", s.answer or NO_ANSWER)
    path = s.texts(best.id)
    if s.options.formulate_answer:
        replies = yield request(s, _formulation(s, path))
        written: Formulated = replies[0].value
        s = replace(note_replies(s, "formulation", replies), answer=written.text)
        if s.answer is None:
            return go(replace(s, no_answer="unsolved"), "path_justification", NO_ANSWER)
    answer = best.content if s.answer is None else s.answer
    if s.options.verify and (s.answer is not None or s.reason != "verified"):
        (verdict,) = yield request(s, Verify(s.problem, (*path, answer), final=True))
        if verdict.verdict == "wrong":
            s = replace(s, answer=None, no_answer="refuted")
            return go(s, "path_justification", NO_ANSWER)
    return go(replace(s, answer=answer), "path_justification", answer)


def _formulation(s: State, path: Sequence[str]) -> Ask:
    """Ask for the answer that a path arrives at."""
    return Ask(
        prompt=f"{_so_far(s.problem, path)}\n\nWrite the answer.",
        system=f"{s.options.formulation_prompt or FORMULATION_PROMPT}\n\n{_ANSWER}",
        facts={"kind": "answer", "problem": s.problem, "path": list(path)},
        retries=s.options.max_parse_retries,
    )


def justify(s: State) -> Move:
    """Say from the scores why this path was the best."""
    chosen = s.chosen
    if chosen is None:
        return go(s, "final_response", "No path could be justified: every thought was refuted.")
    path = path_to(s.nodes, chosen.id)[1:]
    lines = [f"Branch {s.branch(chosen.id)} was chosen ({s.reason}); its steps and their scores:"]
    lines += [f"{number}. {step.content} ({_score(step)})" for number, step in enumerate(path, start=1)]
    on_path = {step.id for step in path}
    rivals = [rival for rival in s.nodes.values() if rival.parent and rival.score is not None]
    rivals = rank(rival for rival in rivals if rival.id not in on_path and not rival.refuted)
    if rivals:
        lines.append(f"The best thought beside it: {_label(s, rivals[0])}")
    return go(s, "final_response", "\n".join(lines))


def _label(state: State, node: Node) -> str:
    return f"{state.branch(node.id)} ({_score(node)}): {node.content}"


def _score(node: Node) -> str:
    return "not valued" if node.score is None else f"{node.score:.2f}"


def _so_far(problem: str, path: Sequence[str]) -> str:
    steps = "\n".join(f"{number}. {_indent(text)}" for number, text in enumerate(path, start=1))
    return f"Problem:\n{problem}\n\n" + (
        f"Steps so far:\n{steps}" if steps else "No step has been taken yet."
    )


def _indent(text: str) -> str:
    return text.replace("\n", "\n   ")


def _steps(left: int) -> str:
    return "No step is" if left <= 0 else "1 step is" if left == 1 else f"{left} steps are"


TREE_OF_THOUGHTS: Strategy[State, Options] = Strategy(
    name="tree_of_thoughts",
    title="Tree of Thoughts",
    source="arXiv:2305.10601",
    summary="Tries several steps at every point, values them and follows the best: for puzzles and plans.",
    aliases=("tot",),
    options=Options,
    state=State,
    begin=begin,
    outcome=outcome,
    progress=progress,
    suits=("number_puzzle", "search"),
    stages=(
        Stage(
            "problem_reception",
            ("approach_exploration",),
            description="Take in the problem.",
            guidance="Say what is asked, what is given and how a solution would be recognised.",
        ),
        Stage(
            "approach_exploration",
            ("branch_creation",),
            description="Find several different first steps.",
            guidance="Propose first steps that differ in kind, not in wording. Judge none of them yet.",
            fields=(
                Field(
                    "approaches",
                    {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "One line for each approach.",
                    },
                    required=False,
                ),
            ),
            body=expand("branch_creation"),
            reply=Proposals,
            example={"thoughts": ["Add the two largest numbers.", "Divide first."]},
            read=read_thoughts,
            value=list[str],
        ),
        Stage(
            "branch_creation",
            ("branch_development",),
            description="Open a branch for an approach.",
            guidance="Name the approach this branch follows, and give the branch an id.",
        ),
        Stage(
            "branch_development",
            ("branch_evaluation",),
            description="Take the branch one step further.",
            guidance="Work out the next step on this branch, and on this one only. "
            "Stay for another candidate of the same step; go on when they can be valued.",
            body=expand("branch_evaluation"),
            reply=Proposals,
            example={"thoughts": ["Multiply what is left.", "Subtract 4 from 28."]},
            read=read_thoughts,
            value=list[str],
        ),
        Stage(
            "branch_evaluation",
            ("branch_selection",),
            description="Value how promising the branch is.",
            guidance="Say whether a solution can still be reached from here, and how surely: "
            "0 is impossible, 1 is solved.",
            fields=(
                Field(
                    "score",
                    {
                        "type": "number",
                        "minimum": 0,
                        "maximum": 1,
                        "description": "How promising: 0 is impossible, 1 is solved.",
                    },
                ),
            ),
            body=evaluate,
            reply=Scores,
            example={"scores": {"1": 0.7, "2": 0.2}},
            read=read_scores,
            value=list[float],
        ),
        Stage(
            "branch_selection",
            ("continuation_decision",),
            description="Choose the branch to follow.",
            guidance="Compare the scores of all open branches, earlier ones too, and name the one to follow.",
            fields=(
                Field(
                    "selected",
                    {"type": "string", "description": "The branch that is followed from here."},
                    required=False,
                ),
            ),
            body=select,
        ),
        Stage(
            "continuation_decision",
            ("branch_development", "branch_creation", "solution_formulation"),
            description="Go deeper, open another branch, or conclude.",
            guidance="Develop the chosen branch while it gains; open another when it stalls; "
            "conclude when a branch solves the problem or nothing promising is left.",
            body=decide,
        ),
        Stage(
            "solution_formulation",
            ("path_justification",),
            description="Write the answer from the best branch.",
            guidance="Follow the best branch from its first step and state what it arrives at.",
            body=formulate,
            reply=Formulated,
            example={"answer": "(10 - 4) * (13 - 9)"},
        ),
        Stage(
            "path_justification",
            ("final_response",),
            description="Say why this branch was the best.",
            guidance="Set its scores beside those of the branches that were dropped.",
            body=justify,
        ),
        Stage(
            "final_response",
            description="Give the answer.",
            guidance="State the answer alone, complete and in the form that was asked for.",
        ),
    ),
)
