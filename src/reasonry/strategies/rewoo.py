"""ReWOO: make the whole plan, then gather all evidence without reasoning in between, then solve the problem once.

Xu et al. 2023, "ReWOO: Decoupling Reasoning from Observations for Efficient Augmented Language Models",
arXiv:2305.18323.

Algorithm, for task x, with plans P_i and evidence E_i:

    (P_1, E_1 = tool_1[input_1]), … ← Planner(x)        one question                   planning_phase
    find which E_j each input_i refers to               this gives the order of calls  tool_call_specification
    E_i ← tool_i(input_i with E_j in place of #E_j)     independent calls in parallel  working_phase
    (P_1, E_1), …, (P_n, E_n)                           failed calls are marked        evidence_collection
    answer ← Solver(x, P_1, E_1, …, P_n, E_n)           one question                   solving_phase

*Differs from the paper*: The plan is structured data, since native tool calls cannot refer to each other's results. The
planner is told to extract the facts of a passage for the next call. The solver reasons first. If a plan has an unknown
tool, a dangling reference or a circle, the planner is asked again before any call. Independent calls run in parallel. A
call that needs failed evidence is skipped. After a refutation, the solver answers again, up to `max_repairs` times.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct, field
from msgspec.structs import asdict, replace

from ..blocks.answers import MARKED, AnswerOptions, AnswerState, ReasonedAnswer
from ..blocks.evidence import (
    PlannedCall,
    call_arguments,
    call_fault,
    evidence_id,
    evidence_text,
    plan_fault,
    references,
)
from ..blocks.programs import SANDBOX_TOOL
from ..blocks.toolcard import PROVER, ToolCard, card_named, cards_text, cards_that_serve
from ..blocks.why import quote
from ..core.bodies import Body, Conclusion, Move, Thought, go, request, stay
from ..core.effects import Ask, CallTool, Effect
from ..core.events import Failed, Reply
from ..core.readings import Unreadable
from ..core.strategy import Details, Field, Stage, Strategy, final_response, problem_reception
from ..core.type_schema import all_required, inlined_schema
from ..reading.form import read_form
from ..text import shorten

SYSTEM = "You solve problems with tools."

PLAN = """Now plan every call that the problem needs, before any is made, and do not solve it. Each call has an id, \
#E1, #E2, …, and a plan: the fact that it finds. Where a call needs the result of another, write that id in its input; \
all others run at the same time. A search brings a long passage: an LLM call takes the fact out of it for the next \
call. Reply with one JSON object:
{{"calls": [{{"id": "#E1", "plan": "…", "tool": "{tool}", "input": "…" or {{…}}}}]}}"""
"""The paper's planner (arXiv:2305.18323) asks for `Plan: … #E1 = tool[input]`. LLM steps have "Given context: #E1"."""

WORK = """This is one step of a larger plan. Now answer it exactly, and as briefly as it allows, from what is given \
and what you know."""
"""Our addition. The paper sends the prompt of an LLM step alone."""

SOLVE = """The plan was carried out; its evidence may be beside the point or missing. Now solve the problem: weigh the \
evidence, rely on it before your memory, and write out every calculation."""
"""The paper's solver prompt (arXiv:2305.18323, appendix) has "… some of these information contain noise so you should
trust them with caution", and asks for the answer at once."""

LLM = ToolCard(
    "LLM",
    "A language model like you: for steps that need understanding or common knowledge, not a lookup.",
    {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]},
)


class Options(AnswerOptions, frozen=True):
    """Options of ReWOO."""

    tools: Annotated[tuple[ToolCard, ...], Meta(description="Tools that the strategy may call.")] = ()
    max_calls: Annotated[int, Meta(ge=1, le=1000, description="Calls in a plan.")] = 20
    max_evidence_chars: Annotated[int, Meta(ge=100, description="Characters shown of a result.")] = 8_000


class CallPlan(Struct, frozen=True):
    """The plan."""

    calls: Annotated[tuple[PlannedCall, ...], Meta(min_length=1, description="All calls.")]


class WorkerReply(Struct, frozen=True, kw_only=True):
    """The reply of an LLM step."""

    thought: Annotated[str, Meta(description="Where the result stands, or how it follows.")] = ""
    result: Annotated[str | int | float, Meta(description="What the step was to find out.")]

    def __post_init__(self) -> None:
        if not str(self.result).strip():
            raise ValueError("the result is empty; if it cannot be found out, say so")


class State(AnswerState, frozen=True, omit_defaults=True, kw_only=True):
    """The state of the strategy: the plan, the evidence and the answer so far."""

    options: Options
    calls: tuple[PlannedCall, ...] = ()
    evidence: dict[str, Any] = field(default_factory=dict[str, Any])
    failed: dict[str, str] = field(default_factory=dict[str, str])
    """Maps the id of a call to the reason why its evidence is missing."""


