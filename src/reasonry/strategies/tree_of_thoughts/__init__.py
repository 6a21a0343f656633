"""Tree of thoughts: propose several candidates for every step, score each, and follow the promising candidates.

Yao et al. 2023, "Tree of Thoughts: Deliberate Problem Solving with Large Language Models", arXiv:2305.10601. The stages
come from seed 000, and the options, statuses and termination reasons from seed 004. Seeds are our earlier designs.

    The paper's algorithm                           the stage that does it
    S0 = {x}                                        problem_reception
    S't = {[s, z] | s in St-1, z in G(p, s, k)}     approach_exploration (first step), branch_development (later)
    Vt = V(p, S't)                                  branch_evaluation
    St = arg max over S in S't of sum of Vt(s)      branch_selection
    t = t + 1, or return G(p, arg max of VT(s), 1)  continuation_decision

In the paper's symbols, k is `branching_factor`, b is `beam_width` (and `expand_width`), and T is `max_depth`. The paper
plays the game of 24 with `bfs` and b = 5.

Differences from the paper. To value a thought is to score it. One question checks all children of a node in words and
values them; with `score_with_proposals`, the proposals come with scores. A thought without a rival is not valued. The
search may expand the best nodes of all levels first (seed 004). It may end after a round because of max_nodes,
max_duration, threshold, converged or max_depth, checked in this order. A verifier checks every thought before it is
valued: a refuted thought is pruned, and a proved thought ends the search at any depth. A thought with a false equation
is pruned too. At the end, the model is asked for the answer. If the path has no answer, or the verifier refutes the
answer, the path is pruned and the search continues. Unless the preset is `seed`, four more rules apply: (1) if all
steps of a node are proved wrong, the model sees the reasons and proposes other steps, up to `max_reasks` times, before
the node is refuted; (2) an empty proposal closes its node; (3) nodes valued 0 are expanded last; (4) after these nodes,
the search returns to the expandable level nearest the root, so it fails only if there is no question left to ask.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import zip_longest
from typing import Any, Literal

from msgspec.structs import replace

from ...blocks.answers import UNREADABLE
from ...core.bodies import Body, Move, Request, Thought, fail, go, request, stay
from ...core.effects import Verify
from ...core.events import Failed, Reply, Verified
from ...core.strategy import SHORT_REPLY, Field, Stage, Strategy, final_response, problem_reception
from ...puzzles.equations import false_equations
from ...reading.candidates import Proposals, ScoredThought, distinct
from ...reading.verdicts import normal
from . import asks
from .conclusion import TreeDetails, conclude
from .state import ROOT, Node, Options, State, children, grow, note_replies, path_to, rank
from .traversal import choose_next, prune_best, why_stop

UNKNOWN = 0.5
"""The score that a thought gets if its score could not be read."""

NO_ANSWER = "There is no answer."
EMPTY = Failed(UNREADABLE, "it proposes no thought")
"""Under the preset `seed`, this failure replaces an empty proposal, and the model is not asked again."""


def begin(problem: str, options: Options) -> State:
    """Begin the search with problem x as the root: S_0 = {x}."""
    return State(options=options, nodes={ROOT: Node(ROOT, problem)})


# -- G(p, s, k)


def expand(to: str) -> Callable[[State], Body]:
    """Return a stage that extends the paths s by new steps z: S'_t = {[s, z] | s in S_{t-1}, z in G(p, s, k)}."""

    def stage(s: State) -> Body:
        if s.fresh or all(s.nodes[name].closed for name in s.expanding):
            return go(s, to)
        replies = yield request(
            s, *(asks.ask_for_thoughts(s, parent) for parent in s.expanding), give_failures=True
        )
        s = note_replies(s, "generation", replies)
        if s.options.follows_seed:
            replies = tuple(EMPTY if isinstance(each, Reply) and not each.value else each for each in replies)
        lost = [reply for reply in replies if isinstance(reply, Failed)]
        s = replace(s, errors=(*s.errors, *_unread(s, replies)))
        # A node whose proposals could not be read remains a leaf, unless the tree has no other node.
        is_bare = s.chosen is None if s.options.follows_seed else len(s.nodes) == 1
        is_bare = is_bare and len(lost) == len(replies)
        if fatal := next((reply for reply in lost if is_bare or reply.code != UNREADABLE), None):
            return fail(s, "error", fatal.message, fatal.code)
        nodes, grown = dict(s.nodes), list[tuple[Node, Thought]]()
        for name, reply in zip(s.expanding, replies, strict=True):
            is_empty = isinstance(reply, Reply) and not reply.value
            nodes[name] = replace(nodes[name], asked=nodes[name].asked + 1, closed=is_empty)
            grown += _new_children(s, name, reply, len(nodes) + len(grown) + 1)
        fresh = tuple(node for node, _ in grown)
        return go(replace(s, nodes=nodes, fresh=fresh), to, *(thought for _, thought in grown))

    return stage


