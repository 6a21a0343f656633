"""ReAct: reasoning and acting alternate, and each observation informs the next action.

Yao et al. 2022, "ReAct: Synergizing Reasoning and Acting in Language Models", arXiv:2210.03629.

Algorithm, for thoughts â, actions a and observations o, with the context c_t = (â_1, a_1, o_1, …, â_t, a_t, o_t):

    â_1 ~ π(· | problem)             first thought, with its actions              initial_reasoning
    a_t                              the actions of the latest thought            action_planning
    o_t = environment(a_t)           several actions in parallel                  action_execution
    c_{t+1} = (c_t, â_t, a_t, o_t)   appended, never rewritten                    observation_reception
    â_{t+1} ~ π(· | c_{t+1})         next thought, with actions or the answer     reasoning_update
    finish[answer], or t = limit?                                                 evaluation_checkpoint
    answer                           asked only if the turns ended without one    solution_formulation

*Differs from the paper*: Actions are native tool calls if the provider supports them. Otherwise, they are a JSON
object; the paper's `Action: search[entity]` is also readable. The answer has a mark. A turn may take several
independent actions. Observations report repeated actions and failures. Instructions replace the examples. At the limit
of turns, the model is asked for the answer. If a verifier refutes an answer, the objection becomes an observation.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from ..blocks.actions import Action, TurnRead, read_turn, resolve_action
from ..blocks.answers import MARKED, Answer, AnswerState, ReasonedAnswer
from ..blocks.evidence import evidence_text
from ..blocks.programs import SANDBOX_TOOL
from ..blocks.toolcard import PROVER, ToolCard, card_named, cards_text, cards_that_serve, tools_data
from ..blocks.why import quote
from ..core.bodies import Body, Conclusion, Move, Thought, fail, go, replies, request
from ..core.effects import Ask, CallTool
from ..core.events import Failed
from ..core.readings import Unreadable
from ..core.strategy import Details, Field, Stage, Strategy, final_response, problem_reception
from ..reading.form import read_form
from ..text import shorten

SYSTEM = "You solve problems by reasoning and acting in turns."

BY_HAND = """Tools:
{tools}

To call tools, reply with one JSON object and nothing else; put several calls into it only if none needs the result of \
another:
{{"thought": "…", "actions": [{{"tool": "…", "arguments": {{…}}}}]}}"""
"""Replaces the paper's examples (arXiv:2210.03629, appendix C): `Thought: …`, `Action: search[entity]`."""

TASK = """Rely on observations, not on memory. After an error or an empty result try another way; never repeat a call \
unchanged. Now reason about what is known so far, then either call tools or give the answer."""

WITHOUT_TOOLS = "There are no tools. Now reason about what is known, then give the answer."

LAST_CALL = "No turns are left. Now reason from the observations and give the best answer that they support."

FEW_LEFT = "\n(Turns left before the answer is due: {count}.)"
FEW = 3
"""If at most this many turns are left, the model is told how many."""

MAX_ACTIONS = 16
STUCK = 3
"""The model must answer once the same action was taken in this many turns, or this many actions named unknown tools."""
TWICE = "(The same as action {place} of this turn; it was taken once.)"
REPEATED = "\n(You took this very action before, in turn {turn}. Take another one, or answer.)"


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of ReAct."""

    tools: Annotated[tuple[ToolCard, ...], Meta(description="Tools that the strategy may call.")] = ()
    max_steps: Annotated[int, Meta(ge=1, le=1000, description="Most turns before the answer.")] = 10
    max_observation_chars: Annotated[int, Meta(ge=100, description="Characters shown of a result.")] = 4000
    verify: Annotated[bool, Meta(description="Let the run's verifier check the answer.")] = False


class TurnReply(Struct, frozen=True):
    """A thought with actions, or with the answer."""

    thought: Annotated[str, Meta(description="What follows so far, and what to find out next.")]
    actions: Annotated[tuple[Action, ...], Meta(max_length=MAX_ACTIONS, description="Calls to make.")] = ()
    answer: Annotated[Answer | None, Meta(description="The answer alone, once it is settled.")] = None


class Interaction(Struct, frozen=True, omit_defaults=True):
    """A turn: a thought, its actions, and the observations that follow."""

    thought: str
    actions: tuple[Action, ...] = ()
    observations: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The turn as later questions show it: the reply in canonical form, then the observations."""
        text = self.thought
        if self.actions:
            text = msgspec.json.encode({"thought": self.thought, "actions": self.actions}).decode()
        return "\n".join((text, *(f"Observation: {observation}" for observation in self.observations)))


