"""Planned thinking: keep a nested plan, evaluate the last thought, execute the next step, refine, conclude.

Seed 001, "Chain of Thought Node Design".

Algorithm, for a problem x, with thoughts t_i and the plan p_i as it stands after t_i:

    (t_1, p_1) ~ p(t, p | x)                      set up the plan, execute a step           think
    (t_i, p_i) ~ p(t, p | x, t_1, p_1, …)         judge t_{i-1}, execute the next step      think
    p_i keeps the rules?                          checked in code; if not, asked again      think
    next thought needed? continue, or y = t_i     the step executed was the conclusion      think → think
    y                                             looked at; proved wrong: concluded anew   conclude

*Differs from the seed*: the rules are checked instead of hoped for (`blocks/plan.py`), and a thought that breaks one is
asked for again with the reason; what a plan leaves out stands as it stood, and only the plan as it stands is shown
with the thoughts; the concluding thought need not evaluate the one before; there is a limit, and the last thought
before it is told so; a text that was written in parts is put together; where no reply can be read, the latest thought
is the solution, unchecked; a solution that a verifier proves wrong is concluded again, up to `max_repairs` times.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from ..blocks import plan as rules
from ..blocks.answers import AnswerOptions, AnswerReply, AnswerState
from ..blocks.plan import DONE, PENDING, VERIFICATION_NEEDED, PlanStep
from ..core.bodies import Body, Conclusion, Request, Thought, go, stay
from ..core.details import AnswerDetails
from ..core.effects import Ask
from ..core.problem import subject_of
from ..core.strategy import Field, Stage, Strategy, final_response, problem_reception
from ..reading import parse
from ..reading.fit import Unreadable
from ..reading.open_task import is_open_task

# The three duties of a thought, the statuses and the conclusion are those of seed 001's instructions.
SYSTEM = f"""You solve a problem in thoughts, along a plan that you keep. In each thought you do three things.
1. Evaluate the thought before, in `evaluation`: correct, minor issues, or a major error, and why. Put errors right \
first, in the plan too: a result in doubt becomes "{VERIFICATION_NEEDED}". The first thought sets the plan up instead.
2. Execute the first step that is not done. Where it turns out complex, break it up into sub_steps and execute the \
first of them.
3. Give the plan as it stands now; steps that were done before may be left out. Statuses: "{PENDING}"; "{DONE}", with \
a short result; "{VERIFICATION_NEEDED}", with a mark that says why. A step with sub_steps is {DONE} only when all of \
them are. A step that is not needed any more is {DONE}, with a result that says why.
The last step of the plan is called "Conclusion". Execute it when all other steps are {DONE}: write the whole solution \
into current_thinking, all that the user is to read; mark it {DONE}, and only then set next_thought_needed to false.
Reply with one JSON object and nothing else, such as:
{{"evaluation": "whether thought 2 holds, and why", "current_thinking": "the work of this thought", \
"planning": [{{"description": "…", "status": "{DONE}", "result": "…"}}, {{"description": "…", "status": \
"{VERIFICATION_NEEDED}", "mark": "…", "sub_steps": [{{"description": "…", "status": "{PENDING}"}}]}}, \
{{"description": "Conclusion", "status": "{PENDING}"}}], "next_thought_needed": true}}"""

# What is asked before each thought is seed 001's next_thought_number, and its rule for the conclusion.
BEGIN = "Now think thought 1: set up the plan and execute its first step. Its evaluation is null."
THINK = "Now think thought {number}: evaluate thought {before} first, then execute the next step."
CONCLUDE = "Now think thought {number}: evaluate thought {before} first. If all results hold, execute the conclusion."
REPAIR = """Now think thought {number}: evaluate thought {before} in the light of this objection, put the plan right, \
and conclude anew."""
LAST = """Now think thought {number}, the last one there is room for: state the best solution that the results support \
and set next_thought_needed to false, even if steps are left open."""


class Options(AnswerOptions, frozen=True):
    """Options of planned thinking."""

    max_thoughts: Annotated[int, Meta(ge=1, le=1000, description="Most thoughts.")] = 20


class PlannedThought(Struct, frozen=True, kw_only=True):
    """A thought, and the plan as it stands after it."""

    evaluation: Annotated[
        str | None, Meta(description="Whether the thought before holds, and why; from the second thought on.")
    ] = None
    current_thinking: Annotated[str, Meta(description="The work of this thought.")]
    planning: Annotated[tuple[PlanStep, ...], Meta(description="The plan as it stands now, conclusion last.")]
    next_thought_needed: Annotated[bool, Meta(description="False only when the conclusion is executed.")]

    @property
    def text(self) -> str:
        """The evaluation, and the work."""
        evaluation = (self.evaluation or "").strip()
        return f"Evaluation: {evaluation}\n{self.current_thinking}" if evaluation else self.current_thinking


class State(AnswerState, frozen=True, omit_defaults=True, kw_only=True):
    """All thoughts, each with its plan, and the solution once it is there."""

    options: Options
    thoughts: tuple[PlannedThought, ...] = ()

    @property
    def plan(self) -> tuple[PlanStep, ...]:
        """The plan as it stands."""
        return self.thoughts[-1].planning if self.thoughts else ()

    @property
    def room(self) -> int:
        """How many thoughts may follow; a solution proved wrong makes room for another."""
        return self.options.max_thoughts + len(self.final.objections) - len(self.thoughts)

    @property
    def is_over(self) -> bool:
        """Whether no thought is to follow: the last one concluded, or there is no room."""
        return self.final.text is not None or self.room <= 0


def read_thought(state: State, ask: Ask, texts: Sequence[str]) -> tuple[PlannedThought, str] | Unreadable:
    """Read a thought, with what its plan leaves out as it stood, and hold it to the rules of the plan.

    The document that an open task asks for concludes the plan, where nothing else of it is open; at the last try any
    text does.
    """
    reading = parse.read_form(texts[-1], PlannedThought)
    if isinstance(reading, Unreadable) and rules.only_conclusion_left(
        state.plan or (PlanStep("Conclusion", PENDING),)
    ):
        reading = _read_text(state, texts[-1], is_last=len(texts) > ask.retries) or reading
    if isinstance(reading, Unreadable):
        return reading
    thought: PlannedThought = reading[0]
    plan = rules.updated_plan(state.plan, rules.with_plain_statuses(thought.planning))
    faults = rules.thought_faults(
        thought.current_thinking,
        plan,
        thought.next_thought_needed,
        first=not state.thoughts,
        last=state.room <= 1,
        evaluation=thought.evaluation,
    )
    broken = "; ".join(faults)
    return Unreadable(broken) if broken else (replace(thought, planning=plan), reading[1])


def _read_text(state: State, text: str, *, is_last: bool) -> tuple[PlannedThought, str] | None:
    subject = subject_of(state)
    found = parse.read_form(text, AnswerReply, subject=replace(subject, alone=not is_last))
    if not subject.is_open or isinstance(found, Unreadable):
        return None
    plan = (*state.plan[:-1], PlanStep("Conclusion", DONE))
    thought = PlannedThought(
        evaluation=found[0].reasoning or None,
        current_thinking=found[0].text,
        planning=plan,
        next_thought_needed=False,
    )
    return thought, found[1]


def think(s: State) -> Body:
    """(t_i, p_i) ~ p(t, p | x, t_1, p_1, …); stay as long as another thought is needed."""
    task = CONCLUDE if rules.only_conclusion_left(s.plan) else THINK
    s, thought = yield from _ask_for_thought(s, _question(s, "think", task if s.thoughts else BEGIN))
    return go(s, "conclude", thought) if s.is_over else stay(s, thought)


def conclude(s: State) -> Body:
    """y, looked at; one proved wrong is thought about again, up to the limit."""
    thoughts: tuple[Thought, ...] = ()
    if not s.is_over:
        s, thought = yield from _ask_for_thought(s, _question(s, "conclude", REPAIR))
        thoughts = (thought,)
        if not s.is_over:
            return stay(s, *thoughts)
    end, path = rules.conclusion(s.plan), [thought.current_thinking for thought in s.thoughts[:-1]]
    s, thoughts = yield from s.verify_answer(path, *thoughts, short=(end.result if end else None) or "")
    return s.repair_or_fail() if s.final.text is None else go(s, "final_response", *thoughts)


class PlannedThinkingDetails(AnswerDetails):
    """What the details of a result have."""

    plan: Annotated[list[dict[str, Any]], Meta(description="Its steps: `description`, `status`, `result`, …")]
    plan_text: Annotated[str, Meta(description="The plan as text.")]
    evolution: Annotated[list[dict[str, Any]], Meta(description="The thoughts, each with its `planning`.")]


def conclusion_so_far(state: State) -> Conclusion:
    """Return the solution with the evolution of the plan; before there is one, the latest thought."""
    final = state.final
    document = {
        "plan": rules.plan_data(state.plan),
        "plan_text": rules.format_plan(state.plan),
        "evolution": [
            {
                "thought_number": number,
                **({"evaluation": thought.evaluation} if thought.evaluation else {}),
                "current_thinking": thought.current_thinking,
                "planning": rules.plan_data(thought.planning),
                "next_thought_needed": thought.next_thought_needed,
            }
            for number, thought in enumerate(state.thoughts, 1)
        ],
        **final.document,
    }
    end, proved = rules.conclusion(state.plan), final.verification == "proved"
    is_worked_off = end is not None and all(step.is_done for step in state.plan)
    is_concluded = is_worked_off and not state.thoughts[-1].next_thought_needed
    if final.text is not None and (proved or is_concluded):
        short = None if end is None or proved else end.result
        return replace(state.conclude(document), short=short or None)
    latest = state.thoughts[-1].current_thinking if state.thoughts and not final.objections else None
    if state.room > 0:
        return Conclusion(final.text or latest, document=document)
    detail = f"the plan was not worked off within {len(state.thoughts)} thoughts"
    certainty = "best_so_far" if final.text is None else "given"
    return Conclusion(final.text or latest, "max_thoughts", detail, document, certainty=certainty)


def _ask_for_thought(state: State, question: Ask) -> Generator[Request, Any, tuple[State, Thought]]:
    """Ask for a thought; where none can be read, the latest is the solution if its plan has a result."""
    has_result = any(step.result for _, step in rules.number_steps(state.plan))
    best = state.thoughts[-1].current_thinking if has_result else None
    state, thought = yield from state.ask_or_fall_back(question, best, "the next thought")
    if thought is None:
        return state, Thought(f"Unchecked: {state.final.unchecked}")
    state = replace(state, thoughts=(*state.thoughts, thought))
    if not thought.next_thought_needed or state.room <= 0:
        state = replace(state, final=state.final.propose(_solution(state)))
    data = {"planning": rules.plan_data(thought.planning), "next_thought_needed": thought.next_thought_needed}
    return state, Thought(f"{thought.text}\n\nPlan:\n{rules.format_plan(thought.planning)}", data=data)


def _solution(state: State) -> str:
    """Return what the last thought concludes with, after what was written before of the same text.

    Where a text or code is asked for, it may have been written in parts: thoughts that open with a heading are its
    sections, of which a later one replaces an earlier one of that heading, and a conclusion without code rests on the
    last thought that has some. A conclusion that has them again is the whole.
    """
    *before, last = (thought.current_thinking.strip() for thought in state.thoughts)
    if not is_open_task(state.problem, state.options):
        return last
    headed = {text.partition("\n")[0]: text for text in (*before, last) if text.startswith("#")}
    sections = [text for heading, text in headed.items() if heading not in last]
    if last.startswith("#") and sections:
        return "\n\n".join((*sections, last))
    code = next((text for text in reversed(before) if "```" in text), None)
    return last if code is None or "```" in last or last.startswith("#") else f"{code}\n\n{last}"


def _question(state: State, kind: str, task: str) -> Ask:
    number = len(state.thoughts) + 1
    task = LAST if state.room <= 1 else task
    lines = [f"Thought {place}\n{thought.text}" for place, thought in enumerate(state.thoughts, 1)]
    # Only the last plan is shown, and with the task, so that one question begins as the one before it did.
    plan = f"The plan as it stands:\n{rules.format_plan(state.plan)}\n" if state.plan else ""
    return state.build_question(SYSTEM, kind, lines, plan + task.format(number=number, before=number - 1))


_PLANNING = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "description": {"type": "string"},
            "status": {"type": "string", "description": f"{PENDING}, {DONE} or {VERIFICATION_NEEDED}."},
            "result": {"type": ["string", "null"]},
            "mark": {"type": ["string", "null"]},
            "sub_steps": {"type": ["array", "null"]},
        },
        "required": ["description", "status"],
    },
    "minItems": 1,
    "description": "The whole plan as it stands now; the last step is the conclusion.",
}


def broken_rules(planning: Any) -> Iterator[str]:
    """Yield the rules that a plan breaks which a thinker gives as data."""
    try:
        plan = msgspec.convert(planning, tuple[PlanStep, ...])
    except (msgspec.ValidationError, RecursionError) as error:
        yield str(error)
        return
    yield from rules.plan_faults(rules.with_plain_statuses(plan))


_WORKED_OFF = {"description": "Add 17 and 25", "status": DONE, "result": "42"}
_EXAMPLE = {
    "evaluation": "Correct: 17 + 25 is 42.",
    "current_thinking": "The sum is 42.",
    "planning": [_WORKED_OFF, {"description": "Conclusion", "status": DONE, "result": "42"}],
    "next_thought_needed": False,
}

PLANNED_THINKING: Strategy[State, Options] = Strategy(
    name="planned_thinking",
    title="Planned thinking",
    source="this project",
    summary="Keeps and refines a nested plan and executes it step by step: for long, composite problems.",
    aliases=("chain_of_thought_node",),
    options=Options,
    state=State,
    conclude=conclusion_so_far,
    details=PlannedThinkingDetails,
    suits=("composite",),
    calls=3,
    stages=(
        problem_reception(("think",), "Say what is asked and what a good answer must contain."),
        Stage(
            "think",
            ("conclude",),
            description="Evaluate the last thought, execute the next step, bring the plan up to date.",
            guidance="Begin by judging the thought before; put errors right first. Execute one pending step, "
            "record its result, break up what turns out complex. Stay until only the conclusion is left.",
            fields=(Field("planning", _PLANNING, check=broken_rules),),
            repeats=True,
            body=think,
            reply=PlannedThought,
            example=_EXAMPLE,
            read=read_thought,
        ),
        Stage(
            "conclude",
            ("final_response",),
            description="Settle on the solution.",
            guidance="Sum the results of the plan up into the solution. If one turns out wrong here, say which, "
            "stay here with the plan put right, and conclude anew.",
            fields=(Field("planning", _PLANNING, required=False, check=broken_rules),),
            body=conclude,
            reply=PlannedThought,
            example=_EXAMPLE,
            read=read_thought,
        ),
        final_response(),
    ),
)