def _unread(s: State, replies: Sequence[Reply | Failed]) -> list[str]:
    """Return an error code for each reply that is unreadable or lacks a score."""
    lost = [reply for reply in replies if isinstance(reply, Failed) and reply.code == UNREADABLE]
    partial = [reply for reply in replies if any(each.score is None for each in _proposals_in(reply))]
    without = len(partial) if s.options.proposes_scores else 0
    return ["thoughts_parse_failed"] * len(lost) + ["scores_parse_failed"] * without


def _new_children(
    s: State, parent: str, reply: Reply | Failed, number: int
) -> Iterator[tuple[Node, Thought]]:
    """Yield a child node of `parent`, and a thought, for each new proposal. Number the nodes from `number`."""
    line, known, depth = s.branch(parent), children(s.nodes, parent), s.nodes[parent].depth + 1
    had = {normal(node.content) for node in known}
    new = (each for each in distinct(_proposals_in(reply)) if normal(each.thought) not in had)
    for place, each in enumerate(new):
        node = Node(f"node_{number + place}", each.thought, parent, depth, score=each.score)
        branch = f"{line}.{len(known) + place + 1}" if line else f"{len(known) + place + 1}"
        thought = Thought(each.thought, branch=branch, leaves=line, data={"node_id": node.id})
        yield _value(node, None, guess=s.options.proposes_scores), thought


def _proposals_in(reply: Reply | Failed) -> list[ScoredThought]:
    proposals = reply.value if isinstance(reply, Reply) else ()
    return [ScoredThought(each) if isinstance(each, str) else each for each in proposals]


# -- V(p, S)


def evaluate(s: State) -> Body:
    """Verify the new thoughts S'_t, and score the thoughts that are still open: V_t = V(p, S'_t)."""
    s, lost = yield from _verify(s)
    if s.proved:
        return _end_of_round(s, s.fresh)
    if lost is not None:
        return fail(s, "error", lost.message, lost.code)
    if _is_alone(s):
        return _end_of_round(s, [replace(child, single=not child.refuted) for child in s.fresh])
    groups = _groups_to_score(s)
    if not groups:
        return _end_of_round(s, s.fresh)
    rounds = [(group, sample) for group in groups for sample in range(s.options.samples_per_evaluation)]
    replies = yield request(s, *(asks.ask_for_scores(s, *asked) for asked in rounds), give_failures=True)
    return _note_scores(s, [group for group, _ in rounds], replies)


def _verify(s: State) -> Generator[Request, Any, tuple[State, Failed | None]]:
    """Prune refuted thoughts. If a thought is proved, end the search. Otherwise, return the first failure, if any."""
    paths = [(child, s.texts(child.parent or ROOT)) for child in s.fresh] if s.options.verify else []
    claims = [Verify(s.problem, (*path, child.content), about=child.id) for child, path in paths]
    verdicts = (yield request(s, *claims, give_failures=True)) if claims else ()
    s = note_replies(s, "verification", verdicts)
    looked_at = list(zip_longest(s.fresh, verdicts))
    s = replace(s, fresh=tuple(_test(child, verdict, s.problem) for child, verdict in looked_at))
    for child, verdict in looked_at:
        if isinstance(verdict, Verified) and verdict.verdict == "right":
            return replace(s, reason="verified", winner=child.id, answer=verdict.answer, proved=True), None
    return s, next((verdict for verdict in verdicts if isinstance(verdict, Failed)), None)


def _groups_to_score(s: State) -> list[list[Node]]:
    """Return the thoughts to score, as one group for each expanded node."""
    unvalued = [child for child in s.fresh if not child.refuted and child.score is None]
    groups = ([child for child in unvalued if child.parent == parent] for parent in s.expanding)
    return [group for group in groups if group]