class State(AnswerState, frozen=True, omit_defaults=True, kw_only=True):
    """The state of the strategy: the context c_t, and finally the answer."""

    options: Options
    turns: tuple[Interaction, ...] = ()
    answered_at_limit: bool = False
    """Whether the model was asked for the answer because the turns had ended without one."""
    tool_calls: int = 0
    calls_left: int | None = None

    @property
    def cards(self) -> tuple[ToolCard, ...]:
        """The tools that the model may call."""
        return cards_that_serve(self.options.tools)

    @property
    def is_spent(self) -> bool:
        """Whether no turn is left."""
        return len(self.turns) >= self.options.max_steps


def context(state: State) -> str:
    """Return the context as text. The text begins with exactly the context of the previous turn."""
    turns = (f"Turn {number}\n{turn.text}" for number, turn in enumerate(state.turns, 1))
    return "\n\n".join((f"Problem: {state.problem}", *turns))


def read_reply(state: State, _: Ask, texts: Sequence[str]) -> tuple[TurnRead, str] | Unreadable:
    """Read a turn. Refuse a turn with more than `MAX_ACTIONS` actions."""
    reading = read_turn(state.cards, texts)
    if not isinstance(reading, Unreadable) and len(reading[0].actions) > MAX_ACTIONS:
        return Unreadable(f"take at most {MAX_ACTIONS} actions in a turn")
    return reading


def read_answer(state: State, _: Ask, texts: Sequence[str]) -> tuple[ReasonedAnswer, str] | Unreadable:
    """Read the answer. A reply with an action counts as unreadable, since no turn is left for the action."""
    reading = read_turn(state.cards, texts)
    if isinstance(reading, Unreadable):
        return reading
    if reading[0].actions or reading[0].answer is None:
        return Unreadable("no turn is left for an action; give the answer")
    found = read_form(texts, ReasonedAnswer)
    turn = ReasonedAnswer(reasoning=reading[0].thought, answer=reading[0].answer), reading[1]
    return turn if isinstance(found, Unreadable) else found


def think(to: str) -> Callable[[State], Body]:
    """Build a stage that asks for the next thought, â_{t+1}, and goes to the stage `to`."""

    def stage(s: State) -> Body:
        if s.final.text is not None or s.is_spent:
            return go(s, to)
        question = _question(s, "react_turn", TASK if s.cards else WITHOUT_TOOLS)
        if s.cards:
            by_hand = BY_HAND.format(tools=cards_text(s.cards))
            question = replace(question, tools=tools_data(s.cards), by_hand=by_hand)
        (reply,) = yield from replies(s, TurnRead, question)
        actions, answer = reply.actions, reply.answer
        data = {"actions": [action.text for action in actions]} if actions else {"answer": answer}
        final = s.final if answer is None else s.final.propose(answer)
        s = replace(s, turns=(*s.turns, Interaction(reply.thought, actions)), final=final)
        return go(s, to, Thought(reply.thought or str(answer), data=data))

    return stage


