"""Scratchpad: compute in small steps and write the state down after every step.

Nye et al. 2021, "Show Your Work: Scratchpads for Intermediate Computation with Language Models",
arXiv:2112.00114.

Algorithm, for an input x, with a computation whose state after i steps is s_i:

    s_0 ← the variables of x and their first values      asked                      scratchpad_initialization
    line_i, … ~ p(lines | x, s_0, line_1, s_1, …)        small operations           iterative_calculation
    s_i ← s_{i-1} with the changes of the lines          recorded in full           state_tracking
    is the result in s_i, or is i = limit?                                          continuation_decision
    y ← read off s_n                                     asked only if the last     result_extraction
                                                         line did not state it

*Differs from the paper*: Instructions replace the training on traces. A reply has any number of lines, and ends with
the state as data or with the marked result. The engine keeps the state, so an omitted variable keeps its value. After a
false equation between numbers, the model is asked once more. A refuted y is read off again, up to `max_repairs` times.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from ..blocks.answers import (
    MARKED,
    Answer,
    AnswerOptions,
    AnswerReply,
    AnswerState,
    ReasonedAnswer,
    answer_text,
    read_calculation,
)
from ..core.bodies import Body, Conclusion, Move, Thought, go, replies
from ..core.effects import Ask
from ..core.readings import Unreadable
from ..core.strategy import AnswerDetails, Field, Stage, Strategy, final_response, problem_reception
from ..reading.form import read_form
from ..reading.json_in_text import json_values

SYSTEM = "You compute with a scratchpad."

INITIALIZE = """Now set the scratchpad up: every variable that the computation needs, with its value at the start, and \
the rule by which they change. Reply with one JSON object:
{"stateVariables": {"name": value, …}, "rule": "…"}"""
"""Asks for the head of a trace (arXiv:2112.00114, figure 2: "Input: 2 9 + 5 7")."""

STATE = f"""After the last operation write down every variable as it is then: {{"name": value, …}}. Once they hold the \
result, {MARKED[0].lower()}{MARKED[1:]}"""

CALCULATE = """Now do the next operations, as many as you can be sure of: one a line, written out, each small enough \
to be checked at a glance, and with values from the scratchpad alone."""
"""Asks for lines of a trace. In the paper, each line has its state (arXiv:2112.00114, figure 2)."""

EXTRACT = "Now read the result off the scratchpad, without computing anything new."
"""Asks for the target (the result) of a trace, but only if the last line did not give the target."""

FINISH = "Now do what is left of the computation, as briefly as it allows, and give the result."
"""Our prompt. It is for a run that has no result but has used up its steps or calls."""

STARTED = "Scratchpad: {state}\nRule: {rule}"
LINE = "{calculation}\nScratchpad: {state}"

Variables = Annotated[dict[str, Any], Meta(description="Every variable with its value.")]


class Options(AnswerOptions, frozen=True):
    """Options of scratchpad."""

    max_steps: Annotated[int, Meta(ge=1, le=1000, description="Most operations.")] = 40


class Start(Struct, frozen=True, rename="camel"):
    """The scratchpad before the first operation."""

    state_variables: Variables
    rule: Annotated[str, Meta(description="How the variables change from step to step.")] = ""


class Operations(Struct, frozen=True, rename="camel"):
    """Some operations and the state after the last of them."""

    calculation: Annotated[str, Meta(min_length=1, description="The operations, one a line, written out.")]
    state_variables: Variables
    finished: Annotated[bool, Meta(description="Whether the variables hold the result.")]
    answer: Annotated[Answer | None, Meta(description="With finished: the result alone.")] = None


class State(AnswerState, frozen=True, omit_defaults=True, kw_only=True):
    """The state of the strategy: the scratchpad's lines as text, and the variables after the last line."""

    options: Options
    lines: tuple[str, ...] = ()
    variables: dict[str, Any] = field(default_factory=dict[str, Any])
    steps: int = 0
    finished: bool = False


def initialize(s: State) -> Body:
    """Ask for the first state s_0: the variables of problem x and their first values."""
    (reply,) = yield from replies(s, Start, _question(s, "initialize", INITIALIZE))
    variables, rule = reply.state_variables, reply.rule or "as the problem says"
    line = STARTED.format(state=_format_variables(variables), rule=rule)
    shown = STARTED.format(state=_show_variables(variables), rule=rule)
    s = replace(s, lines=(line,), variables=variables)
    return go(s, "iterative_calculation", Thought(shown, data={"stateVariables": variables}))


def read_operations(s: State, ask: Ask, texts: Sequence[str]) -> tuple[Operations, str] | Unreadable:
    """Read lines of operations. Refuse the first reply with a false equation, so that the model tries again."""
    return read_calculation(s.problem, ask, texts, _read_lines, lambda reply: reply.calculation)


def _read_lines(texts: Sequence[str]) -> tuple[Operations, str] | Unreadable:
    """Read lines of operations, followed by the variables, the marked result, or both."""
    reading = read_form(texts[-1], Operations)
    if not isinstance(reading, Unreadable):
        return reading
    marked, lines, answer = read_form(texts, ReasonedAnswer), texts[-1], None
    if not isinstance(marked, Unreadable):
        lines, answer = marked[0].reasoning or marked[0].text, marked[0].text
    variables = next((value for value, _ in json_values(lines) if isinstance(value, dict)), None)
    if isinstance(marked, Unreadable) and (variables is None or not marked.is_unmarked):
        return marked
    if variables is not None:
        lines = lines.rpartition("\n{")[0].strip("`json \n") or lines
    rung = "embedded" if isinstance(marked, Unreadable) else marked[1]
    return Operations(
        calculation=lines, state_variables=variables or {}, finished=answer is not None, answer=answer
    ), rung


