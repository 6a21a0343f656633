"""Run tree of thoughts as a machine: your loop sends messages to the machine and performs the directives it returns.

The machine runs `tree_of_thoughts` with `preset=seed`, and asks no last question for the answer. It waits for one call
at a time. `docs/tree-machine.md` shows a search, and lists the messages, directives and attributes of a machine.
"""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from . import machine as engine
from .core.options import read_options
from .core.pending import Pending
from .errors import UsageError
from .records import new_id
from .machine import Answered, Failed, Snapshot
from .reading.candidates import parse_scores as parse_scores, parse_thoughts as parse_thoughts
from .strategies.tree_of_thoughts import TREE_OF_THOUGHTS, State
from .strategies.tree_of_thoughts.asks import EVALUATION_PROMPT, GENERATION_PROMPT
from .text import without_surrogates

Directive = tuple[Any, ...]
ThoughtNode = dict[str, Any]
MESSAGES: Final = ("start", "thoughts_generated", "thoughts_evaluated", "llm_result", "llm_partial")
_PARTS: Final = ("id", "parent_id", "content", "score", "children", "depth")
_ONE_CALL_AT_A_TIME: Final = {"preset": "seed", "formulate_answer": False}


class TreeMachine(Struct, frozen=True, kw_only=True):
    """The state of a search between two messages. `new` and `update` return this state."""

    branching_factor: int
    max_depth: int
    traversal_strategy: str
    top_k: int
    min_depth: int
    max_nodes: int
    max_duration_ms: int | None
    beam_width: int | None
    early_success_threshold: float
    convergence_window: int
    min_score_improvement: float
    max_parse_retries: int
    status: str = "idle"
    prompt: str | None = None
    nodes: dict[str, ThoughtNode] = {}
    root_id: str | None = None
    current_node_id: str | None = None
    frontier: list[str] = []
    current_call_id: str | None = None
    streaming_text: str = ""
    pending_thoughts: list[dict[str, str]] = []
    pending_scores: dict[str, float] = {}
    parser_mode: str | None = None
    parse_retries: dict[str, int] = field(default_factory=lambda: {"generation": 0, "evaluation": 0})
    parser_errors: list[str] = []
    recent_best_scores: list[float] = []
    solution_path: list[str] = []
    termination_reason: str | None = None
    result: dict[str, Any] | None = None
    started_at: int | None = None
    usage: dict[str, int] = {}
    call_id: str = ""
    """The id of the first call. The ids of later calls are derived from it."""
    snapshot: Snapshot | None = None


OPTIONS: Final = TreeMachine.__struct_fields__[: TreeMachine.__struct_fields__.index("status")]
"""The names of the options of `new`."""


def new(**options: Any) -> TreeMachine:
    """Return an idle machine.

    Args:
        options: Any of `OPTIONS`. Omitted options have the defaults of `preset=seed`.

    Raises:
        UsageError: An option is unknown, or its value is out of range.
    """
    if unknown := next((name for name in options if name not in OPTIONS), None):
        message = f"the machine has no option {unknown!r}. Its options: {', '.join(OPTIONS)}."
        raise UsageError(message, option=unknown, choices=list(OPTIONS))
    read = read_options(TREE_OF_THOUGHTS, {**_ONE_CALL_AT_A_TIME, **options})
    return TreeMachine(**{name: getattr(read, name) for name in OPTIONS})


