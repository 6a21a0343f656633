"""Actions: the tool calls in a reply, in whatever form they are written.

As data: `{"tool": …, "arguments": {…}}`, `{"name": …, "input": …}`, `{"action": "search", "action_input": …}`, with the
arguments beside the name, `{"search": {…}}`, a call written as text, and lists of these. As text: `Action: search[x]`
(arXiv:2210.03629), `Action: search {"query": "x"}` as transcripts show it, `Action: search` with `Action Input: x`
(LangChain), `search(query="x")`, `<tool_call>` tags. `finish[x]` and `Final Answer: x` hand in the answer.

Rule 1: every place that begins an action is one, with a fault where it cannot be carried out.
Rule 2: what a reply says after an observation of its own making does not count.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, cast

import msgspec
from msgspec import Meta, Struct

from ..core.strategy import UNASKED
from ..core.toolcard import (
    ANSWER,
    ToolCard,
    arguments_for,
    card_named,
    matched_arguments,
    no_such_tool,
    properties_of,
)
from ..patterns import lazy_pattern
from ..reading import parse
from ..reading.fit import Unreadable, fit
from ..reading.json_in_text import WHOLE_FENCE, json_values
from ..reading.names import NONE_WORDS, SYNONYMS, plain_name
from ..reading.no_answer import without_closing
from .answers import Answer


def _label(words: str, after: str = "") -> re.Pattern[str]:
    """Return the pattern of how a line of a transcript begins: `**Action 2:** `."""
    return lazy_pattern(
        rf"^[ \t>*_`#\-]*{words}(?:[ \t]*\d+)?[ \t*_`]*:[ \t*_{after}]*", re.IGNORECASE | re.MULTILINE
    )


_ACTION: Final = _label("action", "`")
_INPUT: Final = _label("action[ _]?input")
_FINAL: Final = _label("(?:final[ _])?answer")
_OBSERVED: Final = _label("observation")
_THOUGHT: Final = _label("thought")
_CALL: Final = lazy_pattern(r"([\w.\-]+)[ \t]*([\[(])")
_NAMED: Final = lazy_pattern(
    r"[`*\"]*(?P<tool>[\w.\-]+)[`*\"]*[ \t]*(?::[ \t]*|(?=[{\"]|\n|\Z))(?P<input>.*)", re.DOTALL
)
_TAG: Final = lazy_pattern(
    r"<(tool_call|function_call|tool_use)>(.*?)(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE
)
_AROUND: Final = " \t\r`*_.;,"
_BRACKETS: Final = {"[": "]", "(": ")"}
_FORM: Final = "write an action as `Action: tool[input]`, one to a line, with nothing after its bracket"
_SECOND: Final = "there is one answer; this is the second"
_ANSWERS: Final = frozenset({ANSWER, "finalanswer", "answer", "final"})
_TOOL_KEYS: Final = ("tool", *SYNONYMS["tool"])
_ARGUMENT_KEYS: Final = ("arguments", *SYNONYMS["arguments"])
_BESIDE_KEYS: Final = frozenset(
    {"id", "type", "thought", "reasoning", "reason", "plan", "description", "purpose", "why", "answer"}
    | {"finalanswer", "actions", "number", "step"}
)
"""Keys beside a call that are no arguments of it."""


class Action(Struct, frozen=True):
    """One call, as a thinker wants it."""

    tool: Annotated[str, Meta(min_length=1, description="Name of a tool from the list.")]
    arguments: Annotated[dict[str, Any], Meta(description="Its arguments, by name.")] = {}

    @property
    def text(self) -> str:
        """The call in one line; the same for equal calls."""
        return f"{self.tool} {msgspec.json.encode(self.arguments, order='deterministic').decode()}"


class Written(Action, frozen=True, omit_defaults=True):
    """A call as it was written down; one with a fault cannot be made, and its `tool` is the line it was to be in."""

    fault: str = ""

    @property
    def text(self) -> str:
        """The call in one line, or the line that was to be one."""
        return self.tool if self.fault else super().text


class TurnRead(Struct, frozen=True, omit_defaults=True):
    """What a reply says: a thought, the calls to make, and the answer."""

    thought: str = ""
    actions: tuple[Written, ...] = ()
    answer: str | None = None


class _AnyTurn(Struct, frozen=True):
    """The fields of a turn, however they are dressed."""

    thought: str = ""
    actions: Any = None
    tool: Annotated[Any, UNASKED] = None
    arguments: Annotated[Any, UNASKED] = None
    answer: Answer | None = None


def resolve_action(cards: Sequence[ToolCard], action: Written) -> Action | Unreadable:
    """Return the call an action comes down to: the tool's own name, the arguments as it wants them."""
    if action.fault:
        return Unreadable(action.fault)
    card = card_named(cards, action.tool)
    if card is None:
        return Unreadable(no_such_tool(cards, action.tool))
    arguments = matched_arguments(card, action.arguments)
    return arguments if isinstance(arguments, Unreadable) else Action(card.name, arguments)