def plan(s: State) -> Body:
    """Ask for the plan, in which call i brings evidence E_i: (P_1, #E_1 = tool_1[input_1]), … = Planner(x)."""
    cards = _cards(s)
    facts = {"kind": "rewoo_plan", "problem": s.problem, "tools": [card.name for card in cards]}
    form = all_required(inlined_schema(CallPlan))
    form["properties"]["calls"]["items"]["properties"]["tool"]["enum"] = facts["tools"]
    prompt = f"Problem: {s.problem}\n\nTools:\n{cards_text(cards)}"
    task = PLAN.format(tool=cards[0].name)
    (reply,) = yield request(s, Ask(prompt, SYSTEM, task=task, facts=facts, form=form))
    calls: tuple[PlannedCall, ...] = reply.value
    text = "\n".join(_step_text(call) for call in calls)
    data = {"calls": [_call_text(call) for call in calls]}
    return go(replace(s, calls=calls), "tool_call_specification", Thought(text, data=data))


def read_plan(
    state: State, ask: Ask, texts: Sequence[str]
) -> tuple[tuple[PlannedCall, ...], str] | Unreadable:
    """Read and check a plan. On the last try, drop the calls that cannot run and accept the rest of the plan."""
    cards, reading = _cards(state), read_form(texts, CallPlan)
    if isinstance(reading, Unreadable):
        return reading
    calls = [
        replace(
            call,
            id=evidence_id(call.id) or call.id or f"#E{number}",
            tool=card.name if (card := card_named(cards, call.tool)) else call.tool,
        )
        for number, call in enumerate(reading[0].calls, 1)
    ]
    fault = plan_fault(calls, cards)
    if fault is None and len(calls) > state.options.max_calls:
        fault = f"plan at most {state.options.max_calls} calls"
    if fault is None:
        return tuple(calls), reading[1]
    kept = _drop_faulty(calls, cards)
    if not kept or len(kept) > state.options.max_calls or plan_fault(kept, cards):
        return Unreadable(fault)
    lost = [call.id for call in calls if call not in kept and not fault.startswith(f"{call.id}: ")]
    more = f"; nor can be carried out: {', '.join(lost)}" if lost else ""
    return Unreadable(f"{fault}{more}", in_part=(tuple(kept), reading[1]))


def _drop_faulty(calls: Sequence[PlannedCall], cards: Sequence[ToolCard]) -> list[PlannedCall]:
    """Drop the faulty calls, and then the calls that refer to dropped calls."""
    kept, left = list[PlannedCall](), [call for call in calls if call_fault(call, cards) is None]
    while left != kept:
        kept, ids = left, {call.id for call in left}
        left = [call for call in kept if ids.issuperset(references(call.input))]
    return kept


def ready(state: State) -> tuple[PlannedCall, ...]:
    """Return the waiting calls that can run, because all the evidence they refer to is available."""
    waiting = [call for call in state.calls if call.id not in state.evidence | state.failed]
    return tuple(call for call in waiting if state.evidence.keys() >= set(references(call.input)))


def work(s: State) -> Body:
    """Run all calls that are ready, and keep their evidence E_i: E_i ← tool_i(input_i). Stay while calls are ready."""
    calls = ready(s)
    results = yield request(s, *(_effect(s, call) for call in calls), give_failures=True)
    evidence, failed = dict(s.evidence), dict(s.failed)
    for call, result in zip(calls, results, strict=True):
        if isinstance(result, Failed):
            failed[call.id] = result.message
        else:
            value = result.value.result if isinstance(result, Reply) else result.value
            is_short = len(text := evidence_text(value)) <= s.options.max_evidence_chars
            evidence[call.id] = value if is_short else shorten(text, s.options.max_evidence_chars)
    s = replace(s, evidence=evidence, failed=failed)
    thoughts = [Thought(_evidence_text(s, call.id), data={"evidence": call.id}) for call in calls]
    return stay(s, *thoughts) if ready(s) else go(s, "evidence_collection", *thoughts)


def collect(s: State) -> Move:
    """Record the reason for each call that did not run. This completes the evidence (P_1, E_1), …, (P_n, E_n)."""
    failed = dict(s.failed)
    for call in s.calls:
        if call.id not in s.evidence and call.id not in failed:
            missing = [name for name in references(call.input) if name not in s.evidence]
            failed[call.id] = f"not run: there is no {', '.join(missing) or 'call left'}"
    return go(replace(s, failed=failed), "solving_phase")


def solve(s: State) -> Body:
    """Ask for the answer y from the plans P_i and the evidence E_i: y = Solver(x, P_1, E_1, …, P_n, E_n)."""
    evidence: list[str] = []
    for call in s.calls:
        evidence.append(_evidence_text(s, call.id, "\n".join(evidence)))
    known = [f"{_step_text(call)}\n{found}" for call, found in zip(s.calls, evidence, strict=True)]
    question = s.build_question(SYSTEM, "rewoo_solve", known, SOLVE, mark=MARKED)
    return (yield from s.settle_answer(question, evidence))


