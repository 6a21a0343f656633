"""What in a reply is no part of its answer: hidden thinking, offers of help, the form handed back, endless repetition.

Rule 1: a sentence is a closing phrase only if all of it is one; "Let me know if the price is above 100 euros." says
        something.
Rule 2: words shared with the question prove nothing, for an answer may be one of its options. So a text is an echo if
        it is, but for case and punctuation, one whole placeholder of several words without a number: a description in
        the form, or what the form has for a field as the question shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from ..patterns import lazy_pattern

# -- hidden thinking

_TAGS: Final = r"(?:think|thinking|thought|reflection)"
_THINKING: Final = lazy_pattern(
    rf"\A.*</{_TAGS}>|<(?:think|thinking)>.*\Z|\[THINK\].*?\[/THINK\]", re.DOTALL | re.IGNORECASE
)
_FINAL_CHANNEL: Final = lazy_pattern(r"\A.*<\|channel\|>final\b[^<]*<\|message\|>", re.DOTALL)
_OTHER_CHANNEL: Final = lazy_pattern(
    r"<\|channel\|>(?:analysis|commentary)(?![^<]* to=)\b[^<]*<\|message\|>.*?(?:<\|(?:end|return)\|>|\Z)",
    re.DOTALL,
)
_CHANNEL_TAG: Final = lazy_pattern(r"<\|(?:start|end|return|call)\|>(?:assistant)?")


def without_thinking(text: str) -> str:
    """Return a reply without what its writer thought before it, where that stands in tags or in channels."""
    if "<|" in text:
        # Of channels, `final` is the reply; a text in none of them stands for itself.
        text = _OTHER_CHANNEL.sub("", _FINAL_CHANNEL.sub("", text))
        text = _CHANNEL_TAG.sub("", text).strip()
    return _THINKING.sub("", text).strip() if "<" in text or "[" in text else text


# -- opening and closing phrases

_OPENING: Final = lazy_pattern(
    r"\A(?:sure(?: thing)?|certainly|of course|absolutely|gladly|with pleasure|gern(?:e)?|natürlich|klar"
    r"|selbstverständlich|bien sûr|avec plaisir|volontiers|claro(?: que sí)?|por supuesto|con (?:mucho )?gusto|certo"
    r"|certamente|volentieri|com certeza|好的|当然|もちろんです|もちろん|はい)[!,.，！。、 ]+"
    r"(?:(?:here(?:['’]s| is| are)|below (?:is|are)|hier (?:ist|sind)|voici|aquí (?:está|tienes|tiene|va)|ecco|segue"
    r"|aqui (?:está|vai|vão))\b|以下|这是|これ)[^\n\d()（）]{0,160}[:：]\s*\n\s*(?:(?:-{3,}|\*{3,}"
    r"|_{3,})\s*\n\s*)?(?=\S)",
    re.IGNORECASE,
)
"""A line that agrees to do the task and announces the text below it: `Sure! Here is the e-mail:`. A line that only
announces may be the first of the text itself."""

OFFER: Final = (
    r"(?:(?:please )?(?:let me know|feel free|(?:don['’]t|do not) hesitate)|would you (?:like|prefer)|do you want"
    r"|if you(?:['’]d| would)? (?:like|prefer|want|rather)|shall i|want me to|are you\b|soll ich|möchtest|möchten"
    r"|(?:i(?:['’]m|['’]d be| am| would be) )?(?:happy|glad) to|souhaite|voulez|veux-tu|quieres|vuoi|gostaria|quer que)"
)
"""How an offer begins, which follows an answer."""
OFFERS: Final = lazy_pattern(rf"\W*{OFFER}", re.IGNORECASE)
_CLOSING_WORDS: Final = """
i you me it this that these them a an the any some more other another further additional different follow up
and or if to of on for with about please just feel free let know ask reach out contact don do not hesitate is
am there anything else have need want would like prefer can could d m s t happy glad help helps helped
helpful calculate check solve assist assistance hope answers your question questions correct information
clarification explain
explanation add adjust adapt change changes clarify elaborate expand give include make provide refine revise
rewrite shorten show simplify translate write formal version versions tone length format style wording
example examples exercices exercises ejercicios
summary draft text answer reply code step steps section sections part parts translation
suggestions edits ich hoffe das dies es hilft dir ihnen euch weiter sag sagen sie gib lass mir gern gerne
bescheid wissen wenn falls ob du noch weitere mehr fragen hilfe etwas änderungen dazu hast haben brauchst
brauchen ändern soll n hésite hésitez pas à nous demander poser vos tes autres des si vous avez tu as j
espère que cela ça te aide espero esto le lhe isso sirva ayude sea útil ajude avísame avise se tienes
necesitas más preguntas dudas ayuda ajuda algo tiver precisar de mais perguntas dúvidas spero che questo ti
sia utile aiuti fammi sapere hai bisogno di altro domande
"""
_CLOSING: Final = lazy_pattern(
    r"(?P<before>\A|[\s\S]*?(?:[.!?:…*_`}$)»”\"'|。！]\s|\n))[ \t*_>-]*"
    rf"(?!(?:please )?(?:let me know|avísame|fammi sapere)\W*\Z)"
    r"(?=(?:please )?(?:let me know|feel free|(?:don['’]t|do not) hesitate)|(?:would you (?:like|prefer)|do you want"
    r"|want) (?:me|an?|any|some|more|another|the)\b|(?:i )?hope (?:this|that|it) (?:help|is|answer)"
    r"|is there anything else"
    r"|(?:i(?:['’]m| am) )?happy to|if you[^\n]{0,80}\b(?:let me know|feel free|hesitate|ask|reach out|contact)\b"
    r"|ich hoffe,? (?:das|dies|es)|sag|gib|lass|n['’]hésite|j['’]espère que|espero que|spero che|avísame"
    r"|me avise|fammi)"
    rf"(?:(?:{'|'.join(_CLOSING_WORDS.split())})(?!\w)[ \t,'’-]*)+"
    r"[.!?…]*[*_]*[ \t\U0001F300-\U0001FAFF\u2600-\u27BF\ufe0f]*\Z",
    re.IGNORECASE,
)
"""A closing phrase and the text before it: a sentence of such words alone, so that it says nothing of its own."""
_RULE: Final = lazy_pattern(r"\n\s*(?:-{3,}|\*{3,}|_{3,})\s*\Z")


def without_closing(text: str) -> str:
    """Return a text without the closing phrases at its end, and the rule that set them apart."""
    text = text.strip()
    while match := _CLOSING.match(text[-400:]):
        text = _RULE.sub("", (text[:-400] + match["before"]).rstrip()).rstrip()
    return text


def without_opening(text: str) -> str:
    """Return a text without the line that agrees to write it."""
    return _OPENING.sub("", text, count=1)


# -- echoes

_DOTS: Final = lazy_pattern(r"[\s.,;…\"'“”`*_-]*(?:…|\.\.|[,;])[\s.,;…\"'“”`*_-]*")
_SHOWN: Final = lazy_pattern(r'"(?P<name>\w{1,50})":\s*\[?\s*"(?P<text>[^"\n]{2,300})"')
_LEAD: Final = lazy_pattern(r"\A\s*the (?:final )?answer is:?(?=\W)\s*", re.IGNORECASE)
_BESIDE: Final = frozenset({"reason", "reasoning", "evaluation", "thought", "plan", "mark"})
"""Fields beside what is wanted; where there is another text, they may say what they like."""
_MAX_PLACEHOLDER: Final = 320
"""Characters; a longer text is no placeholder."""


def echo_in(value: Any, shown: str, form: Mapping[str, Any], problem: str) -> str | None:
    """Return the text of a reply that echoes the question; None if none does.

    Args:
        value: The reply as it was read, as plain data.
        shown: The question, or the part of it that shows the form.
        form: JSON schema of the reply.
        problem: What the run is about.
    """
    texts = list(_texts(value))
    is_all = {name for name, _ in texts} <= _BESIDE
    for name, text in texts:
        is_answer = name.endswith(("answer", "Answer", "result"))
        is_one_word = not is_answer and text.isalnum()
        if is_one_word or len(text) > max(_MAX_PLACEHOLDER, 2 * len(problem)):
            continue
        text = _LEAD.sub("", text)
        if _DOTS.fullmatch(text):
            return text
        words = _words(text) if is_all or name not in _BESIDE else ""
        if is_answer and words and words == _asked_words(problem):
            return text
        has_words = " " in words and not any(map(str.isdigit, words))
        if has_words and words in _placeholders(shown, msgspec.json.encode(form)):
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


@lru_cache(maxsize=64)
def _placeholders(shown: str, form: bytes) -> frozenset[str]:
    schema = msgspec.json.decode(form)
    parts = list(_texts(schema))
    options = {_words(text) for name, text in parts if name in ("enum[]", "const")}
    described = {_words(text) for name, text in parts if name == "description"}
    names = set(_names(schema))
    quoted = {_words(match["text"]) for match in _SHOWN.finditer(shown) if match["name"] in names}
    return frozenset((described | quoted) - options)


def _names(form: Any) -> Iterator[str]:
    """Yield the names of the fields of a form, at any depth."""
    if isinstance(form, Mapping):
        yield from form.get("properties", ())
        form = list(form.values())
    if isinstance(form, list):
        for part in form:
            yield from _names(part)


@lru_cache(maxsize=16)
def _asked_words(problem: str) -> str:
    return _words(problem)


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


# -- repetition

REPEATED_CHARS: Final = 300
"""At the end of a text that was cut off: if so many repeat themselves, more room would have brought more of them."""
ENDLESS_CHARS: Final = 6_000
"""At the end of a text that still grows: if so many repeat themselves, it is not going to end."""
_TIMES: Final = 4
"""How often a piece stands there at least."""


def repeats_itself(text: str, chars: int = REPEATED_CHARS) -> bool:
    """Whether the last characters of a text are one piece of text over and over."""
    end, longest = text[-chars:], chars // _TIMES
    if len(end) < chars:
        return False
    period = chars - longest - end.rfind(end[-longest:], 0, -1)
    return period <= longest and end[period:] == end[:-period]


class Endless:
    """Listens to a text that streams in until it repeats itself without end."""

    def __init__(self) -> None:
        self.is_heard = False
        self._end, self._new = "", list[str]()

    def hear(self, piece: str) -> bool:
        """Take in a piece; whether the text is endless by now."""
        self._new.append(piece)
        if len(self._new) >= 100 and not self.is_heard:
            self._end = (self._end + "".join(self._new))[-ENDLESS_CHARS:]
            self._new.clear()
            self.is_heard = repeats_itself(self._end, ENDLESS_CHARS)
        return self.is_heard