def _is_alone(s: State) -> bool:
    """Whether a single new thought is left and has no rival, so that no score is needed."""
    alive = [child for child in s.fresh if not child.refuted]
    if s.options.follows_seed or s.frontier or len(alive) != 1:
        return False
    return alive[0].score is None and all(leaf.depth < alive[0].depth for leaf in s.candidates)


def _note_scores(s: State, groups: Sequence[Sequence[Node]], replies: tuple[Any, ...]) -> Move:
    """Value each thought by the mean of its scores."""
    s = note_replies(s, "evaluation", replies)
    scores: dict[str, list[float]] = {}
    for group, reply in zip(groups, replies, strict=True):
        for child, score in zip(group, reply.value if isinstance(reply, Reply) else (), strict=False):
            if score is not None:
                scores.setdefault(child.id, []).append(score)
    failed = [reply for reply in replies if isinstance(reply, Failed)]
    fatal = next((lost for lost in failed if lost.code != UNREADABLE), None)
    fresh = [_value(child, scores.get(child.id), guess=fatal is None) for child in s.fresh]
    if fatal is not None:
        return fail(_plant(s, fresh), "error", fatal.message, fatal.code)
    partial = [reply for reply in replies if isinstance(reply, Reply) and None in reply.value]
    unread = ["scores_parse_failed"] * len([*failed, *partial])
    return _end_of_round(replace(s, errors=(*s.errors, *unread)), fresh)


def _test(child: Node, verdict: Any, problem: str) -> Node:
    """Apply the verifier's verdict to a thought. A thought with a false equation is refuted too."""
    ruling = verdict.verdict if isinstance(verdict, Verified) else "unknown"
    if ruling == "right":
        return replace(child, score=1.0)
    if ruling == "wrong":
        why = verdict.detail or "the verifier says that it is wrong"
        return replace(child, refuted=True, score=0.0, why=why, dropped="verifier")
    why = "; ".join(false_equations(child.content, about=problem))
    return replace(child, refuted=True, score=0.0, why=why, dropped="arithmetic") if why else child


def _value(child: Node, scores: Sequence[float] | None, *, guess: bool) -> Node:
    if child.refuted or child.score is not None:
        return child
    if scores:
        return replace(child, score=sum(scores) / len(scores))
    return replace(child, score=UNKNOWN, guessed=True) if guess else child


def _plant(state: State, fresh: Sequence[Node]) -> State:
    """Add the valued and the refuted new thoughts to the tree."""
    ready = [child for child in fresh if state.reason or child.single or child.score is not None]
    left = tuple(child for child in fresh if child not in ready)
    return replace(state, nodes=grow(state.nodes, ready), fresh=left)


def _end_of_round(state: State, fresh: Sequence[Node]) -> Move:
    state = _plant(state, fresh)
    alive = [child for child in fresh if not child.refuted]
    scores = [child.score for child in alive if child.score is not None]
    if scores:
        best = max([*state.best_scores[-1:], *scores])
        state = replace(state, best_scores=(*state.best_scores, best))
    if not state.reason:
        reason, winner = why_stop(state, alive)
        state = replace(state, reason=reason, winner=winner)
    return go(state, "branch_selection", *_valuations(state, fresh))


def _valuations(state: State, fresh: Sequence[Node]) -> Iterator[Thought]:
    """Yield one thought for each expanded node, with the scores of its new children."""
    for parent in state.expanding:
        group = [child for child in fresh if child.parent == parent]
        if not group:
            continue
        scores = {state.branch(child.id) or "": child.score for child in group}
        valuations = [
            f"{name}: {'refuted' if child.refuted else _score(child)}"
            for name, child in zip(scores, group, strict=True)
        ]
        best = max((score for score in scores.values() if score is not None), default=None)
        line = state.branch(parent)
        yield Thought(f"Scores: {', '.join(valuations)}", branch=line, score=best, data={"scores": scores})


# -- S_t, and whether to continue


