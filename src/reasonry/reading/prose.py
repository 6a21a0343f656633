r"""The answer that a plain reply gives: the whole text, what it states ("The answer is 5."), or what it concludes.

Rule 1: the reply to an open task is its answer, whole; only a label of its own (`Final answer:`) after reasoning
        parts it.
Rule 2: otherwise an answer is stated (a label, a sentence, `\boxed{5}`, `#### 5`), or it is the conclusion that the
        text ends with: a bold result, an equation, a sentence.
Rule 3: two answers are none; one that is left open or taken back is none; the writer is asked.
Rule 4: a sentence is dropped only if all of it is a closing phrase of the list below.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from ..patterns import lazy_pattern
from .closing import without_closing
from .fit import Unreadable
from .open_task import asks_for_value
from .quantity import UNITS, UNSURE
from .vote import agree, normalise


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
    r"(?:answer|antwort|réponse|respuesta|risposta|resposta|antwoord|odpowiedź|ответ|答案|答え|回答|정답)"
)
_RESULT: Final = (
    r"(?:result|total|solution|conclusion|final (?:result|value)|ergebnis|endergebnis|fazit|lösung|résultat"
    r"|conclusión"
    r"|conclusione|resultado|risultato|soluzione|solución|结论|結論)"
)
_FINAL: Final = (
    r"(?:final|correct(?:ed)?|revised|overall|full|short"
    r"|richtige|endgültige|finale|correcta|correct[ao]|最终)"
)
_ARTICLE: Final = r"(?:the|my|our|die|das|le|la|les|el|il|a|o)"
_SO: Final = (
    r"(?:so|thus|hence|therefore|then|and|finally|in conclusion|consequently|in total|altogether|in short|overall"
    r"|also|daher|folglich|somit|donc|ainsi|por (?:lo )?tanto|así que|quindi|dunque|portanto|logo"
    r"|因此|所以|よって|したがって)"
)
_IS: Final = r"(?:is|would be|must be|should be|ist|lautet|beträgt|est|es|è|é|是|为|は)"

_LABEL: Final = lazy_pattern(
    rf"^[ \t]*(?P<mark>#{{1,6}}[ \t]+)?[>*_•\- \t]*(?:\d+[.)]\s*)?(?:{_SO}[,:]?\s+)?"
    rf"(?P<final>(?:{_FINAL}[\s_]*)*)(?:(?P<word>{_ANSWER})|{_RESULT})(?:\s+(?:finale?|correcta?))?[*_]*"
    rf"\s*(?:\([^)\n]{{0,40}}\))?(?:\s+{_IS})?[*_]*\s*(?P<colon>[:=：][*_]*)?[ \t]*(?P<answer>[^\n]*)$",
    re.IGNORECASE | re.MULTILINE,
)
_MONTH: Final = r"(?:Jan|Feb|März|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)"
"""After a number with a period it goes on with a date: `6. März`."""
_LEADS: Final = lazy_pattern(rf"\A[\s*_>-]*{_SO}\b[,:]?\s*", re.IGNORECASE)
_LEAD: Final = lazy_pattern(
    rf"^[^\n.]{{0,80}}\b(?P<word>{_ANSWER})(?:\s+{_IS})?\s*:[*_]*[ \t]*$", re.IGNORECASE | re.MULTILINE
)
"""A line that announces the answer."""
_SENTENCE: Final = lazy_pattern(
    rf"(?:^|[.!?:。]\s*|(?=\b{_SO}\b)|,\s+(?=the (?:{_FINAL}\s)?answer))"
    rf"[\s*_#>-]*(?:{_SO}[,:，]?\s*)*(?:{_ARTICLE}\s+)?(?P<final>(?:{_FINAL}\s*)*)"
    rf"(?:{_ANSWER}|(?:option|choice)\b|(?:result|solution|ergebnis|lösung|résultat|resultado|risultato))"
    rf"(?:\s+(?:finale?|correcta?))?[*_]*\s*(?:(?:to|of|for|auf|von|à|de|di)\s[^.:\n]{{1,80}}?\s)?"
    rf"(?:{_IS}(?!\w)\s*[:：]?|[:=：])[\s*_]*(?P<answer>(?:(?![.!?。][*_]*(?:\s(?!{_MONTH})|$|[^\x00-\x7f]))[^\n])+?)"
    r"(?:\s*(?:です|でした|である))?[*_]*[.。]?[*_]*(?=\s*(?:\n|\Z)|[.!?。][*_]*\s|(?<=。))",
    re.IGNORECASE | re.MULTILINE,
)
_MARKED: Final = (
    lazy_pattern(r"^[ \t]*####[ \t]*(?P<answer>[^\n#]+?)[ \t]*$", re.MULTILINE),
    lazy_pattern(r"\b(?:final_answer|finish|answer)\s*[(\[](?P<answer>[^\n]*)[)\]]\s*\Z", re.IGNORECASE),
    lazy_pattern(r"<(?:final_)?answer>\s*(?P<answer>[^<]+?)\s*</(?:final_)?answer>", re.IGNORECASE),
)
_BOXED: Final = lazy_pattern(r"\\boxed\s*\{")
_LEFT_OPEN: Final = lazy_pattern(
    r"(?:not\b(?!\s+(?:guilty|valid|possible|allowed))|un(?:known|clear|certain|determined)|still|yet|open"
    r"|what|which|where"
    r"|when|how|whether|that\b|to\s+be|given\s+by|found\s+by|obtained|something|as follows|either\b"
    r"|(?:the\s+)?\w+\s+(?:above|below)\b|.*\b(?:i (?:guess|think)|maybe|perhaps)\b)|[.…\s\"'`*_<>()\[\]{}-]*\Z",
    re.IGNORECASE,
)
_UNDECIDED: Final = lazy_pattern(
    r"\W*(?:either\b|[\w.,%$€£°]+\s+(?:or|oder|ou)\s+[\w.,%$€£°]+\W*(?:;.*)?\Z)", re.IGNORECASE
)
"""An answer that is two: `12 or 13`."""
_REPEATS: Final = lazy_pattern(
    r"the (?:number|amount|total|name|year|date|value|person|place|sum) (?:of|that|who|where|when)\b[^\d]*\Z",
    re.IGNORECASE,
)
"""What is asked for, in the place of the answer."""
TAKES_BACK: Final = (
    "wait|actually|correction|corrected|sorry|oops|hmm|instead|on second thought|let me (?:re|fix|correct)"
    "|scratch that|that(?:'s| is) (?:not right|wrong)|no,"
)
"""A pattern of the words with which a writer corrects what stands before them."""
_TAKES_BACK: Final = lazy_pattern(
    rf"\b(?:{TAKES_BACK})|^\W*(?:but|however)\b",
    re.IGNORECASE,
)
_BESIDE: Final = lazy_pattern(
    r"[\s.,;*_)\]$`]*(?:(?:method|approach|way|case)\s+(?:2|two|b)\b[^\n]*"
    r"|(?:(?:or|oder|alternatively)\b[\s:,]*)?[*_`$(\[\\]*)",
    re.IGNORECASE,
)
"""What stands between two answers, none of which is taken back."""
_EPILOGUE: Final = lazy_pattern(
    r"[\s.*_#>(-]*(?:(?:here(?:'s| is) (?:why|how)|because|since|explanation|explanations?|reason(?:ing)?\b"
    r"|this (?:is because|follows|is"
    r" (?:about|approximately|roughly))|to see|proof\b|justification\b|begründung\b|note\b|remark|summary|in summary"
    r"|in other words|in detail|working\b|verification|probe\b|fun fact\b"
    r"|i\.e|that is[, ]|question\b|relative to|for comparison"
    r"|(?:let me |let's |to )?(?:double[- ]?check|verify|check|verifying|checking)\b(?=[^\n]*[\d✓✔])|✓|✔)|\Z)",
    re.IGNORECASE,
)
"""What may follow an answer that is given first."""
_STRUCTURED: Final = lazy_pattern(r"^\s*(?:#{1,6}\s|[-*•]\s|\d+[.)]\s|\||```|~~~)", re.MULTILINE)
_FENCED: Final = lazy_pattern(r"^[ \t]*```.*?^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)
_HEADING: Final = lazy_pattern(
    r"^[ \t]*(?:#{1,6}[ \t]+(?P<name>[^\n]+?)|[*_]{2}(?P<bold>[^*\n]{1,80}?)[*_]{2}[:.]?)[ \t]*$",
    re.MULTILINE,
)
_WORKING: Final = lazy_pattern(
    r"[\W\d_]*(?:reasoning|steps?\b|thinking|thoughts?\b|thought process|approach|working|analysis|planning"
    r"|überlegung|denkprozess"
    r"|razonamiento|raisonnement|calculation|given\b)",
    re.IGNORECASE,
)
"""How reasoning is headed."""
_DECLINES: Final = lazy_pattern(
    r"(?:^|[.!?]\s+|\n)\W*(?:(?:so )?the answer (?:is|remains)\s+(?:not|un|still|yet|open)"
    r"|i(?:'m| am)\s+(?:sorry|afraid|unable|not able|not sure)|sorry\b|i\s+(?:can(?:no|')t|do(?:n't"
    r"| not) (?:know|have)"
    r"|could(?:n't| not))|no idea\b|as an ai\b|unfortunately[, ]|unable to|there is (?:not enough|insufficient)"
    r"|cannot (?:be )?(?:determine|answer)|could you (?:please )?(?:clarify|provide)|please (?:provide|clarify))",
    re.IGNORECASE,
)
_REFUSES: Final = lazy_pattern(
    r"\A\W*(?:(?:i(?:'m| am) (?:very )?)?(?:sorry|afraid)|i apologi[sz]e|as an ai\b[^.]*)[,.]?\s+(?:but\s+)?"
    r"i(?:'m| am)?\s*(?:can(?:no|')t|can not|unable|not able|won't|will not|do not|don't)\b",
    re.IGNORECASE,
)
_YES_NO_ASKED: Final = lazy_pattern(
    r"(?:^|[.!?:]\s+)(?:is|are|was|were|am|do|does|did|can|could|may|must|will|would|has|have|had|should"
    r"|ist|sind|kann|darf|hat|est-ce que|es|è|é)\b[^.!?]*\?|\byes or no\b|\btrue or false\b",
    re.IGNORECASE,
)
_YES_NO: Final = lazy_pattern(
    r"\W*(?:(?:so|therefore|thus|hence|conclusion)[,:]?\s+)?[*_]*(?P<answer>yes|no|ja|nein|oui|non|sí|true|false)\b",
    re.IGNORECASE,
)
_BEGINS: Final = lazy_pattern(
    r"\W*(?:first|next|let|we (?:need|have to|must|can|start|know)|to \w+|step|now|okay|ok|sure|here|i(?:'ll"
    r"| will| need|'m)|"
    r"given|start|if|consider|suppose|assume)\b",
    re.IGNORECASE,
)
"""How a sentence of the working begins, and none that concludes."""

_END: Final = 20_000
"""Characters at the end of a text in which an answer is looked for."""
_MAX_BARE: Final = 300
"""Characters of a text that is an answer without saying so."""
LABEL_WORDS: Final = 6
"""Words of a stated answer that is taken as it is."""
_MAX_SHORT: Final = 120
"""Characters of a short answer under a heading that a document may have, too."""


# -- the answer


def find_answer(text: str, subject: Subject | None = None) -> Found | Unreadable | None:
    """Return the answer a text gives; None if it gives none, `Unreadable` if it gives two or takes it back."""
    subject = subject or Subject()
    text = without_closing(text)
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


def refuses(text: str) -> bool:
    """Whether a text does nothing but excuse its writer."""
    return len(text) <= 500 and _REFUSES.match(text) is not None


def blocks(text: str) -> tuple[str, ...]:
    """Return the parts of a text: its lines, with a fence, a table or a formula, and what is indented, as one."""
    parts: list[str] = []
    for paragraph in _paragraphs(text):
        is_one = paragraph.lstrip().startswith(("```", "~~~", "|", r"\[", "$$"))
        parts += [paragraph] if is_one else re.split(r"\n(?![ \t]|```|~~~)", paragraph)
    return tuple(part.strip() for part in parts)


def _paragraphs(text: str) -> list[str]:
    """Split at blank lines, but not inside a fence or a displayed formula."""
    found: list[list[str]] = [[]]
    inside = ""
    for line in text.splitlines():
        mark = line.strip()
        if not mark and not inside:
            found.append([])
            continue
        found[-1].append(line)
        if inside:
            inside = "" if mark.startswith(inside) else inside
        elif mark.startswith(("```", "~~~")) and mark.count(mark[:3]) == 1:
            inside = mark[:3]
        elif mark in (r"\[", "$$"):
            inside = {r"\[": r"\]", "$$": "$$"}[mark]
    return ["\n".join(lines) for lines in found if any(line.strip() for line in lines)]


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


# -- stated


def _find_statement(text: str, subject: Subject) -> Found | Unreadable | None:
    found = sorted(_statements(text), key=lambda each: (each.start, each.rank))
    if not found:
        return None
    last = found[-1]
    for other in found[:-1]:
        between = text[other.end : last.start]
        if is_same(other.answer, last.answer) or other.start == last.start:
            continue
        if _BESIDE.fullmatch(between) or not (last.rank > min(other.rank, 2) or _TAKES_BACK.search(between)):
            return Unreadable(
                f"it states two answers, {other.answer[:80]!r} and {last.answer[:80]!r}; state one"
            )
    if last.rank == 0 and (whole := _whole(text, last, subject)):
        return whole
    is_taken_back = _TAKES_BACK.match(text[last.end :][:200].lstrip(". \n"))
    if is_taken_back or _UNDECIDED.match(last.answer):
        return Unreadable("it leaves its answer open; state one")
    if _REPEATS.match(last.answer):
        return Unreadable("it repeats the question; answer it")
    # What stands under a label is the answer as it is written; a sentence may lead to it.
    is_short = len(last.answer.split()) <= LABEL_WORDS
    answer = _essence(_LEADS.sub("", last.answer), Subject() if is_short else subject)
    # A sentence of which a word is the answer is also what leads to it.
    before = text[: last.start if answer == last.answer else last.end]
    return Found(answer, before.strip(), text[last.end :].strip(" .。\n"))


def _whole(text: str, last: _Statement, subject: Subject) -> Found | None:
    """Return the whole text where a label such as `Conclusion` heads a part of a document and no answer."""
    headings = [
        match
        for match in _HEADING.finditer(text)
        if match.start() != last.start and not _WORKING.match(match[0])
    ]
    is_short = len(last.answer) <= _MAX_SHORT and "\n\n" not in last.answer
    if not headings or subject.alone or (asks_for_value(subject.problem) and is_short):
        return None
    return Found(text) if len(headings) > 1 or not is_short else None


def _statements(text: str) -> Iterator[_Statement]:
    """Yield where an answer is stated."""
    text = _FENCED.sub(lambda match: re.sub(r"\S", " ", match[0]), text)
    for match in _BOXED.finditer(text):
        end = _closing_brace(text, match.end())
        if end is not None:
            yield _Statement(match.start(), end + 1, tidy(text[match.end() : end]), 3)
    for pattern in _MARKED:
        for match in pattern.finditer(text):
            if not _WORKING.match(match["answer"]):
                yield _Statement(match.start(), match.end(), _unbox(tidy(match["answer"])), 2)
    for match in (*_LABEL.finditer(text), *_LEAD.finditer(text)):
        if found := _read_label(text, match):
            yield found
    for match in _SENTENCE.finditer(text):
        answer = _unbox(tidy(match["answer"]))
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
    answer = _unbox(tidy(written))
    if not answer or (_LEFT_OPEN.match(answer) and not re.match(r"either\b", answer, re.IGNORECASE)):
        return None
    is_final = bool(parts.get("final")) and "short" not in (parts.get("final") or "").casefold()
    return _Statement(match.start(), end, answer, 0 if not parts["word"] else 2 if is_final else 1)


def _section(text: str, start: int) -> tuple[str, int]:
    """Return what stands under a label, and where it ends: to the next heading, or to what explains it."""
    following = _HEADING.search(text, start + 1)
    while following and not text[start : following.start()].strip():
        following = _HEADING.search(text, following.end())
    end = following.start() if following else len(text)
    parts = _paragraphs(text[start:end])
    if not parts:
        return "", end
    place = text.index(parts[0], start) + len(parts[0])
    if len(parts) > 1 and (_EPILOGUE.match(parts[1]) or _BOXED.search(parts[0])):
        return parts[0], place
    if len(parts) > 1 and re.fullmatch(r"[*_]{2}[^*\n]+[*_]{2}\.?|[\d.,\s%$€°]+", parts[-1].strip()):
        return parts[-1], end
    return text[start:end].strip(), end


# -- concluded


def _find_conclusion(text: str, subject: Subject) -> Found | Unreadable | None:
    """Return what the end of a text comes to, where it states no answer: a bold result, an equation, a sentence."""
    if declines(text) or (_DECLINES.search(text[-300:]) and len(text) <= 600):
        return None
    parts = _paragraphs(text)
    while len(parts) > 1 and _EPILOGUE.match(parts[-1]):
        parts.pop()
    if not parts or "```" in parts[-1] or parts[-1].lstrip().startswith("|"):
        return _take_document(text, subject)
    line = parts[-1].strip().splitlines()[-1].strip()
    sentences = re.split(rf"(?<=[.!?。])[*_]*\s+(?!{_MONTH})(?=[(\[*_]*[A-ZÀ-Þ\d(¿¡\"'“])", line)
    while len(sentences) > 1 and (sentences[-1].startswith("(") or _EPILOGUE.match(sentences[-1])):
        sentences.pop()
    sentence = sentences[-1].strip()
    answer = _conclusion(re.sub(r"^(?:[-*•>]|\d{1,2}[.)])\s+", "", sentence), text, subject)
    if answer is None:
        return _first_bold(text, parts[0]) or _take_document(text, subject)
    end = text.rindex(sentence) + len(sentence)
    start = end - len(sentence) if answer in (tidy(sentence), sentence) else end
    is_stated = "**" in sentence or "=" in sentence or _is_number(answer)
    return Found(answer, text[:start].strip(), text[end:].strip(), is_stated)


def _first_bold(text: str, first: str) -> Found | None:
    """Return the one bold result of a text that gives it in its first sentence."""
    bold = _bold_results(text)
    place = text.find("**")
    sentence = re.split(r"(?<=[.!?])\s", first, maxsplit=1)[0]
    if (
        len(bold) != 1
        or f"**{bold[0]}**" not in sentence
        or _BEGINS.match(sentence)
        or sentence.startswith("**")
    ):
        return None
    return Found(tidy(bold[0]), text[:place].strip(), text[place:].strip())


def _take_document(text: str, subject: Subject) -> Found | None:
    """Return a document whole, unless a value was asked for, or it may be nothing but the working."""
    is_asked_for = subject.problem and not subject.alone and not asks_for_value(subject.problem)
    if not is_asked_for or not _is_document(text) or text.endswith((":", "?")):
        return None
    return None if re.search(r"^\W*step\s*\d", text, re.IGNORECASE | re.MULTILINE) else Found(text)


def _is_document(text: str) -> bool:
    is_table = re.search(r"^\|.*\|\s*$", text, re.MULTILINE)
    return "```" in text or is_table is not None or len(_HEADING.findall(text)) > 1


def _conclusion(sentence: str, text: str, subject: Subject) -> str | None:
    """Return the answer that the last sentence is, as far as it is one."""
    bold = _bold_results(sentence)
    is_bold = len(bold) == 1 and sentence.strip(" .!*_") == bold[0].strip(" .!*_")
    is_only = sentence.strip() == text.strip()
    leads = _LEADS.match(sentence)
    if sentence.endswith((":", "?", "…", "...")) or len(sentence) > _MAX_BARE or "\\[" in sentence:
        return None
    if _YES_NO_ASKED.search(subject.problem) and (found := _YES_NO.match(sentence)):
        return found["answer"]
    if (is_only and "=" in sentence) or re.match(r"\{|.*\banswer\b", sentence, re.IGNORECASE):
        return None
    if is_bold:
        # The last item of a list is one of several.
        return (
            None
            if _LIST_ITEM.search(text[: text.rindex(sentence)][-8:])
            else _essence(tidy(bold[0]), subject)
        )
    if len(bold) == 1 and (leads or not _BEGINS.match(sentence)):
        return tidy(bold[0])
    if found := re.search(r"(?:^|\s)(?:=|equals|makes|ergibt)\s*(?P<value>[^=]{1,60}?)[.\s]*$", sentence):
        value = tidy(re.split(r",\s*(?:or|i\.e\.|which|and)\b", found["value"])[0])
        return value if _is_number(value) else None
    if _is_number(sentence.strip(" .")):
        return tidy(sentence)
    is_whole = len(sentence.split()) <= 5 or re.search(r"[.!)\"”»。]\Z", sentence)
    if leads or (
        is_whole
        and not _BEGINS.match(sentence)
        and ((is_only and not subject.alone) or _value_in(sentence, subject))
    ):
        return _essence(tidy(_LEADS.sub("", sentence)), subject)
    return None


_LIST_ITEM: Final = lazy_pattern(r"\n[ \t]*(?:[-*•]|(?:[2-9]|\d\d)[.)])[ \t]+\Z")


def _bold_results(text: str) -> list[str]:
    """Return what is bold in a text and no label: `**Recommendation:**` and `**Tip**:` are none."""
    found = re.findall(r"\*\*([^*\n]+)\*\*(?!\s*[:：])", text)
    return [part for part in found if part.strip(" .") and not part.rstrip().endswith((":", "："))]


def _essence(answer: str, subject: Subject) -> str:
    """Return the value that a sentence gives, where it is certain; else the sentence."""
    bold = _bold_results(answer)
    if len(bold) == 1 and "\n" not in answer:
        return tidy(bold[0])
    if not subject.problem or len(answer) > _MAX_BARE or "\n" in answer:
        return answer
    answer = _LEADS.sub("", answer)
    if _YES_NO_ASKED.search(subject.problem) and (found := _YES_NO.match(answer)) and len(answer.split()) > 1:
        return found["answer"]
    return (None if re.match(r"[-−+$€£]?\d", answer) else _value_in(answer, subject)) or answer


_VALUE: Final = lazy_pattern(
    r"(?<![\w.,])[-−+]?[$€£]?\s?\d[\d.,:/]*(?<![.,:])(?:\s?(?:%|€|\$|°[CF]?))?(?!\w)"
)
_SMALL_WORDS: Final = lazy_pattern(
    r"(?:an?|the|this|that|there|its?|they|s?he|we|you|i|in|on|at|by|of|to|from|for|with|after|before|about"
    r"|until|then|so"
    r"|is|are|was|were|be|been|being|has|have|had|will|would|costs?|ends?|leaves|left|makes|now|total|exactly"
    r"|only|just"
    r"|therefore|thus|hence|ist|sind|war|wird|lautet|die|der|das|eine?|um|am|im|les?|la|une?|el|est|es|è|é)",
    re.IGNORECASE,
)


_RANGE: Final = lazy_pattern(
    r"\d[^.\d]{0,12}?(?:\b(?:to|until|bis|and|und|à|a)\b|[–—-])\s*[$€£]?\d", re.IGNORECASE
)
_TWO_ASKED: Final = lazy_pattern(
    r"\b(?:and|und|et|y) (?:in |at |on |from |until )?(?:which|what|when|where|who|how|wann|wer|wo|wie|quand|qui)\b"
    r"|\bfrom when until when\b",
    re.IGNORECASE,
)
_NAME_ASKED: Final = lazy_pattern(
    r"\b(?:who|whom|whose|where|wer|wen|wo|qui|où|quién|dónde|chi|dove)\b", re.IGNORECASE
)


def _value_in(sentence: str, subject: Subject) -> str | None:
    """Return the one thing that a sentence adds to the question's own words; None: that is not certain."""
    words = sentence.split()
    if _RANGE.search(sentence) or _TWO_ASKED.search(subject.problem):
        return None
    if re.search(r"\b(?:sentences?|satz|sätzen|phrase|frase|oración)\b", subject.problem, re.IGNORECASE):
        return None
    if len(words) < 3 or not subject.problem or not re.search(r"[.\w%°€$£)]\Z", sentence.strip(" *_")):
        return None
    offered = re.search(r"([^\s,?:]+(?:,\s*[^\s,?]+)*),?\s+(?:or|oder)\s+([^\s,?]+)\s*\?", subject.problem)
    if offered:
        names = [*re.split(r",\s*", offered[1]), offered[2]]
        named = [name for name in names if re.search(rf"\b{re.escape(name)}\b", sentence)]
        return named[0] if len(named) == 1 else None
    known = {_stem(word) for word in re.findall(r"\w+", subject.problem)}
    numbers = _VALUE.findall(sentence)
    new = [number for number in numbers if number not in subject.problem]
    if (
        len(new) == 1
        and asks_for_value(subject.problem)
        and not _NAME_ASKED.search(subject.problem)
        and not UNSURE.search(sentence)
    ):
        unit = re.match(r"\s?[^\W\d_]+", sentence[sentence.index(new[0]) + len(new[0]) :])
        return new[0] + (unit[0] if unit and _is_unit(unit[0].strip(), subject.problem) else "")
    start, end = 0, len(words)
    while start < end and (
        _is_known(words[start], known) or _is_given(words[start : start + 2], numbers, known, subject)
    ):
        start += 1
    while end > start + 1 and _is_known(words[end - 1], known) and not re.search(r"\d\W*\Z", words[end - 2]):
        end -= 1
    rest = " ".join(words[start:end]).strip(" ,.;:*_")
    if not rest or start == 0 or rest in subject.problem or re.search(r"[,;:](?!\d)", rest):
        return None
    is_number = re.match(r"[-−+$€£]?\d", rest) and len(rest.split()) <= 4
    is_name = all(re.match(r"[A-ZÀ-Þ]|(?:de|of|von|van|the|la)\Z", word) for word in rest.split())
    return rest if is_number or (is_name and len(rest.split()) <= 5) else None