def update(
    machine: TreeMachine, message: tuple[Any, ...], env: Mapping[str, Any] | None = None
) -> tuple[TreeMachine, list[Directive]]:
    """Process a message, and return the new machine and the directives to perform.

    Args:
        env: `at_ms` is the time of the message in milliseconds; `started_at` and `max_duration_ms` use this clock. With
            the message `start`, `generation_prompt` and `evaluation_prompt` replace the default prompts.

    Raises:
        UsageError: The message is malformed or does not fit the status, or `start` has an empty prompt or call id.
    """
    env = env or {}
    at_ms: int | None = env.get("at_ms")
    match message:
        case ("start", str(prompt), str(call_id)):
            return _start(machine, prompt, call_id, env)
        case (kind, call_id, *_) if kind in MESSAGES[1:] and call_id != (machine.current_call_id or object()):
            return machine, []
        case ("llm_partial", _, str(delta), chunk_type):
            text = machine.streaming_text + (delta if chunk_type == "content" else "")
            return replace(machine, streaming_text=text), []
        case ("llm_result", _, ("ok", {**reply})):
            event = Answered(without_surrogates(str(reply.get("text") or machine.streaming_text)))
            usage, reported = Counter(machine.usage), reply.get("usage")
            # Providers also report null and nested members.
            counts = reported.items() if isinstance(reported, Mapping) else ()
            usage.update({name: count for name, count in counts if type(count) is int})
            machine = replace(machine, usage=dict(usage))
        case _:
            event = _read_result(machine, message)
    assert machine.snapshot is not None, "a call is under way"
    (asked,) = engine.wanted_effects(machine.snapshot)
    passed_ms = 0 if at_ms is None or machine.started_at is None else at_ms - machine.started_at
    step = engine.advance(machine.snapshot, asked.id, replace(event, at_ms=passed_ms))
    following = next(iter(step.effects), asked).id
    return _wait(replace(machine, streaming_text=""), step.snapshot, f"{machine.call_id}/{following}")


def _start(
    machine: TreeMachine, prompt: str, call_id: str, env: Mapping[str, Any]
) -> tuple[TreeMachine, list[Directive]]:
    if machine.status != "idle":
        reason = "busy" if machine.current_call_id else machine.status
        why = f"the machine is {machine.status}; `new` makes another"
        return machine, [("request_error", call_id, reason, why)]
    if not call_id:
        raise UsageError("the call id of a start is empty; `generate_call_id` makes one", field="call_id")
    prompts = {name: env[name] for name in ("generation_prompt", "evaluation_prompt") if name in env}
    options = {name: getattr(machine, name) for name in OPTIONS} | prompts | _ONE_CALL_AT_A_TIME
    machine = replace(machine, call_id=call_id, started_at=env.get("at_ms"))
    return _wait(machine, engine.begin(prompt, options=options).snapshot, call_id)


def _read_result(machine: TreeMachine, message: object) -> Answered | Failed:
    match message:
        case ("llm_result", _, ("error", reason)):
            return Failed("provider_error", without_surrogates(f"{reason}"))
        case ("thoughts_generated", _, []) if machine.status == "generating":
            return Failed("provider_error", "no thought was generated")
        case ("thoughts_generated", _, [*thoughts]) if machine.status == "generating":
            result: dict[str, Any] = {"thoughts": thoughts}
        case ("thoughts_evaluated", _, {**scores}) if machine.status == "evaluating":
            by_id = {each["id"]: each["content"] for each in machine.pending_thoughts}
            result = {"scores": {name: scores.get(name, scores.get(text)) for name, text in by_id.items()}}
        case _:
            why = f"the machine is {machine.status} and takes no {message!r:.80}; messages: {', '.join(MESSAGES)}"
            raise UsageError(why, field="message", choices=list(MESSAGES))
    return Answered(without_surrogates(json.dumps(result, ensure_ascii=False, default=str)))


def _wait(machine: TreeMachine, snapshot: Snapshot, call_id: str) -> tuple[TreeMachine, list[Directive]]:
    """Update the machine from a snapshot. Return the new machine and the directive for the pending call, if any."""
    asked = next(iter(engine.wanted_effects(snapshot)), None)
    replies = [reply.text for reply in asked.replies] if asked else []
    state: State = snapshot.state
    document, ended, status = engine.result(snapshot), snapshot.conclusion, engine.status(snapshot)
    tree, found, best = document["tree"]["nodes"], document["diagnostics"], document["best"]
    path: list[str] = best["path_ids"] if ended and best else []
    reason = ended and {"exhausted": "success" if path else "error"}.get(ended.reason, ended.reason)
    ending = {**document["termination"], "reason": reason, "status": status, "duration_ms": snapshot.at_ms}
    more = {"answer": ended and ended.answer, "termination": ending, "usage": machine.usage}
    fresh = (node.content for node in state.fresh if node.score is None)
    entries = [{"id": f"t{place}", "content": content} for place, content in enumerate(fresh, 1)]
    # The diagnostics count the retries of a phase only once the phase is over.
    phase, retries = "evaluation" if entries else "generation", found["parse_retries"]
    machine = replace(
        machine,
        snapshot=snapshot,
        status=status,
        prompt=state.problem,
        nodes={name: {part: tree[name][part] for part in _PARTS} for name in state.nodes},
        root_id=next(iter(state.nodes)),
        current_node_id=asked and asked.effect.about,
        current_call_id=asked and call_id,
        frontier=[*state.frontier],
        pending_thoughts=entries,
        pending_scores={k: v for reply in replies for k, v in parse_scores(reply, entries)[0].items()},
        parser_mode=state.mode,
        parse_retries={**retries, phase: retries[phase] + len(replies)},
        parser_errors=[*state.errors, *[f"{phase}_parse_retry"] * len(replies)],
        recent_best_scores=found["convergence"]["recent_best_scores"],
        solution_path=path,
        termination_reason=reason,
        result=ended and document | more,
    )
    return machine, [] if asked is None else [_directive(machine, asked, call_id)]


