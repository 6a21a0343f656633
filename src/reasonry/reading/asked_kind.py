"""The kind of thing that a problem asks for, and whether a reply has one.

Rule: words alone answer a problem only if they may: `How many …?` wants a number, `Who …?` a name, `A or B?` one of the
      two, a letter more than one line. What a reply lacks shows in every language and wording, a refusal does not.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import takewhile
from typing import Final

from ..patterns import lazy_pattern
from .conclusion import is_about
from .names import plain_name
from .numbers import NUMBER_WORD, WIDE
from .open_task import asks_for_number

_NAME_ASKED: Final = lazy_pattern(
    r"(?:^|[.!?:;,¿]\s*)\W*(?:(?:in|at|on|by|from|to|de|en|em|por|par|à|a|w|z|von|aus) )?(?:who|whose|whom|where"
    r"|which (?:person|city|country|town|river|artist|author|writer|company|president|king|queen|language)"
    r"|what is the (?:capital|name)|wer|wo|wen|wem|welche[rs]? (?:stadt|land|fluss|autor\w*|person)|qui|où"
    r"|quelle (?:ville|personne)|quién|dónde|qué (?:ciudad|país)|chi|dove|quale (?:città|paese)|quem|onde"
    r"|(?:que|qual) (?:cidade|país)|kto|gdzie|wie is|wie was|waar|кто|где)\b[^.!?]*\?",
    re.IGNORECASE,
)
_ARTICLES: Final = frozenset(
    ["ein", "eine", "einen", "einem", "einer", "un", "une", "una", "uno", "um", "uma"]
)
"""Words for one that say no number in a sentence."""
_NAME: Final = lazy_pattern(r"(?<=[^\W\d_] )[A-ZÀ-ÞĀ-ŽА-Я]\w+|[A-Z]{2,}|[\"'“«„`*]\S|[\d\u3040-\u9fff]")
"""A word with a capital letter inside a sentence, initials, a quote, or a text without capital letters."""
_CHOICE: Final = lazy_pattern(
    r"(?P<first>(?:[^\s,;:?]+ ){0,2}[^\s,;:?]+),? (?:or|oder|ou|czy|или|o(?= (?:el|la|los|las|il|lo|un|una"
    r"|\d+)\b)) (?P<second>[^?;:.]{1,40}?)\?",
    re.IGNORECASE,
)
_LONG_TEXT: Final = lazy_pattern(
    r"(?:\b(?:write|draft|compose|schreib\w*|verfass\w*|rédige\w*|écri\w+|escrib\w*|redact\w*|scriv\w*|escrev\w*|napisz"
    r"|schrijf)\b[^.?!\n]{0,60}\b(?:essay|letter|bio|speech|story|report|article|e-?mail|review|recipe"
    r"|blog post|brief|rede"
    r"|aufsatz|bericht|geschichte|lettre|discours|histoire|rapport|carta|discurso|ensayo|informe|reseña|cuento|lettera"
    r"|discorso|tema|relazione|recensione|racconto|redação|resenha|conto|list|przemówienie)\b)"
    r"|写[^。？！\n]{0,20}(?:信|文章|作文|演讲|报告|故事|邮件)|(?:手紙|作文|スピーチ|レポート|物語|メール)を?書",
    re.IGNORECASE,
)
_PAGES: Final = lazy_pattern(r"\b(?:pages?|seiten?|páginas?|pagin[ae])\b", re.IGNORECASE)
_WORDS: Final = lazy_pattern(
    r"(?P<before>[^.!?\n]{0,20})(?<!\d)(?P<count>\d{2,4})[- ](?:words?|mots|palabras|parole|wörtern?|palavras)\b"
    r"(?! or (?:less|fewer)| max)",
    re.IGNORECASE,
)
_AT_MOST: Final = lazy_pattern(
    r"\b(?:max\w*|under|most|up to|than|within|below|höchstens|unter|moins|menos|máxim\w+|meno|massimo|this"
    r"|the|following)\b",
    re.IGNORECASE,
)
_POEM: Final = lazy_pattern(
    r"(?:write|compose|schreib\w*|écri\w+|rédige\w*|escrib\w*|escrev\w*|scriv\w*)\b[^.?!\n]{0,30}"
    r"\b(?:poem|sonnet|limerick|poème|gedicht|poesia|poema)\b",
    re.IGNORECASE,
)
_ENGLISH_WANTED: Final = lazy_pattern(
    r"(?:in(?:to)?|to) english\b|(?:auf|ins) englische?\b|en anglais|al inglés|in inglese|(?:para|em) (?:o )?inglês"
    r"|英語に|[成为]英[语文]",
    re.IGNORECASE,
)
_SHORT_WANTED: Final = lazy_pattern(
    r"\b(?:short|brief|quick|one|two|three|1|2|3|lines?|sentences?|words?|subject|titles?|openings?|first|last|closing"
    r"|greeting|sign-?off|kurz\w*|knapp\w*|satz|sätze|betreff|courte?s?|brève?|phrases?|objet|cort[oa]s?|breves?|frases?"
    r"|asunto|fras[ei]|oggetto|curt[oa]s?|assunto|krótk\w+|korte?)\b|短|简短|一句|件名|主题",
    re.IGNORECASE,
)
_MIN_LONG: Final = 200
"""Characters from which on one paragraph may be a letter or an essay; a third of it in Chinese and Japanese."""
_MIN_PAGES: Final = 600
"""Characters of a text of pages."""
_MIN_WORDS: Final = 4
"""Words from which on an answer is a sentence."""
_MIN_REPEATED: Final = 5
"""Words of a task from which on it is no chance that a text ends with them."""


def may_answer(text: str, problem: str) -> bool:
    """Whether a sentence has the kind of thing that a problem asks for: a number, a name, one of two."""
    if len(text.split()) < _MIN_WORDS and not WIDE.search(text):
        return True
    if _restates(text, problem):
        return False
    if asks_for_number(problem) and not _numbers(text) - _numbers(problem):
        return False
    choice = _CHOICE.search(problem)
    if choice is None:
        return (
            _NAME_ASKED.search(problem) is None or _NAME.search(text) is not None or is_about(text, problem)
        )
    sentences = re.split(r"(?<=[.!?])\s+", text.strip())
    ends = unicodedata.normalize("NFKC", f"{sentences[0]} {sentences[-1]}")
    words = {plain_name(word)[:5] for word in ends.split()}
    first, second = ([plain_name(word) for word in option.split()] for option in choice.groups())
    # The words that tell the options apart: `the left one or the right one`.
    names = [word for word in first + second if (word in first) != (word in second)]
    return any(name[:5] in words for name in names)


def _numbers(text: str) -> set[str]:
    return {number.casefold() for number in NUMBER_WORD.findall(text)} - _ARTICLES


def _restates(text: str, problem: str) -> bool:
    """Whether a text says what is asked (`You want to know how many …`), and no more."""
    asked, words = (re.findall(r"[^\W_]{3,}|\d+", each.casefold()) for each in (problem, text))
    stems = {word[:5] for word in asked}
    new = [word for word in words if word[:5] not in stems]
    is_known = 2 * len(new) < len(words) and not any(map(NUMBER_WORD.search, new))
    return is_known and asks_for_number(problem)


def may_be_text(text: str, problem: str) -> bool:
    """Whether a text is as long and as wide as a problem wants it written, and more than the task."""
    if (wanted := _WORDS.search(problem)) and not _AT_MOST.search(wanted["before"]):
        return 2 * len(text.split()) >= int(wanted["count"]) or WIDE.search(text) is not None
    is_other = (
        _ENGLISH_WANTED.search(problem) and WIDE.search(text) and not re.search(r"[A-Za-z]{2} ?[a-z]", text)
    )
    if is_other or _repeats_task(text, problem):
        return False
    if "\n" in text:
        return True
    if _POEM.search(problem):
        return "/" in text
    wants_long = _LONG_TEXT.search(problem)
    if wants_long and _PAGES.search(problem):
        return len(text) >= _MIN_PAGES
    if not wants_long or _SHORT_WANTED.search(problem):
        return True
    return len(text) >= (_MIN_LONG // 3 if WIDE.search(text) else _MIN_LONG)


def _repeats_task(text: str, problem: str) -> bool:
    """Whether a text ends as its task does, from the middle of the instruction on: `You want me to translate …`."""
    words, asked = (re.findall(r"\w+", each.casefold()) for each in (text, problem))
    same = sum(
        1 for _ in takewhile(bool, (a == b for a, b in zip(reversed(words), reversed(asked), strict=False)))
    )
    return len(words) > same >= _MIN_REPEATED and 10 * same >= 7 * len(asked)
