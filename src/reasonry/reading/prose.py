r"""The answer that a plain reply gives: the whole text, what it states ("The answer is 5."), or what it concludes.

Rule 1: the reply to an open task is its answer, whole; only a label of its own (`Final answer:`) after reasoning
        parts it.
Rule 2: otherwise an answer is stated (a label, a sentence, `\boxed{5}`, `#### 5`), or it is the conclusion that the
        text ends with: a bold result, an equation, a sentence.
Rule 3: two answers are none; one that is left open or taken back is none; the writer is asked.
Rule 4: a sentence is dropped only if all of it is a closing phrase.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from ..patterns import lazy_pattern
from .closing import without_closing
from .fit import Unreadable
from .open_task import asks_for_value
from .vote import agree, normalise, tidy


class Subject(Struct, frozen=True):
    """What a reply answers: the problem, and whether it asks for a text."""

    problem: str = ""
    is_open: bool = False
    alone: bool = False
    """Whether the answer has to stand alone, since a verifier or a vote looks at it."""


class Found(Struct, frozen=True):
    """An answer, and what stands before and after it in the reply."""

    answer: str
    before: str = ""
    after: str = ""
    is_stated: bool = True
    """Whether it says that it is the answer, by words or by its markup; False for a bare sentence."""


class _Statement(Struct, frozen=True):
    start: int
    end: int
    answer: str
    rank: int
    """3: in a box; 2: marked as final; 1: a label or sentence; 0: a label that a document may have, too (`Result`)."""


# -- words

_ANSWER: Final = (
    r"(?:answer|antwort|réponse|respuesta|risposta|resposta|antwoord|odpowiedź|alternativa|opción|opção"
    r"|ответ|答案|答え|回答|정답)"
)
_RESULT: Final = (
    r"(?:result|total|solution|conclusion|final (?:result|value)|ergebnis|endergebnis|fazit|lösung|résultat"
    r"|conclusión|conclusione|resultado|risultato|soluzione|solución|结论|結論)"
)
_FINAL: Final = (
    r"(?:final|correct(?:ed)?|revised|overall|full|short|richtige|endgültige|finale|correct[ao]|最终)"
)
_SO: Final = (
    r"(?:so|thus|hence|therefore|then|and|finally|in conclusion|consequently|in total|altogether|in short|overall"
    r"|also|daher|folglich|somit|donc|ainsi|por (?:lo )?tanto|así que|quindi|dunque|portanto|logo"
    r"|因此|所以|よって|したがって)"
)
_IS: Final = r"(?:is|would be|must be|should be|ist|lautet|beträgt|est|es|è|é|是|为|は)"
_MONTH: Final = r"(?:Jan|Feb|März|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)"
"""After a number with a period it goes on with a date: `6. März`."""

_LABEL: Final = lazy_pattern(
    rf"^[ \t]*(?P<mark>#{{1,6}}[ \t]+)?[>*_•\- \t]*(?:\d+[.)]\s*)?(?:{_SO}[,:]?\s+)?"
    rf"(?P<final>(?:{_FINAL}[\s_]*)*)(?:(?P<word>{_ANSWER})|{_RESULT})(?:\s+(?:finale?|corre(?:cta?|ta)))?[*_]*"
    rf"[ \t]*(?:\([^)\n]{{0,40}}\))?(?:[ \t]+{_IS})?[*_]*[ \t]*(?P<colon>[:=：][*_]*)?[ \t]*(?P<answer>[^\n]*)$",
    re.IGNORECASE | re.MULTILINE,
)
_LEAD: Final = lazy_pattern(
    rf"^[^\n.]{{0,80}}\b(?P<word>{_ANSWER})(?:\s+{_IS})?\s*:[*_]*[ \t]*$", re.IGNORECASE | re.MULTILINE
)
"""A line that announces the answer."""
_SENTENCE: Final = lazy_pattern(
    rf"(?:^|[.!?:。]\s*|(?=\b{_SO}\b)|,\s+(?=the (?:{_FINAL}\s)?answer))"
    rf"[\s*_#>-]*(?:{_SO}[,:，]?\s*)*(?:(?:the|my|our|die|das|la|les?|el|il|a|o)\s+)?(?P<final>(?:{_FINAL}\s*)*)"
    rf"(?:{_ANSWER}|(?:option|choice)\b|(?:result|solution|ergebnis|lösung|résultat|resultado|risultato))"
    rf"(?:\s+(?:finale?|correcta?))?[*_]*\s*(?:(?:to|of|for|auf|von|à|de|di)\s[^.:\n]{{1,80}}?\s)?"
    rf"(?:{_IS}(?!\w)(?:\s+(?:donc|also|somit|quindi|dunque|portanto|therefore|thus))?\s*[:：]?"
    rf"|[:=：])[\s*_]*(?P<answer>(?:(?![.!?。][*_]*(?:\s(?!{_MONTH})|$|[^\x00-\x7f]))[^\n])+?)"
    r"(?:\s*(?:です|でした|である))?[*_]*[.。]?[*_]*(?=\s*(?:\n|\Z)|[.!?。][*_]*\s|(?<=。))",
    re.IGNORECASE | re.MULTILINE,
)
_MARKED: Final = (
    lazy_pattern(r"^[ \t]*####[ \t]*(?P<answer>[^\n#]+?)[ \t]*$", re.MULTILINE),
    lazy_pattern(r"\b(?:final_answer|finish|answer)\s*[(\[](?P<answer>[^\n]*)[)\]]\s*\Z", re.IGNORECASE),
    lazy_pattern(r"<(?:final_)?answer>\s*(?P<answer>[^<]+?)\s*</(?:final_)?answer>", re.IGNORECASE),
)
_BOXED: Final = lazy_pattern(r"\\boxed\s*\{(?P<answer>(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")
_LEADS: Final = lazy_pattern(rf"\A[\s*_>-]*{_SO}\b[,:]?\s*", re.IGNORECASE)
_LEFT_OPEN: Final = lazy_pattern(
    r"(?:not\b(?!\s+(?:guilty|valid|possible|allowed))|un(?:known|clear|certain|determined)|still|yet|open"
    r"|what|which|where|when|how|whether|that\b|to\s+be|given\s+by|found\s+by|obtained|something|as follows"
    r"|either\b|(?:the\s+)?\w+\s+(?:above|below)\b|.*\b(?:i (?:guess|think)|maybe|perhaps)\b)"
    r"|[.…\s\"'`*_<>()\[\]{}-]*\Z",
    re.IGNORECASE,
)
_UNDECIDED: Final = lazy_pattern(
    r"\W*(?:either\b|[\w.%$€£°]+\s+(?:or|oder|ou)\s+[\w.%$€£°]+\W*(?:[;,].*)?\Z)"
    r"|the (?:number|amount|total|name|year|date|value|person|place|sum) (?:of|that|who|where|when)\b[^\d]*\Z",
    re.IGNORECASE,
)
"""An answer that is two, `12 or 13`, or asks the question again: `the number of apples`."""
TAKES_BACK: Final = (
    "wait|actually|correction|corrected|sorry|oops|hmm|instead|on second thought|let me (?:re|fix|correct)"
    "|scratch that|that(?:'s| is) (?:not right|wrong)|no,"
)
"""A pattern of the words with which a writer corrects what stands before them."""
_TAKES_BACK: Final = lazy_pattern(rf"\b(?:{TAKES_BACK})|^\W*(?:but|however)\b", re.IGNORECASE)
_EPILOGUE: Final = lazy_pattern(
    r"[\s.*_#>(-]*(?:(?:here(?:'s| is) (?:why|how)|because|explanations?|reason(?:ing)?\b"
    r"|this (?:is because|follows|is (?:about|approximately|roughly))|to see|proof\b|justification\b|begründung\b"
    r"|note\b|remark|(?:in )?summary|in other words|in detail|working\b|verification|probe\b|fun fact\b"
    r"|i\.e|that is[, ]|question\b|relative to|for comparison"
    r"|(?:let me |let's |to )?(?:double[- ]?check|verify|check|verifying|checking)\b(?=[^\n]*[\d✓✔])|✓|✔)|\Z)",
    re.IGNORECASE,
)
"""What may follow an answer that is given first."""
_WORKING: Final = lazy_pattern(
    r"[\W\d_]*(?:reasoning|steps?\b|think|thoughts?\b|approach|working|analysis|planning|überlegung|denkprozess"
    r"|razonamiento|raisonnement|calculation|given\b)",
    re.IGNORECASE,
)
"""How reasoning is headed."""
_BEGINS: Final = lazy_pattern(
    r"\W*(?:first|next|let|we (?:need|have to|must|can|start|know)|to \w+|step|now|okay|ok|sure|here"
    r"|i(?:'ll| will| need|'m)|given|start|if|consider|suppose|assume)\b",
    re.IGNORECASE,
)
"""How a sentence of the working begins, and none that concludes."""
_COMES_TO: Final = lazy_pattern(
    r"(?:^|\s)(?:=|equals|makes|ergibt|is|are|ist|sind)\s*(?P<value>[^=]{1,60}?)[.\s]*$"
)
_DECLINES: Final = lazy_pattern(
    r"(?:^|[.!?]\s+|\n)\W*(?:(?:so )?the answer (?:is|remains)\s+(?:not|un|still|yet|open)"
    r"|i(?:'m| am)\s+(?:sorry|afraid|unable|not able|not sure)|sorry\b|i apologi[sz]e|as an ai\b|unable to"
    r"|i\s+(?:can(?:no|')t|do(?:n't| not) (?:know|have)|could(?:n't| not))|no idea\b|unfortunately[, ]"
    r"|there is (?:not enough|insufficient)|cannot (?:be )?(?:determine|answer)"
    r"|(?:could you )?please (?:provide|clarify)|could you (?:provide|clarify))",
    re.IGNORECASE,
)
_REFUSES: Final = lazy_pattern(
    r"\A\W*(?:(?:i(?:'m| am) (?:very )?sorry|sorry|unfortunately)[,.]?\s+(?:but )?)?"
    r"i(?:(?:'m| am) (?:unable|not able) to| can(?:no|')t) (?:help|assist|open|access|provide|fulfil"
    r"|complete|do that)\b",
    re.IGNORECASE,
)
"""How a model declines a task; a letter that declines something is to somebody, and says so first."""
_YES_NO_ASKED: Final = lazy_pattern(
    r"(?:^|[.!?:]\s+)(?:is|are|was|were|am|do|does|did|can|could|may|must|will|would|has|have|had|should"
    r"|ist|sind|kann|darf|hat|est-ce que|es|è|é)\b[^.!?]*\?|\byes or no\b|\btrue or false\b",
    re.IGNORECASE,
)
_YES_NO: Final = lazy_pattern(
    r"\W*(?:(?:so|therefore|thus|hence|conclusion)[,:]?\s+)?[*_]*(?P<answer>yes|no|ja|nein|oui|non|sí|true|false)\b",
    re.IGNORECASE,
)

# -- marks

_STRUCTURED: Final = lazy_pattern(r"^\s*(?:#{1,6}\s|[-*•]\s|\d+[.)]\s|\||```|~~~)", re.MULTILINE)
_FENCED: Final = lazy_pattern(
    r"^[ \t]*(?P<mark>`{3,})[^`\n]*\n.*?^[ \t]*(?P=mark)[ \t]*$", re.MULTILINE | re.DOTALL
)
_TABLE: Final = lazy_pattern(r"^\|.*\|\s*$", re.MULTILINE)
_HEADING: Final = lazy_pattern(
    r"^[ \t]*(?:#{1,6}[ \t]+(?P<name>[^\n]+?)|[*_]{2}(?P<bold>[^*\n]{1,80}?)[*_]{2}[:.]?)[ \t]*$",
    re.MULTILINE,
)
_CAPTION: Final = lazy_pattern(r"^[^\n:|]{1,60}:[ \t]*\n(?=[ \t]*(?:[-*•]|\d+[.)])\s)", re.MULTILINE)
"""A line that heads a list."""
_BOLD: Final = lazy_pattern(r"\*\*([^*\n]+)\*\*(?!\s*[:：])")
_PARAGRAPH: Final = lazy_pattern(r"(?:```.*?(?:```|\Z)|.)+?(?=\n[ \t]*\n|\Z)", re.DOTALL)
_LIST_ITEM: Final = lazy_pattern(r"\n[ \t]*(?:[-*•]|(?:[2-9]|\d\d)[.)])[ \t]+\Z")

_END: Final = 20_000
"""Characters at the end of a text in which an answer is looked for."""
_MAX_BARE: Final = 300
"""Characters of a text that is an answer without saying so."""
_FEW_LINES: Final = 3
"""Lines from which on a text that answers no question is one, though it has no headings, fences or tables."""
_MAX_SHORT: Final = 120
"""Characters of a short answer under a heading that a document may have, too."""


# -- the answer


def find_answer(text: str, subject: Subject | None = None) -> Found | Unreadable | None:
    """Return the answer a text gives; None if it gives none, `Unreadable` if it gives two or takes it back."""
    subject = subject or Subject()
    text = without_closing(text)
    if subject.is_open and _REFUSES.match(text):
        return Unreadable("it declines the task; do it as far as you can")
    if subject.is_open:
        found = _document(text) if text else None
        is_marked = found is not None and (found.answer != text or _is_document(text))
        return found if is_marked or not subject.alone else None
    tail = text[-_END:]
    found = _find_statement(tail, subject) or _find_conclusion(tail, subject)
    if not isinstance(found, Found) or len(text) == len(tail):
        return found
    return Found(found.answer, text[:-_END] + found.before, found.after)


def stated_answer(text: str, subject: Subject | None = None) -> str | Unreadable | None:
    """Return the answer a text states or concludes, alone; see `find_answer`."""
    found = find_answer(text, subject)
    return found.answer if isinstance(found, Found) else found


def only_answer(text: str) -> str | None:
    """Return a text that is nothing but an answer; None: it argues, or asks, and states none.

    An answer is one short paragraph, or a document with headings, lists or tables.
    """
    text = without_closing(text)
    is_short = len(text) <= _MAX_BARE and "\n\n" not in text
    if not text or text.endswith((":", "?", "…", "...")) or not (is_short or _STRUCTURED.search(text)):
        return None
    return tidy(text) if is_short else text


def declines(text: str) -> bool:
    """Whether a text gives no answer, politely."""
    return len(text) <= 2_000 and _DECLINES.match(text) is not None


def blocks(text: str) -> tuple[str, ...]:
    """Return the parts of a text: its lines, with a fence, a table or a formula, and what is indented, as one."""
    parts: list[str] = []
    for paragraph in _paragraphs(text):
        is_one = paragraph.startswith(("```", "~~~", "|", r"\[", "$$"))
        parts += [paragraph] if is_one else re.split(r"\n(?![ \t]|```|~~~)", paragraph)
    return tuple(part.strip() for part in parts)


def _paragraphs(text: str) -> list[str]:
    """Split at blank lines, but not inside a fence."""
    return [found[0].strip() for found in _PARAGRAPH.finditer(text) if found[0].strip()]


def _document(text: str) -> Found:
    """Return the whole text; where reasoning comes first, what stands under its one label."""
    if wrapped := re.fullmatch(r"```(?:markdown|md)\n(.*?)\n```", text, re.DOTALL):
        text = wrapped[1]
    labels = [match for match in _LABEL.finditer(text) if match["word"] and (match["colon"] or match["mark"])]
    for label in labels if len(labels) == 1 else ():
        before, answer = text[: label.start()], f"{label['answer']}{text[label.end() :]}".strip("* \n")
        headings = [match for match in _HEADING.finditer(before) if not _WORKING.match(match[0])]
        is_part = label["mark"] and _HEADING.search(text, label.end())
        if answer and not is_part and (not before.strip() or (_WORKING.match(before) and not headings)):
            return Found(answer, before.strip())
    return Found(text)


def _is_document(text: str) -> bool:
    return "```" in text or _TABLE.search(text) is not None or len(_HEADING.findall(text)) > 1


# -- stated


def _find_statement(text: str, subject: Subject) -> Found | Unreadable | None:
    found = sorted(_statements(text), key=lambda each: (each.start, each.rank))
    if not found:
        return None
    last = found[-1]
    for other in found[:-1]:
        is_less = other.rank < last.rank or other.start == last.start
        if is_less or is_same(other.answer, last.answer) or _TAKES_BACK.search(text[other.end : last.start]):
            continue
        return Unreadable(f"it states two answers, {other.answer[:80]!r} and {last.answer[:80]!r}; state one")
    if last.rank == 0 and _is_part(text, last, subject):
        return Found(text)
    if _TAKES_BACK.match(text[last.end :][:200].lstrip(". \n")) or _UNDECIDED.match(last.answer):
        return Unreadable("it leaves its answer open; state one")
    answer = _essence(_LEADS.sub("", last.answer))
    # A sentence of which a word is the answer is also what leads to it.
    before = text[: last.start if answer == last.answer else last.end]
    return Found(answer, before.strip(), text[last.end :].strip(" .。\n"))


def _is_part(text: str, last: _Statement, subject: Subject) -> bool:
    """Whether a label such as `Conclusion` heads a part of a document, and no answer."""
    heads = (*_headings(text), *_CAPTION.finditer(text))
    others = sum(match.start() != last.start and not _WORKING.match(match[0]) for match in heads)
    is_short = len(last.answer) <= _MAX_SHORT and "\n\n" not in last.answer
    if not others or subject.alone or (asks_for_value(subject.problem) and is_short):
        return False
    return others > 1 or not is_short


def _headings(text: str, start: int = 0) -> Iterator[re.Match[str]]:
    """Yield the headings of a text; a bold line that ends it is none."""
    return (match for match in _HEADING.finditer(text, start) if text[match.end() :].strip())


def _statements(text: str) -> Iterator[_Statement]:
    """Yield where an answer is stated."""
    text = _FENCED.sub(lambda match: re.sub(r"\S", " ", match[0]), text)
    for match in _BOXED.finditer(text):
        yield _Statement(match.start(), match.end(), tidy(match["answer"]), 3)
    for pattern in _MARKED:
        for match in pattern.finditer(text):
            if not _WORKING.match(match["answer"]):
                yield _Statement(match.start(), match.end(), _unbox(match["answer"]), 2)
    for match in (*_LABEL.finditer(text), *_LEAD.finditer(text)):
        if found := _read_label(text, match):
            yield found
    for match in _SENTENCE.finditer(text):
        answer = _unbox(match["answer"])
        rest = text[match.end() :]
        is_last = _EPILOGUE.match(rest) or _TAKES_BACK.match(rest[:200].lstrip(". \n"))
        if answer and is_last and not _LEFT_OPEN.match(answer):
            yield _Statement(match.start(), match.end(), answer, 1)


def _read_label(text: str, match: re.Match[str]) -> _Statement | None:
    parts = match.groupdict()
    written = (parts.get("answer") or "").strip(" \t*_")
    is_heading = parts.get("mark") or match[0].strip().startswith(("**", "__"))
    if "colon" in parts and not (parts["colon"] or (is_heading and not written)):
        return None
    end = match.end()
    if not written:
        written, end = _section(text, match.end())
    answer = _unbox(written)
    if not answer or (_LEFT_OPEN.match(answer) and not answer.casefold().startswith("either")):
        return None
    final = (parts.get("final") or "").casefold()
    return _Statement(
        match.start(), end, answer, 0 if not parts["word"] else 2 if final and "short" not in final else 1
    )


def _section(text: str, start: int) -> tuple[str, int]:
    """Return what stands under a label, and where it ends: at the next heading, or at what explains it."""
    headings = (match.start() for match in _headings(text, start) if text[start : match.start()].strip())
    end = next(headings, len(text))
    parts = _paragraphs(text[start:end])
    if len(parts) > 1 and _EPILOGUE.match(parts[1]):
        return parts[0], text.index(parts[0], start) + len(parts[0])
    return "\n\n".join(parts), end


# -- concluded


def _find_conclusion(text: str, subject: Subject) -> Found | Unreadable | None:
    """Return what the end of a text comes to, where it states no answer: a bold result, an equation, a sentence."""
    if declines(text) or (_DECLINES.search(text[-300:]) and len(text) <= 600):
        return None
    if _YES_NO_ASKED.search(subject.problem) and (first := _yes_or_no_first(text)):
        return first
    parts = _paragraphs(text)
    while len(parts) > 1 and _EPILOGUE.match(parts[-1]):
        parts.pop()
    if not parts or "```" in parts[-1] or parts[-1].startswith("|"):
        return _take_document(text, subject)
    line = parts[-1].splitlines()[-1].strip()
    sentences = re.split(rf"(?<=[.!?。])[*_]*\s+(?!{_MONTH})(?=[(\[*_]*[A-ZÀ-Þ\d(¿¡\"'“])", line)
    while len(sentences) > 1 and (sentences[-1].startswith("(") or _EPILOGUE.match(sentences[-1])):
        sentences.pop()
    sentence = sentences[-1].strip()
    answer = _conclusion(re.sub(r"^(?:[-*•>]|\d{1,2}[.)])\s+", "", sentence), text, subject)
    if answer is None:
        return _take_document(text, subject)
    end = text.rindex(sentence) + len(sentence)
    start = end - len(sentence) if answer in (tidy(sentence), sentence) else end
    is_stated = "**" in sentence or "=" in sentence or _is_number(answer)
    return Found(answer, text[:start].strip(), text[end:].strip(), is_stated)


def _yes_or_no_first(text: str) -> Found | None:
    """Return the yes or no that a text begins with, where it says so nowhere else and takes nothing back."""
    first = _YES_NO.match(text)
    if first is None or not re.match(r"[*_]*\s*[.,:;!—–-]", text[first.end() :]):
        return None
    rest = text[first.end() :]
    others = re.search(
        r"(?:^|[.!?\n]\s*)[*_]*(?:yes|no|ja|nein|oui|non|sí|true|false)\b", rest, re.IGNORECASE
    )
    return None if others or _TAKES_BACK.search(rest) else Found(first["answer"], "", rest.strip(" .*_\n"))


def _take_document(text: str, subject: Subject) -> Found | None:
    """Return a document whole, unless a value was asked for, or it may be nothing but the working."""
    is_asked_for = subject.problem and not subject.alone and not asks_for_value(subject.problem)
    is_text = (
        "?" not in subject.problem
        and text.count("\n") >= _FEW_LINES
        and not _BEGINS.match(text.removeprefix("Here"))
    )
    if not is_asked_for or not (is_text or _is_document(text)) or text.endswith((":", "?")):
        return None
    return None if re.search(r"^\W*step\s*\d", text, re.IGNORECASE | re.MULTILINE) else Found(text)


def _conclusion(sentence: str, text: str, subject: Subject) -> str | None:
    """Return the answer that the last sentence is, as far as it is one."""
    bold = _bold_results(sentence)
    is_only = sentence == text.strip()
    if sentence.endswith((":", "?", "…", "...")) or len(sentence) > _MAX_BARE or "\\[" in sentence:
        return None
    if _YES_NO_ASKED.search(subject.problem) and (found := _YES_NO.match(sentence)):
        return found["answer"]
    if (is_only and "=" in sentence) or re.match(r"\{|.*\banswer\b", sentence, re.IGNORECASE):
        return None
    if len(bold) == 1 and sentence.strip(" .!*_") == bold[0].strip(" .!*_"):
        # The last item of a list is one of several.
        return None if _LIST_ITEM.search(text[: text.rindex(sentence)][-8:]) else tidy(bold[0])
    leads = _LEADS.match(sentence)
    if len(bold) == 1 and (leads or not _BEGINS.match(sentence)):
        return tidy(bold[0])
    if found := re.search(
        r"(?:^|\s)(?:=|equals|makes|ergibt|is|are|ist|sind)\s*(?P<value>[^=]{1,60}?)[.\s]*$", sentence
    ):
        value = tidy(re.split(r",\s*(?:or|i\.e\.|which|and)\b", found["value"])[0])
        if _is_number(value) or "=" in found[0]:
            return value if _is_number(value) else None
    if _is_number(sentence.strip(" .")) or leads:
        return _essence(tidy(_LEADS.sub("", sentence)))
    is_whole = len(sentence.split()) <= 5 or re.search(r"[.!)\"”»。]\Z", sentence)
    return (
        tidy(sentence) if is_only and is_whole and not subject.alone and not _BEGINS.match(sentence) else None
    )


def _bold_results(text: str) -> list[str]:
    """Return what is bold in a text and no label: `**Recommendation:**` and `**Tip**:` are none."""
    found = _BOLD.findall(text)
    return [part for part in found if part.strip(" .") and not part.rstrip().endswith((":", "："))]


def _essence(answer: str) -> str:
    """Return the one bold result in an answer; else the answer."""
    bold = _bold_results(answer)
    return tidy(bold[0]) if len(bold) == 1 and len(answer) <= _MAX_BARE else answer


def _unbox(answer: str) -> str:
    boxed = _BOXED.search(answer)
    return tidy(boxed["answer"] if boxed else answer)


def _is_number(line: str) -> bool:
    """Whether a line is a number and perhaps its unit; one that begins with a word is a sentence."""
    return re.match(r"[\W\d]", line) is not None and normalise(line).number is not None


def is_same(answer: str, other: str) -> bool:
    """Whether two answers say the same, or one holds the other."""
    shorter, longer = sorted((answer.casefold(), other.casefold()), key=len)
    return agree(normalise(answer), normalise(other)) or shorter in longer
