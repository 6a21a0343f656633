"""Actions: the tool calls in a reply, and the answer that ends the reply.

Rule 1: a call is data in the requested form, a call in the provider's protocol, a line `Action: tool[input]`, or a
        provider's own markup (see `WIRES`). If other text looks like a call, the model is asked again.
Rule 2: the markup of a call is never an argument, and a call is never an answer. A text about calls may be an answer.
Rule 3: the turn ends at the first answer, or at an observation that the model made up. Later text does not count.
"""

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from ..core.readings import Unreadable
from ..reading.form import read_form
from ..reading.json_in_text import json_values
from ..reading.mark import CALL, Marked, begins_call, find_marked
from ..reading.thinking import blank_quotes
from ..text import lazy_pattern, plain_name
from .answers import AnswerReply
from .toolcard import ANSWER, ToolCard, arguments_for, card_named, matched_arguments, no_such_tool

EARLY = "an answer counts only in a turn without actions, when their results are known"
_UNREADABLE: Final = Unreadable("a call in it cannot be read; call a tool as you were told")
_ANSWERS: Final = frozenset({ANSWER, "finalanswer", "answer", "final"})
_TOOL_KEYS: Final = ("tool", "name", "action", "toolname")
_ARGUMENT_KEYS: Final = ("arguments", "args", "parameters", "actioninput", "toolargs")
_LIST_KEYS: Final = ("actions", "toolcalls", "calls")
_BESIDE_KEYS: Final = frozenset({"id", "type", "thought", "reasoning", "answer"})
"""The keys that a call may have in addition to its name and its arguments."""
_RUNGS: Final = ("json", "fenced", "embedded", "repaired")


class Action(Struct, frozen=True):
    """A call in a reply."""

    tool: Annotated[str, Meta(min_length=1, description="Name of a tool from the list.")]
    arguments: Annotated[dict[str, Any], Meta(description="Its arguments, by name.")] = {}

    @property
    def text(self) -> str:
        """The call in one line. Equal calls have equal lines."""
        return f"{self.tool} {msgspec.json.encode(self.arguments, order='deterministic').decode()}"


class TurnRead(Struct, frozen=True, omit_defaults=True):
    """The content of a reply: a thought, the calls to make, and the answer."""

    thought: str = ""
    actions: tuple[Action, ...] = ()
    answer: str | None = None


class _Answered(AnswerReply, frozen=True, kw_only=True):
    """A turn that ends with the answer, as data or as marked text."""

    thought: str = ""


def resolve_action(cards: Sequence[ToolCard], action: Action) -> Action | Unreadable:
    """Correct the names and types in a call to match its tool. If the call has a fault, return `Unreadable`."""
    card = card_named(cards, action.tool)
    if card is None:
        return Unreadable(EARLY if action.tool == ANSWER else no_such_tool(cards, action.tool))
    arguments = matched_arguments(card, action.arguments)
    return arguments if isinstance(arguments, Unreadable) else Action(card.name, arguments)


def read_turn(cards: Sequence[ToolCard], texts: Sequence[str]) -> tuple[TurnRead, str] | Unreadable:
    """Read the tool calls or the answer in the latest reply. If there are both, the answer becomes one more call.

    Returns:
        The content of the reply and the name of the method that read it, or the reason why the reply is unreadable.
    """
    text, marked = texts[-1], None
    if not _is_protocol(text):
        text = _OBSERVED.split(text, 1)[0]
        marked = find_marked(text)
        if isinstance(marked, Unreadable) and not marked.is_unmarked:
            return _UNREADABLE
    acting = _read_calls(cards, marked.before if isinstance(marked, Marked) else text)
    if isinstance(acting, Unreadable):
        return acting
    thought, calls, rung = acting
    actions, answer = _split_answer(cards, calls)
    if not calls:
        reading = read_form(texts, _Answered)
        if isinstance(reading, Unreadable):
            is_text = reading.is_unmarked and not text.lstrip().startswith("{")
            return reading if is_text else Unreadable("give at least one action, or the answer")
        thought, answer, rung = reading[0].thought, reading[0].text, reading[1]
    elif isinstance(marked, Marked) and answer is None:
        answer = marked.answer
    if answer is not None and is_call(cards, answer):
        return _UNREADABLE
    if actions and answer is not None:
        actions, answer = (*actions, Action(ANSWER, {"answer": answer})), None
    return TurnRead(thought.strip(), actions, answer), rung


