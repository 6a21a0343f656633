r"""The answer that a plain reply gives: the whole text, what it states ("The answer is 5."), or what it concludes.

Rule 1: the reply to an open task, which asks for a text, is its answer, whole; only a label (`Final answer:`) after
        reasoning parts it.
Rule 2: otherwise an answer is stated (a label, a sentence, `\boxed{5}`, `#### 5`), or it is the conclusion that the
        text ends with, or what it says first: a bold result, an equation, a sentence.
Rule 3: two answers are none; one that is left open or taken back is none; the writer is asked.
Rule 4: where several things are asked, or several parts are answered, the last of them is not the answer: all is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from ..patterns import lazy_pattern
from .conclusion import (
    BEGINS,
    EPILOGUE,
    LEADS,
    MAX_BARE,
    MONTH,
    ORDER,
    SO,
    TAKES_BACK,
    Found,
    Subject,
    essence,
    find_conclusion,
    paragraphs,
)
from .fit import Unreadable
from .no_answer import without_closing, without_opening
from .numbers import NUMBER_WORD, numbers_in
from .open_task import asks_anything, asks_for_number, asks_for_value, may_answer, may_be_text
from .vote import agree, normalise, tidy
from .withheld import withholds


class _Statement(Struct, frozen=True):
    start: int
    end: int
    answer: str
    rank: int
    """3: in a box; 2: marked as final; 1: a label or sentence; 0: a label that a document may have, too (`Result`)."""


# -- words

_ANSWER: Final = (
    r"(?:answers?|antwort|réponse|respuesta|risposta|resposta|antwoord|odpowiedź|alternativa|opción|opção"
    r"|ответ|答案|答え|回答|答(?=[：:])|정답|(?:option|choice|(?<=correct )(?:options|choices))\b)"
)
_RESULT: Final = (
    r"(?:result|total|solution|conclusion|ergebnis|endergebnis|fazit|lösung|résultat|conclusión|conclusione"
    r"|resultado|risultato|soluzione|solución|solution set|lösungsmenge|conjunto (?:solução|solución)"
    r"|ensemble des solutions|结论|結論|解集)"
)
_FINAL: Final = (
    r"(?:final|correct(?:ed)?|revised|overall|full|short|richtige|endgültige|finale|correct[ao]|最终)"
)
_IS: Final = r"(?:(?:is|are|would be|must be|should be|ist|lautet|beträgt|est|es|è|é)(?!\w)|是|为|は)"
_STOP: Final = rf"[.!?。](?=[*_]*(?:\s(?!{MONTH})|\Z|[^\x00-\x7f]))"

_ANNOUNCED: Final = lazy_pattern(
    r"(?:(?P<line>^[ \t]*(?P<mark>#{1,6}[ \t]+)?"
    r"[>*_•\- \t\u2600-\u27bf\ufe0f\U0001f300-\U0001faff]{0,40}(?:\d+[.)]\s*)?)"
    r"|(?P<lead>^(?=[^\n]*[:：][*_ \t]*$)[^\n.:]{1,80}?\b)"
    rf"|(?<=[.!?:;。])[ \t]*|(?=\b{SO}\b)|,\s+(?=the (?:{_FINAL}\s)?answer))"
    rf"[*_#>-]{{0,8}}(?:{SO}[,:，]?\s*)*(?P<the>(?:the|my|our|die|das|la|les?|el|il|a|o)\s+)?(?P<final>(?:{_FINAL}[\s_]*)*)"
    rf"(?:(?P<word>{_ANSWER}|(?:(?<=nal\s)|(?<=[sv]ed\s))version)|{_RESULT})"
    rf"(?:\s+(?:finale?|corre(?:cta?|ta)))?[*_]*(?:[ \t]*\([^)\n]{{0,40}}\))?"
    rf"(?:\s(?:to|of|for|auf|von|à|de|di)\s[^.:\n]{{1,80}}?(?=\s+{_IS}|\s*[:：]))?"
    rf"(?P<is>\s*{_IS}(?:\s(?:donc|also|somit|quindi|dunque|portanto|therefore|thus)\b)?)?"
    r"[*_]*[ \t]*(?P<colon>[:=：])?[*_ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
"""What announces an answer: a label, a heading, or the beginning of a sentence."""
_MARKED: Final = (
    lazy_pattern(r"^[ \t]*####[ \t]*(?P<answer>[^\n#]+?)[ \t]*$", re.MULTILINE),
    lazy_pattern(r"\b(?:final_answer|finish|answer)\s*[(\[](?P<answer>[^\n]*)[)\]]\s*\Z", re.IGNORECASE),
    lazy_pattern(r"<(?:final_)?answer>\s*(?P<answer>[^<]+?)\s*</(?:final_)?answer>", re.IGNORECASE),
)
_BOXED: Final = lazy_pattern(r"\\boxed\s*\{(?P<answer>(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")
_LEADS_ON: Final = lazy_pattern(
    r"(?:not\b(?!\s+(?:guilty|valid|possible|allowed))|un(?:known|clear|certain|determined)|still|yet|open"
    r"|what|which|where|when|how|whether|that\b|to\s+be|(?:given|found)\s+(?:by|as|in)\b|obtained|something|as follows"
    r"|(?:the\s+)?\w+\s+(?:above|below)\b|.*\b(?:i (?:guess|think)|maybe|perhaps)\b)"
    r"|[.…\s\"'`*_<>()\[\]{}-]*\Z",
    re.IGNORECASE,
)
"""What stands for an answer in a sentence that states none."""
_UNDECIDED: Final = lazy_pattern(
    r"\W*(?:either\b|[\w.%$€£°]+\s+(?:or|oder|ou)\s+[\w.%$€£°]+\W*(?:[;,].*)?\Z)"
    r"|the (?:number|amount|total|name|year|date|value|person|place|sum) (?:of|that|who|where|when)\b[^\d]*\Z",
    re.IGNORECASE,
)
"""An answer that is two, `12 or 13`, or asks the question again: `the number of apples`."""
_WORKING: Final = lazy_pattern(
    r"[\W\d_]*(?:reasoning|steps?\b|think|thoughts?\b|approach|working|analysis|planning|drafts?\b|brainstorm"
    r"|(?:first )?attempt|let me\b|überlegung|denkprozess|razonamiento|raisonnement|calculation|given\b)",
    re.IGNORECASE,
)
"""How reasoning is headed, or begins."""
_LOOKED_UP: Final = lazy_pattern(r"[^\d.?!]{1,200}\??")
"""A question of one sentence without a number: nothing is worked out for it."""
_SEVERAL_WANTED: Final = lazy_pattern(
    r"\b(?:find|what (?:is|are)|determine|calculate|compute|give|name|state|extract|identify) (?:the |its |an? )?"
    r"(?:(?!between|sum|product|difference|ratio|of)[\w'-]+ )*"
    r"(?:[\w'-]+, (?:the |its )?[\w' -]+,? and |and (?:the|its|an?|how|what|when) )"
    r"|\bwhat are (?:its|the|their) [\w' -]+ and [\w' -]+\?"
    r"|\band (?:tell me )?(?:how (?:many|much|long|far|fast|old|tall|high)|what (?:is|are|was|were)|when|where|who"
    r"|in (?:which|what))\b"
    r"|\b(?:wie \w+ sind|was sind|cuáles son|quali sono|quais são|quel(?:le)?s sont)\b[^.?!]{1,80}\b(?:und|y|e|et)\b"
    rf"|\b{ORDER}\b[^.?!]{{0,60}}\b(?:from|to|by|largest"
    r"|smallest|von|nach|de|par|por|in|beginn\w+)\b"
    r"|\b(?:y|et|e|und) (?:(?:in |dans |en |na? )?(?:quel|qual|cuál|welche)\w*|où|dove|wo|onde|en (?:qué"
    r"|quelle)|wie (?:viele?|lange|hoch|weit)|cuánt[oa]s?|combien"
    r"|quand|quant[oaie]s?|quando|wann)\b",
    re.IGNORECASE,
)
"""A question for several things: `Find the mean, the median and …`, `How long does it take, and how fast is it?`."""
_SEVERAL_ASKED: Final = lazy_pattern(r"(?:^|\s)\(?a\)\s.*\s\(?b\)\s", re.DOTALL)
# -- marks

_STRUCTURED: Final = lazy_pattern(r"^\s*(?:#{1,6}\s|[-*•]\s|\d+[.)]\s|\||```|~~~)", re.MULTILINE)
_FENCED: Final = lazy_pattern(
    r"^[ \t]*(?P<mark>`{3,})[^`\n]*\n.*?^[ \t]*(?P=mark)[ \t]*$", re.MULTILINE | re.DOTALL
)
_LIST: Final = lazy_pattern(
    r"(?!\W*(?:first|let|step|to \w+|we\b))[^\n=]{10,200}\b(?:are|were|include|sind|sont|son|sono|são)\b"
    r"[^\n=.?]{0,100}:\n\s*(?:(?:[-*•]|\d{1,2}[.)])\s+[^\n=]{2,80}(?:\n|\Z)){2,}(?:\n[^\n=]+)?\Z",
    re.IGNORECASE,
)
"""A list of what is asked for, behind the sentence that says so, and perhaps a remark."""
_BROKEN_OFF: Final = lazy_pattern(
    r"\A#{1,6} .*\Z|\A\*\*[^*]{0,80}\Z|(?<!^\d)[.!?] [^.!?]{20,}\s[a-zà-ÿ]{2,},?\Z|。[^。！？\n]{5,}[\u3040-\u9fff]\Z"
    r"|[=+×·−]\Z|\s(?:is|are"
    r"|the|an|of|and|to|that|with|by"
    r"|for|as|we|get|equals|gives"
    r"|ist|sind|der|die|das|und|von|mit|est|sont|le|les|de|et|que|es|el|los|con|os|do|da|il|lo|di|che|per"
    r"|den|dem|für|durch|eine|ein|par|pour|dans|avec|du|une|por|para|del|una|uma|della|dei)\Z"
)
"""A heading, or a sentence without an end after others or after a word that goes on, as a last line."""
_DOCUMENT: Final = lazy_pattern(r"```|^\|.*\|\s*$", re.MULTILINE)
_HEADING: Final = lazy_pattern(
    r"^[ \t]*(?:#{1,6}[ \t]+[^\n]+?|[*_]{2}[^*\n]{1,80}?[*_]{2}[:.]?)[ \t]*$", re.MULTILINE
)
_PART: Final = lazy_pattern(r"^\W*(?:part |teil )?\(?[a-d]\)", re.MULTILINE | re.IGNORECASE)

_END: Final = 20_000
"""Characters at the end of a text in which an answer is looked for."""
_FEW_LINES: Final = 3
"""Lines from which on a text that answers no question is one, though it has no headings, fences or tables."""
_FEW_WORDS: Final = 3
"""Words from which on a problem that asks for nothing in words names a text."""
_WORD: Final = lazy_pattern(r"[^\W\d_]{2,}|[\u4e00-\u9fff\u3040-\u30ff]")
_MAX_SHORT: Final = 120
"""Characters of a short answer under a heading that a document may have, too."""


# -- the answer


def find_answer(text: str, subject: Subject | None = None) -> Found | Unreadable | None:
    """Return the answer a text gives; None if it gives none, `Unreadable` if it gives two or takes it back."""
    subject = subject or Subject()
    text = without_closing(text)
    if subject.is_open or _is_text_by_name(text, subject):
        return _take_whole(text, subject)
    tail = text[-_END:]
    found = _find_statement(tail, subject) or _conclude(tail, subject)
    if not isinstance(found, Found):
        return found
    # One number, with several before it, is one of several.
    is_one = len(numbers_in(found.answer.rpartition("=")[2])) < 2 <= len(numbers_in(found.before))
    if is_one and _wants_several(subject):
        return Found(text)
    if len(text) == len(tail):
        return found
    return Found(found.answer, text[:-_END] + found.before, found.after)


def _wants_several(subject: Subject) -> bool:
    return not subject.alone and _SEVERAL_WANTED.search(subject.problem[:2_000]) is not None


def _is_text_by_name(text: str, subject: Subject) -> bool:
    """Whether a problem asks for nothing in words, so that it names a text (`Haiku about rain`), and a text replies."""
    is_named = len(_WORD.findall(subject.problem)) >= _FEW_WORDS and not asks_anything(subject.problem)
    is_text = len(text.split("\n")) >= _FEW_LINES and not BEGINS.match(text)
    return is_named and is_text and not subject.alone


def only_answer(text: str) -> str | None:
    """Return a text that is nothing but an answer; None: it argues, or asks, and states none.

    An answer is one short paragraph, or a document with headings, lists or tables.
    """
    text = without_closing(text)
    is_short = len(text) <= MAX_BARE and "\n\n" not in text
    if not text or text.endswith((":", "?", "…", "...")) or not (is_short or _STRUCTURED.search(text)):
        return None
    return tidy(text) if is_short else text


def is_working(text: str) -> bool:
    """Whether a text begins as reasoning does, and not as a text that was asked for."""
    if _WORKING.match(text):
        return True
    begins = BEGINS.match(text)
    # So may a text of several paragraphs: "If the canal had never been dug, …"
    return begins is not None and not ("\n\n" in text and begins[0].endswith("If"))


def blocks(text: str) -> tuple[str, ...]:
    """Return the parts of a text: its lines, with a fence, a table or a formula, and what is indented, as one."""
    parts: list[str] = []
    for paragraph in paragraphs(text):
        is_one = paragraph.startswith(("```", "~~~", "|", r"\[", "$$"))
        parts += [paragraph] if is_one else re.split(r"\n(?![ \t]|```|~~~)", paragraph)
    return tuple(part.strip() for part in parts)


# -- whole


def _take_whole(text: str, subject: Subject) -> Found | Unreadable | None:
    if _breaks_off(text) or not may_be_text(text, subject.problem) or withholds(text, subject, is_text=True):
        return Unreadable("it does not do the task; do it as far as you can, without asking back")
    if wrapped := re.fullmatch(r"```(?:markdown|md)\n(.*?)\n```", text, re.DOTALL):
        text = wrapped[1]
    text = without_opening(text)
    found = _below_label(text)
    if found is None and text and not (subject.alone and not _is_document(text)):
        return Found(text)
    return found


def _breaks_off(text: str) -> bool:
    is_open = any(text.count(mark) % 2 for mark in ("```", "$$"))
    return is_open or _BROKEN_OFF.search(text.rpartition("\n")[2][-600:]) is not None


def _below_label(text: str) -> Found | None:
    """Return what stands below the label that a text begins with, or below its one label after reasoning."""
    labels = [match for match in _ANNOUNCED.finditer(text) if match["word"] and _is_label(text, match)]
    if not labels:
        return None
    label = labels[0]
    before, answer = text[: label.start()].strip(), text[label.end() :].strip()
    answer = answer.strip("* \n") if answer.count("**") % 2 else answer
    is_working = not before or _WORKING.match(before) or label["final"]
    return Found(answer, before) if answer and is_working else None


def _is_document(text: str) -> bool:
    return _DOCUMENT.search(text) is not None or len(_HEADING.findall(text)) > 1


def _has_parts(text: str, subject: Subject) -> bool:
    """Whether a text answers several questions, or in several parts."""
    is_asked = not subject.alone and _SEVERAL_ASKED.search(subject.problem[:2_000]) is not None
    return is_asked and len(_PART.findall(text)) > 1


def _take_document(text: str, subject: Subject) -> Found | None:
    """Return a text whole, unless a value was asked for that it may argue for, or it may be nothing but the working."""
    problem = subject.problem.strip()
    is_looked_up = "\n" not in text and len(text) <= MAX_BARE and _LOOKED_UP.fullmatch(problem)
    if not problem or subject.alone or (asks_for_value(problem) and not is_looked_up):
        return None
    is_whole = _is_document(text) or not BEGINS.match(text)
    return Found(text) if is_whole and text[0] != "{" and text[-1] not in ":?" else None


def _headings(text: str, start: int = 0) -> list[re.Match[str]]:
    """Return the headings of a text but those of the working."""
    return [match for match in _HEADING.finditer(text, start) if not _WORKING.match(match[0])]


def _conclude(text: str, subject: Subject) -> Found | None:
    """Return what a text that states no answer comes to: its conclusion, or all of it."""
    is_text = bool(subject.problem) and not asks_anything(subject.problem)
    if not text or _breaks_off(text) or withholds(text, subject, is_text=is_text):
        return None
    if _has_parts(text, subject) or (_wants_several(subject) and "\n" in text and text[-1] not in ":?…"):
        return Found(text)
    if not subject.alone and _LIST.match(text):
        return Found(text)
    found = find_conclusion(text, subject) or _take_document(text, subject)
    is_bare = found and (found.answer == text or not found.is_stated)
    # A number that is asked for has to be in what is concluded, too.
    is_bare = is_bare or (found and asks_for_number(subject.problem) and not NUMBER_WORD.search(found.answer))
    return None if found and is_bare and not may_answer(found.answer, subject.problem) else found


# -- stated


def _find_statement(text: str, subject: Subject) -> Found | Unreadable | None:
    found = sorted(_statements(text), key=lambda each: (each.start, each.rank))
    if not found:
        return None
    last = found[-1]
    if others := [other for other in found[:-1] if _contradicts(other, last, text)]:
        if _has_parts(text, subject):
            return Found(text)
        if not others[0].rank and not last.rank:
            # Totals of parts.
            return None
        answers = f"{others[0].answer[:80]!r} and {last.answer[:80]!r}"
        return Unreadable(f"it states two answers, {answers}; state one")
    if last.rank == 0 and _is_part(text, last, subject):
        return Found(text)
    is_first = last.start == 0 and set(numbers_in(last.answer)) <= set(numbers_in(text[last.end :]))
    if (
        last.rank == 0
        and not is_first
        and not set(numbers_in(text[last.end :])) <= set(numbers_in(last.answer))
    ):
        # A total in the middle of a reply is that of a step.
        return None
    after = text[last.end :].lstrip(". \n")
    if TAKES_BACK.match(after[:200]):
        found = _conclude(after, subject)
        is_new = found is not None and found.is_stated and found.answer != after
        if found is None or not is_new:
            return Unreadable("it takes its answer back; state one")
        return Found(found.answer, text[: len(text) - len(after)] + found.before, found.after)
    if _UNDECIDED.match(last.answer):
        return Unreadable("it leaves its answer open; state one")
    # Of `b) haga**: …` the first mark belongs to the words that announce it.
    answer = re.sub(r"\A([^*]+)\*\*\s*[:：].*", r"\1", essence(LEADS.sub("", last.answer)))
    # A sentence of which a word is the answer is also what leads to it.
    before = text[: last.start if answer == last.answer else last.end]
    return Found(answer, before.strip(), text[last.end :].strip(" .。\n"))


def _contradicts(other: _Statement, last: _Statement, text: str) -> bool:
    """Whether a reply states another answer than its last one, and does not take it back."""
    # A reply that begins with an answer and ends with another one gives two.
    is_less = other.rank < last.rank and (other.start > 0 or not other.rank)
    if is_less or other.start == last.start or is_same(other.answer, last.answer):
        return False
    return TAKES_BACK.search(text[other.end : last.start]) is None


def _is_part(text: str, last: _Statement, subject: Subject) -> bool:
    """Whether a label such as `Conclusion` heads a part of a document, and no answer."""
    others = [match for match in _headings(text) if match.start() != last.start]
    is_short = len(last.answer) <= _MAX_SHORT and "\n\n" not in last.answer
    is_value = subject.alone or (is_short and asks_for_value(subject.problem))
    return not is_value and len(others) > is_short


def _statements(text: str) -> Iterator[_Statement]:
    """Yield where an answer is stated."""
    text = _FENCED.sub(lambda match: re.sub(r"\S", " ", match[0]), text)
    for match in _BOXED.finditer(text):
        yield _Statement(match.start(), match.end(), tidy(match["answer"]), 3)
    for pattern in _MARKED:
        for match in pattern.finditer(text):
            if not _WORKING.match(match["answer"]):
                yield _Statement(match.start(), match.end(), tidy(match["answer"]), 2)
    for match in _ANNOUNCED.finditer(text):
        if match["lead"] and _WORKING.match(match["lead"]):
            continue
        if (found := _read_announcement(text, match)) and not _LEADS_ON.match(found.answer):
            yield found


def _is_label(text: str, match: re.Match[str]) -> bool:
    """Whether an announcement begins a line and ends with a colon, or is a heading."""
    is_heading = text[match.end() : match.end() + 1] in ("", "\n") and (
        match["mark"] or match[0].strip().startswith(("**", "__"))
    )
    return match["line"] is not None and not match["the"] and bool(match["colon"] or is_heading)


def _read_announcement(text: str, match: re.Match[str]) -> _Statement | None:
    """Return what is announced: the rest of a line or what stands below it, or the rest of a sentence."""
    line, is_label = text[match.end() :].partition("\n")[0], _is_label(text, match)
    if not line and (is_label or (match["colon"] and match["word"])):
        answer, end = _section(text, match.end())
    elif is_label:
        answer, end = line, match.end() + len(line)
    elif match["lead"] is None and (match["colon"] or match["is"]):
        answer = re.split(_STOP, line, maxsplit=1)[0]
        end = match.end() + len(answer)
        rest = text[end:].lstrip(".!。")
        if not (EPILOGUE.match(rest) or TAKES_BACK.match(rest[:200].lstrip())):
            return None
    else:
        return None
    final = (match["final"] or "").casefold()
    rank = 0 if not match["word"] else 2 if final and "short" not in final and is_label else 1
    answer = tidy(re.sub(r"\s*(?:です|でした|である)[。.]?\Z", "", answer))
    return _Statement(match.start(), end, answer, rank) if answer else None


def _section(text: str, start: int) -> tuple[str, int]:
    """Return what stands under a label, and where it ends: at the next heading, or at what explains it."""
    headings = (match.start() for match in _headings(text, start) if text[start : match.start()].strip())
    end = next(headings, len(text))
    parts = paragraphs(text[start:end])
    if len(parts) > 1 and EPILOGUE.match(parts[1]):
        return parts[0], text.index(parts[0], start) + len(parts[0])
    return "\n\n".join(parts), end


def is_same(answer: str, other: str) -> bool:
    """Whether two answers say the same, or one holds the other."""
    shorter, longer = sorted((answer.casefold(), other.casefold()), key=len)
    return agree(normalise(answer), normalise(other)) or shorter in longer
