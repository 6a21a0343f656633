"""The machine's reader of replies. Each stage declares how its replies are read."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from ..core.effects import Ask
from ..core.events import Answered
from ..core.json_schema import faults
from ..core.readings import ALL, EXTRACT, Reading, Unreadable, is_last_try
from ..core.strategy import Stage
from ..reading.coerce import without_misfits
from ..reading.form import no_reply, read_form
from ..reading.json_in_text import is_whole, json_values
from ..reading.mark import closes_mark
from ..reading.thinking import echo_in, without_thinking
from ..text import repeats_itself

UNMARKED_MODE: Final = "unmarked"
"""The mode of a reply without a mark whose whole text counts as the answer."""
_LEFT_OUT: Final = "left_out"
"""The key in `Ask.facts` that tells a stage's reader which entries of a reply were left out."""

T = TypeVar("T")


def read_reply(stage: Stage[Any], state: Any, effect: Ask, replies: Sequence[Answered]) -> Reading:
    """Read the latest reply in the way that the stage declares.

    At the last try, text without a mark counts as the answer (mode `unmarked`), unless `wants_value` is set. Other
    replies are read without the list entries that do not fit. The (latest) reply with the most entries left counts.

    Args:
        replies: The replies to this question that count as tries, oldest first.
    """
    latest = replies[-1]
    texts = [without_thinking(reply.text) for reply in replies]
    fault = _fault_of(effect, latest, texts[-1])
    reading = Reading(refusal=fault) if fault else _read(stage, state, effect, texts)
    is_lost = reading.refusal is not None and is_last_try(effect, replies)
    if is_lost and not reading.unmarked:
        usable = [n for n, reply in enumerate(replies, 1) if not _fault_of(effect, reply, texts[n - 1])]
        parts = (_read_in_part(stage, state, effect, texts[:n]) for n in reversed(usable))
        return max(filter(None, parts), key=lambda part: _count(part.value), default=reading)
    if is_lost and not effect.wants_value:
        whole = _read(stage, state, effect, [_last_work(effect, texts), f"<answer>{ALL}</answer>"])
        return reading if whole.refusal is not None else replace(whole, mode=UNMARKED_MODE)
    if reading.mode != "json" or not (latest.native and _fits(latest.text, effect.form or {})):
        return reading
    # A server may accept a schema without enforcing it.
    return replace(reading, mode="native")


def _fault_of(effect: Ask, reply: Answered, text: str) -> str:
    """Return the reason why a reply must not be read, or an empty text."""
    if reply.refused:
        return "the answer was declined; answer the question as asked"
    if not reply.truncated or is_whole(reply.text) or (effect.mark and closes_mark(text)):
        return ""
    fault = "repeated itself over and over" if repeats_itself(reply.text) else "was cut off before its end"
    return f"the reply {fault}; answer more briefly"


def _count(value: Any) -> int:
    plain = msgspec.to_builtins(value)
    inner = plain.values() if isinstance(plain, dict) else plain if isinstance(plain, list | tuple) else None
    return 1 if inner is None else sum(map(_count, inner))


def _read_in_part(stage: Stage[Any], state: Any, effect: Ask, texts: Sequence[str]) -> Reading | None:
    """Read the last reply without the list entries that do not fit. The stage decides whether the rest is enough."""
    *before, latest = texts
    found: list[Reading] = []
    for value, _ in json_values(latest):
        kept, lost = without_misfits(value, effect.form or {})
        asked = replace(effect, facts={**effect.facts, _LEFT_OUT: lost})
        part = _read(stage, state, asked, [*before, msgspec.json.encode(kept).decode()], in_part=True)
        reasons = (f"{place} was left out: {reason}" for place, reason in lost.items())
        found += [replace(part, lost="; ".join(filter(None, (*reasons, part.lost))))]
    found = [part for part in found or [_read(stage, state, effect, texts, in_part=True)] if not part.refusal]
    is_one = all(part.value == found[0].value for part in found)
    return found[0] if found and is_one and found[0].lost else None


def number_entries(ask: Ask, name: str, entries: Sequence[T]) -> Iterator[tuple[int, T]]:
    """Number the entries of a reply's list. Entries that the reader left out are counted, but not yielded."""
    left_out = ask.facts.get(_LEFT_OUT, ())
    return zip((n for n in count(1) if f"{name}[{n}]" not in left_out), entries, strict=False)


def _read(
    stage: Stage[Any], state: Any, effect: Ask, texts: Sequence[str], *, in_part: bool = False
) -> Reading:
    # The prompt's material may contain marks and objects with the form's fields, so a task replaces the prompt here.
    shown = "\n".join((effect.system, effect.by_hand, effect.mark, effect.task or effect.prompt))
    problem = str(effect.facts.get("problem") or "")
    if reason := no_reply(texts[-1], shown.replace(problem or "\0", "")):
        return Reading(refusal=reason)
    if stage.read is not None:
        result = stage.read(state, effect, texts)
    elif stage.reply is not None:
        result = read_form(texts, stage.reply)
    else:
        result = texts[-1], "text"
    lost, doubted = "", False
    if in_part and isinstance(result, Unreadable) and result.in_part is not None:
        result, lost, doubted = result.in_part, result.reason, result.is_doubt
    if not isinstance(result, tuple):
        return Reading(refusal=result.reason, doubted=result.is_doubt, unmarked=result.is_unmarked)
    value, mode = result
    if echo := echo_in(msgspec.to_builtins(value), shown, effect.form or {}, problem, effect.mark + EXTRACT):
        return Reading(refusal=f"{echo[:80]!r} only repeats the question; answer it")
    return Reading(mode, value, doubted=doubted, lost=lost)


def _last_work(effect: Ask, texts: Sequence[str]) -> str:
    """Return the latest reply to the question itself, rather than to the extraction question."""
    asked = [turn.objection for turn in effect.turns[-(len(texts) - 1) :]] if len(texts) > 1 else []
    work = [text for text, objection in zip(texts[1:], asked, strict=False) if EXTRACT not in objection]
    return work[-1] if work else texts[0]


def _fits(text: str, form: Mapping[str, Any]) -> bool:
    """Whether a reply is JSON that fits a schema exactly, without additional members."""
    value = next((value for value, _ in json_values(text, whole=True)), None)
    known = isinstance(value, dict) and value.keys() <= form.get("properties", value).keys()
    return known and next(faults(value, form, "the answer"), None) is None
