"""The reason for a result: a sentence for display, with the numbers of the thoughts on which the result rests.

Rule 1: a reason is a pure function of a run's conclusion, thoughts and options, so a replay gives the same reason.
Rule 2: a reason names its thoughts as "thought 2" or "thoughts 2, 3 and 5", which a page can link.
Rule 3: a reason quotes only fields of a model's reply and results of tools. A quotation is cut after a whole word.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from ..core.bodies import Conclusion, Thought
from ..text import lazy_pattern, shorten

MAX_REASON_CHARS: Final = 300
_MAX_NAMED: Final = 4
_JSON: Final = lazy_pattern(r"\A\s*[\[{]|[\[{]\s*[\"{\[]")


class Why(Struct, frozen=True):
    """The reason for a result, and the numbers of the thoughts that it rests on."""

    text: str
    thoughts: tuple[int, ...] = ()


def quote(text: Any, limit: int = 150, *, before: str = ": ") -> str:
    """Return `before` and the first words of a text. If the text is empty or contains JSON, return ""."""
    line = shorten(str(text or ""), limit, one_line=True).removesuffix(".")
    return f"{before}{line}" if line and not _JSON.search(line) else ""


def explain(end: Conclusion, thoughts: Sequence[Thought], options: Mapping[str, Any]) -> Why:
    """Explain the result of a run that has ended."""
    last, numbered = len(thoughts), [*enumerate(thoughts, 1)]
    behind = [n for n, each in numbered if {each.stage, str(each.data.get("node_id"))} & {*end.rests_on}]
    if end.answer is None or end.certainty == "best_so_far":
        missing = "There is no answer" if end.answer is None else "The run was stopped before its answer"
        latest = f"the last thought is thought {last}" if last else "no thought was recorded"
        return Why(f"{missing} ({end.reason.replace('_', ' ')}); {latest}", (last,) * bool(last))
    if end.why and end.certainty != "proved":
        named = f" ({_name(behind)})" if behind else ""
        text = shorten(end.why, MAX_REASON_CHARS - len(named), one_line=True)
        return Why(f"{text[0].upper()}{text[1:]}{named}", tuple(behind[-_MAX_NAMED:]))
    number = find_answer(thoughts, end.answer)
    found = [n for n in behind if n < number][-_MAX_NAMED:]
    rests = f" and rests on {_name(found)}" if found else ""
    checked, check = _check_of(end, numbered[number:], options)
    start = f"Thought {number} ends in the answer{rests}" if number else "No thought was recorded"
    return Why(
        shorten(f"{start}; {checked}", MAX_REASON_CHARS, one_line=True),
        tuple(n for n in (*found, number, check) if n),
    )


def find_answer(thoughts: Sequence[Thought], answer: str) -> int:
    """Return the number of the first thought that gives `answer`. If none does, use the last thought with an answer."""
    giving = [n for n, each in enumerate(thoughts, 1) if each.data.get("answer") is not None]
    same = [n for n in giving if thoughts[n - 1].data["answer"] == answer]
    return (same[:1] or giving[-1:] or [len(thoughts)])[0]


def _check_of(
    end: Conclusion, later: Sequence[tuple[int, Thought]], options: Mapping[str, Any]
) -> tuple[str, int]:
    """Describe how the answer was checked. Also return the number of the thought with the check, or 0."""
    if end.certainty == "proved":
        return "a verifier confirmed it", 0
    if unchecked := end.document.get("unchecked"):
        return f"it is unchecked{quote(unchecked)}", 0
    for number, thought in reversed(later):
        holds = thought.data.get("correct", thought.data.get("holds"))
        if isinstance(holds, bool):
            verb = "confirms" if holds else "doubts"
            return f"thought {number} {verb} it{quote(thought.text)}", number
    is_asked = options.get("verify") or options.get("check")
    return "its check did not decide" if is_asked else "no check was asked for", 0


def _name(numbers: Sequence[int]) -> str:
    *others, last = map(str, numbers[-_MAX_NAMED:])
    return f"thoughts {', '.join(others)} and {last}" if others else f"thought {last}"