def select(s: State) -> Move:
    """Select the nodes to follow, S_t, by their values V_t: S_t = arg max over S in S'_t of sum of V_t(s)."""
    s = s if s.reason else choose_next(s)
    if s.reason:
        text = "Nothing is left to follow." if s.chosen is None else f"Best: {_label(s, s.chosen)}"
        return go(s, "continuation_decision", text)
    following = "; ".join(_label(s, s.nodes[node_id]) for node_id in s.expanding)
    return go(s, "continuation_decision", f"Follow {following}")


def decide(s: State) -> Body:
    """Continue with t = t + 1, or ask for the answer of the best path: G(p, arg max of V_T(s), 1).

    A path without a correct answer is pruned. Then the next best path is tried, or the search continues.
    """
    if not s.reason:
        return _follow(s)
    best = s.chosen
    if best is None or s.answer is not None:
        return go(
            s if best else replace(s, no_answer=s.rejected), "solution_formulation", f"Conclude: {s.reason}."
        )
    answer, is_proved = best.content, s.reason == "verified"
    if s.options.formulate_answer:
        replies = yield request(s, asks.ask_for_answer(s, best.id), give_failures=True)
        s, reply = note_replies(s, "formulation", replies), replies[0]
        if isinstance(reply, Failed) and reply.code != UNREADABLE:
            return fail(s, "error", reply.message, reply.code)
        s, answer, why = _read_answer(s, best, reply)
        if answer is None and not is_proved:
            return _give_up(s, "unsolved", why)
    if s.options.verify and answer is not None and (s.options.formulate_answer or not is_proved):
        path = s.texts(best.id)
        (verdict,) = yield request(s, Verify(s.problem, (*path, answer), final=True, about=best.id))
        if verdict.verdict == "wrong":
            if not is_proved:
                return _give_up(s, "refuted", f"its answer is wrong: {answer}\n{verdict.detail}".strip())
            answer = None
        elif is_proved := verdict.verdict == "right":
            s = replace(s, unchecked="")
    s = replace(s, answer=best.content if answer is None else answer, proved=is_proved)
    return go(s, "solution_formulation", f"Conclude: {s.reason}.")


def _read_answer(s: State, best: Node, reply: Reply | Failed) -> tuple[State, str | None, str]:
    """Return the state, the answer and its reason. If `reply` is unreadable, the path to `best` gives the answer."""
    if isinstance(reply, Reply):
        written: asks.Formulated = reply.value
        return s, written.text, written.reason
    s = replace(s, unchecked=f"no reply to the last question could be read: {reply.message}")
    is_leaf = s.options.verify or s.options.follows_seed
    return s, best.content if is_leaf else "\n".join(s.texts(best.id)), ""


def _follow(s: State, *thoughts: str) -> Move:
    if s.new_branch:
        return go(s, "branch_creation", *thoughts, "Turn to another branch.")
    return go(s, "branch_development", *thoughts, "Go deeper.")


def _give_up(s: State, kind: Literal["unsolved", "refuted"], why: str) -> Move:
    """Prune the best path, which has no correct answer, and continue the search without it."""
    assert s.chosen is not None
    text = f"Pruned: {_label(s, s.chosen)}"
    s = prune_best(s, why or "it does not lead to a correct answer")
    s = replace(s, rejected=kind, unchecked="")
    if not s.reason:
        return _follow(s, text)
    if s.chosen is not None:
        return stay(s, text)
    return go(replace(s, no_answer=kind), "solution_formulation", text, f"Conclude: {s.reason}.")


def close(s: State) -> Move | None:
    """End the search at once. Thoughts without a score get a default score, so that they can be the answer.

    With a verifier, return None. The best last question then asks for proposals, since a proposal may be proved right.
    """
    if s.options.verify:
        return None
    s = replace(s, reason="limit", winner=None)
    s = _plant(s, [_value(child, None, guess=True) for child in s.fresh])
    if s.chosen is None:
        if not s.options.formulate_answer:
            return None
        s = replace(s, winner=ROOT)
    return go(s, "continuation_decision")


# -- the answer


def formulate(s: State) -> Move:
    """Record the answer that the stage `continuation_decision` found."""
    return go(s, "path_justification", s.answer or NO_ANSWER)


def justify(s: State) -> Move:
    """Explain why the chosen path is the best, with the scores of its steps and of its best rival."""
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
    name = state.branch(node.id)
    return "the problem" if name is None else f"{name} ({_score(node)}): {node.content}"


