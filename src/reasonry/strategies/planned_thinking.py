"""Planned thinking: each thought evaluates the previous one, executes a step of a nested plan, and updates the plan.

The strategy implements the earlier design seed 001, "Chain of Thought Node Design".

Algorithm, for a problem x, with thoughts t_i and the plan p_i after t_i:

    (t_1, p_1) ~ p(t, p | x)                      set up the plan, execute a step           think
    (t_i, p_i) ~ p(t, p | x, t_1, p_1, …)         judge t_{i-1}, execute the next step      think
    does p_i keep the rules?                      code checks; if not, ask again            think
    is another thought needed? if not, y = t_i    no, once t_i executes the conclusion      think → think
    y                                             verify y; if y is refuted, ask again      conclude

*Differs from the seed*: Code enforces the rules of plans (`blocks/plan.py`). If a thought breaks a rule, the model is
asked again, with the reason. A reply may omit unchanged steps. A question shows all thoughts, but only the latest plan.
If a plan has no conclusion, the code adds one. If a thought ends the thinking before it executes the conclusion, the
model is asked for one last thought. The solution is the result of the conclusion. If there is none, it is the text of
the concluding thought, which may be a marked solution without an evaluation. The count of thoughts is limited, and the
question for the last allowed thought says so. If no reply is readable, but a step has a result, the latest thought is
the solution, unchecked. After a refutation, the model concludes again, up to `max_repairs` times.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from ..blocks import plan as rules
from ..blocks.answers import AnswerOptions, AnswerState, ReasonedAnswer
from ..blocks.plan import DONE, PENDING, VERIFICATION_NEEDED, PlanStep
from ..core.bodies import Body, Conclusion, Move, Request, Thought, go, stay
from ..core.effects import Ask
from ..core.readings import Unreadable
from ..core.strategy import AnswerDetails, Field, Stage, Strategy, final_response, problem_reception
from ..reading.form import read_form
from ..reading.json_in_text import json_values

SYSTEM = "You solve problems in thoughts, along a plan."

FORM = f"""Reply with one JSON object:
{{"evaluation": "…", "current_thinking": "…", "planning": [{{"description": "…", "status": "{PENDING}" or \
"{DONE}" or "{VERIFICATION_NEEDED}", "result": "…" or null, "mark": "…" or null, "sub_steps": […] or null}}], \
"next_thought_needed": true or false}}"""

# The duties of a thought, the statuses and the conclusion come from the instructions of seed 001.
BEGIN = """Now write thought 1: plan in short steps, and execute the first."""
THINK = """Now write thought {number}: evaluate thought {before}, and put errors right first. Then execute the next \
step, or break it up into sub_steps if it is complex. Steps done before may be left out."""
CONCLUDE = """Now write thought {number}: evaluate thought {before}. If all results hold, execute the conclusion: its \
result is the whole answer, and no thought is needed after it."""
REPAIR = """Now write thought {number}: evaluate thought {before} in the light of this objection, put the plan right, \
and conclude anew: the result of the conclusion is the whole answer."""
LAST = """Now write thought {number}, the last one there is room for: execute the conclusion, even if steps are left \
open. Its result is the best answer that the results support."""


class Options(AnswerOptions, frozen=True):
    """Options of planned thinking."""

    max_thoughts: Annotated[int, Meta(ge=1, le=1000, description="Most thoughts.")] = 20


class PlannedThought(Struct, frozen=True, kw_only=True):
    """A thought, and the plan after it."""

    evaluation: Annotated[
        str | None, Meta(description="Whether the thought before holds, and why; from the second thought on.")
    ] = None
    current_thinking: Annotated[str, Meta(description="The work of this thought.")]
    planning: Annotated[tuple[PlanStep, ...], Meta(description="The plan as it stands now, conclusion last.")]
    next_thought_needed: Annotated[bool, Meta(description="False only when the conclusion is executed.")]

    @property
    def text(self) -> str:
        """The evaluation of the previous thought, if any, and the work of this thought."""
        evaluation = (self.evaluation or "").strip()
        return f"Evaluation: {evaluation}\n{self.current_thinking}" if evaluation else self.current_thinking


class State(AnswerState, frozen=True, omit_defaults=True, kw_only=True):
    """The state of the strategy: all thoughts, each with its plan, and finally the solution."""

    options: Options
    thoughts: tuple[PlannedThought, ...] = ()

    @property
    def plan(self) -> tuple[PlanStep, ...]:
        """The current plan."""
        return self.thoughts[-1].planning if self.thoughts else ()

    @property
    def room(self) -> int:
        """How many more thoughts are allowed. Each refutation of a solution allows one more thought."""
        return self.options.max_thoughts + len(self.final.objections) - len(self.thoughts)

    @property
    def is_over(self) -> bool:
        """Whether the thinking is over: there is a solution, or no more thought is allowed."""
        return self.final.text is not None or self.room <= 0


def read_thought(state: State, ask: Ask, texts: Sequence[str]) -> tuple[PlannedThought, str] | Unreadable:
    """Read a thought, restore the omitted steps of its plan, and check the plan's rules.

    When only the conclusion is left, a text with a marked answer also counts as a thought: it is the solution.
    """
    reading = read_form(texts[-1], PlannedThought)
    concludes = rules.only_conclusion_left(state.plan) or state.room <= 1 or ask.facts["kind"] == "conclude"
    if isinstance(reading, Unreadable) and concludes:
        reading = _read_solution(state, texts, reading)
    if isinstance(reading, Unreadable):
        return reading
    thought: PlannedThought = reading[0]
    plan = rules.with_conclusion(rules.updated_plan(state.plan, rules.with_plain_statuses(thought.planning)))
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


def _read_solution(
    state: State, texts: Sequence[str], fault: Unreadable
) -> tuple[PlannedThought, str] | Unreadable:
    """Read the marked solution. If there is none, return `fault` for a reply with JSON, otherwise a new error."""
    found = read_form(texts, ReasonedAnswer)
    if isinstance(found, Unreadable):
        return fault if any(True for _ in json_values(texts[-1])) else found
    solution: ReasonedAnswer = found[0]
    plan = (*state.plan[:-1], PlanStep("Conclusion", DONE, solution.text))
    work = solution.reasoning.strip() or solution.text
    return PlannedThought(current_thinking=work, planning=plan, next_thought_needed=False), found[1]


def think(s: State) -> Body:
    """Ask for thought t_i and plan p_i: (t_i, p_i) ~ p(t, p | x, t_1, p_1, …). Repeat while thoughts are needed."""
    task = CONCLUDE if rules.only_conclusion_left(s.plan) else THINK
    s, thought = yield from _ask_for_thought(s, _question(s, "think", task if s.thoughts else BEGIN))
    if not s.is_over and not s.thoughts[-1].next_thought_needed:
        return go(_with_room_for_one(s), "conclude", thought)
    return go(s, "conclude", thought) if s.is_over else stay(s, thought)


def conclude(s: State) -> Body:
    """Verify the solution y. After a refutation, ask for another solution, up to `max_repairs` times."""
    thoughts: tuple[Thought, ...] = ()
    if not s.is_over:
        s, thought = yield from _ask_for_thought(s, _question(s, "conclude", REPAIR))
        thoughts = (thought,)
        if not s.is_over:
            return stay(s, *thoughts)
    s, thoughts = yield from s.verify_answer(
        [thought.current_thinking for thought in s.thoughts[:-1]], *thoughts
    )
    return s.repair_or_fail() if s.final.text is None else go(s, "final_response", *thoughts)


def close(s: State) -> Move:
    """Allow one more thought, and ask for it as the last thought."""
    return go(_with_room_for_one(s), "conclude")


class PlannedThinkingDetails(AnswerDetails):
    """The details of a result."""

    plan: Annotated[list[dict[str, Any]], Meta(description="Its steps: `description`, `status`, `result`, …")]
    plan_text: Annotated[str, Meta(description="The plan as text.")]
    evolution: Annotated[list[dict[str, Any]], Meta(description="The thoughts, each with its `planning`.")]


def conclusion_so_far(state: State) -> Conclusion:
    """Return the solution, the evolution of the plan, and whether the plan was completed."""
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
        return state.conclude(document)
    if state.room > 0:
        return Conclusion(final.text, document=document)
    detail = f"the plan was not worked off within {len(state.thoughts)} thoughts"
    certainty = "best_so_far" if final.text is None else "given"
    return Conclusion(final.text, "max_thoughts", detail, document, certainty=certainty)


def _with_room_for_one(state: State) -> State:
    return replace(state, options=replace(state.options, max_thoughts=len(state.thoughts) + 1))


def _ask_for_thought(state: State, question: Ask) -> Generator[Request, Any, tuple[State, Thought]]:
    """Ask for a thought. If no reply is readable, end with the solution so far, if any."""
    best = _solution(state) if any(step.result for _, step in rules.number_steps(state.plan)) else None
    state, thought = yield from state.ask_or_fall_back(question, best, "the next thought")
    if thought is None:
        return state, Thought(f"Unchecked: {state.final.unchecked}")
    state = replace(state, thoughts=(*state.thoughts, thought))
    end = rules.conclusion(thought.planning)
    is_concluded = end is not None and end.is_done and not thought.next_thought_needed
    if is_concluded or state.room <= 0:
        state = replace(state, final=state.final.propose(_solution(state)))
    data = {"planning": rules.plan_data(thought.planning), "next_thought_needed": thought.next_thought_needed}
    return state, Thought(f"{thought.text}\n\nPlan:\n{rules.format_plan(thought.planning)}", data=data)


def _solution(state: State) -> str:
    """Return the result of the finished conclusion step. If there is no result, return the latest thought's text."""
    end = rules.conclusion(state.plan)
    result = (end.result or "").strip() if end is not None and end.is_done else ""
    return result or state.thoughts[-1].current_thinking.strip()


def _question(state: State, kind: str, task: str) -> Ask:
    number = len(state.thoughts) + 1
    task = LAST if state.room <= 1 else task
    lines = [f"Thought {place}\n{thought.text}" for place, thought in enumerate(state.thoughts, 1)]
    task = f"{task.format(number=number, before=number - 1)} {FORM}"
    question = state.build_question(SYSTEM, kind, lines, task)
    # The plan is at the end of a question, so that successive questions begin with the same text.
    plan = f"\n\nThe plan as it stands:\n{rules.format_plan(state.plan)}" if state.plan else ""
    return replace(question, prompt=question.prompt + plan)


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
    """Yield a sentence for each rule that a plan breaks. `planning` is the plan in a thought's data."""
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
    summary="Writes a plan with sub-steps, refines it and carries it out: for long problems of several parts.",
    aliases=("chain_of_thought_node",),
    options=Options,
    state=State,
    conclude=conclusion_so_far,
    close=close,
    details=PlannedThinkingDetails,
    calls=3,
    version=2,
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
