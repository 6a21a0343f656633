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
from .fit import Unreadable
from .no_answer import without_closing, without_opening
from .numbers import quantities
from .open_task import asks_for_value
from .vote import agree, normalise, says_the_same, tidy


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
    r"(?:answers?|antwort|réponse|respuesta|risposta|resposta|antwoord|odpowiedź|alternativa|opción|opção"
    r"|ответ|答案|答え|回答|정답|(?:option|choice|(?<=correct )(?:options|choices))\b)"
)
_RESULT: Final = (
    r"(?:result|total|solution|conclusion|ergebnis|endergebnis|fazit|lösung|résultat|conclusión|conclusione"
    r"|resultado|risultato|soluzione|solución|结论|結論)"
)
_FINAL: Final = (
    r"(?:final|correct(?:ed)?|revised|overall|full|short|richtige|endgültige|finale|correct[ao]|最终)"
)
_SO: Final = (
    r"(?:so|thus|hence|therefore|then|and|finally|in conclusion|consequently|in total|altogether|in short|overall"
    r"|also|daher|folglich|somit|donc|ainsi|por (?:lo )?tanto|así que|quindi|dunque|portanto|logo"
    r"|因此|所以|よって|したがって)"
)
_IS: Final = r"(?:(?:is|are|would be|must be|should be|ist|lautet|beträgt|est|es|è|é)(?!\w)|是|为|は)"
_MONTH: Final = r"(?:Jan|Feb|März|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)"
"""After a number with a period it goes on with a date: `6. März`."""
_STOP: Final = rf"[.!?。](?=[*_]*(?:\s(?!{_MONTH})|\Z|[^\x00-\x7f]))"