def act(s: State) -> Body:
    """Take actions a_t: o_t = environment(a_t). Add observations o_t to context c_t: c_{t+1} = (c_t, â_t, a_t, o_t)."""
    turn = s.turns[-1]
    resolved = [resolve_action(s.cards, action) for action in turn.actions]
    calls = {call.text: call for call in resolved if isinstance(call, Action)}
    effects = [CallTool(call.tool, call.arguments) for call in calls.values()]
    results = yield request(s, *effects, give_failures=True)
    observed: dict[str, str] = {}
    for key, result in zip(calls, results, strict=True):
        shown = "\n".join([context(s), *observed.values()])
        failed = isinstance(result, Failed)
        text = f"Error: {result.message}" if failed else evidence_text(result.value, shown) or "(nothing)"
        observed[key] = shorten(text, s.options.max_observation_chars)
    earlier = {_key(s, action): n for n, past in enumerate(s.turns[:-1], 1) for action in past.actions}
    places: dict[str, int] = {}
    observations: list[str] = []
    for place, (action, call) in enumerate(zip(turn.actions, resolved, strict=True), 1):
        key = _key(s, action)
        if places.setdefault(key, place) < place:
            observations.append(TWICE.format(place=places[key]))
            continue
        text = f"Error: {call.reason}" if isinstance(call, Unreadable) else observed[key]
        observations.append(text + (REPEATED.format(turn=earlier[key]) if key in earlier else ""))
    # The last call is reserved for the answer.
    calls = s.options.max_steps if s.calls_left is None else s.calls_left - 1
    left = min(s.options.max_steps - len(s.turns), calls)
    if observations and 0 < left <= FEW:
        observations[-1] += FEW_LEFT.format(count=left)
    s = _add_observations(s, *observations)
    return go(replace(s, tool_calls=s.tool_calls + len(results)), "observation_reception")


def record_observations(s: State) -> Move:
    """Record the observations of the latest turn as a thought."""
    turn = s.turns[-1]
    text = "\n".join(turn.observations)
    data: dict[str, Any] = {"observation": text}
    if len(turn.actions) > 1:
        pairs = zip(turn.actions, turn.observations, strict=False)
        data["observations"] = [{"action": action.text, "observation": seen} for action, seen in pairs]
    return go(s, "reasoning_update", *([Thought(text, data=data)] if text else []))


def decide(s: State) -> Body:
    """Verify the answer, if any. End the turns if the answer holds, if t = limit, or if the run is stuck."""
    if s.final.text is not None:
        s, _ = yield from s.verify_answer(_path(s), give_failures=True)
        s = s if s.final.text is not None else _add_observations(s, s.final.objections[-1])
    goes_on = s.final.text is None and not s.is_spent and not _is_stuck(s)
    return go(s, "action_planning" if goes_on else "solution_formulation")


def _is_stuck(s: State) -> bool:
    """Whether the same action was taken in three turns, or three actions asked for tools that do not exist."""
    taken = Counter(key for turn in s.turns for key in {_key(s, action) for action in turn.actions})
    unknown = [each for turn in s.turns for each in turn.actions if card_named(s.cards, each.tool) is None]
    return max([*taken.values(), len(unknown)]) >= STUCK


def formulate(s: State) -> Body:
    """Settle the answer. If there is no answer yet, ask for an answer and verify it."""
    if s.final.text is not None:
        return go(s, "final_response")
    (reply,) = yield from replies(s, ReasonedAnswer, _question(s, "answer", LAST_CALL))
    answer = reply.text
    s = replace(s, final=s.final.propose(answer), answered_at_limit=True)
    s, thoughts = yield from s.verify_answer(_path(s), Thought(answer, data={"answer": answer}))
    if s.final.text is None:
        return fail(s, "verification_failed", s.final.objections[-1])
    return go(s, "final_response", *thoughts)


def close(s: State) -> Move:
    """If there is an answer, verify it. Otherwise, ask for an answer from the observations so far."""
    return go(s, "solution_formulation" if s.final.text is None else "evaluation_checkpoint")


class ReactDetails(Details):
    """The details of a result."""

    steps: Annotated[int, Meta(description="Turns.")]
    tool_calls: Annotated[int, Meta(description="Calls of tools.")]


def conclude(state: State) -> Conclusion:
    """Return the answer. If the turns ended without an answer, the reason says why they ended."""
    document = {"steps": len(state.turns), "tool_calls": state.tool_calls}
    reason, end = "repeated_actions", f"the same action came {STUCK} times"
    if state.is_spent:
        reason, end = "max_steps", f"all {state.options.max_steps} turns were used"
    shorten = (reason, f"{end}; the answer rests on the results so far") if state.answered_at_limit else None
    pairs = (pair for turn in state.turns for pair in zip(turn.actions, turn.observations, strict=False))
    results = [(action.tool, text) for action, text in pairs if not text.startswith("Error: ")]
    tool, result = results[-1] if results else ("", "")
    found = quote(result.partition("\n")[0])
    why = f"the answer follows the last result of {tool}{found}" if tool else ""
    return state.conclude(document, cut=shorten).because(why, "observation_reception")