def has_markup(text: str) -> bool:
    """Whether a text contains call markup."""
    return _MARKUP.search(text) is not None


def is_call(cards: Sequence[ToolCard], answer: str) -> bool:
    """Whether an answer is a call or contains a call. A text about calls does not count."""
    shown, named = blank_quotes(answer), _NAMED.match(answer)
    is_named = named is not None and card_named(cards, named[named.lastindex or 0]) is not None
    return is_named or begins_call(answer) or any(wire.opens.search(shown) for wire in WIRES.values())


# -- the wires: providers' markup for calls


class Wire(Struct, frozen=True):
    """A provider's markup for a call in text.

    Attributes:
        opens: The text before the arguments. Its group `name` is the tool's name, unless the arguments have it.
        closes: The text after a call. The next call and the end of the text also end a call.
        pair: The text before an argument's value, with the argument's name. None means that the arguments are JSON.
        ends: The text after an argument's value.
    """

    opens: re.Pattern[str]
    closes: str
    pair: re.Pattern[str] | None = None
    ends: str = ""


_NAME: Final = r"(?P<name>[\w.\-]{1,100})"
WIRES: Final = {
    "Qwen3-Coder": Wire(
        lazy_pattern(rf"<function={_NAME}>"),
        "</function>",
        lazy_pattern(r"<parameter=([\w.\-]+)>"),
        "</parameter>",
    ),
    "Anthropic": Wire(
        lazy_pattern(rf'<invoke name="{_NAME}">'),
        "</invoke>",
        lazy_pattern(r'<parameter name="([\w.\-]+)">'),
        "</parameter>",
    ),
    "GLM": Wire(
        lazy_pattern(rf"<tool_call>\s*{_NAME}\s*(?=<arg_key>|</tool_call>)"),
        "</tool_call>",
        lazy_pattern(r"<arg_key>\s*([\w.\-]+)\s*</arg_key>\s*<arg_value>"),
        "</arg_value>",
    ),
    "Hermes": Wire(lazy_pattern(r"<tool_call>(?=\s*[{\[])"), "</tool_call>"),
    "DeepSeek": Wire(
        lazy_pattern(rf"<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?{_NAME}(?:<｜tool▁sep｜>|\s)"),
        "<｜tool▁call▁end｜>",
    ),
    "Kimi": Wire(
        lazy_pattern(
            rf"<\|tool_call_begin\|>\s*(?:functions\.)?{_NAME}(?::\d+)?\s*<\|tool_call_argument_begin\|>"
        ),
        "<|tool_call_end|>",
    ),
    "gpt-oss": Wire(
        lazy_pattern(rf"(?:<\|channel\|>commentary )?to=functions\.{_NAME}[^{{}}]{{0,60}}<\|message\|>"), "<|"
    ),
    "Mistral": Wire(lazy_pattern(rf"(?:\[TOOL_CALLS\])?{_NAME}\[ARGS\]"), "[TOOL_CALLS]"),
    "Mistral, earlier": Wire(lazy_pattern(r"\[TOOL_CALLS\](?=\s*[{\[])"), "</s>"),
    "Llama and Granite": Wire(lazy_pattern(r"<\|(?:python_tag|tool_call)\|>(?=\s*[{\[])"), "<|"),
    "DSPy": Wire(
        lazy_pattern(rf"\[\[ ## next_tool_name ## \]\]\s*{_NAME}\s*\[\[ ## next_tool_args ## \]\]"), "[[ ##"
    ),
}
"""Maps each provider to its markup. The first markup that occurs in a text is used to read the calls of that text."""
_PAPER: Final = lazy_pattern(
    rf"^[ \t>*_`#\-]*action(?:[ \t]*\d+)?[ \t*_]*:[ \t*_`]*{_NAME}"
    r"\[(?P<input>(?:[^\[\]\n]|\[[^\[\]\n]*\])*)\][ \t`*_.]*$",
    re.IGNORECASE | re.MULTILINE,
)
"""Matches a call as written in arXiv:2210.03629: `Action: search[who wrote Emma]`."""
_MARKUP: Final = lazy_pattern(
    rf"{CALL}|</?(?:\w{{1,20}}:)?(?:tool_calls?|function_calls?|invoke|parameter|arg_key|arg_value)\b[^<>\n]{{0,200}}>"
    r"|</function>|\[ARGS\]|<\|constrain|## next_tool_"
)
_NAMED: Final = lazy_pattern(
    r"\A[\s\[`]*(?:print\()?([\w.\-]+)[(\[]|<(\w[\w.\-]*)>"
    r"|^[ \t>*_`#\-]*action(?:[ \t]*\d+)?[ \t*_]*:[ \t*_`]*([\w.\-]+)",
    re.IGNORECASE | re.MULTILINE,
)
"""Matches the name of a tool in `search(…`, `<search>` and `Action: search`."""
_OBSERVED: Final = lazy_pattern(
    r"^[ \t>*_`#\-]*observation(?:[ \t]*\d+)?[ \t*_]*:", re.IGNORECASE | re.MULTILINE
)
_PROTOCOL: Final = '{"tool_calls":'
"""The beginning of the last line of a reply with calls in the provider's protocol."""
_decoder = json.JSONDecoder()