_ANNOUNCED: Final = lazy_pattern(
    r"(?:(?P<line>^[ \t]*(?P<mark>#{1,6}[ \t]+)?[>*_•\- \t]*(?:\d+[.)]\s*)?)"
    r"|(?P<lead>^(?=[^\n]*[:：][*_ \t]*$)[^\n.:]{1,80}?\b)"
    rf"|(?<=[.!?:。])[ \t]*|(?=\b{_SO}\b)|,\s+(?=the (?:{_FINAL}\s)?answer))"
    rf"[*_#>-]*(?:{_SO}[,:，]?\s*)*(?P<the>(?:the|my|our|die|das|la|les?|el|il|a|o)\s+)?(?P<final>(?:{_FINAL}[\s_]*)*)"
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
_LEADS: Final = lazy_pattern(rf"\A[\s*_>-]*{_SO}\b[,:，、]?\s*", re.IGNORECASE)
_LEADS_ON: Final = lazy_pattern(
    r"(?:not\b(?!\s+(?:guilty|valid|possible|allowed))|un(?:known|clear|certain|determined)|still|yet|open"
    r"|what|which|where|when|how|whether|that\b|to\s+be|(?:given|found)\s+by|obtained|something|as follows"
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
_TAKES_BACK: Final = lazy_pattern(
    r"\b(?:wait|actually|correction|corrected|sorry|oops|hmm|instead|on second thought|let me (?:re|fix|correct)"
    r"|scratch that|that(?:'s| is) (?:not right|wrong)|no,)|^\W*(?:but|however)\b",
    re.IGNORECASE,
)
_EPILOGUE: Final = lazy_pattern(
    r"[\s.*_#>(-]*(?:(?:here(?:'s| is) (?:why|how)|because|explanations?|reason(?:ing)?\b"
    r"|this (?:is because|follows|is (?:about|approximately|roughly))|to see|proof\b|justification\b|begründung\b"
    r"|note\b|remark|(?:in )?summary|in other words|in detail|working\b|verification|probe\b|fun fact\b"
    r"|i\.e|that is[, ]|question\b|relative to|for comparison"
    r"|(?:however, |nevertheless, )?it(?:['’]s| is) (?:also )?(?:important|worth) (?:to (?:note|keep in mind)|noting)"
    r"|(?:let me |let's |to )?(?:double[- ]?check|verify|check|verifying|checking)\b(?=[^\n]*[\d✓✔])|✓|✔)|\Z)",
    re.IGNORECASE,
)
"""What may follow an answer that is given first."""
_ASIDE: Final = lazy_pattern(r"\([A-ZÀ-Þ][^()]*[.!]\)")
"""A paragraph that is a remark."""
_WORKING: Final = lazy_pattern(
    r"[\W\d_]*(?:reasoning|steps?\b|think|thoughts?\b|approach|working|analysis|planning|drafts?\b|brainstorm"
    r"|(?:first )?attempt|let me\b|überlegung|denkprozess|razonamiento|raisonnement|calculation|given\b)",
    re.IGNORECASE,
)
"""How reasoning is headed, or begins."""
_BEGINS: Final = lazy_pattern(
    r"\W*(?:first|next|let|we (?:need|have to|must|can|start|know)|to \w+|step|now|okay|ok"
    r"|i(?:'ll| will| would|'d| should| need|'m)|given|start|if|consider|suppose|assume)\b",
    re.IGNORECASE,
)
"""How a sentence of the working begins, and none that concludes."""
_COMES_TO: Final = lazy_pattern(
    r"(?:^|.*?\s)(?:=|equals|makes|ergibt|is|are|ist|sind)\s*(?P<value>[^=]{1,60}?)[.\s]*\Z"
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
    r"|complete|do that)\b"
    r"|\b(?:give me a (?:moment|minute)\b|i(?:'ll| will) (?:get started|get back to you))[^\n]*\Z",
    re.IGNORECASE,
)
"""How a model declines a task, or only promises to do it; a letter that declines something says first to whom."""
_PLANS: Final = lazy_pattern(
    r"\bi(?:['’]ll| will) (?:proceed|start|begin|structure|organi[sz]e|first|write|follow)\b", re.IGNORECASE
)
_PLANS_ON: Final = lazy_pattern(
    r"\W*(?:(?:then|finally|next|after (?:that|this)),? )?i(?:['’]ll| will)\b", re.IGNORECASE
)
_MISSES: Final = lazy_pattern(
    r"\bi (?:don['’]t|do not|can(?:no|['’])t) (?:see|find|have)\b"
    r"|(?:n['’]t| not| no \w+(?: was| is)?) (?:attached|included|provided)\b",
    re.IGNORECASE,
)
_HAND_OVER: Final = lazy_pattern(r"\b(?:paste|provide|share|upload|attach|send)\b", re.IGNORECASE)
_LETTER: Final = lazy_pattern(r"(?:dear|hi|hello|subject)\b", re.IGNORECASE)
_YES_NO_ASKED: Final = lazy_pattern(
    r"(?:^|[.!?:]\s+)(?:is|are|was|were|am|do|does|did|can|could|may|must|will|would|has|have|had|should"
    r"|ist|sind|kann|darf|hat|est-ce que|es|è|é)\b[^.!?]*\?|\byes or no\b|\btrue or false\b",
    re.IGNORECASE,
)
_YES_NO: Final = lazy_pattern(
    rf"(?:^|[.!?\n]\s*)\W*(?:(?:{_SO}|conclusion)[,:]?\s+)?[*_]*(?P<answer>yes|no|ja|nein|oui|non|sí|true|false)\b",
    re.IGNORECASE,
)
_LOOKED_UP: Final = lazy_pattern(r"[^\d.?!]{1,200}\??")
"""A question of one sentence without a number: nothing is worked out for it."""
_WHICH: Final = lazy_pattern(r"\bwhich ([a-z]+)\b(?=[^.?]*\?)", re.IGNORECASE)
_SEVERAL_ASKED: Final = lazy_pattern(r"(?:^|\s)\(?a\)\s.*\s\(?b\)\s", re.DOTALL)
_QUESTIONS_ASKED: Final = lazy_pattern(
    r"\b(?:questions?|quiz|riddles?|faq|interview|survey)\b", re.IGNORECASE
)

# -- marks

_STRUCTURED: Final = lazy_pattern(r"^\s*(?:#{1,6}\s|[-*•]\s|\d+[.)]\s|\||```|~~~)", re.MULTILINE)
_FENCED: Final = lazy_pattern(
    r"^[ \t]*(?P<mark>`{3,})[^`\n]*\n.*?^[ \t]*(?P=mark)[ \t]*$", re.MULTILINE | re.DOTALL
)
_DOCUMENT: Final = lazy_pattern(r"```|^\|.*\|\s*$", re.MULTILINE)
_HEADING: Final = lazy_pattern(
    r"^[ \t]*(?:#{1,6}[ \t]+[^\n]+?|[*_]{2}[^*\n]{1,80}?[*_]{2}[:.]?)[ \t]*$", re.MULTILINE
)
_PART: Final = lazy_pattern(r"^\W*(?:part |teil )?\(?[a-d]\)", re.MULTILINE | re.IGNORECASE)
_BOLD: Final = lazy_pattern(r"\*\*([^*\n]*[^*\n:：])\*\*(?!\s*[:：])")
"""What is bold in a text and no label: `**Recommendation:**` and `**Tip**:` are none."""
_TUPLE: Final = lazy_pattern(r"\\?[{(\[][^(){}\[\]]*,[^(){}\[\]]*\\?[})\]]")
"""A set, a point or an interval."""
_PARAGRAPH: Final = lazy_pattern(r"(?:```.*?(?:```|\Z)|.)+?(?=\n[ \t]*\n|\Z)", re.DOTALL)

_END: Final = 20_000
"""Characters at the end of a text in which an answer is looked for."""
_MAX_BARE: Final = 300
"""Characters of a text that is an answer without saying so."""
_FEW_LINES: Final = 3
"""Lines from which on a text that answers no question is one, though it has no headings, fences or tables."""
_MAX_LED: Final = 20
"""Words of an answer that only a word like `overall` leads to; a longer one sums up a text."""
_MAX_SHORT: Final = 120
"""Characters of a short answer under a heading that a document may have, too."""


# -- the answer


def find_answer(text: str, subject: Subject | None = None) -> Found | Unreadable | None:
    """Return the answer a text gives; None if it gives none, `Unreadable` if it gives two or takes it back."""
    subject = subject or Subject()
    text = without_closing(text)
    if subject.is_open:
        return _take_whole(text, subject)
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
    return len(text) <= 600 and _DECLINES.search(text) is not None


def is_working(text: str) -> bool:
    """Whether a text begins as reasoning does, and not as a text that was asked for."""
    if _WORKING.match(text):
        return True
    begins = _BEGINS.match(text)
    # So may a text of several paragraphs: "If the canal had never been dug, …"
    return begins is not None and not ("\n\n" in text and begins[0].endswith("If"))


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


# -- whole


def _take_whole(text: str, subject: Subject) -> Found | Unreadable | None:
    lines = [line for line in text.splitlines() if line.strip()]
    questions = sum(line.rstrip().endswith("?") for line in lines)
    asks_back = 2 * questions > len(lines) and not _QUESTIONS_ASKED.search(subject.problem)
    if _REFUSES.search(text) or asks_back or _is_put_off(text):
        return Unreadable("it does not do the task; do it as far as you can, without asking back")
    if wrapped := re.fullmatch(r"```(?:markdown|md)\n(.*?)\n```", text, re.DOTALL):
        text = wrapped[1]
    text = without_opening(text)
    found = _below_label(text)
    if found is None and text and not (subject.alone and not _is_document(text)):
        return Found(text)
    return found


def _is_put_off(text: str) -> bool:
    """Whether a reply lists what it is going to write and does not write it, or misses what it is to work on."""
    first, _, rest = text.partition("\n")
    is_plan = first.rstrip().endswith(":") and _PLANS.search(first) is not None
    if is_plan and _PLANS_ON.match(rest.rpartition("\n")[2]):
        return True
    missing = None if _LETTER.match(first) or "\n" in rest.lstrip() else _MISSES.search(first)
    return missing is not None and _HAND_OVER.search(first, missing.end()) is not None


def _below_label(text: str) -> Found | None:
    """Return what stands below the label that a text begins with, or below its one label after reasoning."""
    labels = [match for match in _ANNOUNCED.finditer(text) if match["word"] and _is_label(text, match)]
    if not labels or (len(labels) > 1 and labels[0].start()):
        return None
    label = labels[0]
    before, answer = text[: label.start()].strip(), text[label.end() :].strip()
    answer = answer.strip("* \n") if answer.count("**") % 2 else answer
    headings = [match for match in _headings(text) if match.end() <= label.start()]
    is_working = not before or _WORKING.match(before) or (label["final"] and "\n" not in before)
    return Found(answer, before) if answer and is_working and not headings else None


def _is_document(text: str) -> bool:
    return _DOCUMENT.search(text) is not None or len(_HEADING.findall(text)) > 1


def _has_parts(text: str, subject: Subject) -> bool:
    """Whether a text answers several questions, or in several parts."""
    is_asked = not subject.alone and _SEVERAL_ASKED.search(subject.problem[:2_000]) is not None
    return is_asked and len(_PART.findall(text)) > 1


def _take_document(text: str, subject: Subject) -> Found | None:
    """Return a text whole, unless a value was asked for that it may argue for, or it may be nothing but the working."""
    problem, is_line = subject.problem.strip(), not re.search(r"[\n={…]|\.\.", text)
    is_looked_up = is_line and len(text) <= _MAX_BARE and _LOOKED_UP.fullmatch(problem)
    if not problem or subject.alone or (asks_for_value(problem) and not is_looked_up):
        return None
    is_whole = (is_line or "\n\n" in text or text.count("\n") >= _FEW_LINES) and not _BEGINS.match(text)
    is_document = _is_document(text)
    asks_back = text.endswith((":", "?")) and not is_document
    is_working = asks_back or re.search(r"^\W*step\s*\d", text, re.IGNORECASE | re.MULTILINE)
    return Found(text) if (is_whole or is_document) and not is_working else None


def _headings(text: str, start: int = 0) -> list[re.Match[str]]:
    """Return the headings of a text but those of the working; a bold line that ends it is none."""
    found = (match for match in _HEADING.finditer(text, start) if text[match.end() :].strip())
    return [match for match in found if not _WORKING.match(match[0])]


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
        if _has_parts(text, subject):
            return Found(text)
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
        if not (_EPILOGUE.match(rest) or _TAKES_BACK.match(rest[:200].lstrip())):
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
    parts = _paragraphs(text[start:end])
    if len(parts) > 1 and _EPILOGUE.match(parts[1]):
        return parts[0], text.index(parts[0], start) + len(parts[0])
    return "\n\n".join(parts), end


# -- concluded


def _find_conclusion(text: str, subject: Subject) -> Found | Unreadable | None:
    """Return what a text says first, or its end comes to, where it states no answer."""
    if declines(text):
        return None
    if _has_parts(text, subject):
        return Found(text)
    if first := _find_first(text, subject):
        return first
    parts = _paragraphs(text)
    while len(parts) > 1 and (_EPILOGUE.match(parts[-1]) or _ASIDE.fullmatch(parts[-1])):
        parts.pop()
    if not parts or "```" in parts[-1] or parts[-1].startswith("|"):
        return _take_document(text, subject)
    line = parts[-1].splitlines()[-1].strip()
    sentences = re.split(rf"(?<=[.!?。])[*_]*\s+(?!{_MONTH})(?=[(\[*_]*[A-ZÀ-Þ\d(¿¡\"'“])", line)
    while len(sentences) > 1 and (sentences[-1].startswith("(") or _EPILOGUE.match(sentences[-1])):
        sentences.pop()
    sentence = sentences[-1].strip()
    answer = _conclusion(sentence, text, subject)
    if answer is None:
        return _take_document(text, subject)
    end = text.rindex(sentence) + len(sentence)
    start = end - len(sentence) if answer in (tidy(sentence), sentence) else end
    is_stated = "**" in sentence or "=" in sentence or _is_number(answer)
    return Found(answer, text[:start].strip(), text[end:].strip(), is_stated)


def _find_first(text: str, subject: Subject) -> Found | None:
    """Return the yes or no, the number or the one bold result that a text begins with, and does not go beyond."""
    line, _, below = text.partition("\n\n")
    if below and _is_number(line.strip(" .")) and says_the_same(_last_number(below), line):
        return Found(tidy(line), text)
    bold = list(_BOLD.finditer(text))
    first = _YES_NO.match(text) if _YES_NO_ASKED.search(subject.problem) else None
    if first is not None:
        rest = text[first.end() :]
        is_first = re.match(r"[*_]*\s*[.,:;!—–-]", rest) and not _YES_NO.search(rest)
    elif len(bold) == 1 and "\n" not in text[: bold[0].end()] and "?" in subject.problem:
        first, rest = bold[0], text[bold[0].end() :]
        argues_on = re.search(rf"=|(?:^|[.!?\n]\s*){_SO}\b", rest, re.IGNORECASE)
        is_first = rest.strip(" .") and not argues_on and not _BEGINS.match(text)
    else:
        return None
    if not is_first or _TAKES_BACK.search(rest):
        return None
    # The text of which a word is the answer is also what leads to it.
    return Found(tidy(first[1]), text)


def _conclusion(sentence: str, text: str, subject: Subject) -> str | None:
    """Return the answer that the last sentence is, as far as it is one."""
    bold = _BOLD.findall(sentence)
    is_only = sentence == text.strip()
    if sentence.endswith((":", "?", "…", "...")) or len(sentence) > _MAX_BARE or "\\[" in sentence:
        return None
    if _YES_NO_ASKED.search(subject.problem) and (found := _YES_NO.match(sentence)):
        return found["answer"]
    if (is_only and "=" in sentence) or re.match(r"\{|.*\banswer\b", sentence, re.IGNORECASE):
        return None
    leads = _LEADS.match(sentence)
    is_bold = len(bold) == 1 and sentence.strip(" .!*_") == bold[0].strip(" .!*_")
    if is_bold and re.search(
        r"\n[ \t]*(?:[-*•]|(?:[2-9]|\d\d)[.)])[ \t]+\Z", text[: text.rindex(sentence)][-8:]
    ):
        # The last item of a list is one of several.
        return None
    if is_bold or (len(bold) == 1 and (leads or not _BEGINS.match(sentence))):
        return tidy(bold[0])
    if found := _COMES_TO.match(sentence):
        value = tidy(found["value"].strip("$ "))
        is_value = _is_number(value) or _TUPLE.fullmatch(value)
        if is_value or ("=" in found[0] and not leads):
            return value if is_value else None
    is_summary = len(sentence.split()) > _MAX_LED and normalise(sentence).number is None
    if _is_number(sentence.strip(" .")) or (leads and not is_summary):
        return _essence(tidy(_LEADS.sub("", sentence)))
    is_whole = len(sentence.split()) <= 5 or re.search(r"[.!)\"”»。]\Z", sentence)
    is_result = _paragraphs(text)[-1] == sentence and (
        normalise(sentence).number is not None or _names_asked(sentence, subject.problem)
    )
    if (is_only or is_result) and is_whole and not subject.alone and not _BEGINS.match(sentence):
        return tidy(sentence)
    return None


def _names_asked(sentence: str, problem: str) -> bool:
    """Whether a sentence begins with the kind of thing that is asked for: `Plan A is …` to `Which plan …?`."""
    asked = _WHICH.findall(problem)
    return bool(asked) and re.match(rf"\W*(?:the )?{asked[-1]}\b", sentence, re.IGNORECASE) is not None


def _essence(answer: str) -> str:
    """Return the one bold result in an answer; else the answer."""
    bold = _BOLD.findall(answer)
    return tidy(bold[0]) if len(bold) == 1 and len(answer) <= _MAX_BARE else answer


def _last_number(text: str) -> str:
    numbers = [text[start:end] for start, end, _ in quantities(text)]
    return numbers[-1] if numbers else ""


def _is_number(line: str) -> bool:
    """Whether a line is a number and perhaps its unit; one that begins with a word is a sentence."""
    return re.match(r"[\W\d]", line) is not None and normalise(line).number is not None


def is_same(answer: str, other: str) -> bool:
    """Whether two answers say the same, or one holds the other."""
    shorter, longer = sorted((answer.casefold(), other.casefold()), key=len)
    return agree(normalise(answer), normalise(other)) or shorter in longer