def read_actions(cards: Sequence[ToolCard], text: str) -> tuple[TurnRead, str] | Unreadable:
    """Read a reply that acts or answers.

    Returns:
        What it says, without an action where it has none, and the rung it was read on.
    """
    if tags := [match[2] for match in _TAG.finditer(text)]:
        values = [next((value for value, _ in json_values(tag)), tag) for tag in tags]
        return _turn(cards, _TAG.sub("", text).strip(), values, None), "fenced"
    is_data = re.match(r"\s*(?:```\w*\s*)?[{\[]", text) is not None
    lines = None if is_data else _read_lines(cards, text)
    if lines is not None and lines.actions and not any(action.fault for action in lines.actions):
        return lines, "lines"
    data = _read_data(cards, text)
    says = not isinstance(data, Unreadable) and (data[0].actions or data[0].answer)
    return data if says or lines is None else (lines, "lines")


def action_lines(cards: Sequence[ToolCard], text: str) -> tuple[tuple[Written, ...], str | None]:
    """Read actions written as `Action: search[who wrote Emma]`; `finish[…]` holds the answer.

    Every line that begins an action becomes one, with a fault where it cannot be carried out, or the answer.
    """
    places = [(head.start(), head.end()) for head in _ACTION.finditer(text)]
    ends = [*(start for start, _ in places[1:]), len(text)]
    bodies = [text[start:end].strip() for (_, start), end in zip(places, ends, strict=False)]
    return _split_answer([_read_written(cards, body) for body in bodies])


def call_data(cards: Sequence[ToolCard], value: Any) -> Written | str | None:
    """Read one call that is written as data; a text is the answer, None: there is no call in it."""
    if isinstance(value, str):
        return None if NONE_WORDS.fullmatch(value) else _read_written(cards, value.strip())
    if not isinstance(value, Mapping):
        return None if value is None else Written(_line(value), fault="that is no action")
    plain = {plain_name(str(key)): (str(key), item) for key, item in value.items()}
    tool_key = next((key for key in _TOOL_KEYS if key in plain and isinstance(plain[key][1], str)), None)
    if tool_key is None:
        inner = next((item for _, item in plain.values() if isinstance(item, Mapping)), None)
        if len(value) == 1 and inner is not None and card_named(cards, next(iter(value))):
            return _make_call(cards, next(iter(value)), inner)
        wrapped = next((plain[key][1] for key in (*_TOOL_KEYS, "toolcall") if key in plain), None)
        return call_data(cards, wrapped)
    name: str = plain[tool_key][1]
    rest = {written: item for key, (written, item) in plain.items() if key not in _BESIDE_KEYS | {tool_key}}
    card = card_named(cards, name)
    own = {plain_name(key) for key in properties_of(card)} if card else set[str]()
    for key in _ARGUMENT_KEYS:
        # A tool may have an argument called `input`; it then stands among the others.
        if key in plain and not (key in own and len(rest) > 1):
            return _make_call(cards, name, plain[key][1])
    return _make_call(cards, name, rest or None)