def calculate(s: State) -> Body:
    """Ask for the next lines of operations: line_i, … ~ p(lines | x, s_0, line_1, s_1, …). Update the variables."""
    (reply,) = yield from replies(s, Operations, _question(s, "calculate", CALCULATE, STATE))
    variables = {**s.variables, **reply.state_variables}
    lines = (*s.lines, LINE.format(calculation=reply.calculation, state=_format_variables(variables)))
    steps = s.steps + len([line for line in reply.calculation.splitlines() if line.strip()])
    result = answer_text(reply.answer)
    final = s.final.propose(result) if reply.finished and result else s.final
    s = replace(s, lines=lines, variables=variables, steps=steps, finished=reply.finished, final=final)
    return go(s, "state_tracking", reply.calculation)


def track(s: State) -> Move:
    """Record the state s_i as a thought."""
    shown = _show_variables(s.variables)
    return go(s, "continuation_decision", Thought(shown, data={"stateVariables": s.variables}))


def decide(s: State) -> Move:
    """Continue the calculation unless the result is known or no step is left."""
    ends = s.finished or s.steps >= s.options.max_steps
    return go(s, "result_extraction" if ends else "iterative_calculation")


def extract(s: State) -> Body:
    """Settle the result y. If the last line and the last state s_n do not show y, ask for y."""
    values = list(s.variables.values())
    only = str(values[0]).strip() if len(values) == 1 and isinstance(values[0], str | int | float) else ""
    if only and s.finished and s.final.text is None and not s.final.objections:
        s = replace(s, final=s.final.propose(only))
    task = EXTRACT if s.finished else FINISH
    best = _show_variables(s.variables) if s.finished and s.variables else None
    return (yield from s.settle_answer(_question(s, "extract", task, MARKED), s.lines, best=best))


class ScratchpadDetails(AnswerDetails):
    """The details of a result."""

    steps: Annotated[int, Meta(description="Steps of the computation.")]
    state_variables: Annotated[dict[str, Any], Meta(description="The variables after the last step.")]


def conclude(state: State) -> Conclusion:
    """Return the result. If the limit of steps ended the computation early, the reason says so."""
    document = {"steps": state.steps, "state_variables": state.variables, **state.final.document}
    is_cut = state.steps >= state.options.max_steps and not state.finished
    cut = ("max_steps", f"the computation was cut after {state.steps} steps") if is_cut else None
    return state.conclude(document, cut=cut).because("", "iterative_calculation")


def _question(state: State, kind: str, task: str, mark: str = "") -> Ask:
    return state.build_question(SYSTEM, kind, state.lines, task, mark=mark)


def _format_variables(variables: dict[str, Any]) -> str:
    values = [f"{name} = {msgspec.json.encode(value).decode()}" for name, value in variables.items()]
    return ", ".join(values) or "(empty)"


def _show_variables(variables: dict[str, Any]) -> str:
    return _format_variables({name: value for name, value in variables.items() if value is not None})


_STATE = {"type": "object", "description": "Every variable with its value now."}

SCRATCHPAD: Strategy[State, Options] = Strategy(
    name="scratchpad",
    title="Scratchpad",
    source="arXiv:2112.00114",
    summary="Computes in small steps and writes the variables down after each: for algorithms and long calculations.",
    options=Options,
    state=State,
    conclude=conclude,
    close=lambda s: go(s, "result_extraction"),
    details=ScratchpadDetails,
    calls=2,
    least_calls=2,
    version=3,
    stages=(
        problem_reception(("scratchpad_initialization",), "Say what is to be computed and from what."),
        Stage(
            "scratchpad_initialization",
            ("iterative_calculation",),
            description="Set up the variables.",
            guidance="Name every variable the computation needs, its value at the start, and the rule by "
            "which they change.",
            fields=(Field("stateVariables", _STATE),),
            body=initialize,
            reply=Start,
            example={
                "stateVariables": {"carry": 0, "digits": []},
                "rule": "Add digit by digit from the right.",
            },
        ),
        Stage(
            "iterative_calculation",
            ("state_tracking",),
            description="Do small steps of the computation.",
            guidance="One operation that can be checked at a glance, on the values as they stand.",
            body=calculate,
            reply=Operations,
            read=read_operations,
            example={
                "calculation": "9 + 7 = 16",
                "stateVariables": {"carry": 1, "digits": [6]},
                "finished": True,
                "answer": "16",
            },
        ),
        Stage(
            "state_tracking",
            ("continuation_decision",),
            description="Write the state down.",
            guidance="List all variables after the step, changed or not; later steps read only this.",
            fields=(Field("stateVariables", _STATE),),
            body=track,
        ),
        Stage(
            "continuation_decision",
            ("iterative_calculation", "result_extraction"),
            description="Decide whether the computation is finished.",
            guidance="Go back for another step while something is left to compute; "
            "extract the result as soon as the state holds it.",
            fields=(Field.optional("finished", "boolean", "Whether the state holds the result."),),
            body=decide,
        ),
        Stage(
            "result_extraction",
            ("final_response",),
            description="Read the result off the state.",
            guidance="Take the result from the last state as it stands there; compute nothing new.",
            body=extract,
            reply=AnswerReply,
            example={"answer": "86"},
        ),
        final_response(),
    ),
)
