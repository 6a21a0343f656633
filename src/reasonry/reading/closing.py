"""Closing phrases: offers of more help, of which none is part of an answer.

Rule: a sentence is one only if all of it is; "Let me know if the price is above 100 euros." says something.
"""

from __future__ import annotations

import re
from typing import Final

from ..patterns import lazy_pattern

_MORE: Final = (
    r"(?:\s+(?:(?:any|some)\s+)?(?:other|further|more|additional|follow-?up)?\s*(?:questions?|details?|help"
    r"|information"
    r"|assistance|changes|adjustments|clarification|explanation|examples?)(?:\s+(?:or|and)\s+\w+(?:\s+\w+){0,3})?"
    r"|\s+anything else|\s+help)(?:\s+(?:with (?:this|that|it|anything else|anything)|on (?:this|that)"
    r"|about (?:this|that|it)))?"
)
_OFFER: Final = r"(?:would|['’]d) (?:like|prefer)(?: me)? to \w[^.!?\n]{0,90}|want me to \w[^.!?\n]{0,90}"
_ASK: Final = (
    r"(?:please\s+)?(?:just\s+)?(?:feel free to|don['’]t hesitate to|do not hesitate to)\s+(?:ask|reach out"
    r"|contact me|let me know)"
    r"|(?:please\s+)?(?:just\s+)?(?:let me know|ask)"
)
_CLOSING: Final = lazy_pattern(
    r"(?P<before>\A|[\s\S]*?(?:[.!?:…*_`}$)»”\"'|。！]\s|\n))[ \t*_>-]*(?:"
    rf"(?:please\s+)?let me know if (?:you\s*(?:have{_MORE}|need{_MORE}|{_OFFER})|there(?:['’]s"
    rf"| is) anything else[^.!?\n]{{0,60}})"
    r"|(?:i\s+)?hope (?:this|that|it) (?:helps?|is helpful|answers your question)(?:\s+you)?"
    rf"|if you (?:have{_MORE}|need{_MORE}|{_OFFER}),?\s*{_ASK}"
    rf"|(?:please\s+)?(?:feel free to|don['’]t hesitate to|do not hesitate to) (?:ask|reach out"
    rf"|contact me)(?:\s+if you (?:have|need){_MORE})?"
    rf"|(?:would you like|do you want|shall i|should i)(?: me)?(?: to)? [^.!?\n]{{1,90}}\?"
    r"|is there anything else[^.!?\n]{0,60}\?|(?:i['’]m |i am )?happy to help(?: (?:with anything else|further))?"
    r"|ich hoffe,? (?:das|dies|es) hilft(?: \w+)?(?: weiter)?"
    r"|(?:sag|sagen sie|gib|geben sie)(?: mir)?(?: gern(?:e)?)? bescheid,? (?:wenn|falls|ob) (?:du|sie|ich"
    r"|noch)\b[^.!?\n]{0,80}"
    r"|lass(?:en sie)? (?:es )?mich wissen,? (?:wenn|falls|ob) (?:du|sie|ich|noch)\b[^.!?\n]{0,80}"
    r"|n['’]hésite[zs]? pas (?:à (?:me )?(?:demander|contacter|poser)|si (?:vous avez"
    r"|tu as))[^.!?\n]{0,60}|j['’]espère que (?:cela"
    r"|ça) \w+ ?aide\w*"
    r"|espero que (?:esto |te |le |lhe |isso )*(?:sirva|ayude|sea útil|ajude)|spero che (?:questo |ti "
    r"|le )*(?:sia utile|aiuti|sia d['’]aiuto)"
    r"|(?:avísame|avíseme|fammi sapere|mi faccia sapere|me avise) se?i?\b (?:tienes|necesitas|hai|ha|vuoi"
    r"|tiver|precisar|quieres)[^.!?\n]{0,80}"
    r")[ \t]*[.!?…]*[*_]*[ \t\U0001F300-\U0001FAFF\u2600-\u27BF\ufe0f]*\Z",
    re.IGNORECASE,
)
"""A closing phrase, and the text before it. It is no part of an answer, whoever says it."""
_RULE: Final = lazy_pattern(r"\n\s*(?:-{3,}|\*{3,}|_{3,})\s*\Z")


def without_closing(text: str) -> str:
    """Return a text without the closing phrases at its end, and the rule that set them apart."""
    text = text.strip()
    while match := _CLOSING.match(text[-400:]):
        text = _RULE.sub("", (text[:-400] + match["before"]).rstrip()).rstrip()
    return text
