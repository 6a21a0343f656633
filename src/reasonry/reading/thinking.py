"""Detect text in a reply that is not the model's own answer: quotations, hidden thinking, an echo of the form.

Rule 1: only thinking at the start of a reply is removed. It begins with a tag, or it ends with a closing tag before a
        line end or an answer, outside JSON, fences, quotes and the mark. Text after the thinking is never removed.
Rule 2: words shared with the question do not make an echo, because an answer may be one of the question's options. A
        text is an echo if it equals a whole placeholder, ignoring case and punctuation. A placeholder is a description
        in the form, or the sample text of a field in the question. A placeholder has several words and no number.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final

import msgspec

from ..text import lazy_pattern, strip_blank_lines

# -- quotations

_FENCE: Final = lazy_pattern(r"[ \t]{0,8}(`{3,}|~{3,})[^`<\n]*")
_QUOTED: Final = lazy_pattern(
    r"``[^`\n]+``|`[^`\n]+`|\"[<\[◁]/?\w+[>\]▷]\"|'[<\[◁]/?\w+[>\]▷]'"
    r"|(?<![\w\\])[rbfu]{0,2}(?:\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')(?!\w)"
    r"|“[^“”\n]*”|„[^„“”\n]*[“”]|«[^«»\n]*»|‘[^‘’\n]*’",
    re.IGNORECASE,
)


def blank_quotes(text: str) -> str:
    """Replace the text in fences, backticks and quotes with spaces. The length of the text does not change."""
    lines = text.split("\n")
    shown, opened, fence = lines.copy(), -1, ""
    for place, line in enumerate(lines):
        match = _FENCE.fullmatch(line)
        if opened < 0:
            if match:
                opened, fence = place, match[1]
            else:
                shown[place] = _QUOTED.sub(_blank, line)
        elif match and line.strip() == line.strip()[0] * len(line.strip()) and match[1].startswith(fence):
            shown[opened : place + 1] = (" " * len(inside) for inside in lines[opened : place + 1])
            opened = -1
    for place in range(opened + 1, len(lines) if opened >= 0 else 0):
        shown[place] = _QUOTED.sub(_blank, lines[place])
    return "\n".join(shown)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


# -- hidden thinking

_TAG: Final = lazy_pattern(r"</?(?:think|thinking|thought|reflection)>|\[/?THINK\]|◁/?think▷", re.IGNORECASE)
_ANSWERS: Final = ("\n", "<answer", "{", "**")
"""The possible beginnings of an answer that follows a closing tag of thinking."""
_CHANNEL, _MESSAGE = "<|channel|>", "<|message|>"


def without_thinking(text: str) -> str:
    """Remove hidden thinking, in tags or in channels, from the start of a reply.

    A reply that is only thinking becomes empty.
    """
    if "<|" not in text and not _TAG.search(text):
        return text
    if (begins := text.lstrip()).startswith(("<|start|>", _CHANNEL)):
        return _final_message(text)
    if begins.startswith("{"):
        return text
    shown = blank_quotes(text)
    tags = [*_TAG.finditer(shown)]
    start = place = 0
    while place < len(tags) and not _closes(tags[place]) and not text[start : tags[place].start()].strip():
        closing = _closing_place(tags, place)
        if closing is None:
            closings = [tag.end() for tag in _TAG.finditer(text, tags[place].end()) if _closes(tag)]
            return text[closings[0] :].strip() if len(closings) == 1 else ""
        start, place = tags[closing].end(), closing + 1
    if start == 0 and (tag := _find_unopened(tags)) is not None:
        rest = text[tag.end() :].lstrip(" \t")
        if rest and not rest[:7].casefold().startswith(_ANSWERS):
            return text
        before = shown[: tag.start()].lower()
        is_in_mark = before.count("<answer>") > before.count("</answer>")
        start = 0 if is_in_mark else tag.end()
    return strip_blank_lines(text[start:]) if start else text


def balances(text: str) -> bool:
    """Whether every thinking tag has its partner. Tags inside quotes are ignored."""
    tags = [*_TAG.finditer(blank_quotes(text))]
    return _find_unopened(tags) is None and 2 * sum(map(_closes, tags)) == len(tags)


def _closes(tag: re.Match[str]) -> bool:
    return "/" in tag[0][:2]


def _closing_place(tags: Sequence[re.Match[str]], place: int) -> int | None:
    """Return the index of the tag that closes the tag at `place`, or None. A lone closing tag closes all open tags."""
    for end, depth in enumerate(_depths(tags, place), place):
        if depth == 0:
            return end
    closings = [end for end in range(place, len(tags)) if _closes(tags[end])]
    return closings[0] if len(closings) == 1 else None


def _find_unopened(tags: Sequence[re.Match[str]]) -> re.Match[str] | None:
    return next((tag for tag, depth in zip(tags, _depths(tags), strict=True) if depth < 0), None)


def _depths(tags: Sequence[re.Match[str]], start: int = 0) -> Iterator[int]:
    """Yield, after each tag, the number of open tags. Tags before the index `start` are ignored."""
    return accumulate(-1 if _closes(tags[place]) else 1 for place in range(start, len(tags)))


def _final_message(text: str) -> str:
    """Return the message in the channel `final`, or else the whole text if it has a tool call, or else ""."""
    place = text.find(f"{_CHANNEL}final")
    start = text.find(_MESSAGE, place) if place >= 0 else -1
    if start < 0:
        return text if f"{_CHANNEL}commentary to=" in text else ""
    return text[start + len(_MESSAGE) :].strip().removesuffix("<|return|>").removesuffix("<|end|>").strip()


# -- echoes

_DOTS: Final = ("…", "..", ",", ";")
_SHOWN: Final = lazy_pattern(r'"(?P<name>\w{1,50})":\s*\[?\s*"(?P<text>[^"\n]{2,300})"')
_BESIDE: Final = frozenset({"reason", "reasoning", "evaluation", "thought", "plan", "mark"})
"""Secondary fields, which are checked for echoes only if a reply has no other text."""
_MAX_PLACEHOLDER: Final = 320
"""The longest placeholder, in characters."""


def echo_in(value: Any, shown: str, form: Mapping[str, Any], problem: str, mark: str = "") -> str | None:
    """Return the first echo of the question among the texts of a reply, or None.

    Args:
        value: The reading of the reply, as plain data.
        shown: The question, or the part of it that shows the form.
        form: JSON schema of the reply.
        problem: The problem of the run.
        mark: The instruction to mark the answer. A text is an echo if it is three or more successive words of `mark`.
    """
    texts = _texts(value)
    is_all = {name for name, _ in texts} <= _BESIDE
    for name, text in texts:
        is_answer = name.endswith(("answer", "Answer", "result"))
        is_one_word = not is_answer and text.isalnum()
        if is_one_word or len(text) > max(_MAX_PLACEHOLDER, 2 * len(problem)):
            continue
        if any(dots in text for dots in _DOTS) and not "".join(text.split()).strip(".,;…\"'“”`*_-"):
            return text
        words = _words(text) if is_all or name not in _BESIDE else ""
        if is_answer and words and words == _words(problem):
            return text
        has_words = " " in words and not any(map(str.isdigit, words))
        is_mark = words.count(" ") > 1 and words in _words(mark)
        if has_words and (is_mark or words in _placeholders(shown, msgspec.json.encode(form))):
            return text
    return None


def _texts(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Return the texts found in `value`, each with the name of its field."""
    if isinstance(value, str):
        return [(name, value)]
    if isinstance(value, Mapping):
        return [text for key, item in value.items() for text in _texts(item, str(key))]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item, f"{name}[]")]
    return []


@lru_cache(maxsize=64)
def _placeholders(shown: str, form: bytes) -> frozenset[str]:
    schema = msgspec.json.decode(form)
    parts = _texts(schema)
    options = {_words(text) for name, text in parts if name in ("enum[]", "const")}
    described = {_words(text) for name, text in parts if name == "description"}
    names = set(_names(schema))
    quoted = {_words(match["text"]) for match in _SHOWN.finditer(shown) if match["name"] in names}
    return frozenset((described | quoted) - options)


def _names(form: Any) -> Iterator[str]:
    if isinstance(form, Mapping):
        yield from form.get("properties", ())
        form = list(form.values())
    if isinstance(form, list):
        for part in form:
            yield from _names(part)


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