def _question(state: State, kind: str, task: str) -> Ask:
    names = [card.name for card in state.cards]
    facts = {"kind": kind, "problem": state.problem, "tools": names, "turn": len(state.turns) + 1}
    return Ask(context(state), SYSTEM, mark=MARKED, task=task, wants_value=state.options.verify, facts=facts)


def _key(state: State, action: Action) -> str:
    """Return a key that is equal for equivalent actions."""
    call = resolve_action(state.cards, action)
    return call.text if isinstance(call, Action) else action.text


def _add_observations(state: State, *observations: str) -> State:
    turn = state.turns[-1]
    turn = replace(turn, observations=(*turn.observations, *observations))
    return replace(state, turns=(*state.turns[:-1], turn))


def _path(state: State) -> list[str]:
    return [turn.thought for turn in state.turns]


_EXAMPLE = {
    "thought": "I need the author first.",
    "actions": [{"tool": "search", "arguments": {"query": "Emma"}}],
}
_TURN: dict[str, Any] = {"reply": TurnReply, "example": _EXAMPLE, "read": read_reply, "value": TurnRead}
"""The arguments of `Stage` that are the same for both stages that take a turn."""

REACT: Strategy[State, Options] = Strategy(
    name="react",
    title="ReAct",
    source="arXiv:2210.03629",
    summary="Thinks, calls a tool and thinks again with the result: for problems that need facts.",
    options=Options,
    state=State,
    conclude=conclude,
    close=close,
    version=3,
    details=ReactDetails,
    resources=(SANDBOX_TOOL, PROVER, "search_documents"),
    suits=("lookups", "reading"),
    calls=2,
    stages=(
        problem_reception(
            ("initial_reasoning",),
            "Say what is asked and what a good answer must contain. Then reason about it.",
        ),
        Stage(
            "initial_reasoning",
            ("action_planning",),
            description="Find out what is known and what is missing.",
            guidance="Set apart what you know for sure from what you would have to look up or compute. "
            "Go on when you know which missing piece to get first.",
            fields=(Field.optional("missing", "texts", "What must still be found out."),),
            body=think("action_planning"),
            **_TURN,
        ),
        Stage(
            "action_planning",
            ("action_execution",),
            description="Choose the next action.",
            guidance="Name one concrete action and its input, and why it is the most useful one now. "
            "Do not repeat an action whose result you already have.",
            fields=(
                Field.mandatory("action", "string", "The tool's name, or what is to be done."),
                Field.optional("input", "any", "What the action is given: text or an object."),
            ),
        ),
        Stage(
            "action_execution",
            ("observation_reception",),
            description="Carry the action out.",
            guidance="Do exactly what was planned. Note here only that it was done; the result comes next.",
            body=act,
        ),
        Stage(
            "observation_reception",
            ("reasoning_update",),
            description="Take in what the action brought.",
            guidance="Write down the result as it came, errors too, without reading anything into it.",
            fields=(Field.mandatory("observation", "string", "What came back, or the error."),),
            body=record_observations,
        ),
        Stage(
            "reasoning_update",
            ("evaluation_checkpoint",),
            description="Reason on with what was observed.",
            guidance="Say what the observation changes: what is settled, refuted, still open.",
            body=think("evaluation_checkpoint"),
            **_TURN,
        ),
        Stage(
            "evaluation_checkpoint",
            ("action_planning", "solution_formulation"),
            description="Decide whether enough is known.",
            guidance="With something important still open, plan another action. "
            "With all of it settled, or nothing left worth trying, formulate the solution.",
            fields=(
                Field.optional("sufficient", "boolean", "Whether what is known is enough for an answer."),
            ),
            body=decide,
        ),
        Stage(
            "solution_formulation",
            ("final_response",),
            description="Derive the answer from the observations.",
            guidance="Build the answer on what was observed; say which observation carries which part.",
            body=formulate,
            reply=ReasonedAnswer,
            example={"reasoning": "The observations name the author.", "answer": "Jane Austen"},
            read=read_answer,
        ),
        final_response(),
    ),
)