def _is_protocol(text: str) -> bool:
    return text.rpartition("\n")[2].startswith(_PROTOCOL)


def _read_calls(cards: Sequence[ToolCard], text: str) -> tuple[str, list[Action], str] | Unreadable:
    """Return the text before the first call, the calls, and the name of the method that read the calls."""
    if _is_protocol(text):
        prose, _, last = text.rpartition("\n")
        calls, rung = _calls_of(cards, _leading(last), is_all=True), "json"
        before = prose if calls else text
    elif wire := next((wire for wire in WIRES.values() if wire.opens.search(text)), None):
        calls, rung = _wire_calls(wire, text), "fenced"
        before = _MARKUP.sub("", wire.opens.split(text, 1)[0])
    elif acts := list(_PAPER.finditer(text)):
        calls, rung, before = [_paper_call(cards, act) for act in acts], "lines", text[: acts[0].start()]
    else:
        before, calls, rung = _data_calls(cards, text)
    if not isinstance(calls, list) or any(has_markup(call.text) for call in calls):
        return _UNREADABLE
    # If no call was read, but markup or a tool's name looks like a call, the text is unreadable.
    named = (match[match.lastindex or 0] for match in _NAMED.finditer(before))
    seems_to_call = has_markup(before) or any(card_named(cards, name) is not None for name in named)
    return (before, calls, rung) if calls or not seems_to_call else _UNREADABLE


