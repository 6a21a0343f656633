r"""Read the mark around an answer, `<answer>…</answer>`, or an equally clear ending of a reply, such as `Answer: …`.

Rule 1: the content of the mark is the answer, complete and verbatim: a value, a letter, a program.
Rule 2: a mark in the thinking, in quotes, or with only dots in it does not count.
Rule 3: after a reply without a mark, or with two different marks, the model is asked again. Nothing is guessed.
"""

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ..core.readings import AROUND, UNMARKED, Unreadable
from ..text import lazy_pattern, strip_blank_lines
from .thinking import balances, blank_quotes
from .vote import agree, normalise, tidy

EMPTY: Final = "its <answer> is empty"

_BETWEEN: Final = AROUND.partition("<answer>")[2].partition("</answer>")[0].strip()
"""The text between the two tags in the request for a mark. A reply with this text only repeats the request."""
_TAG: Final = lazy_pattern(r"(?:(?<!\\)<\s?|<\s?(?P<close>/)\s?)answer\s?/?>", re.IGNORECASE)
_PLACEHOLDER: Final = lazy_pattern(r"[\s.…*_]*|\s+and\s+")
"""Matches the content of a mark that only shows how to mark, as in `between <answer> and </answer>`."""
_ANY_TAG: Final = lazy_pattern(r"<\s?(?P<close>[/\\]?)\s?(?P<name>\w+)")
CALL: Final = (
    r"<(?:\w{1,20}:)?(?:tool_calls?|function_calls?|invoke)\b[^<>\n]{0,200}>|<function[=>]|\[TOOL_CALLS\]"
    r"|<｜tool|<\|(?:tool|python_tag)|```tool_code"
)
"""Matches the beginning of a tool call that a provider left in the text of a reply."""
_CALL: Final = lazy_pattern(CALL, re.IGNORECASE)
CALLS: Final = "it calls a tool where an answer is wanted; write the answer"
_BOLD: Final = r"\*\*|__|\*|_|"
_LINE: Final = lazy_pattern(
    rf"[ \t>#-]{{0,20}}(?P<bold>{_BOLD})(?:final )?answer(?P<inside>[:：]?)(?P<end>{_BOLD})(?P<outside>[:：]?)"
    r"\s*(?P<answer>.*)",
    re.IGNORECASE,
)
_BOXED: Final = r"\\boxed\s?\{(?P<answer>(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}"
_BOX: Final = lazy_pattern(_BOXED)
_LAST_BOX: Final = lazy_pattern(rf"{_BOXED}[\s.$*\])}}\\]{{0,20}}\Z")
_GOES_ON: Final = lazy_pattern(r"[.!?。]\s+\w|[?:：][*_`\"]{0,3}\Z")
"""Matches if another sentence follows an answer, or if a text only announces an answer (with a colon at the end)."""
_MAX_LINE: Final = 120
_MAX_BOX: Final = 2_000


class Marked(Struct, frozen=True):
    """An answer, and the text before it. `mode` tells how the answer was found: `marked`, `stated` or `whole`."""

    answer: str
    before: str
    mode: str


def find_marked(text: str) -> Marked | Unreadable:
    """Return the marked answer of a reply. If there is none, or two answers differ, return `Unreadable`."""
    marks = _marks(text)
    if isinstance(marks, Unreadable):
        return marks
    found = [(start, text[begin:end], stop) for start, begin, end, stop in marks]
    filled = [
        (start, strip_blank_lines(answer.removeprefix(" ")), stop)
        for start, answer, stop in found
        if not _is_placeholder(answer)
    ]
    if not filled or any(not answer.strip() for _, answer, _ in found):
        return Unreadable(EMPTY if found else UNMARKED, is_unmarked=True)
    (start, _, stop), (_, last, _) = filled[0], filled[-1]
    for _, answer, _ in filled[:-1]:
        if not _is_same(answer, last):
            return Unreadable(f"it marks two answers, {answer[:80]!r} and {last[:80]!r}", is_unmarked=True)
    if not balances(last):
        return Unreadable("its <answer> holds a tag of thinking without its other half", is_unmarked=True)
    if begins_call(last):
        return Unreadable(CALLS)
    is_bold = text[:start].endswith("**") and text.startswith("**", stop)
    before = text[: start - 2 if is_bold else start].strip()
    return Marked(_without_emphasis(last), before, "marked")


def closes_mark(text: str) -> bool:
    """Whether the last mark of a text is closed. The answer in a closed mark was not cut off."""
    tags = [*_TAG.finditer(text)]
    return bool(tags) and bool(tags[-1]["close"])


def begins_call(answer: str) -> bool:
    """Whether an answer is a tool call, rather than a text about calls."""
    call = _CALL.match(answer)
    return call is not None and bool(answer[call.end() :].strip(" />"))