def closing_bracket(text: str, opener: str = "[") -> int | None:
    """Return where the bracket is closed that was opened just before the text."""
    closer, depth = _BRACKETS[opener], 1
    for index, char in enumerate(text):
        depth += (char == opener) - (char == closer)
        if depth == 0:
            return index
    return None


# -- data


def _read_data(cards: Sequence[ToolCard], text: str) -> tuple[TurnRead, str] | Unreadable:
    whole = next((value for value, _ in json_values(text, whole=True)), None)
    if isinstance(whole, list) and len(whole) > 1:
        return _turn(cards, "", whole, None), "json"
    reading = parse.read_form(text, _AnyTurn)
    if isinstance(reading, Unreadable):
        return reading
    turn, rung = reading
    values = cast(list[Any], turn.actions) if isinstance(turn.actions, list) else [turn.actions]
    if turn.tool is not None or (isinstance(turn.actions, str) and turn.arguments is not None):
        # The call stands beside the thought: its arguments may, too, and the form knows nothing of them.
        raw = next((value for value, _ in json_values(text) if fit(value, _AnyTurn) == turn), None)
        values = [raw or {"tool": turn.tool or turn.actions, "arguments": turn.arguments}]
    answer = None if turn.answer is None else str(turn.answer).strip() or None
    return _turn(cards, turn.thought, values, answer), rung


def _turn(cards: Sequence[ToolCard], thought: str, values: Sequence[Any], answer: str | None) -> TurnRead:
    calls = [call for value in values if (call := call_data(cards, value)) is not None]
    actions, handed_in = _split_answer(calls)
    return TurnRead(thought.strip(), actions, answer or handed_in)


def _split_answer(calls: Sequence[Written | str]) -> tuple[tuple[Written, ...], str | None]:
    """Return the actions, and the answer that was handed in like one."""
    actions: list[Written] = []
    answer: str | None = None
    for call in calls:
        if isinstance(call, Written):
            actions.append(call)
        elif answer is None:
            answer = call
        else:
            actions.append(Written(f"{ANSWER}[{call}]", fault=_SECOND))
    return tuple(actions), answer


def _make_call(
    cards: Sequence[ToolCard], name: str, arguments: Any, opener: str = "", line: str = ""
) -> Written | str:
    """Return a call of a tool with its input: an object, or the text of its one argument; a text is the answer.

    Args:
        opener: The bracket that a text stood in, where it did.
        line: What it was written as; for one that cannot be made.
    """
    card, name = card_named(cards, name), name.strip()
    if card is None and plain_name(name) in _ANSWERS:
        values = list(arguments.values()) if isinstance(arguments, Mapping) else [arguments]
        return str(values[0]).strip() if len(values) == 1 else _line(arguments)
    if arguments is None or isinstance(arguments, Mapping):
        return Written(name, {str(key): value for key, value in (arguments or {}).items()})
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    found: Any = _listed_arguments(card, text, opener) if card and opener else None
    if not opener and text.strip().startswith("{"):
        # An input that is a JSON object as a whole.
        found = next((value for value, rung in json_values(text) if rung in ("json", "repaired")), None)
    if found is None:
        found = arguments_for(card, text) if card else {"input": text}
    if isinstance(found, Unreadable):
        return Written(_line(line or f"{name} {text}"), fault=found.reason)
    return Written(name, found)


