"""The kind of thing that a problem asks for, and whether a reply has one.

Rule: words alone answer a problem only if they may: `How many …?` wants a number, `A or B?` one of the two, a letter
      more than one line. What a reply lacks shows in every language and wording, a refusal does not.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import takewhile
from typing import Final

from ..patterns import lazy_pattern
from .names import plain_name
from .numbers import NUMBER_WORD, WIDE
from .open_task import asks_for_number

_ARTICLES: Final = frozenset(
    ["ein", "eine", "einen", "einem", "einer", "un", "une", "una", "uno", "um", "uma"]
)
"""Words for one that say no number in a sentence."""
_CHOICE: Final = lazy_pattern(
    r"(?P<first>(?:[^\s,;:?]+ ){0,2}[^\s,;:?]+),? (?:or|oder|ou|czy|или|o(?= (?:el|la|los|las|il|lo|un|una"
    r"|\d+)\b)) (?P<second>[^?;:.]{1,40}?)\?",
    re.IGNORECASE,
)
_LONG_TEXT: Final = lazy_pattern(
    r"(?:\b(?:write|draft|compose|schreib\w*|verfass\w*|rédige\w*|écri\w+|escrib\w*|redact\w*|scriv\w*|escrev\w*|napisz"
    r"|schrijf)\b[^.?!\n]{0,60}\b(?:essay|letter|bio|poem|sonnet|limerick|speech|story|report|article|e-?mail|review"
    r"|recipe|blog post|brief|rede|gedicht|poème|poesia|poema|aufsatz|bericht|geschichte|lettre|discours|histoire"
    r"|rapport|carta|discurso|ensayo|informe|reseña|cuento|lettera|discorso|tema|relazione|recensione|racconto|redação"
    r"|resenha|conto|list|przemówienie)\b)"
    r"|写[^。？！\n]{0,20}(?:信|文章|作文|演讲|报告|故事|邮件)|(?:手紙|作文|スピーチ|レポート|物語|メール)を?書",
    re.IGNORECASE,
)
_SHORT_WANTED: Final = lazy_pattern(
    r"\b(?:short|brief|quick|one|two|three|1|2|3|lines?|sentences?|few words|one word|subject|titles?|openings?"
    r"|first|last|closing|greeting|sign-?off|kurz\w*|knapp\w*|satz|sätze|betreff|courte?s?|brève?|phrases?|objet|cort[oa]s?|breves?|frases?"
    r"|asunto|fras[ei]|oggetto|curt[oa]s?|assunto|krótk\w+|korte?)\b|短|简短|一句|件名|主题",
    re.IGNORECASE,
)
_MIN_LONG: Final = 250
"""Characters from which on one paragraph may be a letter or an essay; a third of it in Chinese and Japanese."""
_MIN_WORDS: Final = 4
"""Words from which on an answer is a sentence."""
_MIN_REPEATED: Final = 5
"""Words of a task from which on it is no chance that a text ends with them."""


def may_answer(text: str, problem: str) -> bool:
    """Whether a sentence has the kind of thing that a problem asks for: a number, one of two."""
    if len(text.split()) < _MIN_WORDS and not WIDE.search(text):
        return True
    if asks_for_number(problem) and not _numbers(text) - _numbers(problem):
        return False
    choice = _CHOICE.search(problem)
    if choice is None:
        return True
    sentences = re.split(r"(?<=[.!?])\s+", text.strip())
    ends = unicodedata.normalize("NFKC", f"{sentences[0]} {sentences[-1]}")
    words = {plain_name(word)[:5] for word in ends.split()}
    first, second = ([plain_name(word) for word in option.split()] for option in choice.groups())
    # The words that tell the options apart: `the left one or the right one`.
    names = [word for word in first + second if (word in first) != (word in second)]
    return any(name[:5] in words for name in names)


def _numbers(text: str) -> set[str]:
    return {number.casefold() for number in NUMBER_WORD.findall(text)} - _ARTICLES


def may_be_text(text: str, problem: str) -> bool:
    """Whether a text is as long and as wide as a problem wants it written, and more than the task."""
    if _repeats_task(text, problem):
        return False
    if "\n" in text or not _LONG_TEXT.search(problem) or _SHORT_WANTED.search(problem):
        return True
    return len(text) >= (_MIN_LONG // 3 if WIDE.search(text) else _MIN_LONG)


def _repeats_task(text: str, problem: str) -> bool:
    """Whether a text ends as its task does, from the middle of the instruction on: `You want me to translate …`."""
    words, asked = (re.findall(r"\w+", each.casefold()) for each in (text, problem))
    same = sum(
        1 for _ in takewhile(bool, (a == b for a, b in zip(reversed(words), reversed(asked), strict=False)))
    )
    return len(words) > same >= _MIN_REPEATED and 10 * same >= 7 * len(asked)
