"""Linear thinking: write and evaluate one thought at a time, revise and branch where needed, and test a hypothesis.

The strategy implements seed 000, "Base Sequential", an earlier design of this project. In guided use, the strategy is
the sequential-thinking tool.

Algorithm, for a problem x, with thoughts t_1, t_2, … in the order in which they are generated:

    the approach, and how many thoughts it may take        asked               initial_thought_planning
    t_n ~ p(t | x, t_1, …, t_{n-1})                        asked               thought_generation
    does t_n hold? if not, which t_k is to be replaced     asked               thought_evaluation
    t_n replaces t_k                                       asked               thought_revision
    continue, branch, or conclude                          asked only if       continuation_decision
                                                           no reply decided
    how many thoughts are expected now                     recorded            thought_adjustment
    later thoughts branch from t_k                         recorded            branch_creation
    h, y ~ p(h, y | x, t_1, …, t_n)                        asked               hypothesis_generation
    does h agree with all t_i and with x?                  asked               hypothesis_verification
    y ~ p(y | x, t_1, …, t_n, h)                           asked only if       solution_finalization
                                                           y was refuted

*Differs from the seed*: The seed only names the stages, and its caller does the thinking. Here each stage marked
"asked" asks a model, which takes 3 + 2n calls for n thoughts. The last allowed thought leads to a hypothesis, and the
last allowed hypothesis leads to the solution. If no reply to the test of a hypothesis is readable, the hypothesis is
the answer, unchecked.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..blocks.answers import MARKED, AnswerOptions, AnswerReply, AnswerState, FinalAnswer, ReasonedAnswer
from ..core.bodies import Body, Conclusion, Move, Thought, go, replies, request
from ..core.effects import Ask, Verify
from ..core.readings import AROUND, Unreadable
from ..core.strategy import (
    SHORT_REPLY,
    AnswerDetails,
    Field,
    Stage,
    Strategy,
    final_response,
    problem_reception,
)
from ..reading.form import read_form

SYSTEM = "You think problems through in numbered thoughts."

# There is one question for each stage of seed 000. It states the purpose of the stage in the seed's words.
PLAN = """Now plan: the approach, and about how many thoughts it will take. Reply with one JSON object:
{{"approach": "…", "totalThoughts": number}}"""
THOUGHT = f"Write the thought {AROUND}."
# A thought has the same roles as in the sequential-thinking tool, on which seed 000 is based.
THINK = """Now think the next thought, number {next}: one step, such as an analysis, a realisation, a question, or a \
result. {left}"""
NEXT = """"thought_adjustment": think on. thoughtsLeft is how many more thoughts it will take.
"branch_creation": go back and try another way. branchFromThought is the number of the thought it leaves.
"hypothesis_generation": enough is known to propose a solution.
Reply with one JSON object:"""
WAY_ON = '"thoughtsLeft": number or null, "branchFromThought": number or null}}'
EVALUATE = f"""Now look at the latest thought critically: say in reason what you checked, then whether it holds. If \
it, or one it rests on, is wrong, sound is false and revisesThought is the number of the thought to replace. If it is \
sound, next says how to go on:
{NEXT}
{{{{"reason": "…", "sound": true or false, "revisesThought": number or null, "next": "…" or null, {WAY_ON}"""
REVISE = f"""Now replace thought {{number}}: write it as it should have been. Then next says how to go on:
{NEXT}
{{{{"thought": "…", "next": "…", {WAY_ON}"""
DECIDE = f"""Now decide how to go on:
{NEXT}
{{{{"reason": "…", "next": "…", {WAY_ON}"""
HYPOTHESIZE = "First propose a solution as a hypothesis: one statement that could turn out wrong."
TEST = f"""Now try to refute the hypothesis, with the thoughts so far and with the problem itself: say in reason how \
it was tested, then whether it holds. If it does not, next says how to go on:
{NEXT}
{{{{"reason": "…", "holds": true or false, "next": "…" or null, {WAY_ON}"""
FINALIZE = "Now write the solution."

Next = Literal["thought_adjustment", "branch_creation", "hypothesis_generation"]
Number = int | str | None
"""A number in a form that models write, such as `4`, `"3-4"` or `"thought 2"`."""


class Options(AnswerOptions, frozen=True):
    """Options of linear thinking."""

    max_thoughts: Annotated[int, Meta(ge=1, le=1000, description="Most thoughts before a hypothesis.")] = 12
    max_hypotheses: Annotated[int, Meta(ge=1, le=100, description="Most hypotheses.")] = 3


class Approach(Struct, frozen=True, rename="camel"):
    """The approach."""

    approach: Annotated[str, Meta(min_length=1, description="The approach.")]
    total_thoughts: Annotated[Number, Meta(description="About how many thoughts it will take.")] = None


class NextThought(Struct, frozen=True):
    """A thought."""

    text: Annotated[str, Meta(min_length=1, description="The thought.")]


WayOn = Annotated[Next | None, Meta(description="How to go on.")]
More = Annotated[Number, Meta(description="To think on: how many more thoughts it will take.")]
Left = Annotated[Number, Meta(description="To try another way: the number of the thought it leaves.")]


class Evaluation(Struct, frozen=True, kw_only=True, rename="camel"):
    """Whether a thought holds, and how to continue."""

    reason: Annotated[str, Meta(description="What was checked, and what is wrong if anything is.")] = ""
    sound: Annotated[bool, Meta(description="Whether the latest thought holds.")]
    revises_thought: Annotated[Number, Meta(description="If not sound: the thought to replace.")] = None
    next: WayOn = None
    thoughts_left: More = None
    branch_from_thought: Left = None


class Revision(Struct, frozen=True, rename="camel"):
    """A replacement for a thought, and how to continue."""

    thought: Annotated[str, Meta(min_length=1, description="The thought as it should have been.")]
    next: WayOn = None
    thoughts_left: More = None
    branch_from_thought: Left = None


class Decision(Struct, frozen=True, kw_only=True, rename="camel"):
    """How to continue."""

    reason: Annotated[str, Meta(description="Why.")] = ""
    next: Next
    thoughts_left: More = None
    branch_from_thought: Left = None


class HypothesisTest(Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of a hypothesis's test, and how to continue if it failed."""

    reason: Annotated[str, Meta(description="How it was tested, or what refutes it.")] = ""
    holds: Annotated[bool, Meta(description="Whether it agrees with every thought and the problem.")]
    next: WayOn = None
    thoughts_left: More = None
    branch_from_thought: Left = None


_WAYS_ON = {"evaluate": Evaluation, "revise": Revision, "decide": Decision, "test": HypothesisTest}


class State(AnswerState, frozen=True, omit_defaults=True, kw_only=True):
    """The state of the strategy: the thoughts of the session, and the work in progress."""

    options: Options
    log: tuple[Thought, ...] = ()
    """All recorded thoughts. Thought n of the session is `log[n - 1]`."""
    names: tuple[str, ...] = ()
    """For each entry of `log`, the name that questions show before it. Empty if questions leave the entry out."""
    places: tuple[int, ...] = ()
    """The positions in the session of the generated thoughts. Questions number the thoughts in this order. The entry of
    a replaced thought is the position of its replacement."""
    expected: int = 1
    latest: int = 0
    """The number of the latest generated or revised thought."""
    revising: int = 0
    """The number of the thought to replace."""
    decision: Decision | None = None
    branch: str | None = None
    leaves: str | None = None
    branches: int = 0
    hypothesis: str | None = None
    answer: str | None = None
    """The answer that the reply with the hypothesis marked."""
    hypotheses: int = 0
    holds: bool | None = False
    """Whether the hypothesis passed its test. None if the test got no readable reply."""

    @property
    def generated(self) -> int:
        """How many thoughts have been generated. A replacement does not count as a new thought."""
        return len(self.places)


def plan(s: State) -> Body:
    """Ask for the approach, and how many thoughts to expect."""
    (reply,) = yield from replies(s, Approach, _question(s, "plan", PLAN))
    s = replace(s, expected=_count(reply.total_thoughts) or 1)
    return _record(s, "thought_generation", reply.approach, "Approach", data={"totalThoughts": s.expected})


def think(s: State) -> Body:
    """Ask for the next thought t_n about problem x: t_n ~ p(t | x, t_1, …, t_{n-1})."""
    more = s.expected - s.generated - 1
    left = f"About {more} more will follow it." if more > 0 else "It may be the last one."
    # No verifier checks a thought, so the whole text of an unmarked reply counts as the thought.
    question = replace(_question(s, "think", THINK, THOUGHT, left=left), wants_value=False)
    (reply,) = yield from replies(s, NextThought, question)
    s = replace(s, places=(*s.places, len(s.log) + 1), latest=s.generated + 1)
    name = f"Thought {s.latest} ({s.branch})" if s.branch else f"Thought {s.latest}"
    return _record(s, "thought_evaluation", reply.text, name)


def read_way_on(state: State, ask: Ask, texts: Sequence[str]) -> tuple[Any, str] | Unreadable:
    """Read a reply that says how to continue. Refuse the reply if it names several thoughts or an unknown thought."""
    reading = read_form(texts[-1], _WAYS_ON[ask.facts["kind"]])
    if isinstance(reading, Unreadable):
        return reading
    reply: Any = reading[0]
    if isinstance(reply, Evaluation) and not reply.sound:
        named = reply.revises_thought if _count(reply.revises_thought) else None
    else:
        named = reply.branch_from_thought if reply.next == "branch_creation" else None
    numbers, count = set(re.findall(r"\d+", str(named))), state.generated
    if len(numbers) > 1:
        return Unreadable(f"{str(named)[:60]!r} names several thoughts; name one")
    if all(1 <= int(number[:9]) <= count for number in numbers):
        return reading
    there = f"there are thoughts 1 to {count}" if count > 1 else "there is thought 1"
    return Unreadable(f"there is no thought {numbers.pop()[:9]}; {there}")


def evaluate(s: State) -> Body:
    """Ask whether the thought t_n holds and, if not, which thought t_k to replace."""
    (reply,) = yield from replies(s, Evaluation, _question(s, "evaluate", EVALUATE))
    decision = _decision(reply) if reply.sound else None
    s = replace(s, decision=decision, revising=_count(reply.revises_thought) or s.latest)
    to = "continuation_decision" if reply.sound else "thought_revision"
    text = reply.reason or ("It holds." if reply.sound else "It does not hold.")
    return _record(s, to, text, "Evaluation", data={"sound": reply.sound})


def revise(s: State) -> Body:
    """Ask for a thought t_n that replaces the thought t_k."""
    (reply,) = yield from replies(s, Revision, _question(s, "revise", REVISE))
    replaced = s.places[s.revising - 1]
    places = (*s.places[: s.revising - 1], len(s.log) + 1, *s.places[s.revising :])
    s = replace(s, places=places, latest=s.revising, decision=_decision(reply))
    name = f"Thought {s.latest} ({', '.join(filter(None, [s.branch, 'replaced']))})"
    return _record(s, "continuation_decision", reply.thought, name, revises=replaced)


def decide(s: State) -> Body:
    """Decide whether to continue, branch or conclude. The model is asked only if the decision is still open."""
    decision = s.decision
    if s.generated >= s.options.max_thoughts:
        reason = f"{s.generated} thoughts have been thought: time to conclude."
        decision = Decision(next="hypothesis_generation", reason=reason)
    elif decision is None:
        (decision,) = yield from replies(s, Decision, _question(s, "decide", DECIDE))
    name = "Decision" if decision.reason else ""
    text = decision.reason or f"Next: {decision.next.replace('_', ' ')}."
    return _record(replace(s, decision=decision), decision.next, text, name, data={"next": decision.next})


def adjust(s: State) -> Move:
    """Record how many thoughts to expect."""
    more = _count(s.decision.thoughts_left) if s.decision else None
    expected = max(s.generated + more if more else s.expected, s.generated + 1)
    s = replace(s, expected=expected, decision=None)
    text, data = f"{expected} thoughts are expected.", {"totalThoughts": expected}
    return _record(s, "thought_generation", text, data=data)


def branch(s: State) -> Move:
    """Let later thoughts branch from the thought t_k."""
    left = s.places[((_count(s.decision.branch_from_thought) if s.decision else None) or s.latest) - 1]
    name = f"branch-{s.branches + 1}"
    s = replace(s, decision=None, branches=s.branches + 1)
    data = {"branchId": name, "branchFromThought": left}
    move = _record(s, "thought_generation", f"{name} leaves thought {left}.", data=data)
    return replace(move, state=replace(move.state, branch=name, leaves=s.log[left - 1].branch))


def hypothesize(s: State) -> Body:
    """Ask for a hypothesis h and its answer y: h, y ~ p(h, y | x, t_1, …, t_n)."""
    (reply,) = yield from replies(s, ReasonedAnswer, _question(s, "hypothesize", HYPOTHESIZE, MARKED))
    statement = reply.reasoning.strip()
    s = replace(
        s, hypothesis=statement or reply.text, answer=reply.text, hypotheses=s.hypotheses + 1, decision=None
    )
    text = f"{statement}\nAnswer: {reply.text}" if statement else reply.text
    data = {"hypothesis": s.hypothesis, "answer": reply.text}
    return _record(s, "hypothesis_verification", text, "Hypothesis", data=data)


def test(s: State) -> Body:
    """Test whether the hypothesis h agrees with all thoughts t_i and with problem x."""
    if s.options.verify:
        # The verification is not `final`, since an unproved answer is verified again at the end.
        path = (*(thought.text for thought in s.log[:-1]), str(s.answer))
        (verdict,) = yield request(s, Verify(s.problem, path))
        ruled = FinalAnswer(s.answer).apply_verdict(verdict)
        if ruled.verification == "proved":
            found = HypothesisTest(holds=True, reason="The verifier proved it.")
            return _record_test(replace(s, final=ruled), found)
        if ruled.text is None:
            refuted = HypothesisTest(holds=False, reason=ruled.objections[-1])
            return _record_test(replace(s, hypothesis=None, answer=None), refuted)
    question = _question(s, "test", TEST)
    s, found = yield from s.ask_or_fall_back(question, s.answer, "the test of the hypothesis")
    if found is None:
        s, text = replace(s, holds=None), f"Unchecked: {s.final.unchecked}"
        return _record(s, "solution_finalization", text, "Test")
    return _record_test(s, found)


def _record_test(s: State, found: HypothesisTest) -> Move:
    """Record the test of a hypothesis, and choose the stage after the test."""
    ends = found.holds or s.hypotheses >= s.options.max_hypotheses
    s = replace(_propose(s) if ends else s, holds=found.holds, decision=None if ends else _decision(found))
    to = "solution_finalization" if ends else "continuation_decision"
    text = found.reason or ("It holds." if found.holds else "It does not hold.")
    return _record(s, to, text, "Test", data={"holds": found.holds})


def _propose(s: State) -> State:
    is_new = s.answer is not None and s.final.text is None
    return replace(s, final=s.final.propose(s.answer or "")) if is_new else s


def finalize(s: State) -> Body:
    """Settle the answer y of hypothesis h. If y was refuted, ask for another: y ~ p(y | x, t_1, …, t_n, h)."""
    question = _question(s, "finalize", FINALIZE, MARKED)
    return (yield from s.settle_answer(question, [each.text for each in s.log], best=s.answer))


def close(s: State) -> Move:
    """Finalize the answer of the last hypothesis. If there is no hypothesis, ask for an answer."""
    return go(_propose(s), "solution_finalization")


class LinearDetails(AnswerDetails):
    """The details of a result."""

    thought_count: Annotated[int, Meta(description="Thoughts generated.")]
    branches: Annotated[int, Meta(description="Branches begun.")]
    hypotheses: Annotated[int, Meta(description="Hypotheses put forward.")]
    hypothesis: Annotated[str | None, Meta(description="The last hypothesis.")]
    holds: Annotated[bool | None, Meta(description="Whether it held; none: it was not tested.")]


def conclude(state: State) -> Conclusion:
    """Return the answer. If there is no answer yet, return the answer of the latest hypothesis."""
    counts = {"thought_count": state.generated, "branches": state.branches, "hypotheses": state.hypotheses}
    document = {**counts, "hypothesis": state.hypothesis, "holds": state.holds, **state.final.document}
    detail = f"none of {state.hypotheses} hypotheses held; the last one was settled for"
    cut = ("max_hypotheses", detail) if state.holds is False else None
    return state.conclude(document, so_far=state.answer, cut=cut)


def _decision(reply: Evaluation | Revision | HypothesisTest) -> Decision | None:
    more, left = reply.thoughts_left, reply.branch_from_thought
    return reply.next and Decision(next=reply.next, thoughts_left=more, branch_from_thought=left)


def _count(written: Number) -> int | None:
    """Parse a number, or the upper end of a range such as `5-7`. None if the number is missing or zero."""
    numbers = [int(digits) for digits in re.findall(r"\d{1,9}", str(written))]
    return max(numbers, default=0) or None


def _record(
    state: State,
    to: str,
    text: str,
    name: str = "",
    *,
    revises: int | None = None,
    data: dict[str, Any] | None = None,
) -> Move:
    """Record a thought, and move to the stage `to`. Later questions show only thoughts with a name."""
    thought = Thought(text, branch=state.branch, leaves=state.leaves, revises=revises, data=data or {})
    return go(replace(state, log=(*state.log, thought), names=(*state.names, name)), to, thought)


def _question(state: State, kind: str, task: str, mark: str = "", *, left: str = "") -> Ask:
    task = task.format(number=state.revising, next=state.generated + 1, left=left)
    lines = [f"{name}: {each.text}" for name, each in zip(state.names, state.log, strict=True) if name]
    return state.build_question(SYSTEM, kind, lines, task, mark=mark)


_HYPOTHESIS = {"type": "string", "minLength": 1, "description": "The proposed solution, in one sentence."}

LINEAR: Strategy[State, Options] = Strategy(
    name="linear",
    title="Linear thinking",
    source="this project",
    summary="Thinks step by step with revisions, branches and a tested hypothesis: for any problem.",
    calls=9,
    version=3,
    aliases=("base_sequential", "sequential"),
    options=Options,
    state=State,
    conclude=conclude,
    close=close,
    details=LinearDetails,
    stages=(
        problem_reception(
            ("initial_thought_planning",), "Say in your own words what is asked and what is given."
        ),
        Stage(
            "initial_thought_planning",
            ("thought_generation",),
            description="Estimate how to go about it, and in how many thoughts.",
            guidance="Name the approach and estimate how many thoughts it takes; both may change later.",
            body=plan,
            reply=Approach,
            example={"approach": "Work backwards from 24.", "totalThoughts": 4},
        ),
        Stage(
            "thought_generation",
            ("thought_evaluation",),
            description="Think one thought.",
            guidance="Take one step: an analysis, a realisation, a question, a result. "
            "Go on to look at it critically before the next.",
            body=think,
            reply=NextThought,
            example={"text": "24 is 4 * 6, so 6 has to come from the other numbers."},
        ),
        Stage(
            "thought_evaluation",
            ("thought_revision", "continuation_decision"),
            description="Look at the latest thought critically.",
            guidance="Check it against the problem and the thoughts before it. If it, or one it rests on, is "
            "wrong, revise that one; otherwise decide how to go on.",
            fields=(Field.optional("sound", "boolean", "Whether the latest thought holds."),),
            body=evaluate,
            reply=Evaluation,
            max_output_tokens=SHORT_REPLY,
            example={"reason": "4 * 6 is 24.", "sound": True, "next": "hypothesis_generation"},
            read=read_way_on,
        ),
        Stage(
            "thought_revision",
            ("continuation_decision",),
            description="Put a wrong thought right.",
            guidance="Say which thought is replaced and by what; leave the others as they are.",
            body=revise,
            reply=Revision,
            example={"thought": "24 is 3 * 8, too, so 8 would do as well."},
            read=read_way_on,
        ),
        Stage(
            "continuation_decision",
            ("thought_adjustment", "branch_creation", "hypothesis_generation"),
            description="Decide how to continue.",
            guidance="With more to think, adjust the number of thoughts; with another way worth trying, open "
            "a branch; with a solution in sight, state it as a hypothesis.",
            body=decide,
            reply=Decision,
            max_output_tokens=SHORT_REPLY,
            example={"reason": "One step is missing.", "next": "thought_adjustment", "thoughtsLeft": 1},
            read=read_way_on,
        ),
        Stage(
            "thought_adjustment",
            ("thought_generation",),
            description="Change how many thoughts are expected.",
            guidance="Say how many thoughts are still needed and what for; then think the next one.",
            body=adjust,
        ),
        Stage(
            "branch_creation",
            ("thought_generation",),
            description="Open another line of thought.",
            guidance="Name the thought the branch leaves from and what it does differently.",
            body=branch,
        ),
        Stage(
            "hypothesis_generation",
            ("hypothesis_verification",),
            tested_by="hypothesis_verification",
            description="State a solution as a hypothesis.",
            guidance="Commit to one solution that could turn out wrong, and say what it rests on.",
            fields=(Field("hypothesis", _HYPOTHESIS),),
            body=hypothesize,
            reply=ReasonedAnswer,
            example={"reasoning": "4 * (7 - 1) * 1 makes 24.", "answer": "4 * (7 - 1) * 1"},
        ),
        Stage(
            "hypothesis_verification",
            ("solution_finalization", "continuation_decision"),
            description="Test the hypothesis.",
            guidance="Try to refute it with the thoughts so far and with the problem itself. If it holds, "
            "finalize it; otherwise say why not and decide how to go on.",
            fields=(Field.optional("holds", "boolean", "Whether the hypothesis agrees with every thought."),),
            body=test,
            reply=HypothesisTest,
            max_output_tokens=SHORT_REPLY,
            example={"reason": "It uses each number once and makes 24.", "holds": True},
            read=read_way_on,
        ),
        Stage(
            "solution_finalization",
            ("final_response",),
            description="Turn the hypothesis that held into the solution.",
            guidance="Write the solution in the form that was asked for; check that nothing is missing.",
            body=finalize,
            reply=AnswerReply,
            example={"answer": "4 * (7 - 1) * 1"},
        ),
        final_response(),
    ),
)