def _line(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text.strip().partition("\n")[0].strip()[:500] or "(nothing)"


# -- text


def _read_lines(cards: Sequence[ToolCard], text: str) -> TurnRead | None:
    """Read a reply in the form of a transcript; None: it is not in that form."""
    first = _ACTION.search(text)
    final = _FINAL.search(text)
    if first is None and final is None:
        return None
    begun = min(match.start() for match in (first, final) if match is not None)
    observed = _OBSERVED.search(text, begun)
    text = text[: observed.start()] if observed else text
    final = _FINAL.search(text)
    acts_first = first is not None and final is not None and first.start() < final.start()
    actions, answer = action_lines(cards, text[: final.start()] if final and acts_first else text)
    if final is not None and answer is None:
        following = _ACTION.search(text, final.end()) or _THOUGHT.search(text, final.end())
        handed_in = without_closing(text[final.end() : following.start() if following else len(text)])
        answer = handed_in.strip(" \t*`") or None
    thought = _THOUGHT.sub("", text[:begun].strip(), count=1).strip()
    return TurnRead(thought, actions, answer)


def _read_written(cards: Sequence[ToolCard], body: str) -> Written | str:
    """Read what follows `Action:`; a text is the answer."""
    line = _line(body)
    if body.startswith(("{", "[", "```")):
        fenced = WHOLE_FENCE.match(body)
        value = next((value for value, _ in json_values(fenced["inside"] if fenced else body)), None)
        return (call_data(cards, value) if isinstance(value, Mapping) else None) or Written(line, fault=_FORM)
    call = _CALL.match(body)
    end = None if call is None else _input_end(body, call.end(), call[2])
    if call is None or end is None:
        return _read_named(cards, body) or Written(line, fault=_FORM)
    return _make_call(cards, call[1], body[call.end() : end], call[2], line)


def _read_named(cards: Sequence[ToolCard], body: str) -> Written | str | None:
    """Read a call whose input stands beside its name without brackets, or on a line that says `Action Input:`."""
    inside = _INPUT.search(body)
    name = (body[: inside.start()] if inside else body).strip(_AROUND + "\n\"'")
    if inside is not None and re.fullmatch(r"[\w.\-]+|final answer", name, re.IGNORECASE):
        text = _input_text(_until_mark(body[inside.end() :]))
        return _make_call(cards, name, text)
    match = _NAMED.fullmatch(_until_mark(body))
    card = card_named(cards, match["tool"]) if match else None
    if match is None or card is None:
        return None
    text = _input_text(match["input"])
    return _make_call(cards, match["tool"], text or None) if text or not properties_of(card) else None


def _input_end(text: str, start: int, opener: str) -> int | None:
    """Where the bracket is that closes an input, of which nothing may follow on its line; None: nowhere."""
    close = closing_bracket(text[start:], opener)
    first = start if close is None else start + close + 1
    rest = text[first:].partition("\n")[0].rstrip(_AROUND)
    if close is not None and not rest.strip(_AROUND):
        return first - 1
    # A bracket too many, or one inside quotes: the line then ends with the bracket that is meant.
    odd = rest.endswith(_BRACKETS[opener]) and (
        close is None or closing_bracket(rest, opener) == len(rest) - 1
    )
    return first + len(rest) - 1 if odd else None


def _until_mark(text: str) -> str:
    """Return a text up to the line that begins something else."""
    marks = [mark.start() for pattern in (_THOUGHT, _OBSERVED, _FINAL) if (mark := pattern.search(text))]
    return text[: min(marks, default=len(text))].strip()


def _input_text(text: str) -> str:
    """Return an input without the fence or the quotes around all of it."""
    text = text.strip()
    if fenced := WHOLE_FENCE.fullmatch(text):
        return fenced["inside"]
    text = text.strip("`")
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    try:
        return str(ast.literal_eval(text)) if quoted else text
    except (ValueError, SyntaxError):
        return text


def _listed_arguments(card: ToolCard, inside: str, opener: str) -> dict[str, Any] | None:
    """Read arguments written as Python writes them: `city="Lisbon", days_ahead=2`; None: they are not."""
    names = list(properties_of(card))
    try:
        call = cast(ast.Call, ast.parse(f"f({inside.strip()})", mode="eval").body)
        by_name = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
        in_order = [ast.literal_eval(value) for value in call.args]
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError, AttributeError):
        return None
    if len(in_order) == 1 and not by_name:
        found = arguments_for(card, in_order[0]) if isinstance(in_order[0], str) else None
        return None if isinstance(found, Unreadable) else found
    if (opener == "[" and in_order) or len(in_order) > len(names) or not by_name.keys() <= set(names):
        return None
    return {**dict(zip(names, in_order, strict=False)), **by_name} if by_name or in_order else None
