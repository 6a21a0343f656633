r"""The answer a text states: "… The answer is 5.", `\boxed{5}`, `#### 5`, `**Answer:** 5`, a heading, a bare line.

Rule 1: what a text says last counts; two answers side by side that differ are none, and the writer is asked which.
Rule 2: politeness after an answer is no part of it.
Rule 3: an answer that is left open ("the answer is not known") is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ..patterns import lazy_pattern
from .fit import Unreadable
from .vote import agree, normalise

_END: Final = 4_000
"""Characters at the end of a text in which an answer is looked for."""

_POLITE: Final = lazy_pattern(
    r"(?:(?<=[.!?:\n*}$)])|(?<=\A))\s*[*_]*(?:(?:please\s+)?let me know\b|(?:i\s+)?hope\b|feel free\b|"
    r"if you\b|"
    r"is there anything\b|would you like\b|do you (?:want|need)\b|happy to\b|i(?:'m| am) happy\b|don't hesitate\b|"
    r"thank(?:s| you)\b|good luck\b|enjoy\b|have (?:a|fun)\b|cheers\b|wenn du\b|ich hoffe\b|sag(?:en sie)? (?:mir )?"
    r"bescheid\b)"
    r"[^\n]*(?:\n[^\n]*)?\Z",
    re.IGNORECASE,
)
_WORD: Final = r"(?:answer|antwort|réponse|respuesta|risposta|ergebnis|endergebnis|result|solution|lösung)"
_LABEL: Final = lazy_pattern(
    rf"^[ \t>#*_•-]*(?:\d+[.)]\s*)?(?:(?:so|thus|hence|therefore)[,:]?\s+)?"
    rf"(?:(?:final|correct|short|full|overall|endgültige)[\s_]+)?"
    rf"{_WORD}[*_]*\s*(?:\([^)\n]{{0,40}}\))?[*_]*\s*[:=][*_]*[ \t]*(?P<answer>[^\n]*)$",
    re.IGNORECASE | re.MULTILINE,
)
_HEADING: Final = lazy_pattern(
    rf"^[ \t]*(?:#{{1,6}}[ \t]+[*_]*|[*_]{{2}})(?:(?:the|final|correct|short|full|die)[ \t]+){{0,2}}"
    rf"{_WORD}[*_]*:?[*_]*[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_SENTENCE: Final = lazy_pattern(
    r"(?:^|[.!?:]\s|(?=\b(?:so|thus|hence|therefore)\b))[\s*_#>-]*"
    r"(?:(?:so|thus|hence|therefore|then|and|finally|in conclusion)[,:]?\s+)*(?:(?:the|my|our)\s+)?"
    r"(?:(?:final|correct)\s+)?(?:answer|result|solution)[*_]*\s*(?:(?:to|of|for)\s[^.:\n]{1,80}?\s)?"
    r"(?:is\b\s*:?|:|=|would be|must be|should be)[\s*_]*"
    r"(?P<answer>(?:(?![.!?][*_]*\s)[^\n])+?)[*_]*\.?[*_]*(?=\s*(?:\n|\Z)|[.!?][*_]*\s)",
    re.IGNORECASE | re.MULTILINE,
)
_HASHES: Final = lazy_pattern(r"^[ \t]*####[ \t]*(?P<answer>[^\n#]+?)[ \t]*$", re.MULTILINE)
_BOXED: Final = lazy_pattern(r"\\boxed\s*\{")
_CALL: Final = lazy_pattern(
    r"\b(?:final_answer|finish|answer)\s*[(\[](?P<answer>[^\n]*)[)\]]\s*\Z", re.IGNORECASE
)
_TAGGED: Final = lazy_pattern(
    r"<(?:final_)?answer>\s*(?P<answer>[^<]+?)\s*</(?:final_)?answer>", re.IGNORECASE
)
_LEAD: Final = lazy_pattern(
    rf"^[^\n.]{{0,80}}\b{_WORD}(?:\s+is)?\s*:[ \t]*[*_]*$", re.IGNORECASE | re.MULTILINE
)
"""A line that announces the answer."""
_LAST_LINE: Final = lazy_pattern(
    r"(?:\A|\n)[ \t>]*(?P<bold>[*_]{2})?(?P<answer>[^\n*]{1,100}?)(?(bold)[*_]{2})[ \t]*\Z"
)
_BOLD_END: Final = lazy_pattern(
    r"(?:^|[.!?]\s+|\n)[ \t>*-]*(?:so|thus|hence|therefore|in total|altogether|in conclusion|consequently|also|daher"
    r"|donc)\b[^*\n]*"
    r"\*\*(?P<answer>[^*\n]+)\*\*[^*\n]{0,60}\Z",
    re.IGNORECASE,
)
_LEFT_OPEN: Final = lazy_pattern(
    r"(?:not\b(?!\s+(?:guilty|valid|possible|allowed))|un(?:known|clear|certain|determined)|still|yet|open|what|which"
    r"|where|when|how|whether|that|to\s+be|given\s+by|found\s+by|obtained|something|\.\.\.|…)\b",
    re.IGNORECASE,
)
_DECLINES: Final = lazy_pattern(
    r"\A\W*(?:(?:so )?the answer (?:is|remains)\s+(?:not|un|still|yet|open)"
    r"|i(?:'m| am)\s+(?:sorry|afraid|unable|not able|not sure)|sorry\b|i\s+(?:can(?:no|')t|do(?:n't| not) (?:know|have)"
    r"|could(?:n't| not))|no idea\b|as an ai\b|unfortunately[, ]|unable to|there is (?:not enough|insufficient)"
    r"|cannot (?:be )?(?:determine|answer)|could you (?:please )?(?:clarify|provide)|please (?:provide|clarify))",
    re.IGNORECASE,
)
_REFUSES: Final = lazy_pattern(
    r"\A\W*(?:(?:i(?:'m| am) (?:very )?)?(?:sorry|afraid)|i apologi[sz]e|as an ai\b[^.]*)[,.]?\s+(?:but\s+)?"
    r"i(?:'m| am)?\s*(?:can(?:no|')t|can not|unable|not able|won't|will not|do not|don't)\b",
    re.IGNORECASE,
)
_STRUCTURED: Final = lazy_pattern(r"^\s*(?:#{1,6}\s|[-*•]\s|\d+[.)]\s|\|)", re.MULTILINE)
_MAX_BARE: Final = 300
"""Characters of a text that is an answer without saying so."""

_BESIDE: Final = lazy_pattern(
    r"[\s.,;*_)\]$`]*(?:(?:method|approach|way|case)\s+(?:2|two|b)\b[^\n]*"
    r"|(?:(?:or|oder|alternatively)\b[\s:,]*)?[*_`$(\[\\]*)",
    re.IGNORECASE,
)
"""What stands between two answers, none of which is taken back."""

_EXPLAINS: Final = lazy_pattern(
    r"[\s.*_]*(?:(?:here(?:'s| is) (?:why|how)|because|since|explanation|reason(?:ing)?\b|this (?:is because|follows)"
    r"|to see|proof\b|justification\b|begründung\b)|\Z)",
    re.IGNORECASE,
)
"""What follows an answer that is given first."""


def stated_answer(text: str) -> str | Unreadable | None:
    """Return the answer a text comes to.

    Returns:
        The answer without markup and politeness; None if the text states none; `Unreadable` if it states two.
    """
    text = without_politeness(text[-_END:])
    found = sorted(_statements(text), key=lambda statement: statement[0])
    if not found:
        bold, last = _BOLD_END.search(text), _LAST_LINE.search(text)
        if bold is None and last is not None and (last["bold"] or _is_number(last["answer"])):
            return _tidy(last["answer"])
        return _tidy(bold["answer"]) if bold else None
    place, _, answer = found[-1]
    for start, end, other in found[:-1]:
        if _BESIDE.fullmatch(text[end:place]) and not _is_same(other, answer) and start < place:
            return Unreadable(f"it states two answers, {other[:80]!r} and {answer[:80]!r}; state one")
    return answer


def only_answer(text: str) -> str | None:
    """Return a text that is nothing but an answer; None: it argues, or asks, and states none.

    An answer is one short paragraph, or a document with headings, lists or tables.
    """
    text = without_politeness(text)
    is_short = len(text) <= _MAX_BARE and "\n\n" not in text
    if not text or text.endswith((":", "?", "…", "...")) or not (is_short or _STRUCTURED.search(text)):
        return None
    return _tidy(text) if is_short else text


def declines(text: str) -> bool:
    """Whether a text gives no answer, politely."""
    return len(text) <= 2_000 and _DECLINES.match(text) is not None


def refuses(text: str) -> bool:
    """Whether a text does nothing but excuse its writer."""
    return len(text) <= 500 and _REFUSES.match(text) is not None


def without_politeness(text: str) -> str:
    """Return a text without the offer of more help at its end."""
    text, before = text.strip(), None
    while text != before:
        before, text = text, _POLITE.sub("", text).rstrip()
    return text


def _statements(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where an answer is stated: from where to where, and the answer."""
    for match in _BOXED.finditer(text):
        end = _closing_brace(text, match.end())
        if end is not None:
            yield match.start(), end + 1, _tidy(text[match.end() : end])
    for pattern in (_LABEL, _SENTENCE, _HASHES, _CALL, _TAGGED):
        for match in pattern.finditer(text):
            written = match["answer"].strip(" \t*_")
            if not written and pattern is _LABEL:
                written = _paragraph(text, match.end())
            answer = _unbox(_tidy(written))
            is_final = pattern is not _SENTENCE or _EXPLAINS.match(text, match.end())
            if answer and is_final and not _LEFT_OPEN.match(answer):
                yield match.start(), match.end(), answer
    for match in (*_HEADING.finditer(text), *_LEAD.finditer(text)):
        if answer := _unbox(_tidy(_paragraph(text, match.end()))):
            yield match.start(), match.end(), answer