def _wire_calls(wire: Wire, text: str) -> list[Action] | Unreadable:
    """Return the calls in a text that uses a provider's markup. If a call is incomplete, return `Unreadable`."""
    heads = list(wire.opens.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    calls: list[Action] = []
    for head, end in zip(heads, ends, strict=True):
        inside = text[head.end() : end].partition(wire.closes)[0]
        name = head.groupdict().get("name")
        found = _leading(inside) if wire.pair is None else _pairs(wire.pair, wire.ends, inside)
        listed = (
            _read_list(found) if name is None else [Action(name, found)] if isinstance(found, dict) else []
        )
        if isinstance(listed, Unreadable) or not listed:
            return _UNREADABLE
        calls += listed
    return calls


def _leading(text: str) -> Any:
    """Return the JSON value at the beginning of a text, even in a code fence. If there is none, return None."""
    text = text.strip().removeprefix("```json").lstrip()
    try:
        _, end = _decoder.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return next((value for value, _ in json_values(text[:end], whole=True)), None)


def _pairs(pair: re.Pattern[str], ends: str, inside: str) -> dict[str, Any] | None:
    """Map the names of tagged arguments to their texts. If text stands outside the tags, return None."""
    first, *rest = pair.split(inside)
    parts = [written.partition(ends) for written in rest[1::2]]
    if first.strip() or not all(end and not left.strip() for _, end, left in parts):
        return None
    return {name: value.strip("\n") for name, (value, _, _) in zip(rest[::2], parts, strict=True)}


def _paper_call(cards: Sequence[ToolCard], act: re.Match[str]) -> Action:
    card = card_named(cards, act["name"])
    found = arguments_for(card, act["input"]) if card else None
    return Action(act["name"], found if isinstance(found, dict) else {"input": act["input"]})


# -- data


def _data_calls(cards: Sequence[ToolCard], text: str) -> tuple[str, list[Action] | Unreadable, str]:
    """See `_read_calls`. If there is no call, the first part is the text outside the answer."""
    # `json_values` yields the last object of a text first. Here the first object of each rung comes first.
    found = [*json_values(text)][::-1]
    for value, rung in sorted(found, key=lambda each: _RUNGS.index(each[1])):
        members: dict[str, Any] = value if isinstance(value, dict) else {}
        if calls := _calls_of(cards, value, is_all=rung != "embedded"):
            thought = members.get("thought")
            if isinstance(calls, list) and members.get("answer"):
                calls.append(Action(ANSWER, {"answer": members["answer"]}))
            return thought if isinstance(thought, str) else text.partition("{")[0], calls, rung
        if rung == "json" and "answer" in members:
            return str(members.get("thought")), [], rung
    return text, [], ""


def _calls_of(cards: Sequence[ToolCard], value: Any, *, is_all: bool) -> list[Action] | Unreadable:
    """Return the calls in JSON data. `is_all` tells whether the data stands alone, rather than within prose."""
    plain = {plain_name(str(key)): item for key, item in value.items()} if isinstance(value, dict) else {}
    listed = next((plain[key] for key in _LIST_KEYS if plain.get(key)), None)
    if listed is not None:
        return _read_list(listed)
    calls = _read_list(plain["action"] if isinstance(plain.get("action"), dict) else value)
    if isinstance(calls, Unreadable):
        return []
    is_known = all(card_named(cards, call.tool) is not None for call in calls)
    is_call = is_all and (isinstance(value, list) or not plain.keys().isdisjoint(_ARGUMENT_KEYS))
    return calls if is_known or is_call else []


def _read_list(values: Any) -> list[Action] | Unreadable:
    """Read one call or a list of calls. If an entry is not a call, return `Unreadable`."""
    found = [_call_in(value) for value in (values if isinstance(values, list) else [values])]
    calls = [call for call in found if call is not None]
    return calls if len(calls) == len(found) else _UNREADABLE


def _call_in(value: Any) -> Action | None:
    """Return the call that an object describes, or None. The arguments may be an object or JSON text."""
    plain = {plain_name(str(key)): item for key, item in value.items()} if isinstance(value, dict) else {}
    if isinstance(plain.get("function"), dict):
        return _call_in(plain["function"])
    tool = next((key for key in _TOOL_KEYS if isinstance(plain.get(key), str)), None)
    key = next((key for key in _ARGUMENT_KEYS if key in plain), "")
    if tool is None or plain.keys() - {tool, key} - _BESIDE_KEYS:
        return None
    arguments = plain.get(key) or {}
    if isinstance(arguments, str):
        read = _leading(arguments)
        arguments = read if isinstance(read, dict) else {"input": arguments}
    return Action(plain[tool].strip(), arguments) if isinstance(arguments, dict) else None


def _split_answer(
    cards: Sequence[ToolCard], calls: Sequence[Action]
) -> tuple[tuple[Action, ...], str | None]:
    """Split calls at the call that gives the answer, such as `finish[42]`. Return the earlier calls and the answer."""
    for place, call in enumerate(calls):
        values = list(call.arguments.values())
        if plain_name(call.tool) in _ANSWERS and len(values) == 1 and card_named(cards, call.tool) is None:
            text = values[0] if isinstance(values[0], str) else msgspec.json.encode(values[0]).decode()
            return tuple(calls[:place]), text.strip() or None
    return tuple(calls), None
