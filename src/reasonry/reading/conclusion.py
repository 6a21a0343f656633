"""The conclusion of a plain reply that states no answer: what it says first, or what its end comes to.

Rule: a value counts only if it may be what is asked for: what is told beside it, checks it or is one of several is
      none; then the writer is asked.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import Final

from msgspec import Struct

from ..patterns import lazy_pattern
from .names import plain_name
from .no_answer import OFFERS
from .numbers import NUMBER_WORD, WIDE, numbers_in, without_latex
from .open_task import asks_for_number, is_about
from .vote import normalise, says_the_same, tidy


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


# -- words

SO: Final = (
    r"(?:so|thus|hence|therefore|then|and|finally|in conclusion|consequently|in total|altogether|in short|overall"
    r"|also|daher|folglich|somit|donc|ainsi|por (?:lo )?tanto|así que|quindi|dunque|portanto|logo"
    r"|因此|所以|よって|したがって)"
)
MONTH: Final = r"(?:Jan|Feb|März|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)"
"""After a number with a period it goes on with a date: `6. März`."""
LEADS: Final = lazy_pattern(rf"\A[\s*_>-]*{SO}(?![a-zà-ÿ])[,:，、]?\s*", re.IGNORECASE)
TAKES_BACK: Final = lazy_pattern(
    r"\b(?:wait|actually|correction|corrected|sorry|oops|hmm|instead|on second thought|let me (?:re|fix|correct)"
    r"|scratch that|that(?:'s| is) (?:not right|wrong)|no,)|^\W*(?:but|however)\b",
    re.IGNORECASE,
)
EPILOGUE: Final = lazy_pattern(
    r"[\s.*_#>(\u2600-\u27bf\ufe0f\U0001f300-\U0001faff-]*"
    r"(?:(?:here(?:'s| is) (?:why|how)|because|explanations?|reason(?:ing)?\b"
    r"|this (?:is because|follows|is (?:about|approximately|roughly))|to see|proof\b|justification\b|begründung\b"
    r"|note\b|tip\b|warning\b|caution\b|bonus\b|remark|(?:in )?summary|in other words|in detail|working\b"
    r"|verification|vérification|verific\w+|comprobación|kontrolle|probe\b|※|验证|检验|検算|注|hinweis|tipp?\b|nota\b"
    r"|keep in mind|bear in mind|please note|remarque|astuce|consejo|consiglio|dica\b|observ\w+|warum\b"
    r"|pourquoi\b|por qu[eé]\b|perché\b|fun fact\b"
    r"|(?:you|we|one) (?:can|could|may|might) (?:also|round)\b|i\.e|that said\b|that is[, ]|question\b"
    r"|relative to|for comparison"
    r"|(?:however, |nevertheless, )?it(?:['’]s| is) (?:also )?(?:important|worth) (?:to (?:note|keep in mind)|noting)"
    r"|(?:let me |let's |to |(?:you|we|one) can )?"
    r"(?:quick |sanity )?(?:double[- ]?check|verify|check|verifying|checking)\b(?=[^\n]*[\d✓✔])|✓|✔)|\Z)",
    re.IGNORECASE,
)
"""What may follow an answer that is given first."""
_REMARK: Final = lazy_pattern(r"\s\([^()]*=[^()]*\)(?=[.\s]*\Z)")
"""What a value was worked out from, behind a sentence that gives it."""
_ASIDE: Final = lazy_pattern(r"\([A-ZÀ-Þ][^()]*[.!]\)")
"""A paragraph that is a remark."""
BEGINS: Final = lazy_pattern(
    r"\W*(?:first|next|let|we (?:need|have to|must|can|start|know)|to \w+|step|now|okay|ok"
    r"|i(?:'ll| will| would|'d| should| need|'m)|given|start|if|consider|suppose|assume|you(?:['’]re"
    r"| are) asking|we(?:['’]re| are) asked"
    r"|mi chiedi|vous (?:souhaitez|voulez) savoir|vous demandez|sie möchten wissen|me preguntas|quieres saber"
    r"|você quer saber|the (?:question|problem) asks|die (?:frage|aufgabe) (?:lautet|ist)|el enunciado"
    r"|l['’]énoncé|la domanda chiede"
    r"|o enunciado|um (?:dies|das|die|den)\w* |para (?:resolver|calcular|responder)|pour (?:résoudre|calculer|répondre)"
    r"|per (?:risolvere|calcolare|rispondere))\b|这是一道|我们先|要(?:求|计算|解)",
    re.IGNORECASE,
)
"""How a sentence of the working begins, and none that concludes."""
_COMES_TO: Final = lazy_pattern(
    r"(?:^|.*?\s)(?:=|equals|makes|ergibt|is|are|ist|sind|est|es|è|é|son|sont)\s*(?P<value>[^=]{1,60}?)[.\s]*\Z"
)
_NAME: Final = r"\$?[^\W\d]\w{0,2}\s*="
_SO_THAT: Final = lazy_pattern(r"\b(?:so|thus|hence|therefore|then|also|somit|donc)\b|⇒|→|=>")
_LABELLED: Final = lazy_pattern(r"[^:=\d\n]{2,60}[^\W\d][*_]*:\s+(?P<value>[^:=\n]{1,60})")
"""A line that says what its value is: `As a mixed number: 1 7/12`."""
_SOLUTIONS: Final = lazy_pattern(
    rf"(?<!\S)(?<!for\s)(?<!if\s)(?<!as\s)(?<!since\s)(?<!with\s)(?<!where\s)(?P<value>{_NAME}"
    rf"(?>[^=,;]{{1,40}}?(?:[,;]\s*|\s)(?:(?:and|or|und|oder|et|ou|y|o|e)\s)?{_NAME})+"
    r"[^=,;:?…]{1,40}(?:=[^=,;:?…]{1,40}){0,3})\Z",
    re.IGNORECASE,
)
"""Values side by side: `x = 5/2 and x = −1`."""
_NAMED_ITEM: Final = lazy_pattern(
    r"[\s*_$•・-]{0,9}(?:\d+[.)]\s)?(?P<name>[^\W\d]\w{0,2}(?=\s*=)|[^:：–—=*_\n]{1,40}(?=[*_]{0,2}\s*[:：–—]))[*_]{0,2}"
    r"\s*[=:：–—]\s*[^=\n]{1,80}\Z"
)
"""A line that gives something to what it names: `x = 2`, `Anna: parrot`."""
_TITLED: Final = lazy_pattern(r"[\s*_•-]{0,9}[^\W\d_][^:=\n]{1,40}:\s*\S")
"""One of several lines that give something each: `Dogs: 3 × 4 = 12`."""
_SIDE_BY_SIDE: Final = lazy_pattern(
    r"[=≈]\s*[-−$]?\d[\d.,/]*[^=≈,;\d]{0,12}[,;]\s+(?:(?:and|und|et|y|e) )?[^\W\d]{4,}[^=≈:]{0,30}[=≈]\s*[-−$]?\d"
)
"""Several values that a sentence names: `Mean ≈ 5.67, median = 5.5`."""
_BOLD_ITEM: Final = lazy_pattern(r"\s*(?:[-*•]|\d{1,2}[.)])\s+\*\*")
_ITEM: Final = lazy_pattern(r"\s*(?:[-*•]|\d{1,2}[.)])\s")
_OPTION: Final = lazy_pattern(r"\(?[A-Ha-h][).:]\s")
ORDER: Final = r"(?:order|rank|sort|arrange|ordne|sortiere|ordena|classe[zr]?|ordina)"
_ORDER: Final = lazy_pattern(rf"\b{ORDER}\b", re.IGNORECASE)
_TOP_HEADING: Final = lazy_pattern(r"#{1,6}[ \t]+((?:[\w'’.,-]+[ \t]*){1,6})\n")
_CHEERS: Final = lazy_pattern(r"(?:[^\W\d_]+[ ,]*){1,5}!\W*")
"""A few words that wish something: `Enjoy your meal!`"""
_VALUE: Final = lazy_pattern(r"[^\w(]*[\d.,'\s/·×*^+−%√π()-]*\d")
"""How a value begins, up to its last digit."""
_BESIDE: Final = lazy_pattern(
    r"\b(?:by the way|incidentally|interesting(?:ly)?|(?:for|in) comparison|would|verify|check|if|unlike|also|probe)\b",
    re.IGNORECASE,
)
_BECAUSE: Final = lazy_pattern(
    r",? (?:because|since|weil|parce que|porque|puesto que|ya que|perché|poiché|omdat)\b"
    r"|, (?:denn|da|car|pues|pois|want|bo)\b",
    re.IGNORECASE,
)
_IN_OTHER_WORDS: Final = lazy_pattern(
    r"\W*(?:≈|which (?:is|includes)|including|davon|dont|or about|that is|i\.e|das heißt|d\.\s?h"
    r"|c['’]est-à-dire|soit|es decir|o sea|ou seja|cioè|即|つまり)",
    re.I,
)
_OTHERS: Final = lazy_pattern(
    r"\b(?:but|however|not|whereas|while|although|sondern|aber|mais|pero)\b", re.IGNORECASE
)
"""What contrasts something with an answer that was given first."""
_GENERAL: Final = lazy_pattern(
    r"\b(?:total|answer|result|value|number|solution|difference|product|quotient|amount|this|that|there|they|which|then"
    r"|finally|add(?:ing)?|divid(?:e|ing)|multiply(?:ing)?|subtract(?:ing)?|together|gives|left|remain\w*|equals)\b",
    re.IGNORECASE,
)
_SHOWS: Final = lazy_pattern(
    r"\b(?:outputs?|prints?|displays?|returns?|results?|gives|yields|evaluates|ausgabe)\b[^\n]{0,80}:[*_]*\s*"
    r"(?P<fence>```[^`\n]*\n(?P<answer>[^`]+)```)",
    re.IGNORECASE,
)
"""What a program comes to, in a fence."""
_YES_NO_ASKED: Final = lazy_pattern(
    r"(?:^|[.!?:]\s+)(?:is|are|was|were|am|do|does|did|can|could|may|must|will|would|has|have|had|should"
    r"|ist|sind|kann|darf|hat|est-ce que|es|è|é)\b[^.!?]*\?|\b(?:yes or no|true or false|ja oder nein|oui ou non"
    r"|sí o no|sì o no|sim ou não|vrai ou faux|verdadero o falso|vero o falso|verdadeiro ou falso)\b|吗[？?]"
    r"|是否|对还是错",
    re.IGNORECASE,
)
_QUESTION_WORD: Final = lazy_pattern(
    r"\b(?:wh(?:at|ich|o|ose|om|en|ere|y)|how|w(?:er|as|ie|en|em|o|ann|arum)|welche\w*|qu[ie]|quel\w*|combien|comment|où|quand"
    r"|pourquoi|qué|cuál\w*|cuánt\w*|quién|dónde|cuándo|cómo|ch[ei]|qual[ei]?|quant\w*|dove|quando|come|quem|onde|como|or"
    r"|oder|ou)\b",
    re.IGNORECASE,
)
_YES_NO: Final = lazy_pattern(
    rf"(?:^|[.!?\n]\s*)\W*(?:(?:{SO}|conclusion)[,:]?\s+)?[*_]*(?P<answer>yes|no|ja|nein|oui|non|sí|sì|sim|não|true|false|да|нет|tak|nie"
    r"|(?:是的?|不是|对|不对|はい|いいえ)(?=[，。、,.]|\Z))(?![^\W_])",
    re.IGNORECASE,
)
_WHICH: Final = lazy_pattern(r"\bwhich ([a-z]+)\b(?=[^.?]*\?)", re.IGNORECASE)
_WHO_IS: Final = lazy_pattern(
    r"\b(?:who|which|what)(?: [a-z]+)? (?:is|are|was|were) (?:the )?([^?,\n]{3,60})[?,]", re.IGNORECASE
)
BOLD: Final = lazy_pattern(r"\*\*(?!\s)([^*\n]*[^*\n:：\s])\*\*(?!\s*[:：])")
"""What is bold in a text and no label: `**Recommendation:**` and `**Tip**:` are none."""
_BOLD_SENTENCE: Final = lazy_pattern(
    r"(?:^|(?<=\n))(?:[^\w\s*#|>-]\ufe0f?\s)?\*\*(?!\s)([^*\n]{6,}[.!。])\*\*"
)
"""A bold sentence with which a paragraph begins."""
_IF: Final = lazy_pattern(r"\W*(?:if|wenn|falls|si|se|als|jeśli)\b", re.IGNORECASE)
_CHOOSES: Final = lazy_pattern(
    r"\b(?:[Oo]r|[Oo]der|ou|czy|[Ww]h(?:ich|o)|[Ww]elche\w*)\b| o |还是|それとも|哪|どちら|\b[A-D]\)|^\W*(?:Is|Are|Do"
    r"|Does|Can)\b"
)
"""How a question leaves a choice of what it names."""
_TUPLE: Final = lazy_pattern(r"\\?[{(\[][^(){}\[\]]*[,;][^(){}\[\]]*\\?[})\]]")
"""A set, a point or an interval."""
_SENTENCE: Final = lazy_pattern(
    rf"(?<=。)(?=因此|所以|よって|したがって)|(?<=[.!?。])[*_]*\s+(?!{MONTH})(?=[(\[*_]*[A-ZÀ-Þ\d(¿¡\"'“])"
)
"""Where a sentence ends, and the next begins."""
_ASKS_FOR: Final = (
    r"\b(?:find|what(?:['’]s| is| are)|determine|compute|calculate|evaluate)\s+(?:the\s+)?(?:value of\s+)?"
)
_NAMED_LINE: Final = lazy_pattern(
    r"^(?P<name>[^=:\n]{1,60})(?:=|:(?=[*_]*\s))[*_ ]*(?P<value>[^\n]+)$", re.MULTILINE
)
_DISPLAY: Final = lazy_pattern(r"(?:\$\$|\\\[)(?P<value>.+?)(?:\$\$|\\\])", re.DOTALL)
_PARAGRAPH: Final = lazy_pattern(r"(?:```.*?(?:```|\Z)|.)+?(?=\n[ \t]*\n|\Z)", re.DOTALL)
MAX_BARE: Final = 300
"""Characters of a text that is an answer without saying so."""

_MAX_WIDE: Final = 12
"""Characters of a number and its unit in Chinese or Japanese; a longer line is a sentence."""
_MAX_LED: Final = 20
"""Words of an answer that only a word like `overall` leads to; a longer one sums up a text."""


# -- the conclusion


def find_conclusion(text: str, subject: Subject) -> Found | None:
    """Return what a text says first, or its end comes to; None if that is nothing that may be asked for."""
    if first := _find_first(text, subject) or _find_named(text, subject):
        return first
    lead, last = _find_lead(text, subject), _find_last(text, subject)
    if lead and last and not says_the_same(lead.answer, last.answer):
        return None
    names_option = lead is not None and _OPTION.match(lead.answer)
    found = (names_option and lead) or last or lead or _find_marked(text, subject)
    found = found or _find_result(text, subject)
    bold = BOLD.findall(text)
    # What is marked as the result and what is said last must not differ.
    differ = (
        found and len(bold) == 1 and bold[0] not in found.answer and not says_the_same(bold[0], found.answer)
    )
    return None if differ else found


def _find_result(text: str, subject: Subject) -> Found | None:
    """Return the value that equations come to, one after another, where nothing but them is said.

    One equation may be a step alone, unless it is a chain, or begins with what is asked for or ends in its unit.
    """
    lines = [
        line.strip() for part in _without_asides(text, subject) for line in part.splitlines() if line.strip()
    ]
    if "=" not in lines[-1]:
        return None
    before = "".join(lines[-2:-1]).rpartition("=")[2].strip(" $*.")
    *sides, value = map(str.strip, lines[-1].strip(" $*.").split("="))
    begins_asked = plain_name(sides[0]) in plain_name(subject.problem)
    if not begins_asked and not _is_number(value):
        return None
    if len(lines) > 1:
        numbers = [str(abs(number)) for number in numbers_in(without_latex(" ".join(sides)))]
        is_result = normalise(before).number in numbers
    else:
        unit = _VALUE.sub("", value).strip()
        is_result = begins_asked or len(sides) > 1 or unit in subject.problem.split()
    return Found(tidy(value), text) if is_result else None


def _without_asides(text: str, subject: Subject) -> list[str]:
    """Return the paragraphs of a text up to its last one that is no remark."""
    parts = paragraphs(text)
    while len(parts) > 1 and "```" not in parts[-1] and _is_aside(parts[-1], subject):
        parts.pop()
    return parts


def _find_named(text: str, subject: Subject) -> Found | None:
    """Return the value that a line gives to what the problem asks for by name: `f'(x) = 2x`, `Vertex: (3, -4)`."""
    for match in reversed(list(_NAMED_LINE.finditer(text))):
        if re.match(r"\s*=", text[match.end() :]):
            # The next line goes on.
            return None
        name = re.escape(match["name"].strip(" \t*_$•-"))
        if re.search(
            rf"{_ASKS_FOR}{name}(?=\s*(?:[?,.;]|\b(?:if|for|when|where|of|at|in|with|given)\b|\Z))",
            subject.problem,
            re.IGNORECASE,
        ):
            value = tidy(match["value"].rpartition("=")[2].strip(" $*."))
            return Found(value, text[: match.end()].strip(), text[match.end() :].strip()) if value else None
    return None


def _find_lead(text: str, subject: Subject) -> Found | None:
    """Return the first sentence, if it gives the one bold result or is a number, or names what is asked for."""
    line = text.partition("\n")[0]
    sentence = _SENTENCE.split(line, maxsplit=1)[0].strip()
    rest = text[len(sentence) :]
    heading = _TOP_HEADING.match(text)
    if heading and "\n#" not in text and len(heading[1].split()) < 4:
        return Found(tidy(heading[1]), text)
    begins = re.match(r"[|#]", text) or _ITEM.match(text) or BEGINS.match(sentence)
    if begins or sentence.endswith((":", "?")) or TAKES_BACK.search(rest) or not rest.strip():
        return None
    bold = BOLD.findall(sentence)
    first = bold[0] if len(bold) == 1 else ""
    only = first if "**" not in rest and not _is_topic(first, subject.problem) else ""
    goes_on = _has_new_number(line[len(sentence) :], subject.problem + sentence)
    is_result = not goes_on or set(numbers_in(only)).intersection(numbers_in(rest))
    leads = (
        only and is_result and is_about(sentence, subject.problem),
        only and line.strip() == f"**{only}**" and (_is_number(only) or only in subject.problem),
        first and re.search(rf"(?<!\w){re.escape(first)}\)", subject.problem),
        _OPTION.match(first) and first in subject.problem,
        _OPTION.match(line) and line.strip() in subject.problem,
        len(re.findall(" [→><] ", line)) > 1 and _ORDER.search(subject.problem),
        len(sentence.split()) <= 2 and NUMBER_WORD.match(sentence) and sentence[-1] in ".!",
        _names_asked(sentence, subject.problem),
        _is_worked_out(sentence, rest, subject.problem),
    )
    return Found(essence(tidy(sentence)), text) if any(leads) else None


def _find_last(text: str, subject: Subject) -> Found | None:
    parts = _without_asides(text, subject)
    if parts[-1].startswith("|") or "```" in parts[-1]:
        return None
    if shown := _DISPLAY.fullmatch(parts[-1]):
        start = text.rindex(parts[-1])
        after = text[start + len(parts[-1]) :].strip()
        return Found(shown["value"].strip(" .\n"), text[:start].strip(), after)
    if bold := _find_bold(parts[-1], subject):
        end = text.rindex(bold) + len(bold)
        answer = essence(tidy(bold))
        before = text[: end - len(bold) if answer == tidy(bold) else end]
        return Found(answer, before.strip(), text[end:].strip())
    lines = parts[-1].splitlines()
    items = [item for item in takewhile(bool, map(_NAMED_ITEM.match, reversed(lines))) if item]
    # Each is named in the problem, and not as a part of a word.
    names = (rf"(?<![^\W\d]){re.escape(item['name'].strip())}(?![a-zà-ÿ])" for item in items)
    if len(items) > 1 and all(re.search(name, subject.problem, re.IGNORECASE) for name in names):
        several = "\n".join(item[0] for item in reversed(items))
        return Found(several, text[: text.rindex(several)].strip())
    line = lines[-1].strip()
    sentences = _SENTENCE.split(line.removeprefix(mark[0]) if (mark := _ITEM.match(line)) else line)
    while len(sentences) > 1 and (
        sentences[-1].startswith("(") or _CHEERS.fullmatch(sentences[-1]) or _is_aside(sentences[-1], subject)
    ):
        sentences.pop()
    sentence = sentences[-1].strip()
    # The last item of a list is one of several, unless it is a sentence, as a step is.
    is_item = len(lines) > 1 and _ITEM.match(line) and (line[-1] not in ".!。" or _BOLD_ITEM.match(line))
    is_item = is_item or (len(lines) > 1 and all(map(_TITLED.match, [*lines[-2:-1], _GENERAL.sub("", line)])))
    answer = None if is_item else _conclusion(sentence, text, subject)
    if answer is None:
        return None
    end = text.rindex(sentence) + len(sentence)
    start = end - len(sentence) if answer in (tidy(sentence), sentence) else end
    is_stated = "**" in sentence or "=" in sentence or _is_number(answer)
    return Found(answer, text[:start].strip(), text[end:].strip(), is_stated)


def _find_bold(text: str, subject: Subject) -> str | None:
    """Return the first sentence of a paragraph, if it has the only bold result and nothing after it may be one, too."""
    if (bold := BOLD.match(text)) and bold[1][-1] in ".!":
        return bold[0]
    sentence = _SENTENCE.split(text.partition("\n")[0], maxsplit=1)[0].strip()
    rest = text[len(sentence) :]
    goes_on = _has_new_number(rest, sentence + subject.problem) or _OTHERS.search(rest)
    is_first = _only_bold(sentence, subject.problem) and not _ITEM.match(sentence)
    return sentence if is_first and not (goes_on or re.search(r"[=\n]|\*\*", rest)) else None


def _find_marked(text: str, subject: Subject) -> Found | None:
    """Return the one sentence that is bold, or the one bold value, where only remarks follow it."""
    sentences = list(_BOLD_SENTENCE.finditer(text))
    marked = sentences or list(BOLD.finditer(text))
    if len(marked) != 1 or "```" in text or _is_topic(marked[0][1], subject.problem):
        return None
    start, end = marked[0].span()
    rest = text[end:]
    is_result = bool(sentences) or (text[:start].count("\n") > 1 and _is_number(marked[0][1]))
    if not is_result or "=" in rest or TAKES_BACK.search(rest):
        return None
    return Found(tidy(marked[0][1]), text[:end].strip(), rest.strip())


def _is_aside(text: str, subject: Subject) -> bool:
    """Whether a text explains or checks an answer, or tells of something else than what is asked for."""
    if EPILOGUE.match(text) or _ASIDE.fullmatch(text) or OFFERS.match(text):
        return True
    return bool(_BESIDE.search(text)) and not BOLD.search(text) and not is_about(text, subject.problem)


def _find_first(text: str, subject: Subject) -> Found | None:
    """Return the yes or no, the number or the one bold result that a text begins with, and does not go beyond."""
    line, _, below = text.partition("\n\n")
    line = re.sub(r"です|でした", "", line).strip(" .。")
    if (
        _is_number(line)
        and line[-1] not in ":："
        and not (WIDE.search(line) and len(line) > _MAX_WIDE)
        and ("=" not in below or numbers_in(below)[-1:] == numbers_in(line))
    ):
        return Found(tidy(line), text)
    if len(shown := list(_SHOWS.finditer(text))) == 1:
        return Found(shown[0]["answer"].strip("\n"), text[: shown[0].start("fence")], text[shown[0].end() :])
    problem = subject.problem
    asks_it = _YES_NO_ASKED.search(problem) or ("?" in problem and not _QUESTION_WORD.search(problem))
    # The text of which a word is the answer is also what leads to it.
    if asks_it and (first := _YES_NO.match(text)):
        return Found(tidy(first[1]), text) if re.match(r"[*_]*\s*[.,:;!—–-]", text[first.end() :]) else None
    first = _only_bold(text, problem) if "?" in problem and "```" not in text else None
    return Found(tidy(first[1]), text) if first and "\n" not in text[: first.end()] else None


def _only_bold(text: str, problem: str) -> re.Match[str] | None:
    """Return what is bold in a text, if nothing else is and nothing after it may be the answer as well."""
    bold = list(BOLD.finditer(text))
    if len(bold) != 1:
        return None
    rest = text[bold[0].end() :].partition("\n\n")[0]
    goes_on = _has_new_number(rest, problem) and _is_number(bold[0][1]) and not _IN_OTHER_WORDS.match(rest)
    return None if goes_on or _OTHERS.search(rest) or _is_topic(bold[0][1], problem) else bold[0]


def _is_topic(words: str, problem: str) -> bool:
    """Whether words are what a question is about, and no choice that it leaves."""
    is_asked = len(words) > 1 and plain_name(words) in plain_name(problem) and not numbers_in(words)
    return is_asked and "?" in problem and not _CHOOSES.search(problem)


def _has_new_number(text: str, known: str) -> bool:
    return not set(NUMBER_WORD.findall(text)).issubset(NUMBER_WORD.findall(known))


def _conclusion(sentence: str, text: str, subject: Subject) -> str | None:
    """Return the answer that the last sentence is, as far as it is one."""
    if sentence.endswith((":", "?", "…", "...")):
        return None
    is_only, leads = sentence == text.strip(), LEADS.match(sentence)
    if is_only and (reason := _BECAUSE.search(sentence)):
        sentence = sentence[: reason.start()]
    content = LEADS.sub("", sentence)
    plain = without_latex(re.sub(r"\\[()]|\*\*", "", sentence))
    several = _SOLUTIONS.search(sentence) or _SOLUTIONS.search(plain)
    if _SIDE_BY_SIDE.search(sentence):
        return tidy(sentence)
    bold = _only_bold(sentence, subject.problem)
    is_step = is_only and not (several or leads) and "=" in _REMARK.sub("", sentence)
    if is_step or re.match(r"\{|.*\banswer\b", sentence, re.IGNORECASE):
        return None
    if bold:
        return tidy(bold[1])
    if found := several or _COMES_TO.match(_REMARK.sub("", sentence)) or _LABELLED.fullmatch(sentence):
        value = tidy(found["value"].partition("≈")[0].rstrip("$. "))
        is_value = (
            _LABELLED.fullmatch(sentence)
            or _is_number(value)
            or _TUPLE.fullmatch(value)
            or _SOLUTIONS.match(value)
        )
        may_be = leads or several or _may_be_asked(_SO_THAT.split(sentence)[-1], subject.problem)
        if is_value or ("=" in found[0] and not leads):
            return value if is_value and may_be else None
    if _is_number(sentence.strip(" .")) or (leads and len(sentence.split()) <= _MAX_LED):
        return essence(tidy(content))
    is_last = f"\n\n{sentence}" in text
    is_result = is_only or _gives_result(sentence, text, subject.problem)
    is_result = is_result or (is_last and "**" in sentence and is_about(sentence, subject.problem))
    return tidy(sentence) if is_result and not subject.alone and not BEGINS.match(sentence) else None


def _gives_result(sentence: str, text: str, problem: str) -> bool:
    """Whether a sentence states the result of a text about the question, or names the thing asked for."""
    if not is_about(sentence, problem):
        return _names_asked(sentence, problem)
    results = numbers_in(text[: text.rindex(sentence)].rpartition("=")[2]) if "=" in text else []
    new = {*numbers_in(sentence)}.difference(numbers_in(problem))
    is_number = normalise(sentence).number is not None
    is_number = is_number or (asks_for_number(problem) and len(new) == 1 and not _IF.match(sentence))
    gives = results[0] in numbers_in(sentence) if results else is_number
    return gives or _names_asked(sentence, problem)


def _may_be_asked(sentence: str, problem: str) -> bool:
    """Whether a value may be what is asked for: `The mean is 4` says nothing of a median."""
    subject = _GENERAL.sub(
        "", re.split(r"\b(?:is|are|ist|sind|equals|makes)\b|[=:]", sentence, maxsplit=1)[0]
    )
    return not re.search(r"[^\W\d_]{4,}", subject) or is_about(subject, problem)


def _names_asked(sentence: str, problem: str) -> bool:
    """Whether a sentence says of something that it is asked for: `Plan A is …` to `Which plan …?`."""
    kinds = [rf"\A\W*(?:the )?{noun}\b" for noun in _WHICH.findall(problem)[-1:]]
    names = [
        rf"\b{name}\b[^.,;]{{0,40}}\b(?:is|are|was|were)\b|\b(?:is|are|was|were)(?: the)? {name}\b"
        for name in map(re.escape, map(str.strip, _WHO_IS.findall(problem)[-1:]))
    ]
    return any(re.search(pattern, sentence, re.IGNORECASE) for pattern in (*kinds, *names))


def essence(answer: str) -> str:
    """Return the one bold result in an answer; else the answer."""
    bold = BOLD.findall(answer)
    return tidy(bold[0]) if len(bold) == 1 and len(answer) <= MAX_BARE else answer


def _is_worked_out(sentence: str, text: str, problem: str) -> bool:
    """Whether a sentence gives one number that the problem does not have, and a text works it out."""
    if "=" in sentence:
        return False
    new = {*numbers_in(sentence)}.difference(numbers_in(problem))
    results = [number for side in re.findall(r"[=≈][^=≈\n]+", text) for number in numbers_in(side)[:1]]
    return len(new) == 1 and new.issubset(results)


def _is_number(line: str) -> bool:
    """Whether a line is a number and perhaps its unit; one that begins with a word is a sentence."""
    return re.match(r"[\W\d]", line) is not None and normalise(line).number is not None


def paragraphs(text: str) -> list[str]:
    """Split at blank lines, but not inside a fence."""
    return [found[0].strip() for found in _PARAGRAPH.finditer(text) if found[0].strip()]