class RewooDetails(Details):
    """The details of a result."""

    plan: Annotated[list[dict[str, Any]], Meta(description="`id`, `plan`, `tool`, `input`, why it `failed`.")]
    evidence: Annotated[dict[str, Any], Meta(description="The result of each call, by its id.")]


def conclude(state: State) -> Conclusion:
    """Return the answer, the plan and the evidence."""
    calls = [asdict(call) | {"failed": state.failed.get(call.id)} for call in state.calls]
    name, value = next(reversed(state.evidence.items()), ("", ""))
    why = f"the answer follows the evidence up to {name}{quote(evidence_text(value))}" if name else ""
    return state.conclude({"plan": calls, "evidence": state.evidence}).because(why, "working_phase")


def _cards(state: State) -> tuple[ToolCard, ...]:
    cards = cards_that_serve(state.options.tools)
    return cards if card_named(cards, LLM.name) else (*cards, LLM)


def _effect(state: State, call: PlannedCall) -> Effect:
    card = card_named(_cards(state), call.tool)
    assert card is not None, "checked when the plan was read"
    arguments = call_arguments(card, call, state.evidence)
    assert not isinstance(arguments, Unreadable), "checked when the plan was read"
    if card is not LLM:
        return CallTool(card.name, arguments)
    prompt = "\n".join(evidence_text(value) for value in arguments.values())
    facts = {"kind": "rewoo_worker", "problem": state.problem, "evidence": call.id}
    return Ask(prompt, mark=MARKED, task=WORK, facts=facts)


def _call_text(call: PlannedCall) -> str:
    return f"{call.id} = {call.tool}[{evidence_text(call.input)}]"


def _step_text(call: PlannedCall) -> str:
    return f"Plan: {call.plan}\n{_call_text(call)}" if call.plan else _call_text(call)


def _evidence_text(state: State, name: str, shown: str = "") -> str:
    if name in state.evidence:
        return f"Evidence {name}: {evidence_text(state.evidence[name], shown)}"
    return f"Evidence {name}: none ({state.failed.get(name, 'not run')})"


_EXAMPLE = {
    "calls": [
        {"id": "#E1", "plan": "Find the county.", "tool": "LLM", "input": "In which county is Steventon?"},
        {"id": "#E2", "plan": "Find its population.", "tool": "LLM", "input": "How many people live in #E1?"},
    ]
}

REWOO: Strategy[State, Options] = Strategy(
    name="rewoo",
    title="ReWOO",
    source="arXiv:2305.18323",
    summary="Plans all tool calls at once, runs them side by side and answers once: for lookups known in advance.",
    options=Options,
    state=State,
    conclude=conclude,
    close=collect,
    version=2,
    details=RewooDetails,
    resources=(SANDBOX_TOOL, PROVER, "search_documents"),
    calls=4,
    least_calls=2,
    stages=(
        problem_reception(
            ("planning_phase",), "Say what is asked and what a good answer must contain. Then plan."
        ),
        Stage(
            "planning_phase",
            ("tool_call_specification",),
            description="Plan all the way to the answer, without looking anything up.",
            guidance="List the pieces of evidence the answer needs and how each is to be got, "
            "taking results you do not have yet as given. Go on when the pieces suffice for the answer.",
            body=plan,
            reply=CallPlan,
            example=_EXAMPLE,
            read=read_plan,
            value=tuple[PlannedCall, ...],
        ),
        Stage(
            "tool_call_specification",
            ("working_phase",),
            description="Write each planned piece of evidence as a tool call.",
            guidance="Give every call an id (#E1, #E2, …) and refer to earlier evidence by its id. "
            "Calls that refer to no other can run side by side.",
            fields=(Field.mandatory("calls", "texts", "The calls, each as `#E1 = tool[input]`."),),
        ),
        Stage(
            "working_phase",
            ("evidence_collection",),
            description="Run the calls.",
            guidance="Run every call whose references are there, independent ones at once, with the evidence "
            "in place of its id. Stay until all have run; do not change the plan.",
            body=work,
            reply=WorkerReply,
            example={"thought": "Steventon is a village in Hampshire.", "result": "Hampshire"},
        ),
        Stage(
            "evidence_collection",
            ("solving_phase",),
            description="Bring the evidence together.",
            guidance="Set each piece beside the step of the plan it was for. Mark what failed as failed.",
            fields=(Field.mandatory("evidence", "object", 'What each call brought, by id: `{"#E1": …}`.'),),
            body=collect,
        ),
        Stage(
            "solving_phase",
            ("final_response",),
            description="Solve the problem from plan and evidence.",
            guidance="Answer in one go. Trust evidence over memory, and say so where a piece is missing.",
            body=solve,
            reply=ReasonedAnswer,
            example={"reasoning": "Evidence #E2 gives 1,400,000 for the county.", "answer": "1,400,000"},
        ),
        final_response(),
    ),
)