def _is_given(words: Sequence[str], numbers: Sequence[str], known: set[str], subject: Subject) -> bool:
    """Whether a number with its unit is one of the problem's: `in 5 days`."""
    is_there = (
        len(words) == 2 and re.search(rf"(?<!\d){re.escape(words[0])}(?!\d)", subject.problem) is not None
    )
    return is_there and len(numbers) > 1 and _is_known(words[1], known)


def _is_unit(word: str, problem: str) -> bool:
    return word in UNITS or re.search(rf"\b{re.escape(word[:-1] or word)}", problem) is not None


def _is_known(word: str, known: set[str]) -> bool:
    plain = re.sub(r"\W", "", word)
    return plain.isalpha() and (_SMALL_WORDS.fullmatch(plain) is not None or _stem(plain) in known)


def _stem(word: str) -> str:
    word = word.casefold()
    return word[: max(3, len(word) - 2)] if len(word) > 3 else word


# -- texts


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
    return answer if match is None or end is None else tidy(answer[match.end() : end])


_AROUND: Final = (
    ("**", "**"),
    ("__", "__"),
    ("`", "`"),
    ("$$", "$$"),
    (r"\(", r"\)"),
    (r"\[", r"\]"),
    ('"', '"'),
)


def tidy(answer: str) -> str:
    """Return a short answer without the markup around it and the period after it."""
    text, before = answer.strip(), None
    while text != before:
        before = text
        for opening, closing in _AROUND:
            inside = text[len(opening) : -len(closing)]
            if len(text) > len(opening + closing) and text.startswith(opening) and text.endswith(closing):
                text = inside.strip() if opening not in inside else text
        if text.startswith("$") and text.endswith("$") and text.count("$") == 2 and len(text) > 2:
            text = text[1:-1].strip()
        if (inner := re.fullmatch(r"\\(?:text|mathrm|textbf)\{([^{}]*)\}", text)) is not None:
            text = inner[1].strip()
        for mark in ("**", "__"):
            if text.count(mark) == 1:
                text = text.removesuffix(mark).removeprefix(mark).strip()
        if text.endswith((".", "。")) and not text.endswith(("..", " a.m.", " p.m.")) and "\n" not in text:
            text = text[:-1].rstrip()
    return text


def _is_number(line: str) -> bool:
    """Whether a line is a number and perhaps its unit; one that begins with a word is a sentence."""
    return re.match(r"[\W\d]", line) is not None and normalise(line).number is not None


def is_same(answer: str, other: str) -> bool:
    """Whether two answers say the same, or one holds the other."""
    shorter, longer = sorted((answer.casefold(), other.casefold()), key=len)
    return agree(normalise(answer), normalise(other)) or shorter in longer