def calls_a_tool(text: str) -> Unreadable | None:
    """Return a fault if a reply without a mark contains markup of a tool call. Otherwise, return None."""
    shown = blank_quotes(text)
    if _CALL.search(shown) is None:
        return None
    is_call = any(_CALL.match(line.lstrip()) for line in shown.splitlines()) or shown.rstrip().endswith(">")
    return Unreadable(CALLS, is_unmarked=not is_call)


def find_ending(text: str) -> Marked | None:
    r"""Return the answer at the end of a reply: a last line `Answer: …`, `\boxed{…}` or `#### …`."""
    text = text.rstrip()
    before, _, line = text.rpartition("\n")
    if len(line) <= _MAX_LINE and (answer := _stated_in(line)):
        return _read_stated(answer, before) if not any(map(_stated_in, before.split("\n"))) else None
    if line.startswith("####") and text.count("####") == 1 and len(line) <= _MAX_LINE:
        return _read_stated(line.lstrip("# \t"), before)
    end = text[-_MAX_BOX:]
    box = _LAST_BOX.search(end)
    if box is None or len({normalise(match["answer"]).text for match in _BOX.finditer(end)}) > 1:
        return None
    return _read_stated(box["answer"], text[: len(text) - len(end) + box.start()])


def _read_stated(answer: str, before: str) -> Marked | None:
    is_answer = not _is_placeholder(answer) and _GOES_ON.search(answer) is None
    return Marked(tidy(answer), before.rstrip("$ \n"), "stated") if is_answer else None


def strip_mark(text: str) -> str:
    """Remove a mark that encloses the whole text. Return other texts unchanged."""
    marks = _marks(text)
    if isinstance(marks, Unreadable) or len(marks) != 1:
        return text
    start, begin, end, stop = marks[0]
    is_around = end < stop and not text[:start].strip() and not text[stop:].strip()
    return strip_blank_lines(text[begin:end]) if is_around else text


def _marks(text: str) -> Sequence[tuple[int, int, int, int]] | Unreadable:
    """Return the outermost marks, each with four positions: start, start of the content, end of the content, end.

    An unclosed mark extends to the end of the text.
    """
    tags = [*_TAG.finditer(blank_quotes(text))]
    if not tags:
        return ()
    marks: list[tuple[int, int, int, int]] = []
    opened, depth = tags[0], 0
    for place, tag in enumerate(tags):
        is_last = place == len(tags) - 1 and place > 0
        closes = bool(tag["close"]) or (is_last and not text[tag.end() :].strip("*_`# \n"))
        depth += -1 if closes else 1
        if depth == 1 and not closes:
            opened = tag
        elif depth == 0:
            marks.append((opened.start(), opened.end(), tag.start(), tag.end()))
        elif depth < 0:
            return Unreadable("it closes an <answer> that it did not open", is_unmarked=True)
    rest = text[opened.end() :]
    # An unclosed tag within a line, with sentences after it, may be only a mention of the mark.
    is_within = bool(text[: opened.start()].rpartition("\n")[2].strip(" *_`#>")) and bool(
        _GOES_ON.search(rest)
    )
    if depth > 1 or (depth == 1 and (is_within or _is_misspelled(rest))):
        return Unreadable("it does not close its <answer>", is_unmarked=True)
    return [*marks, (opened.start(), opened.end(), len(text), len(text))] if depth else marks


def _is_placeholder(answer: str) -> bool:
    return _PLACEHOLDER.fullmatch(answer) is not None or answer.strip() == _BETWEEN


def _is_misspelled(inside: str) -> bool:
    """Whether an unclosed mark contains an unmatched closing tag, which may be a misspelled `</answer>`."""
    tags = [(bool(tag["close"]), tag["name"].lower()) for tag in _ANY_TAG.finditer(inside)]
    closed = {name for closes, name in tags if closes}
    return "answer" in closed or not closed <= {name for closes, name in tags if not closes}


def _is_same(first: str, other: str) -> bool:
    is_value = "\n" not in first and "\n" not in other
    return first == other or (is_value and agree(normalise(first), normalise(other)))


def _without_emphasis(text: str) -> str:
    inside = text[2:-2]
    is_around = text.startswith("**") and text.endswith("**") and inside.strip() and "**" not in inside
    return inside.strip() if is_around and "\n" not in text else text


def _stated_in(line: str) -> str:
    """Return the answer in a line `Answer: …`, or an empty text for other lines."""
    match = _LINE.fullmatch(line)
    if match is None or bool(match["inside"]) == bool(match["outside"]):
        return ""
    answer = match["answer"].strip()
    if match["bold"] and not match["end"]:
        # The bold marks must enclose the whole line.
        return answer.removesuffix(match["bold"]).strip() if answer.endswith(match["bold"]) else ""
    return f"{match['end']}{answer}" if match["end"] and not match["bold"] else answer