def _score(node: Node) -> str:
    return "not valued" if node.score is None else f"{node.score:.2f}"


TREE_OF_THOUGHTS: Strategy[State, Options] = Strategy(
    name="tree_of_thoughts",
    version=2,
    title="Tree of Thoughts",
    source="arXiv:2305.10601",
    summary="Tries several steps at each point, scores them and follows the best: for puzzles and plans.",
    aliases=("tot",),
    options=Options,
    state=State,
    begin=begin,
    conclude=conclude,
    close=close,
    details=TreeDetails,
    suits=("number_puzzle",),
    calls=11,
    stages=(
        problem_reception(
            ("approach_exploration",),
            "Say what is asked, what is given and how a solution would be recognised.",
            phase="idle",
        ),
        Stage(
            "approach_exploration",
            ("branch_creation",),
            description="Find several different first steps.",
            guidance="Propose first steps that differ in kind, not in wording. Judge none of them yet.",
            fields=(Field.optional("approaches", "texts", "One line for each approach."),),
            body=expand("branch_creation"),
            reply=Proposals,
            example={"thoughts": ["10 - 4 = 6 (left: 6 9 13)", "13 - 9 = 4 (left: 4 4 10)"]},
            read=asks.read_thoughts,
            value=list[str | ScoredThought],
            phase="generating",
        ),
        Stage(
            "branch_creation",
            ("branch_development",),
            description="Open a branch for an approach.",
            guidance="Name the approach this branch follows, and give the branch an id.",
            phase="generating",
        ),
        Stage(
            "branch_development",
            ("branch_evaluation",),
            description="Take the branch one step further.",
            guidance="Work out the next step on this branch, and on this one only. "
            "Stay for another candidate of the same step; go on when they can be valued.",
            body=expand("branch_evaluation"),
            reply=Proposals,
            example={"thoughts": ["13 - 9 = 4 (left: 4 6)", "13 - 6 = 7 (left: 7 9)"]},
            read=asks.read_thoughts,
            value=list[str | ScoredThought],
            phase="generating",
        ),
        Stage(
            "branch_evaluation",
            ("branch_selection",),
            compares=True,
            description="Value how promising the branch is.",
            guidance="Say whether a solution can still be reached from here, and how surely: "
            "0 is impossible, 1 is solved.",
            fields=(
                Field.mandatory(
                    "score", "number", "How promising: 0 is impossible, 1 is solved.", minimum=0, maximum=1
                ),
            ),
            body=evaluate,
            reply=asks.Scores,
            max_output_tokens=SHORT_REPLY,
            example={
                "checks": {"1": "6 * 4 is 24: within reach.", "2": "Nothing makes 24 of 36 and 13."},
                "scores": {"1": 0.7, "2": 0.2},
            },
            read=asks.read_scores,
            value=list[float | None],
            phase="evaluating",
        ),
        Stage(
            "branch_selection",
            ("continuation_decision",),
            compares=True,
            description="Choose the branch to follow.",
            guidance="Compare the scores of all open branches, earlier ones too, and name the one to follow.",
            fields=(Field.optional("selected", "string", "The branch that is followed from here."),),
            body=select,
            phase="expanding",
        ),
        Stage(
            "continuation_decision",
            ("branch_development", "branch_creation", "solution_formulation"),
            compares=True,
            description="Go deeper, open another branch, or conclude.",
            guidance="Develop the chosen branch while it gains; open another when it stalls; "
            "conclude when a branch solves the problem or nothing promising is left.",
            body=decide,
            reply=asks.Formulated,
            example={"reason": "10 - 4 is 6, 13 - 9 is 4, 6 * 4 is 24.", "answer": "(10 - 4) * (13 - 9)"},
            phase="expanding",
        ),
        Stage(
            "solution_formulation",
            ("path_justification",),
            description="Write the answer from the best branch.",
            guidance="Follow the best branch from its first step and state what it arrives at.",
            body=formulate,
            phase="generating",
        ),
        Stage(
            "path_justification",
            ("final_response",),
            compares=True,
            description="Say why this branch was the best.",
            guidance="Set its scores beside those of the branches that were dropped.",
            body=justify,
            phase="generating",
        ),
        final_response(phase="completed"),
    ),
)