def _paragraph(text: str, start: int) -> str:
    """Return what follows a heading: to the next blank line, or to the end where a list or table follows."""
    rest = text[start:].strip()
    first = re.split(r"\n\s*\n|\n(?=#)", rest, maxsplit=1)[0]
    return rest if _STRUCTURED.match(first) and not re.search(r"\n#", rest) else first


def _closing_brace(text: str, start: int) -> int | None:
    depth = 1
    for place in range(start, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if depth == 0:
            return place
    return None


def _unbox(answer: str) -> str:
    match = _BOXED.search(answer)
    end = _closing_brace(answer, match.end()) if match else None
    return answer if match is None or end is None else _tidy(answer[match.end() : end])


def _tidy(answer: str) -> str:
    """Return an answer without the markup around it and the period after it."""
    text, before = answer.strip(), None
    while text != before:
        before = text
        for opening, closing in (
            ("**", "**"),
            ("__", "__"),
            ("`", "`"),
            ("$$", "$$"),
            (r"\(", r"\)"),
            (r"\[", r"\]"),
            ('"', '"'),
        ):
            inside = text[len(opening) : -len(closing)]
            if len(text) > len(opening + closing) and text.startswith(opening) and text.endswith(closing):
                text = inside.strip() if opening not in inside else text
        if text.startswith("$") and text.endswith("$") and text.count("$") == 2 and len(text) > 2:
            text = text[1:-1].strip()
        if text.endswith(".") and not text.endswith(("..", " a.m.", " p.m.")) and "\n" not in text:
            text = text[:-1].rstrip()
    return text


def _is_number(line: str) -> bool:
    """Whether a line is a number and perhaps its unit; one that begins with a word is a sentence."""
    return re.match(r"[\W\d]", line) is not None and normalise(line).number is not None


def _is_same(answer: str, other: str) -> bool:
    shorter, longer = sorted((answer.casefold(), other.casefold()), key=len)
    return agree(normalise(answer), normalise(other)) or shorter in longer