def _directive(machine: TreeMachine, asked: Pending, call_id: str) -> Directive:
    ask: Any = asked.effect
    context = [{"role": role, "content": text} for role, text in ask.messages]
    if asked.tries:
        return "call_llm_stream", call_id, context
    if machine.status == "generating":
        return "generate_thoughts", call_id, context, machine.branching_factor
    return "evaluate_thoughts", call_id, machine.pending_thoughts


def to_map(machine: TreeMachine) -> dict[str, Any]:
    """Return the machine as a dict of JSON data: its attributes, with the state of the search under `snapshot`."""
    saved = None if machine.snapshot is None else engine.to_map(machine.snapshot)
    # The text streamed so far may end with half a surrogate pair, which JSON cannot encode.
    plain = replace(machine, snapshot=None, streaming_text=without_surrogates(machine.streaming_text))
    return {**msgspec.to_builtins(plain), "snapshot": saved}


def from_map(saved: Mapping[str, Any]) -> TreeMachine:
    """Restore a machine from a dict made by `to_map`. Unknown keys are ignored; an empty dict gives an idle machine.

    Raises:
        UsageError: The dict is not from `to_map`, or a newer version made it.
    """
    try:
        options = {name: saved[name] for name in OPTIONS if name in saved}
        members = {**msgspec.to_builtins(new(**options)), **saved, "snapshot": None}
        machine, search = msgspec.convert(members, TreeMachine), saved.get("snapshot")
    except (TypeError, msgspec.ValidationError) as error:
        why = f"this is no machine: {error}. `to_map` makes such a dict, `new` a new machine."
        raise UsageError(why, option="saved") from None
    return machine if search is None else replace(machine, snapshot=engine.from_map(search))


def default_generation_prompt() -> str:
    """Return the default prompt that asks for thoughts."""
    return GENERATION_PROMPT


def default_evaluation_prompt() -> str:
    """Return the default prompt that asks for scores."""
    return EVALUATION_PROMPT


def generate_call_id() -> str:
    """Return a unique id for the first call. The machine derives the ids of later calls."""
    return f"call_{new_id()}"


def generate_node_id() -> str:
    """Return an id for a node of a tree that you build yourself. The machine numbers the nodes of its trees."""
    return f"node_{new_id()}"


def get_node(machine: TreeMachine, node_id: str) -> ThoughtNode | None:
    """Return the node with this id, or None if there is no such node."""
    return machine.nodes.get(node_id)


def get_children(machine: TreeMachine, node_id: str) -> list[ThoughtNode]:
    """Return a node's children, oldest first. An unknown node has none."""
    return [machine.nodes[child] for child in machine.nodes.get(node_id, {}).get("children", ())]


def get_path_to_node(machine: TreeMachine, node_id: str) -> list[ThoughtNode]:
    """Return the path from the root to a node, both included. For an unknown node, the path is empty."""
    node = machine.nodes.get(node_id)
    return [*get_path_to_node(machine, node["parent_id"]), node] if node else []


def find_leaves(machine: TreeMachine) -> list[ThoughtNode]:
    """Return the nodes without children, oldest first."""
    return [node for node in machine.nodes.values() if not node["children"]]


def find_best_leaf(machine: TreeMachine) -> ThoughtNode | None:
    """Return the leaf with the best score, or None before the first score. On a tie, the deeper leaf wins."""
    best = machine.snapshot.state.candidates if machine.snapshot else []
    return machine.nodes[best[0].id] if best else None
