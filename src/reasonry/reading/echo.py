"""Replies that hand back what they were given to fill in: the words of the form, dots, or the whole question.

Words shared with the question prove nothing, for an answer may be one of its options. So a text is an echo only where
it is, but for case and punctuation, one whole placeholder of several words without a number: a description in the form,
or what the form has for a field as the question shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..patterns import lazy_pattern

_DOTS: Final = lazy_pattern(r"[\s.…\"'“”`*_-]*(?:…|\.\.)[\s.…\"'“”`*_-]*")
_SHOWN: Final = lazy_pattern(r'"(?P<name>\w{1,50})":\s*\[?\s*"(?P<text>[^"\n]{2,300})"')
_LEAD: Final = lazy_pattern(r"\A\s*the (?:final )?answer is:?(?=\W)\s*", re.IGNORECASE)
_BESIDE: Final = frozenset({"reason", "reasoning", "evaluation", "thought", "plan", "mark"})
"""Fields beside what is wanted; where there is another text, they may say what they like."""


def echo_in(value: Any, shown: str, form: Mapping[str, Any], problem: str) -> str | None:
    """Return the text of a reply that echoes the question; None if none does.

    Args:
        value: The reply as it was read, as plain data.
        shown: The question, or the part of it that shows the form.
        form: JSON schema of the reply.
        problem: What the run is about.
    """
    texts = list(_texts(value))
    is_all = all(name in _BESIDE for name, _ in texts)
    placeholders = {_plain(text) for text in _placeholders(shown, form)} - {""}
    for name, text in texts:
        text = _LEAD.sub("", text)
        is_question = name.casefold().endswith(("answer", "result")) and _plain(text) == _plain(problem)
        is_wanted = is_all or name not in _BESIDE
        if _DOTS.fullmatch(text) or (is_wanted and (is_question or _plain(text) in placeholders)):
            return text
    return None


def _texts(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts in data, each with the name of the field it stands in."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, str(key))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, f"{name}[]")


def _placeholders(shown: str, form: Mapping[str, Any]) -> Iterator[str]:
    parts = list(_texts(form))
    options = {text for name, text in parts if name in ("enum[]", "const")}
    names = set(_names(form))
    found = [text for name, text in parts if name == "description"]
    found += [match["text"] for match in _SHOWN.finditer(shown) if match["name"] in names]
    for text in found:
        if len(text.split()) > 1 and not re.search(r"\d", text) and text not in options:
            yield text


def _names(form: Any) -> Iterator[str]:
    """Yield the names of the fields of a form, at any depth."""
    if isinstance(form, Mapping):
        yield from form.get("properties", ())
        form = list(form.values())
    if isinstance(form, list):
        for part in form:
            yield from _names(part)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
